curl "{{base_url}}/v1/ledger/entries?limit=5" \
  -H "Authorization: Bearer {{key}}"
