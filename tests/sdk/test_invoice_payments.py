"""Invoices paid online: each method, in parts, late, twice, and against payments that are recorded (contract §2.2, §4.4)."""

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from checks import data, error, eventually, faults, ok, refusal
from invoices import lasting, order, whole
from races import at_once, codes

APPROVES, POOR, QUIET = "+2207000000", "+2207000001", "+2207654321"


@pytest.fixture
def invoice(sdk):
    """A pending invoice of so much."""

    def create(price="100.00", **fields):
        return ok(sdk.invoices.create(**order(price, **fields)))

    return create


@pytest.fixture
def start(api):
    def start(invoice, phone=APPROVES, method="afrimoney", **fields):
        body = {"object_type": "invoice", "object_id": invoice["id"], "payment_method": method}
        return api.post("/v1/pay/initialize", {**body, "customer_phone": phone, **fields})

    return start


@pytest.fixture
def parts(api):
    """Payments in parts are allowed for this test."""
    data(api.put("/v1/pay/settings", {"allow_partial_payments": True}))
    yield
    data(api.put("/v1/pay/settings", {"allow_partial_payments": False}))


@pytest.fixture
def becomes(sdk):
    def wait(invoice, status, timeout=15):
        def reached():
            found = ok(sdk.invoices.get(invoice["id"]))
            return found if found["status"] == status else None

        return whole(eventually(reached, timeout=timeout))

    return wait


def of(endpoint, invoice, *types):
    """The events of an invoice, with what came before it was to be paid."""
    return endpoint.mailbox.wait_for(invoice["id"], "invoice.created", "invoice.finalized", *types)[2:]


class TestPaying:
    @pytest.mark.parametrize("method", ["wave", "afrimoney", "qmoney"])
    def test_from_the_first_call_to_the_receipt(self, sdk, api, endpoint, invoice, start, becomes, method):
        owed = invoice("100.00")
        session = data(start(owed, method=method))
        assert (session["object_type"], session["object_id"]) == ("invoice", owed["id"])
        assert session["amount"] == owed["remaining_amount"]
        assert session["customer_email"] == owed["customer_email"], "what the invoice knows of its customer"
        if method == "qmoney":
            data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": "123456"}))
        paid = becomes(owed, "paid")
        assert (paid["paid_amount"], paid["remaining_amount"]) == (owed["total_amount"], "0.00")
        assert (paid["payment_status"], paid["payment_url"]) == ("paid", None)
        [receipt] = paid["receipts"]
        assert receipt["amount"] == owed["total_amount"]
        status = ok(sdk.payments.get_status(session["id"]))
        assert (status["status"], status["transaction"]["amount"]) == ("succeeded", owed["total_amount"])
        [payment] = ok(sdk.invoices.list_payments(owed["id"]))
        assert (payment["payment_method"], payment["recorded_by"]) == (method, None)
        assert (payment["transaction_id"], payment["receipt_id"]) == (status["transaction_id"], receipt["id"])
        assert ok(sdk.receipts.get(receipt["id"]))["payment_method"] == method

        succeeded, told = (delivery.event for delivery in of(endpoint, owed, "payment.succeeded", "invoice.paid"))
        assert set(succeeded["data"]) - set(told["data"]) == {
            "transaction", "transaction_id", "object_type", "object_id", "payment_session_id", "payment_method",
            "failure_reason",
        }  # fmt: skip
        assert succeeded["data"]["id"] == succeeded["data"]["object_id"] == owed["id"]
        assert succeeded["data"]["transaction"] == status["transaction"]
        assert succeeded["data"]["receipts"] == told["data"]["receipts"]
        assert lasting(told["data"])["receipts"] == lasting(paid)["receipts"]
        refusal(start(owed), 400, "invoice_already_paid")
        refusal(api.post("/v1/pay/initialize", {"session_id": session["id"]}), 400, "payment_already_succeeded")

    def test_by_the_sdk_without_a_method(self, sdk, server, invoice):
        owed = invoice()
        session = ok(sdk.payments.initialize(object_type="invoice", object_id=owed["id"]))
        assert (session["status"], session["payment_method"], session["next_action"]) == ("pending", None, None)
        assert session["payment_url"].startswith(f"{server.url}/invoice/{owed['id']}")

    def test_an_attempt_that_failed(self, sdk, endpoint, invoice, start, becomes):
        owed = invoice()
        session = data(start(owed, POOR))
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "failed")
        failed, told = (delivery.event for delivery in of(endpoint, owed, "payment.failed", "invoice.payment_failed"))
        assert failed["data"]["failure_reason"] == "insufficient_funds"
        assert (failed["data"]["status"], told["data"]["status"]) == ("pending", "pending")
        data(start(owed))
        becomes(owed, "paid")

    def test_what_can_not_be_paid(self, sdk, start, invoice):
        draft = invoice(is_draft=True)
        refusal(start(draft), 400, "invoice_is_draft")
        cancelled = invoice()
        ok(sdk.invoices.cancel(cancelled["id"]))
        refusal(start(cancelled), 400, "invoice_already_cancelled")
        owed = invoice()
        whole_amount = owed["remaining_amount"]
        refusal(start(owed, amount="1.00"), 400, "partial_payment_not_allowed")
        refusal(start(owed, amount=str(Decimal(whole_amount) + Decimal("0.01"))), 400, "invoice_overpayment")
        assert faults(start(owed, amount="0.00")) == {"amount": "amount_not_positive"}
        assert faults(start(owed, amount=1)) == {"amount": "amount_must_be_string"}
        assert faults(start(owed, custom_field_values={"a": "b"})) == {"custom_field_values": "not_allowed"}
        assert error(sdk.payments.initialize(object_type="invoice", object_id="inv_0")).startswith(
            "JokoorValidationError: "
        )


