from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
endpoints, error = client.webhooks.list()
if error:
    raise SystemExit(error)
for endpoint in endpoints["items"]:
    print(endpoint["id"], endpoint["url"], endpoint["status"])
