from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
links, error = client.payment_links.list(status="active", limit=5)
if error:
    raise SystemExit(error)
for link in links["items"]:
    print(link["id"], link["title"], link["usage_count"])
