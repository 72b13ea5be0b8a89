from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
checkout, error = client.checkouts.create(
    amount="100.00",
    description="Two books",
    reference="order-1043",
    idempotency_key="order-1043",
)
if error:
    raise SystemExit(error)
print(checkout["payment_url"], checkout["client_secret"])
