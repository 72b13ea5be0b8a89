curl "{{base_url}}/v1/ledger/proof" \
  -H "Authorization: Bearer {{key}}"
