curl -X POST "{{base_url}}/v1/checkouts/{{checkout_id}}/cancel" \
  -H "Authorization: Bearer {{key}}"
