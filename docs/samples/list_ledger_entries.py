import requests

answer = requests.get(
    "{{base_url}}/v1/ledger/entries?limit=5",
    headers={"Authorization": "Bearer {{key}}"},
)
answer.raise_for_status()
for entry in answer.json()["data"]["items"]:
    print(entry["log_no"], entry["transaction_id"], entry["postings"])
