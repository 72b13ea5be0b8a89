curl "{{base_url}}/health/invariants"
