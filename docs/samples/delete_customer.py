from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
_, error = client.customers.delete("{{customer_id}}")
if error:
    raise SystemExit(error)
print("deleted")
