from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.update("{{draft_id}}", tax_rate=7.25, notes="Thank you!")
if error:
    raise SystemExit(error)
print(invoice["version"], invoice["tax_amount"], invoice["total_amount"])
