"""Many at once on invoices: no number twice and none left out, one winner, no butut too many (contract §1.6, §4.4)."""

import json
from collections import Counter

from checks import data, eventually, ok
from invoices import number, order, whole
from races import at_once, codes, replayed

CUSTOMER_OF_NOBODY = {"customer_email": None, "customer_name": None, "customer_id": "cus_01h455vb4pex5vsknk084sn02q"}


def events(sdk, kind, id):
    return [event for event in ok(sdk.webhook_events.list(limit=100, type=kind))["items"] if event["object_id"] == id]


def test_numbers_have_no_gap(server, bill):
    """64 at once: 24 sent once, 16 sent twice under one key, 4 that the books refuse and 4 that can't be read."""
    before = bill()
    once = [("/v1/pay/invoices", order(notes=f"{n}", is_draft=n % 2 == 0)) for n in range(24)]
    twice = [("/v1/pay/invoices", order(notes=f"twice {n}"), {"Idempotency-Key": f"number-{n}"}) for n in range(16)]
    refused = [("/v1/pay/invoices", order(**CUSTOMER_OF_NOBODY))] * 4
    malformed = [("/v1/pay/invoices", order(tax_rate=-1))] * 4
    answers = at_once(server, [*once, *twice, *refused, *twice, *malformed])
    assert codes(answers) == {"ok": 56, "validation_failed": 8}
    assert Counter(map(replayed, answers)) == {False: 48, True: 16}

    made = {whole(invoice)["id"]: invoice for invoice in successes(answers)}
    assert len(made) == 40, "a replay makes nothing"
    first = number(before) + 1
    assert sorted(number(invoice) for invoice in made.values()) == list(range(first, first + 40))
    assert len({invoice["invoice_number"][:11] for invoice in made.values()}) == 1
    assert number(bill()) == first + 40


def test_of_64_finalizes_one_wins(server, sdk, bill):
    for _ in range(3):
        draft = bill(is_draft=True)
        answers = at_once(server, [(f"/v1/pay/invoices/{draft['id']}/finalize", {})] * 64)
        assert codes(answers) == {"ok": 1, "invoice_not_draft": 63}
        assert Counter(status for status, _, _ in answers) == {200: 1, 400: 63}
        assert len(eventually(lambda: events(sdk, "invoice.finalized", draft["id"]))) == 1
        assert whole(ok(sdk.invoices.get(draft["id"])))["version"] == 2


def test_of_64_updates_of_one_version_one_wins(server, sdk, bill):
    for place in ("body", "header"):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}"
        if place == "body":
            requests = [(path, {"notes": f"{n}", "version": 1}) for n in range(64)]
        else:
            requests = [(path, {"notes": f"{n}"}, {"If-Match": '"1"'}) for n in range(64)]
        answers = at_once(server, requests, "PUT")
        assert codes(answers) == {"ok": 1, "invoice_version_conflict": 63}
        [winner] = successes(answers)
        assert whole(ok(sdk.invoices.get(invoice["id"]))) == winner
        assert len(eventually(lambda: events(sdk, "invoice.updated", invoice["id"]))) == 1


def test_64_updates_without_a_version_all_count(server, sdk, bill):
    invoice = bill()
    requests = [(f"/v1/pay/invoices/{invoice['id']}", {"notes": f"{n}"}) for n in range(64)]
    answers = at_once(server, requests, "PUT")
    assert codes(answers) == {"ok": 64}
    assert sorted(found["version"] for found in successes(answers)) == list(range(2, 66))


def test_the_last_dalasi_is_paid_once(server, sdk, api, bill):
    for _ in range(3):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}/payments"
        data(api.post(path, {"amount": "99.00", "payment_method": "cash"}), 201)
        answers = at_once(server, [(path, {"amount": "1.00", "payment_method": "cash"})] * 2)
        assert codes(answers) in ({"ok": 1, "invoice_already_paid": 1}, {"ok": 1, "invoice_overpayment": 1})
        paid_exactly(sdk, invoice, payments=2)


def test_many_payments_never_sum_up_to_more(server, sdk, bill):
    invoice = bill()
    path = f"/v1/pay/invoices/{invoice['id']}/payments"
    answers = at_once(server, [(path, {"amount": "7.00", "payment_method": "cash"})] * 32)
    assert codes(answers) == {"ok": 14, "invoice_overpayment": 18}
    found = whole(ok(sdk.invoices.get(invoice["id"])))
    assert (found["status"], found["paid_amount"], len(found["receipts"])) == ("partially_paid", "98.00", 14)
    ok(sdk.invoices.record_payment(invoice["id"], amount="2.00", payment_method="cash"))
    paid_exactly(sdk, invoice, payments=15)


def test_receipts_have_no_gap_either(server, sdk, bill):
    invoices = [bill()["id"] for _ in range(24)]
    first = ok(sdk.invoices.record_payment(bill()["id"], amount="100.00", payment_method="cash"))
    pay = {"amount": "100.00", "payment_method": "cash"}
    requests = [(f"/v1/pay/invoices/{id}/payments", pay, {"Idempotency-Key": f"pay-{id}"}) for id in invoices]
    too_much = [(f"/v1/pay/invoices/{id}/payments", pay | {"amount": "100.01"}) for id in invoices[:8]]
    answers = at_once(server, [*requests, *too_much, *requests[:16]])
    assert Counter(map(replayed, answers))[True] == 16
    last = ok(sdk.invoices.record_payment(bill()["id"], amount="100.00", payment_method="cash"))
    numbers = [
        int(receipt["receipt_number"].rsplit("-", 1)[1])
        for id in invoices
        for receipt in ok(sdk.invoices.get_receipts(id))
    ]
    start, end = (int(found["receipts"][0]["receipt_number"].rsplit("-", 1)[1]) for found in (first, last))
    assert sorted(numbers) == list(range(start + 1, end))
    assert len(numbers) == 24


def test_cancel_against_pay(server, sdk, bill):
    for _ in range(3):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}"
        cancels = [(f"{path}/cancel", {})] * 16
        pays = [(f"{path}/payments", {"amount": "50.00", "payment_method": "cash"})] * 16
        answers = at_once(server, [one for pair in zip(cancels, pays) for one in pair])
        found = whole(ok(sdk.invoices.get(invoice["id"])))
        if found["status"] == "cancelled":
            assert codes(answers) == {"ok": 1, "invoice_already_cancelled": 31}
            assert found["receipts"] == []
        else:
            assert found["status"] == "paid"
            assert set(codes(answers)) <= {"ok", "invoice_has_payments", "invoice_already_paid"}
            assert codes(answers)["ok"] == 2


def successes(answers):
    return [json.loads(body)["data"] for status, _, body in answers if status in (200, 201)]


def paid_exactly(sdk, invoice, payments):
    found = whole(ok(sdk.invoices.get(invoice["id"])))
    assert (found["status"], found["paid_amount"], found["remaining_amount"]) == ("paid", "100.00", "0.00")
    assert len(found["receipts"]) == len(ok(sdk.invoices.list_payments(invoice["id"]))) == payments
    assert len(eventually(lambda: events(sdk, "invoice.paid", invoice["id"]))) == 1
