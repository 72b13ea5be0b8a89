curl "{{base_url}}/v1/pay/payment-links" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{
    "title": "School fees",
    "amount": "0.00",
    "min_amount": "100.00",
    "custom_fields": [
      {"name": "pupil", "label": "Name of the pupil", "type": "text", "required": true}
    ]
  }'
