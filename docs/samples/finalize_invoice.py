from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.finalize("{{draft_id}}")
if error:
    raise SystemExit(error)
print(invoice["status"], invoice["payment_url"])
