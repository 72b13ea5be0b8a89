from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.get("{{invoice_id}}")
if error:
    raise SystemExit(error)
print(invoice["invoice_number"], invoice["status"], invoice["remaining_amount"])
