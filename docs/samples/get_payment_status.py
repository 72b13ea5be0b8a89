from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
status, error = client.payments.get_status("{{session_id}}")
if error:
    raise SystemExit(error)
print(status["status"], status["failure_reason"])
