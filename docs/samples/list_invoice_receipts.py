from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
receipts, error = client.invoices.get_receipts("{{paid_invoice_id}}")
if error:
    raise SystemExit(error)
for receipt in receipts:
    print(receipt["receipt_number"], receipt["amount"], receipt["receipt_url"])
