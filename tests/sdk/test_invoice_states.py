"""The life of an invoice, each state under each action, over HTTP (contract §4.4, §6)."""

from datetime import UTC, datetime, timedelta

import pytest

from checks import data, error, eventually, ok, refusal
from invoices import lasting, when, whole

# `=`: accepted, the state stays. A state: the next one. Anything else: the code of the refusal.
TABLE = """
state          | update                | finalize          | cancel                    | part                      | full
draft          | =                     | pending           | cancelled                 | invoice_is_draft          | invoice_is_draft
pending        | =                     | invoice_not_draft | cancelled                 | partially_paid            | paid
partially_paid | invoice_not_updatable | invoice_not_draft | invoice_has_payments      | =                         | paid
overdue        | invoice_not_updatable | invoice_not_draft | cancelled                 | partially_paid            | paid
paid           | invoice_not_updatable | invoice_not_draft | invoice_already_paid      | invoice_already_paid      | invoice_already_paid
cancelled      | invoice_not_updatable | invoice_not_draft | invoice_already_cancelled | invoice_already_cancelled | invoice_already_cancelled
"""  # fmt: skip
HEAD, *ROWS = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
CELLS = [(row[0], action, outcome) for row in ROWS for action, outcome in zip(HEAD[1:], row[1:])]
STATES = [row[0] for row in ROWS]

# What the merchant is told of a move.
EVENTS = {
    "update": "invoice.updated",
    "finalize": "invoice.finalized",
    "cancel": "invoice.cancelled",
    "part": "invoice.partially_paid",
    "full": "invoice.paid",
}
# … and was told before, on the way to the state.
STORY = {
    "draft": ["invoice.created"],
    "pending": ["invoice.created", "invoice.finalized"],
    "partially_paid": ["invoice.created", "invoice.finalized", "invoice.partially_paid"],
    "overdue": ["invoice.created", "invoice.finalized", "invoice.overdue"],
    "paid": ["invoice.created", "invoice.finalized", "invoice.paid"],
    "cancelled": ["invoice.created", "invoice.finalized", "invoice.cancelled"],
}


@pytest.fixture
def invoice_in(sdk, bill):
    """An invoice of 100.00 in a state, reached as a merchant would."""

    def reach(state):
        if state == "draft":
            return bill(is_draft=True)
        if state == "overdue":
            made = bill(due_date=datetime.now(UTC) + timedelta(seconds=1))
            # Readers are told at once; the timer then stores it, which is a revision of its own.
            return eventually(lambda: (found := in_state(sdk, made["id"], "overdue")) and found["version"] == 2 and found)
        made = bill()
        if state == "partially_paid":
            ok(sdk.invoices.record_payment(made["id"], amount="40.00", payment_method="cash"))
        elif state == "paid":
            ok(sdk.invoices.record_payment(made["id"], amount="100.00", payment_method="cash"))
        elif state == "cancelled":
            ok(sdk.invoices.cancel(made["id"]))
        found = ok(sdk.invoices.get(made["id"]))
        assert found["status"] == state
        return found

    return reach


def in_state(sdk, id, state):
    found = ok(sdk.invoices.get(id))
    return found if found["status"] == state else None


def act(api, action, invoice):
    path = f"/v1/pay/invoices/{invoice['id']}"
    if action == "update":
        return api.put(path, {"notes": "Changed"})
    if action in ("part", "full"):
        amount = "1.00" if action == "part" else invoice["remaining_amount"]
        # Nothing is left of a paid one: whatever comes is refused for its state.
        amount = "1.00" if amount == "0.00" else amount
        return api.post(f"{path}/payments", {"amount": amount, "payment_method": "cash"})
    return api.post(f"{path}/{action}")


def story(sdk, invoice):
    """The events of an invoice, oldest first; their numbers have no gap."""
    events = [event for event in ok(sdk.webhook_events.list(limit=100))["items"] if event["object_id"] == invoice["id"]]
    events.sort(key=lambda event: event["sequence"])
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    return events


def kinds(events):
    return [event["type"] for event in events]


@pytest.mark.parametrize(("state", "action", "outcome"), CELLS)
def test_the_table(sdk, api, invoice_in, state, action, outcome):
    before = whole(invoice_in(state))
    response = act(api, action, before)
    if outcome == "=" or outcome in STATES:
        after = whole(data(response, 201 if action in ("part", "full") else 200))
        assert after["status"] == (state if outcome == "=" else outcome)
        assert after["version"] == before["version"] + 1
        told = [*STORY[state], EVENTS[action]]
    else:
        refusal(response, 400, outcome)
        after, told = before, STORY[state]
    after = lasting(after)
    assert lasting(whole(ok(sdk.invoices.get(before["id"])))) == after
    events = eventually(lambda: len(found := story(sdk, before)) >= len(told) and found)
    assert kinds(events) == told
    assert lasting(whole(events[-1]["data"])) == after, "an event shows the invoice as the move left it"


