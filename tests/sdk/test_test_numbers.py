"""Test mode: the phone decides, without a page (the README's table of test numbers)."""

import time

import pytest

from checks import data, eventually, ok

METHODS = ["wave", "afrimoney", "qmoney"]


@pytest.fixture
def start(sdk, api, pay):
    """Starts a payment and, where one is asked for, submits the right code."""

    def start(phone, method):
        checkout, session = pay(phone, method)
        if method == "qmoney":
            session = data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": "123456"}))
        return checkout, session

    return start


def status(sdk, session):
    return ok(sdk.payments.get_status(session["id"]))


@pytest.mark.parametrize("method", METHODS)
def test_0_is_approved_within_a_second(sdk, start, method):
    checkout, session = start("+2207000000", method)
    started = time.monotonic()
    eventually(lambda: status(sdk, session)["status"] == "succeeded", pause=0.05)
    assert time.monotonic() - started < 3, "outcomes come within a second, on a machine that is busy within three"
    assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "completed"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("phone", "reason"), [("+2207000001", "insufficient_funds"), ("+2207000002", "declined")])
def test_1_and_2_fail_and_the_payer_may_try_again(sdk, start, phone, reason, method):
    checkout, session = start(phone, method)
    eventually(lambda: status(sdk, session)["status"] == "failed")
    assert status(sdk, session)["failure_reason"] == reason
    after = ok(sdk.checkouts.get(checkout["id"]))
    assert after["status"] == "pending"
    assert after["transaction"]["status"] == "failed"
    again = ok(
        sdk.payments.initialize(
            client_secret=checkout["client_secret"], payment_method="wave", customer_phone="+2207000000"
        )
    )
    assert again["id"] != session["id"]
    eventually(lambda: ok(sdk.checkouts.get(checkout["id"]))["status"] == "completed")


@pytest.mark.parametrize("method", METHODS)
def test_3_never_answers(sdk, start, method):
    checkout, session = start("+2207000003", method)
    time.sleep(2)
    assert status(sdk, session)["status"] in ("pending", "processing"), "silence is no outcome"
    assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "pending"


@pytest.mark.parametrize("method", METHODS)
def test_4_is_unknown_until_the_rail_is_asked(sdk, start, endpoint, method):
    checkout, session = start("+2207000004", method)
    assert (session["status"], session["outcome_unknown"]) == ("processing", True)
    eventually(lambda: status(sdk, session)["status"] == "succeeded", timeout=30)
    assert ok(sdk.payments.get_session(session["id"]))["outcome_unknown"] is False
    assert ok(sdk.checkouts.get(checkout["id"]))["transaction"]["status"] == "completed"
    endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")


@pytest.mark.last
def test_5_is_approved_after_half_a_minute(sdk, slow):
    remaining = 30 - (time.monotonic() - slow.started)
    if remaining > 2:
        assert status(sdk, slow.attempt)["status"] == "processing"
    eventually(lambda: status(sdk, slow.attempt)["status"] == "succeeded", timeout=max(remaining, 0) + 15)
    assert ok(sdk.checkouts.get(slow.late["id"]))["status"] == "completed"


@pytest.mark.parametrize("method", METHODS)
def test_6_reports_twice_and_is_paid_once(sdk, start, endpoint, method):
    checkout, _ = start("+2207000006", method)
    endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")
    time.sleep(2)
    endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")
    transaction = ok(sdk.checkouts.get(checkout["id"]))["transaction"]
    assert (transaction["status"], transaction["net_amount"]) == ("completed", "97.50")


@pytest.mark.parametrize("method", METHODS)
def test_any_other_number_waits_for_the_page(sdk, start, method):
    _, session = start("+2207123456", method)
    time.sleep(1.5)
    assert status(sdk, session)["status"] in ("pending", "processing")


def test_the_number_may_be_given_at_creation(sdk):
    checkout = ok(sdk.checkouts.create(amount="5.00", payment_method="wave", customer_phone="+2207000000"))
    ok(sdk.payments.initialize(session_id=checkout["payment_session_id"], payment_method="wave"))
    eventually(lambda: ok(sdk.checkouts.get(checkout["id"]))["status"] == "completed")
