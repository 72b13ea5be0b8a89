curl "{{base_url}}/v1/pay/initialize" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{
    "client_secret": "{{client_secret}}",
    "payment_method": "afrimoney",
    "customer_phone": "+2207000000"
  }'
