from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
link, error = client.payment_links.get("{{payment_link_id}}")
if error:
    raise SystemExit(error)
print(link["status"], link["usage_count"])
