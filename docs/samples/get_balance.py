from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
balance, error = client.payouts.get_balance()
if error:
    raise SystemExit(error)
print(balance["available_balance"], balance["pending_balance"], balance["currency"])
