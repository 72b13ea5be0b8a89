from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
result, error = client.webhooks.test("{{endpoint_id}}")
if error:
    raise SystemExit(error)
print(result["success"], result["status_code"])
