curl -X POST "{{base_url}}/v1/pay/invoices/{{invoice_id}}/send" \
  -H "Authorization: Bearer {{key}}"
