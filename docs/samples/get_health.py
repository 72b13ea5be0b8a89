import requests

answer = requests.get("{{base_url}}/health")
answer.raise_for_status()
print(answer.json()["data"]["status"])
