curl "{{base_url}}/v1/pay/customers" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"email": "awa@example.gm", "phone": "+2207000000", "name": "Awa Ceesay"}'
