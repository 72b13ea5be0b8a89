curl "{{base_url}}/v1/pay/methods" \
  -H "Authorization: Bearer {{key}}"
