from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
refund, error = client.refunds.create("{{transaction_id}}", amount="40.00", reason="One of two books came back")
if error:
    raise SystemExit(error)
print(refund["id"], refund["status"])
