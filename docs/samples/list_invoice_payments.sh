curl "{{base_url}}/v1/pay/invoices/{{paid_invoice_id}}/payments" \
  -H "Authorization: Bearer {{key}}"
