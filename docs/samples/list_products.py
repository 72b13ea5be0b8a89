from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
page, error = client.products.list(limit=5, active=True)
if error:
    raise SystemExit(error)
for product in page["items"]:
    print(product["id"], product["name"], product["price"])
