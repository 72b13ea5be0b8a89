curl -X POST "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}/test" \
  -H "Authorization: Bearer {{key}}"
