curl "{{base_url}}/v1/pay/initialize" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{
    "object_type": "checkout",
    "object_id": "{{checkout_id}}",
    "payment_method": "afrimoney",
    "customer_phone": "+2207000000"
  }'
