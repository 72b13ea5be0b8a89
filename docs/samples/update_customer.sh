curl -X PUT "{{base_url}}/v1/pay/customers/{{customer_id}}" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"name": "Awa Ceesay-Jallow"}'
