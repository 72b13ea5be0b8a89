curl "{{base_url}}/v1/pay/status/{{session_id}}" \
  -H "Authorization: Bearer {{key}}"
