from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
event, error = client.webhook_events.get("{{event_id}}")
if error:
    raise SystemExit(error)
print(event["type"], event["status"], event["deliveries"])
