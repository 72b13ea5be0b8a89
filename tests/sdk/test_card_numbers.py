"""No text of live mode takes a card's number, wherever it could stand (promise on card data)."""

import pytest

from checks import refusal
from server import Api

CARD = "4242 4242 4242 4242"
LINK = {"title": "Tea", "amount": "1.00"}
ENDPOINT = {"url": "https://hooks.shop.example/", "enabled_events": ["*"]}
INVOICE = {
    "customer_email": "awa@example.gm", "customer_name": "Awa", "due_date": "2090-01-31",
    "items": [{"description": "Rice", "quantity": 1, "unit_price": "1.00"}],
}
NOBODY = "01h455vb4pex5vsknk084sn02q"


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("PUT", "/v1/pay/settings", {"name": CARD}),
        ("PUT", "/v1/pay/settings", {"address": f"My card is {CARD}"}),
        ("PUT", "/v1/pay/settings", {"tax_id": CARD}),
        ("POST", "/v1/pay/payment-links", LINK | {"title": CARD}),
        ("POST", "/v1/pay/payment-links", LINK | {"description": CARD}),
        ("POST", "/v1/pay/payment-links", LINK | {"metadata": {"card": CARD}}),
        ("PUT", f"/v1/pay/payment-links/pl_{NOBODY}", {"description": CARD}),
        ("POST", "/v1/webhook_endpoints", ENDPOINT | {"description": CARD}),
        ("PATCH", f"/v1/webhook_endpoints/we_{NOBODY}", {"description": CARD}),
        # Under the name of what is read strictly where it belongs.
        ("POST", "/v1/checkouts", {"amount": "1.00", "metadata": {"customer_phone": CARD}}),
        ("POST", "/v1/pay/invoices", INVOICE | {"metadata": {"customer_phone": CARD}}),
        ("POST", "/v1/pay/customers", {"email": "awa@example.gm", "metadata": {"phone": CARD}}),
        (
            "POST", "/v1/pay/initialize",
            {"object_type": "payment_link", "object_id": f"pl_{NOBODY}", "custom_field_values": {"customer_pin": CARD}},
        ),
    ],
)
def test_it_is_refused_and_not_repeated(server, verb, path, body):
    live = Api(server.url, server.keys["live"]["secret"])
    answer = live.request(verb, path, body)
    refusal(answer, 400, "card_data_not_allowed")
    assert CARD not in answer.text
