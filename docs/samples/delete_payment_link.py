from jokoor import Jokoor

client = Jokoor("{{key}}", base_url="{{base_url}}")
_, error = client.payment_links.delete("{{payment_link_id}}")
if error:
    raise SystemExit(error)
print("deleted")
