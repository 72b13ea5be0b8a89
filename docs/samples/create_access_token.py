import requests

answer = requests.post(
    "{{base_url}}/v1/auth/token",
    headers={"Authorization": "Bearer {{key}}"},
    json={"expires_in": 600, "scope": "read:checkouts"},
)
answer.raise_for_status()
print(answer.json()["data"]["access_token"])
