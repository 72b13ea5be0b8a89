curl "{{base_url}}/v1/pay/payment-links?status=active&limit=5" \
  -H "Authorization: Bearer {{key}}"
