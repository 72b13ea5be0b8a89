"""Invoices paid online: by session and by test number, beside payments by hand (contract §2.2, §2.4, §4.4, §6)."""

import json

import pytest

from checks import data, eventually, faults, ok, refusal
from invoices import PAYMENT, RECEIPT, fits, whole
from races import at_once, codes
from server import Api

APPROVES, DECLINES, QUIET = "+2207000000", "+2207000001", "+2207654321"


@pytest.fixture
def start(sdk):
    """Begins to pay an invoice by Afrimoney."""

    def begin(invoice, phone=APPROVES, **fields):
        return ok(
            sdk.payments.initialize(
                object_type="invoice", object_id=invoice["id"], payment_method="afrimoney", customer_phone=phone, **fields
            )
        )

    return begin


@pytest.fixture
def partial(api):
    """Parts of an invoice may be paid online."""
    data(api.put("/v1/pay/settings", {"allow_partial_payments": True}))
    yield
    data(api.put("/v1/pay/settings", {"allow_partial_payments": False}))


@pytest.mark.parametrize("named", [{}, {"payment_method": "wave"}, {"payment_method": "afrimoney"}])
def test_what_no_method_takes_is_paid_by_hand_only(new_server, named):
    server = new_server()
    test, live = (Api(server.url, server.keys[mode]["secret"]) for mode in ("test", "live"))
    data(test.put("/v1/pay/settings", {"enabled_methods": ["wave", "afrimoney", "qmoney"]}))
    line = {"description": "Rice", "quantity": 1, "unit_price": "100"}
    order = {"customer_email": "awa@example.com", "customer_name": "Awa", "due_date": "2030-01-31", "items": [line]}
    nobody = "No enabled method takes JPY, and no other would. Use another currency, or take the money another way."
    by_card = "No enabled method takes USD. Add one that does to `enabled_methods` in the settings."
    no_provider = "Live mode has no payment provider in this version; use a test key."
    for client, currency, why in ((test, "JPY", nobody), (test, "USD", by_card), (live, "GMD", no_provider)):
        invoice = data(client.post("/v1/pay/invoices", {**order, "currency": currency}), 201)
        body = {"object_type": "invoice", "object_id": invoice["id"], **named}
        refused = refusal(client.post("/v1/pay/initialize", body), 400, "no_payment_method_available")
        assert refused["error"] == why
        taken = {"amount": "100", "payment_method": "cash"}
        paid = data(client.post(f"/v1/pay/invoices/{invoice['id']}/payments", taken), 201)
        assert paid["status"] == "paid"


def reaches(sdk, invoice, status):
    def found():
        now = whole(ok(sdk.invoices.get(invoice["id"])))
        return now if now["status"] == status else None

    return eventually(found)


def kinds(sdk, invoice):
    events = [event for event in ok(sdk.webhook_events.list(limit=100))["items"] if event["object_id"] == invoice["id"]]
    return [event["type"] for event in sorted(events, key=lambda event: event["sequence"])]


def test_it_is_paid_and_has_a_receipt(sdk, bill, start):
    invoice = bill(tax_rate=15)
    session = start(invoice)
    assert (session["object_type"], session["object_id"]) == ("invoice", invoice["id"])
    assert (session["amount"], session["currency"]) == ("115.00", "GMD")
    paid = reaches(sdk, invoice, "paid")
    assert (paid["paid_amount"], paid["remaining_amount"]) == ("115.00", "0.00")
    [payment] = ok(sdk.invoices.list_payments(invoice["id"]))
    fits(payment, PAYMENT, "payment")
    assert (payment["payment_method"], payment["recorded_by"]) == ("afrimoney", None)
    [receipt] = ok(sdk.invoices.get_receipts(invoice["id"]))
    fits(receipt, RECEIPT, "receipt")
    assert (receipt["amount"], receipt["payment_method"]) == ("115.00", "afrimoney")
    assert receipt["transaction_id"] == payment["transaction_id"]
    assert receipt["created_by"] is None
    assert kinds(sdk, invoice) == ["invoice.created", "invoice.finalized", "payment.succeeded", "invoice.paid"]


def test_what_paid_it_is_told_with_the_invoice(sdk, bill, start):
    invoice = bill()
    start(invoice)
    reaches(sdk, invoice, "paid")
    events = ok(sdk.webhook_events.list(limit=100, type="payment.succeeded"))["items"]
    [told] = [event["data"] for event in events if event["object_id"] == invoice["id"]]
    assert told["id"] == invoice["id"] and told["status"] == "paid"
    assert (told["object_type"], told["object_id"]) == ("invoice", invoice["id"])
    assert told["transaction"]["id"] == told["transaction_id"]
    assert (told["transaction"]["fee"], told["transaction"]["net_amount"]) == ("2.50", "97.50")


