curl "{{base_url}}/v1/pay/invoices/{{invoice_id}}/payments" \
  -H "Authorization: Bearer {{key}}" \
  -H "Idempotency-Key: bank-statement-31-line-7" \
  -H "Content-Type: application/json" \
  -d '{ "amount": "40.00", "payment_method": "bank_transfer", "transaction_id": "31/7" }'
