curl "{{base_url}}/v1/auth/token" \
  -H "Authorization: Bearer {{key}}" \
  -H "Content-Type: application/json" \
  -d '{"expires_in": 600, "scope": "read:checkouts"}'
