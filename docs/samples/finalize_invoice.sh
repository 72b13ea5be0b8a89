curl -X POST "{{base_url}}/v1/pay/invoices/{{draft_id}}/finalize" \
  -H "Authorization: Bearer {{key}}"
