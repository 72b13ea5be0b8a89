from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
endpoint, error = client.webhooks.update("{{endpoint_id}}", enabled_events=["checkout.completed"])
if error:
    raise SystemExit(error)
print(endpoint["enabled_events"])
