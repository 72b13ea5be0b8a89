curl "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"enabled_events": ["checkout.completed"]}'
