curl -X POST "{{base_url}}/v1/events/{{event_id}}/retry" \
  -H "Authorization: Bearer {{key}}"
