curl "{{base_url}}/v1/pay/invoices/{{invoice_id}}" \
  -H "Authorization: Bearer {{key}}"
