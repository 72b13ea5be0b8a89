from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
checkout, error = client.checkouts.get("{{checkout_id}}")
if error:
    raise SystemExit(error)
print(checkout["status"], checkout["transaction"])
