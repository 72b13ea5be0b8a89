curl "{{base_url}}/v1/pay/transactions/{{transaction_id}}/refund" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"amount": "40.00", "reason": "One of two books came back"}'
