curl "{{base_url}}/.well-known/jwks.json"
