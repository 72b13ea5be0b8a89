import requests

answer = requests.get(
    "{{base_url}}/v1/ledger/proof",
    headers={"Authorization": "Bearer {{key}}"},
)
answer.raise_for_status()
proof = answer.json()["data"]
print(proof["batch_count"], "batches,", proof["unsealed_entries"], "entries wait for one")
