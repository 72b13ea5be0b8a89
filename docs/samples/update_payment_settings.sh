curl -X PUT "{{base_url}}/v1/pay/settings" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"enabled_methods": ["wave", "afrimoney", "qmoney", "card"]}'
