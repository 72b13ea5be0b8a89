curl "{{base_url}}/v1/checkouts" \
  -H "Authorization: Bearer {{key}}" \
  -H "Idempotency-Key: order-1042" \
  -H "Content-Type: application/json" \
  -d '{
    "amount": "100.00",
    "description": "Two books",
    "reference": "order-1042"
  }'
