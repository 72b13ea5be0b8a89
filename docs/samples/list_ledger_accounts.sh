curl "{{base_url}}/v1/ledger/accounts" \
  -H "Authorization: Bearer {{key}}"
