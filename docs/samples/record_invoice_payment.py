from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.record_payment(
    "{{invoice_id}}",
    amount="40.00",
    payment_method="bank_transfer",
    transaction_id="31/7",
)
if error:
    raise SystemExit(error)
print(invoice["status"], invoice["remaining_amount"])
