curl "{{base_url}}/health"
