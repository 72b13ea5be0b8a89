curl "{{base_url}}/v1/pay/dashboard" \
  -H "Authorization: Bearer {{key}}"
