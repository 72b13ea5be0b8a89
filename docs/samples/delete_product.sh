curl -X DELETE "{{base_url}}/v1/pay/products/{{product_id}}" \
  -H "Authorization: Bearer {{key}}"
