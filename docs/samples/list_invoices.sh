curl "{{base_url}}/v1/pay/invoices?status=open&limit=5" \
  -H "Authorization: Bearer {{key}}"
