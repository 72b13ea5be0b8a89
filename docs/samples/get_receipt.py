from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
receipt, error = client.receipts.get("{{receipt_id}}")
if error:
    raise SystemExit(error)
print(receipt["receipt_number"], receipt["amount"], receipt["receipt_url"])
