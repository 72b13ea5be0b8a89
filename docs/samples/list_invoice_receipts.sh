curl "{{base_url}}/v1/pay/invoices/{{paid_invoice_id}}/receipts" \
  -H "Authorization: Bearer {{key}}"
