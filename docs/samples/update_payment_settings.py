from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
settings, error = client.payments.update_settings(["wave", "afrimoney", "qmoney", "card"])
if error:
    raise SystemExit(error)
print(settings["enabled_methods"])
