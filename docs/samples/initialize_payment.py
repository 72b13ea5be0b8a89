from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
session, error = client.payments.initialize(
    client_secret="{{client_secret}}",
    payment_method="afrimoney",
    customer_phone="+2207000000",
)
if error:
    raise SystemExit(error)
print(session["id"], session["status"], session["next_action"])
