curl "{{base_url}}/v1/payouts/balance" \
  -H "Authorization: Bearer {{key}}"
