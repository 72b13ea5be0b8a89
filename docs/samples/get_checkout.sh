curl "{{base_url}}/v1/checkouts/{{checkout_id}}" \
  -H "Authorization: Bearer {{key}}"
