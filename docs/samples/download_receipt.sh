curl "{{base_url}}/v1/pay/receipts/{{receipt_id}}/download" \
  -H "Authorization: Bearer {{key}}" \
  -o receipt.pdf
