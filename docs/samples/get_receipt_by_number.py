from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
receipt, error = client.receipts.get_by_number("{{receipt_number}}")
if error:
    raise SystemExit(error)
print(receipt["id"], receipt["amount"], receipt["customer_name"])
