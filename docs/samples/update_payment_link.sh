curl -X PUT "{{base_url}}/v1/pay/payment-links/{{payment_link_id}}" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"max_usage_count": 400}'
