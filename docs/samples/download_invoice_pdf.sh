curl "{{base_url}}/v1/pay/invoices/{{invoice_id}}/pdf" \
  -H "Authorization: Bearer {{key}}" \
  -o invoice.pdf
