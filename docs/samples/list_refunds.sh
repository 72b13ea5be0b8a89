curl "{{base_url}}/v1/pay/refunds?limit=5" \
  -H "Authorization: Bearer {{key}}"
