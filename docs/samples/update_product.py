from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
product, error = client.products.update("{{product_id}}", price="80.00")
if error:
    raise SystemExit(error)
print(product["name"], product["price"], product["currency"])
