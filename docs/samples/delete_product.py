from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
_, error = client.products.delete("{{product_id}}")
if error:
    raise SystemExit(error)
print("deleted")
