from datetime import datetime

from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
invoice, error = client.invoices.create(
    customer_email="awa@example.gm",
    customer_name="Awa Ceesay",
    currency="GMD",
    due_date=datetime(2030, 1, 31),
    tax_rate=15,
    items=[{"description": "Rice, 50 kg", "quantity": 2, "unit_price": "1450.00"}],
)
if error:
    raise SystemExit(error)
print(invoice["invoice_number"], invoice["total_amount"], invoice["payment_url"])
