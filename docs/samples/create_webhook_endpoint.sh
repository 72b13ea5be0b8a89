curl "{{base_url}}/v1/webhook_endpoints" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{
    "url": "{{webhook_url}}",
    "enabled_events": ["payment.*", "checkout.*"]
  }'
