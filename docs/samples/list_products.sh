curl "{{base_url}}/v1/pay/products?limit=5&active=true" \
  -H "Authorization: Bearer {{key}}"
