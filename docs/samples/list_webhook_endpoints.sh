curl "{{base_url}}/v1/webhook_endpoints" \
  -H "Authorization: Bearer {{key}}"
