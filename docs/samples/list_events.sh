curl "{{base_url}}/v1/events?type=checkout.completed&limit=5" \
  -H "Authorization: Bearer {{key}}"
