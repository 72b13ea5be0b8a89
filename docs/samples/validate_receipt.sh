curl "{{base_url}}/v1/pay/receipts/validate/{{validation_code}}"
