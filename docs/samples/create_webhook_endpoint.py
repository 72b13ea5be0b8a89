from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
endpoint, error = client.webhooks.create(
    url="{{webhook_url}}",
    enabled_events=["payment.*", "checkout.*"],
)
if error:
    raise SystemExit(error)
print(endpoint["id"], endpoint["secret"])
