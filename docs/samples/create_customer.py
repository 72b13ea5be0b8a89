from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
customer, error = client.customers.create(email="awa@example.gm", phone="+2207000000", name="Awa Ceesay")
if error:
    raise SystemExit(error)
print(customer["id"])
