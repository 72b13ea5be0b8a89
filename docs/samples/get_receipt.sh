curl "{{base_url}}/v1/pay/receipts/{{receipt_id}}" \
  -H "Authorization: Bearer {{key}}"
