from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
event, error = client.webhook_events.retry("{{event_id}}")
if error:
    raise SystemExit(error)
print(event["status"])
