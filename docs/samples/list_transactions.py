from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
transactions, error = client.transactions.list(status="completed", limit=5)
if error:
    raise SystemExit(error)
for transaction in transactions["items"]:
    print(transaction["id"], transaction["amount"], transaction["payment_method"])