def test_the_sdk_reads_each_refusal(sdk, invoice_in):
    paid = invoice_in("paid")["id"]
    for result in (
        sdk.invoices.update(paid, notes="x"),
        sdk.invoices.finalize(paid),
        sdk.invoices.cancel(paid),
        sdk.invoices.record_payment(paid, amount="1.00", payment_method="cash"),
    ):
        assert error(result).startswith("JokoorValidationError: ")


def test_an_update_of_what_is_over_names_its_faults_first(api, invoice_in):
    paid = invoice_in("paid")
    refusal(api.put(f"/v1/pay/invoices/{paid['id']}", {"tax_rate": -1}), 400, "validation_failed")
    refusal(api.put(f"/v1/pay/invoices/{paid['id']}", {}), 400, "invoice_not_updatable")


def test_finalize_issues_it(sdk, invoice_in):
    draft = invoice_in("draft")
    pending = whole(ok(sdk.invoices.finalize(draft["id"])))
    assert (draft["issued_date"], draft["payment_url"]) == (None, None)
    assert when(pending["issued_date"]) >= when(draft["created_at"])
    assert pending["payment_url"].endswith(f"/invoice/{draft['id']}")
    assert pending["invoice_number"] == draft["invoice_number"], "assigned at creation"
    changed = {name for name in pending if pending[name] != draft[name]}
    assert changed == {"status", "issued_date", "payment_url", "version", "updated_at"}


def test_a_cancelled_draft_was_never_issued(sdk, invoice_in):
    cancelled = whole(ok(sdk.invoices.cancel(invoice_in("draft")["id"])))
    assert (cancelled["status"], cancelled["payment_status"]) == ("cancelled", "cancelled")
    assert (cancelled["issued_date"], cancelled["payment_url"]) == (None, None)


def test_paying_bit_by_bit(sdk, invoice_in):
    invoice = invoice_in("overdue")
    for paid, remaining in (("25.00", "75.00"), ("50.00", "50.00"), ("75.00", "25.00"), ("100.00", "0.00")):
        found = whole(ok(sdk.invoices.record_payment(invoice["id"], amount="25.00", payment_method="check")))
        assert (found["paid_amount"], found["remaining_amount"]) == (paid, remaining)
        assert found["status"] == ("paid" if remaining == "0.00" else "partially_paid"), "it is not overdue any more"
    assert len(found["receipts"]) == 4
    told = ["invoice.partially_paid"] * 3 + ["invoice.paid"]
    assert kinds(eventually(lambda: len(all := story(sdk, invoice)) == 7 and all))[3:] == told


def test_a_draft_is_never_overdue(sdk, bill):
    draft = bill(is_draft=True, due_date=datetime.now(UTC) + timedelta(seconds=1))
    part = bill(due_date=datetime.now(UTC) + timedelta(seconds=2))
    ok(sdk.invoices.record_payment(part["id"], amount="1.00", payment_method="cash"))
    witness = bill(due_date=datetime.now(UTC) + timedelta(seconds=3))
    eventually(lambda: in_state(sdk, witness["id"], "overdue"))
    assert ok(sdk.invoices.get(draft["id"]))["status"] == "draft"
    assert ok(sdk.invoices.get(part["id"]))["status"] == "partially_paid"


def test_a_later_due_date_is_the_one_that_counts(sdk, bill):
    invoice = bill(due_date=datetime.now(UTC) + timedelta(seconds=2))
    ok(sdk.invoices.update(invoice["id"], due_date="2031-01-01"))
    witness = bill(due_date=datetime.now(UTC) + timedelta(seconds=3))
    eventually(lambda: in_state(sdk, witness["id"], "overdue"))
    assert ok(sdk.invoices.get(invoice["id"]))["status"] == "pending"


def test_overdue_is_filtered_as_it_is_shown(sdk, api, invoice_in):
    overdue = invoice_in("overdue")
    query = {"number": overdue["invoice_number"]}
    for status, total in [("overdue", 1), ("open", 1), ("pending", 0)]:
        assert data(api.get("/v1/pay/invoices", params=query | {"status": status}))["total"] == total, status


def test_what_was_paid_may_be_read_in_every_state(sdk, invoice_in):
    for state in STATES:
        invoice = invoice_in(state)
        payments, receipts = ok(sdk.invoices.list_payments(invoice["id"])), ok(sdk.invoices.get_receipts(invoice["id"]))
        assert len(payments) == len(receipts) == (1 if state in ("partially_paid", "paid") else 0), state
