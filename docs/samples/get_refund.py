from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
refund, error = client.refunds.get("{{refund_id}}")
if error:
    raise SystemExit(error)
print(refund["amount"], refund["status"])
