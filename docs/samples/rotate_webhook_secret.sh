curl -X POST "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}/rotate-secret" \
  -H "Authorization: Bearer {{key}}"
