from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.send("{{invoice_id}}")
if error:
    raise SystemExit(error)
print(invoice["customer_email"], invoice["sent_count"])