def test_a_failed_attempt_leaves_it_as_it_was(sdk, bill, start):
    invoice = bill()
    start(invoice, DECLINES)
    told = ["invoice.created", "invoice.finalized", "payment.failed", "invoice.payment_failed"]
    assert eventually(lambda: len(found := kinds(sdk, invoice)) == len(told) and found) == told
    found = whole(ok(sdk.invoices.get(invoice["id"])))
    assert (found["status"], found["version"]) == ("pending", 1)
    start(invoice)
    reaches(sdk, invoice, "paid")


def test_while_an_attempt_is_with_the_provider_nothing_moves(sdk, api, bill, start):
    invoice = bill()
    start(invoice, QUIET)
    path = f"/v1/pay/invoices/{invoice['id']}"
    refusal(api.put(path, {"notes": "x"}), 400, "payment_in_progress")
    refusal(api.post(f"{path}/cancel"), 400, "payment_in_progress")
    assert whole(ok(sdk.invoices.get(invoice["id"]))) == invoice


def test_a_cancelled_invoice_closes_the_session_that_waits(sdk, api, bill):
    invoice = bill()
    body = {"object_type": "invoice", "object_id": invoice["id"], "payment_method": "wave"}
    session = data(api.post("/v1/pay/initialize", body))
    whole(ok(sdk.invoices.cancel(invoice["id"])))
    assert ok(sdk.payments.get_session(session["id"]))["status"] == "cancelled"
    refusal(api.post("/v1/pay/initialize", body), 400, "invoice_already_cancelled")


def test_another_amount_closes_the_session_that_waits(sdk, api, bill):
    invoice = bill()
    body = {"object_type": "invoice", "object_id": invoice["id"], "payment_method": "wave"}
    first = data(api.post("/v1/pay/initialize", body))
    whole(ok(sdk.invoices.update(invoice["id"], tax_rate=10)))
    assert ok(sdk.payments.get_session(first["id"]))["status"] == "cancelled"
    second = data(api.post("/v1/pay/initialize", body))
    assert second["amount"] == "110.00"
    whole(ok(sdk.invoices.update(invoice["id"], notes="The amount is the same")))
    assert ok(sdk.payments.get_session(second["id"]))["status"] == "pending"


def test_only_what_is_open_can_be_paid(sdk, api, bill):
    draft, cancelled, paid = bill(is_draft=True), bill(), bill()
    ok(sdk.invoices.cancel(cancelled["id"]))
    ok(sdk.invoices.record_payment(paid["id"], amount="100.00", payment_method="cash"))
    for invoice, code in [
        (draft, "invoice_is_draft"),
        (cancelled, "invoice_already_cancelled"),
        (paid, "invoice_already_paid"),
    ]:
        body = {"object_type": "invoice", "object_id": invoice["id"], "payment_method": "wave"}
        refusal(api.post("/v1/pay/initialize", body), 400, code)


class TestParts:
    def test_only_where_the_merchant_allows_them(self, api, bill):
        body = {"object_type": "invoice", "object_id": bill()["id"], "payment_method": "wave", "amount": "40.00"}
        refusal(api.post("/v1/pay/initialize", body), 400, "partial_payment_not_allowed")

    def test_part_by_part(self, sdk, api, bill, partial):
        invoice = bill()
        body = {
            "object_type": "invoice", "object_id": invoice["id"], "payment_method": "afrimoney", "customer_phone": APPROVES,
        }  # fmt: skip
        refusal(api.post("/v1/pay/initialize", body | {"amount": "100.01"}), 400, "invoice_overpayment")
        assert set(faults(api.post("/v1/pay/initialize", body | {"amount": "0.001"}))) == {"amount"}
        assert data(api.post("/v1/pay/initialize", body | {"amount": "40.00"}))["amount"] == "40.00"
        part = reaches(sdk, invoice, "partially_paid")
        assert part["remaining_amount"] == "60.00"
        ok(sdk.invoices.record_payment(invoice["id"], amount="10.00", payment_method="cash"))
        assert data(api.post("/v1/pay/initialize", body))["amount"] == "50.00"
        paid = reaches(sdk, invoice, "paid")
        assert [receipt["amount"] for receipt in paid["receipts"]] == ["40.00", "10.00", "50.00"]


def test_online_against_by_hand(server, sdk, bill):
    """Whoever comes first pays; nobody pays twice, and no money is lost."""
    for _ in range(3):
        invoice = bill()
        online = {
            "object_type": "invoice", "object_id": invoice["id"], "payment_method": "afrimoney", "customer_phone": APPROVES,
        }  # fmt: skip
        by_hand = {"amount": "100.00", "payment_method": "cash"}
        requests = [("/v1/pay/initialize", online), (f"/v1/pay/invoices/{invoice['id']}/payments", by_hand)] * 8
        answers = at_once(server, requests)
        assert {status for status, _, _ in answers} <= {200, 201, 400}, codes(answers)
        found = reaches(sdk, invoice, "paid")
        assert (found["paid_amount"], len(found["receipts"])) == ("100.00", 1)
        refused = {json.loads(body)["code"] for status, _, body in answers if status == 400}
        assert refused <= {"payment_in_progress", "invoice_already_paid", "invoice_overpayment"}, refused
