curl "{{base_url}}/v1/pay/refunds/{{refund_id}}" \
  -H "Authorization: Bearer {{key}}"
