import requests

answer = requests.post(
    "{{base_url}}/v1/webhook_endpoints/{{endpoint_id}}/rotate-secret",
    headers={"Authorization": "Bearer {{key}}"},
)
answer.raise_for_status()
print(answer.json()["data"]["secret"])
