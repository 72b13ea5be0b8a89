from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
dashboard, error = client.payments.get_dashboard()
if error:
    raise SystemExit(error)
print(dashboard["completed_count"], dashboard["total_net"], dashboard["currency"])
