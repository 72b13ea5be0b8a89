curl "{{base_url}}/.well-known/receipt-keys.json"
