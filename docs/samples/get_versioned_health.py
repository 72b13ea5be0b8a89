import requests

answer = requests.get("{{base_url}}/v1/health")
answer.raise_for_status()
print(answer.json()["data"]["status"])