class TestParts:
    def test_parts_by_all_ways_add_up(self, sdk, endpoint, invoice, start, becomes, parts):
        owed = invoice("100.00")
        total = Decimal(owed["total_amount"])
        data(start(owed, amount="30.00"))
        assert becomes(owed, "partially_paid")["paid_amount"] == "30.00"
        recorded = ok(sdk.invoices.record_payment(owed["id"], amount="20.00", payment_method="cash"))
        assert recorded["remaining_amount"] == str(total - 50)
        session = data(start(owed, method="wave"))
        assert session["amount"] == str(total - 50), "without an amount, all that is left"
        paid = becomes(owed, "paid")
        assert [receipt["amount"] for receipt in paid["receipts"]] == ["30.00", "20.00", str(total - 50)]
        methods = [payment["payment_method"] for payment in ok(sdk.invoices.list_payments(owed["id"]))]
        assert sorted(methods) == ["afrimoney", "cash", "wave"]
        of(
            endpoint,
            owed,
            "payment.succeeded",
            "invoice.partially_paid",
            "invoice.partially_paid",
            "payment.succeeded",
            "invoice.paid",
        )

    def test_all_say_of_a_receipt_that_its_file_is_made(self, sdk, endpoint, invoice, start, becomes):
        owed = invoice("60.00")

        def statuses(receipts):
            return [receipt["status"] for receipt in receipts]

        def made(receipts):
            return statuses(receipts)[:-1]

        for before in ([], ["completed"]):
            recorded = ok(sdk.invoices.record_payment(owed["id"], amount="10.00", payment_method="cash"))
            assert made(recorded["receipts"]) == before
            eventually(lambda: set(statuses(ok(sdk.invoices.get(owed["id"]))["receipts"])) == {"completed"})
        data(start(owed))
        becomes(owed, "paid")
        types = ("invoice.partially_paid", "invoice.partially_paid", "payment.succeeded", "invoice.paid")
        events = of(endpoint, owed, *types)
        assert [made(event.event["data"]["receipts"]) for event in events[1:]] == [["completed"]] + [["completed"] * 2] * 2

    def test_an_open_session_follows_what_is_left(self, sdk, api, invoice, start, parts):
        owed = invoice("100.00")
        first = data(start(owed, QUIET, "wave"))
        assert data(start(owed, QUIET, "wave"))["id"] == first["id"]
        part = data(start(owed, QUIET, "wave", amount="40.00"))
        assert (part["id"] != first["id"], part["amount"]) == (True, "40.00")
        assert ok(sdk.payments.get_session(first["id"]))["status"] == "cancelled"
        by_name = {"session_id": part["id"], "payment_method": "wave"}
        assert data(api.post("/v1/pay/initialize", by_name))["id"] == part["id"], "it goes on for what it was for"
        ok(sdk.invoices.record_payment(owed["id"], amount="10.00", payment_method="cash"))
        assert ok(sdk.payments.get_session(part["id"]))["status"] == "cancelled"
        refusal(api.post("/v1/pay/initialize", by_name), 400, "payment_session_closed")

    def test_while_the_provider_has_it_nobody_else_moves(self, sdk, api, invoice, start, parts):
        owed = invoice("100.00")
        session = data(start(owed, QUIET, amount="40.00"))
        assert session["status"] == "processing"
        path = f"/v1/pay/invoices/{owed['id']}"
        refusal(start(owed, QUIET, "wave"), 400, "payment_in_progress")
        refusal(api.put(path, {"notes": "later"}), 400, "payment_in_progress")
        refusal(api.post(f"{path}/cancel"), 400, "payment_in_progress")
        left = Decimal(owed["total_amount"]) - 40
        taken = {"amount": str(left + Decimal("0.01")), "payment_method": "cash"}
        refusal(api.post(f"{path}/payments", taken), 400, "payment_in_progress")
        recorded = data(api.post(f"{path}/payments", {**taken, "amount": str(left)}), 201)
        assert recorded["remaining_amount"] == "40.00", "what the provider may confirm has its place"


