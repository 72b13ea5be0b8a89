from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
cancelled, error = client.checkouts.cancel("{{checkout_id}}")
if error:
    raise SystemExit(error)
print(cancelled["cancelled_at"])
