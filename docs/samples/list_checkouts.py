import requests

answer = requests.get(
    "{{base_url}}/v1/checkouts",
    headers={"Authorization": "Bearer {{key}}"},
    params={"status": "pending", "limit": 5},
)
answer.raise_for_status()
for checkout in answer.json()["data"]["items"]:
    print(checkout["id"], checkout["amount"], checkout["status"])
