from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.cancel("{{invoice_id}}")
if error:
    raise SystemExit(error)
print(invoice["status"])
