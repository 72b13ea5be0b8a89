curl "{{base_url}}/v1/pay/receipts/number/{{receipt_number}}" \
  -H "Authorization: Bearer {{key}}"
