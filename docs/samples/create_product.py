from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
product, error = client.products.create(name="Atlas", price="75.00", description="Maps of West Africa")
if error:
    raise SystemExit(error)
print(product["id"])
