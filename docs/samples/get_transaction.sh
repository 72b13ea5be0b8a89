curl "{{base_url}}/v1/pay/transactions/{{transaction_id}}" \
  -H "Authorization: Bearer {{key}}"
