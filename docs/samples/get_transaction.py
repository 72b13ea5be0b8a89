from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
transaction, error = client.transactions.get("{{transaction_id}}")
if error:
    raise SystemExit(error)
print(transaction["status"], transaction["refunded_amount"])
