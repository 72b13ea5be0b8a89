curl "{{base_url}}/v1/events/{{event_id}}" \
  -H "Authorization: Bearer {{key}}"
