import time

from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")

# 1. Create: something to be paid, and a page to pay it on.
checkout, error = client.checkouts.create(amount="100.00", description="Two books")
if error:
    raise SystemExit(error)
print("pay here:", checkout["payment_url"])

# 2. Pay. In test mode this phone approves by itself; a real payer opens the page instead.
session, error = client.payments.initialize(
    client_secret=checkout["client_secret"],
    payment_method="afrimoney",
    customer_phone="+2207000000",
)
if error:
    raise SystemExit(error)

# 3. See it paid. Your server learns it from the webhook; this only shows it.
while checkout["status"] == "pending":
    time.sleep(0.5)
    checkout, error = client.checkouts.get(checkout["id"])
    if error:
        raise SystemExit(error)
print(checkout["status"], checkout["transaction"]["net_amount"], checkout["currency"])
