from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
events, error = client.webhook_events.list(type="checkout.completed", limit=5)
if error:
    raise SystemExit(error)
for event in events["items"]:
    print(event["id"], event["object_id"], event["status"])
