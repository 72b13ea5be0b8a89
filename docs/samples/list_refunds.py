from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
refunds, error = client.refunds.list(limit=5)
if error:
    raise SystemExit(error)
for refund in refunds["items"]:
    print(refund["id"], refund["amount"], refund["status"])
