from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
link, error = client.payment_links.update("{{payment_link_id}}", max_usage_count=400)
if error:
    raise SystemExit(error)
print(link["max_usage_count"])
