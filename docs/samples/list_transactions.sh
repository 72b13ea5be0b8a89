curl "{{base_url}}/v1/pay/transactions?status=completed&limit=5" \
  -H "Authorization: Bearer {{key}}"
