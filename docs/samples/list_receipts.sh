curl "{{base_url}}/v1/pay/receipts?limit=5" \
  -H "Authorization: Bearer {{key}}"
