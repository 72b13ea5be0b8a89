curl -X DELETE "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}" \
  -H "Authorization: Bearer {{key}}"
