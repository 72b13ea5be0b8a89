from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
methods, error = client.payments.list_methods()
if error:
    raise SystemExit(error)
print(methods["enabled_methods"])
