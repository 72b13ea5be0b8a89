from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
_, error = client.webhooks.delete("{{endpoint_id}}")
if error:
    raise SystemExit(error)
print("deleted")
