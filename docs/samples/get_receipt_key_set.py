import requests

answer = requests.get("{{base_url}}/.well-known/receipt-keys.json")
answer.raise_for_status()
print([key["kid"] for key in answer.json()["keys"]])
