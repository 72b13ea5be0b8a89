from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
page, error = client.invoices.list(status="open", limit=5)
if error:
    raise SystemExit(error)
for invoice in page["items"]:
    print(invoice["invoice_number"], invoice["remaining_amount"], invoice["status"])
