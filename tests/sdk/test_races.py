"""Many at once: one key makes one session, one contender wins (contract §1.8, §4.1)."""

import json
from collections import Counter

from checks import data, eventually, ok
from races import at_once, codes, replayed


def test_500_creates_with_one_key_make_one_session(server, api):
    body = {"amount": "12.00", "reference": "race-500", "idempotency_key": "race-500"}
    answers = at_once(server, [("/v1/checkouts", body)] * 500)
    assert Counter(status for status, _, _ in answers) == {201: 500}, answers[0]
    assert len({content for _, _, content in answers}) == 1
    assert Counter(map(replayed, answers)) == {False: 1, True: 499}
    assert data(api.get("/v1/checkouts", params={"reference": "race-500"}))["total"] == 1


def test_of_64_cancels_one_wins(server, api, sdk):
    for _ in range(3):
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        answers = at_once(server, [(f"/v1/checkouts/{checkout['id']}/cancel", {})] * 64)
        assert codes(answers) == {"ok": 1, "checkout_already_cancelled": 63}

        def cancellations(checkout=checkout):
            items = ok(sdk.webhook_events.list(limit=100, type="checkout.cancelled"))["items"]
            return [event for event in items if event["object_id"] == checkout["id"]]

        assert len(eventually(cancellations)) == 1


def test_pays_against_cancels(server, sdk):
    for _ in range(3):
        checkout = ok(sdk.checkouts.create(amount="50.00"))
        start = {
            "client_secret": checkout["client_secret"],
            "payment_method": "afrimoney",
            "customer_phone": "+2207000000",
        }
        pays = [("/v1/pay/initialize", start)] * 32
        cancels = [(f"/v1/checkouts/{checkout['id']}/cancel", {})] * 32
        answers = at_once(server, [one for pair in zip(pays, cancels) for one in pair])
        assert {status for status, _, _ in answers} <= {200, 400}, codes(answers)
        started = {json.loads(body)["data"]["id"] for status, _, body in answers[0::2] if status == 200}
        cancelled = [body for status, _, body in answers[1::2] if status == 200]
        assert len(started) <= 1, "one session at most was opened"
        assert len(cancelled) <= 1
        assert started or cancelled
        assert set(codes(answers)) <= {
            "ok", "payment_in_progress", "checkout_already_cancelled", "checkout_already_completed",
        }, codes(answers)  # fmt: skip

        def settled(checkout=checkout, started=started):
            found = ok(sdk.checkouts.get(checkout["id"]))
            attempt = (found["transaction"] or {}).get("status")
            waiting = started and attempt not in ("completed", "cancelled", "failed")
            return None if found["status"] == "pending" or waiting else found

        found = eventually(settled)
        if started and found["transaction"]["status"] == "failed":
            why = ok(sdk.transactions.get(found["transaction"]["id"]))["failure_reason"]
            assert cancelled and why == "cancelled", "the cancel came before the call, which was not made"
        if cancelled:
            assert found["status"] == "cancelled", "money that comes after is recorded, the end stays what it was"
        else:
            assert found["status"] == "completed"


def test_starts_of_one_checkout_share_one_attempt(server, sdk):
    checkout = ok(sdk.checkouts.create(amount="50.00"))
    start = {"client_secret": checkout["client_secret"], "payment_method": "card"}
    answers = at_once(server, [("/v1/pay/initialize", start)] * 64)
    assert {status for status, _, _ in answers} == {200}, codes(answers)
    assert len({json.loads(body)["data"]["id"] for _, _, body in answers}) == 1


def test_what_was_made_together_is_listed_by_its_time(server, sdk):
    """Invoices tell their microseconds, and many are made within a millisecond (contract §1.5)."""
    bill = {"customer_email": "many@shop.example", "customer_name": "Awa", "due_date": "2099-01-31"}
    items = [{"description": "Pen", "quantity": 1, "unit_price": "1.00"}]
    answers = at_once(server, [("/v1/pay/invoices", bill | {"items": items})] * 64)
    made = {json.loads(body)["data"]["id"] for status, _, body in answers if status == 201}
    assert len(made) == 64, codes(answers)
    times = [one["created_at"] for one in ok(sdk.invoices.list(limit=100))["items"] if one["id"] in made]
    assert len(times) == 64 and times == sorted(times, reverse=True)
