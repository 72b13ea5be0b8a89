curl "{{base_url}}/v1/pay/products" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"name": "Atlas", "price": "75.00", "description": "Maps of West Africa"}'
