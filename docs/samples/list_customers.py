from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
page, error = client.customers.list(limit=5)
if error:
    raise SystemExit(error)
for customer in page["items"]:
    print(customer["id"], customer["name"])
