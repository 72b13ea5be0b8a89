from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
page, error = client.receipts.list(limit=5)
if error:
    raise SystemExit(error)
for receipt in page["receipts"]:
    print(receipt["receipt_number"], receipt["amount"], receipt["payment_date"])
