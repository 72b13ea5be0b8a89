curl -X PUT "{{base_url}}/v1/pay/invoices/{{draft_id}}" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{ "tax_rate": 7.25, "notes": "Thank you!", "version": 1 }'
