curl "{{base_url}}/v1/checkouts?status=pending&limit=5" \
  -H "Authorization: Bearer {{key}}"