class TestRaces:
    def test_online_against_recorded_for_the_last_dalasi(self, server, sdk, api, invoice, start, becomes):
        for _ in range(4):
            owed = invoice("10.00")
            online = {
                "object_type": "invoice",
                "object_id": owed["id"],
                "payment_method": "afrimoney",
                "customer_phone": APPROVES,
            }
            by_hand = {"amount": owed["remaining_amount"], "payment_method": "cash"}
            requests = [("/v1/pay/initialize", online)] * 8
            requests += [(f"/v1/pay/invoices/{owed['id']}/payments", by_hand)] * 8
            answers = at_once(server, [one for pair in zip(requests[:8], requests[8:]) for one in pair])
            assert set(codes(answers)) <= {"ok", "payment_in_progress", "invoice_already_paid"}, codes(answers)
            recorded = [body for status, _, body in answers[1::2] if status == 201]
            assert len(recorded) <= 1
            paid = becomes(owed, "paid")
            assert len(paid["receipts"]) == 1, "one of them won"
            assert paid["paid_amount"] == owed["total_amount"]
            [payment] = ok(sdk.invoices.list_payments(owed["id"]))
            assert payment["payment_method"] == ("cash" if recorded else "afrimoney")

    def test_cancels_against_payments(self, server, sdk, invoice):
        for _ in range(4):
            owed = invoice("10.00")
            online = {
                "object_type": "invoice",
                "object_id": owed["id"],
                "payment_method": "afrimoney",
                "customer_phone": APPROVES,
            }
            requests = [("/v1/pay/initialize", online), (f"/v1/pay/invoices/{owed['id']}/cancel", {})] * 8
            answers = at_once(server, requests)
            assert set(codes(answers)) <= {
                "ok", "payment_in_progress", "invoice_already_cancelled", "invoice_already_paid",
            }, codes(answers)  # fmt: skip
            cancelled = [body for status, _, body in answers[1::2] if status == 200]
            started = {json.loads(body)["data"]["id"] for status, _, body in answers[0::2] if status == 200}
            assert len(cancelled) <= 1 and len(started) <= 1

            def settled(owed=owed):
                found = ok(sdk.invoices.get(owed["id"]))
                return found if found["status"] in ("paid", "cancelled") else None

            found = eventually(settled)
            assert found["status"] == ("cancelled" if cancelled else "paid")
            assert len(found["receipts"]) == (0 if cancelled else 1)

    def test_many_invoices_at_once_number_their_receipts_without_a_gap(self, sdk, invoice, start, becomes):
        owed = [invoice("1.00") for _ in range(12)]
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda one: data(start(one)), owed))
        numbers = [becomes(one, "paid")["receipts"][0]["receipt_number"] for one in owed]
        counts = sorted(int(number.rsplit("-", 1)[1]) for number in numbers)
        assert counts == list(range(counts[0], counts[0] + 12)), numbers
