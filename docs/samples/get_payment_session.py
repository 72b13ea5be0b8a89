from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
session, error = client.payments.get_session("{{session_id}}")
if error:
    raise SystemExit(error)
print(session["status"], session["next_action"])
