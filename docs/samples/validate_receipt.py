import requests

answer = requests.get("{{base_url}}/v1/pay/receipts/validate/{{validation_code}}")
answer.raise_for_status()
receipt = answer.json()["data"]
if receipt["valid"]:
    print(receipt["receipt_number"], receipt["amount"], receipt["currency"], receipt["org_name"])
    if not receipt["livemode"]:
        print("a receipt of test mode: no real money was paid")
else:
    print("not a receipt of ours")
