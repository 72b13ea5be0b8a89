curl "{{base_url}}/v1/pay/customers/{{customer_id}}" \
  -H "Authorization: Bearer {{key}}"
