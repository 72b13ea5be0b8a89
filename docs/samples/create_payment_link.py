from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
link, error = client.payment_links.create(
    title="Concert, 14 February",
    amount="250.00",
    max_usage_count=300,
)
if error:
    raise SystemExit(error)
print(link["id"], link["payment_url"])
