import requests

answer = requests.get(
    "{{base_url}}/v1/ledger/accounts",
    headers={"Authorization": "Bearer {{key}}"},
)
answer.raise_for_status()
print("account balance currency")
for account in answer.json()["data"]["accounts"]:
    print(account["account"], account["balance"], account["currency"])
