import requests

answer = requests.put(
    "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}",
    headers={"Authorization": "Bearer {{key}}"},
    json={"status": "active"},
)
answer.raise_for_status()
print(answer.json()["data"]["status"])
