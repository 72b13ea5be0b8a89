curl -X PUT "{{base_url}}/v1/pay/products/{{product_id}}" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"price": "80.00"}'
