from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
customer, error = client.customers.get("{{customer_id}}")
if error:
    raise SystemExit(error)
print(customer["email"], customer["phone"], customer["name"])
