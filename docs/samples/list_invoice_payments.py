from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
payments, error = client.invoices.list_payments("{{paid_invoice_id}}")
if error:
    raise SystemExit(error)
for payment in payments:
    print(payment["payment_date"], payment["amount"], payment["payment_method"])
