from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
product, error = client.products.get("{{product_id}}")
if error:
    raise SystemExit(error)
print(product["name"], product["price"], product["currency"])
