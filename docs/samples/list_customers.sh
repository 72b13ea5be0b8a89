curl "{{base_url}}/v1/pay/customers?limit=5" \
  -H "Authorization: Bearer {{key}}"
