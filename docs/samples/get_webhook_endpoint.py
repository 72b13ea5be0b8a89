from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
endpoint, error = client.webhooks.get("{{endpoint_id}}")
if error:
    raise SystemExit(error)
print(endpoint["status"], endpoint["consecutive_failures"])
