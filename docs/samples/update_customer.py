from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
customer, error = client.customers.update("{{customer_id}}", name="Awa Ceesay-Jallow")
if error:
    raise SystemExit(error)
print(customer["email"], customer["phone"], customer["name"])
