curl "{{base_url}}/v1/pay/invoices" \
  -H "Authorization: Bearer {{key}}" \
  -H "Idempotency-Key: invoice-1042" \
  -H "Content-Type: application/json" \
  -d '{
    "customer_email": "awa@example.gm",
    "customer_name": "Awa Ceesay",
    "due_date": "2030-01-31",
    "tax_rate": 15,
    "items": [{ "description": "Rice, 50 kg", "quantity": 2, "unit_price": "1450.00" }]
  }'
