curl "{{base_url}}/v1/pay/session/{{session_id}}" \
  -H "Authorization: Bearer {{key}}"
