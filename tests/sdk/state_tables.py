"""What each action may do to each object: the state tables of the contract, as a race needs them.

A table answers, for a state and an action, the outcomes that there can be: (code, next state), `ok` for a success. An
outcome of many requests at once is right if some order of them, one after the other, explains it.
"""

from functools import cache

WAITING = "+2207654321"  # the simulated wallet of this number never answers by itself
ABSENT = "not_found"


def _checkout(state, action):
    match action, state:
        # Its time is over; a payment that is with the provider goes on, and one that was not handed over yet never is.
        case "expire", "pending":
            return [("ok", "expired")]
        case "expire", "paying":
            return [("ok", "held"), ("ok", "not sent")]
        case "expire", _:
            return [("ok", state)]
        case "cancel", "pending":
            return [("ok", "cancelled")]
        # Its payment is under way, or was until now.
        case "cancel", "paying" | "held":
            return [("ok", "cancelled"), ("payment_in_progress", state)]
        case "cancel", "not sent":
            return [("ok", "cancelled"), ("payment_in_progress", state), ("checkout_expired", state)]
        case "pay", "pending":
            return [("ok", "paying")]
        case "pay", "paying":
            return [("ok", "paying"), ("payment_in_progress", "paying")]
        case _, "held" | "not sent" | "expired":
            return [("checkout_expired", state)]
        case _, "cancelled":
            return [("checkout_already_cancelled", "cancelled")]


def _invoice(state, action):
    busy = ("payment_in_progress", state)
    match action, state:
        case "finalize", "draft":
            return [("ok", "pending")]
        case "finalize", _:
            return [("invoice_not_draft", state)]
        case "cancel", "draft" | "pending":
            return [("ok", "cancelled")]
        case "cancel", "paying":
            return [("ok", "cancelled"), busy]
        case "update", "draft" | "pending":
            return [("ok", state)]
        case "update", "paying":
            return [("ok", state), busy]
        case "update", _:
            return [("invoice_not_updatable", state)]
        case "record" | "pay", "draft":
            return [("invoice_is_draft", state)]
        case "record", "pending":
            return [("ok", "paid")]
        case "record", "paying":
            return [("ok", "paid"), busy]
        case "pay", "pending":
            return [("ok", "paying")]
        case "pay", "paying":
            return [("ok", "paying"), busy]
        case "cancel", "paid":
            return [("invoice_has_payments", state), ("invoice_already_paid", state)]
        case _, "paid":
            return [("invoice_already_paid", state)]
        case _, "cancelled":
            return [("invoice_already_cancelled", state)]


def _revision(state, action):
    """Updates that name the version that they are based on."""
    return [("ok", "moved")] if state == "read" else [("invoice_version_conflict", "moved")]


def _link(state, action):
    if state == "deleted":
        # A payment meets it as something that is not there, or as something that was there a moment ago.
        return [(ABSENT, state), *([("validation_failed", state)] if action == "pay" else [])]
    return {
        "delete": [("ok", "deleted")],
        "close": [("ok", "inactive")],
        "open": [("ok", "active")],
        "pay": [("ok", state)] if state == "active" else [("payment_link_inactive", state)],
    }[action]


def _record(state, action):
    """What can be changed until it is deleted: customers, products, webhook endpoints."""
    if state == "deleted":
        return [(ABSENT, state)]
    return [("ok", "deleted")] if action == "delete" else [("ok", state)]


def _person(state, action):
    """The customer of one e-mail address: created once, then found."""
    return [("created", "there")] if state == "nobody" else [("ok", "there")]


def _payment(state, action):
    """By what is left of it, in hundredths of all."""
    wanted = {"whole": state, "half": 50, "third": 33}[action]
    if state == 0:
        # As long as the refunds are under way nothing is left, and it is not refunded yet.
        return [("transaction_already_refunded", 0), ("refund_exceeds_amount", 0)]
    if wanted <= state:
        return [("ok", state - wanted)]
    return [("refund_exceeds_amount", state)]


def _paid_invoice(state, action):
    """It was paid online; by what is left of that payment, in hundredths. What is paid back opens it for nobody."""
    match action:
        case "cancel":
            return [("invoice_already_paid", state)]
        case "pay" | "record":
            return [("invoice_already_paid", state)]
        case "update":
            return [("invoice_not_updatable", state)]
        case _:
            return _payment(state, action)


TABLES = {
    "paid invoice": _paid_invoice,
    "checkout": _checkout,
    "invoice": _invoice,
    "revision": _revision,
    "link": _link,
    "record": _record,
    "person": _person,
    "payment": _payment,
}


def final_states(table, start, outcomes):
    """The states in which some order of these (action, code) can end: none, if nothing explains them."""
    step = TABLES[table]
    kinds = sorted(set(outcomes))

    @cache
    def explore(state, counts):
        if not any(counts):
            return frozenset([state])
        ends = frozenset()
        for place, (action, code) in enumerate(kinds):
            if counts[place]:
                left = (*counts[:place], counts[place] - 1, *counts[place + 1 :])
                for allowed, following in step(state, action):
                    if allowed == code:
                        ends |= explore(following, left)
        return ends

    return explore(start, tuple(outcomes.count(kind) for kind in kinds))
