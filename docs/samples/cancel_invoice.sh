curl -X POST "{{base_url}}/v1/pay/invoices/{{invoice_id}}/cancel" \
  -H "Authorization: Bearer {{key}}"
