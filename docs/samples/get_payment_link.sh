curl "{{base_url}}/v1/pay/payment-links/{{payment_link_id}}" \
  -H "Authorization: Bearer {{key}}"
