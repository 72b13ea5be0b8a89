"""What a server's lists must say after shops were busy and it came back: everything that was asked for is there once, no number
is left out, and the receiver of webhooks was told of every event in the order of its object."""

import copy
import threading
from collections import Counter, defaultdict
from contextlib import nullcontext
from decimal import Decimal

from checks import eventually
from scenario import RECORDED, Client, everything

PAID = ("completed", "refunded", "partially_refunded")
# On PostgreSQL what a killed process was telling waits for a lease of half a minute.
TOLD_S = 75


class Told:
    """A mailbox of a `receiver`, small enough to have thousands of them."""

    status, delay, headers = 200, 0.0, {}

    def __init__(self, url):
        self.url = url
        self.begun = threading.Event()
        self.arrived = []  # (object, sequence), as they came

    def put(self, delivery):
        self.arrived.append((delivery.object_id, delivery.sequence))
        return self.status


class Books:
    """The lists, each read once."""

    def __init__(self, client):
        self.checkouts = list(everything(client, "/v1/checkouts"))
        self.invoices = list(everything(client, "/v1/pay/invoices"))
        self.receipts = list(everything(client, "/v1/pay/receipts"))
        self.refunds = list(everything(client, "/v1/pay/refunds"))
        self.transactions = list(everything(client, "/v1/pay/transactions"))
        self.events = list(everything(client, "/v1/events"))

    def faults(self, shops):
        made = Counter((kind, key) for kind, key in self._keys())
        for shop in shops:
            for key, (path, _) in shop.asked.items():
                if key in shop.settled and (kind := kind_of(path)):
                    wanted = 1 if shop.settled[key][0] < 300 else 0
                    if made[kind, key] != wanted:
                        yield f"{key} made {made[kind, key]} of {kind}, and was answered {shop.settled[key]}"
            yield from self._recorded(shop)
        paid = Counter(one["object_id"] for one in self.transactions if one["status"] in PAID)
        for checkout in self.checkouts:
            # One that is pending in its list may be paid by the time the other is read.
            least = 1 if checkout["status"] == "completed" else 0
            if not least <= paid[checkout["id"]] <= 1:
                yield f"{checkout['id']} is {checkout['status']}, and was paid {paid[checkout['id']]} times"
        yield from gaps("invoices", [invoice["invoice_number"] for invoice in self.invoices])
        yield from gaps("receipts", [receipt["receipt_number"] for receipt in self.receipts])
        yield from self._gaps_of_events()

    def _keys(self):
        for kind, records in (("checkouts", self.checkouts), ("invoices", self.invoices)):
            yield from ((kind, (record.get("metadata") or {}).get("key")) for record in records)
        yield from (("refunds", refund["reason"]) for refund in self.refunds)

    def _recorded(self, shop):
        """Each payment that was recorded by hand counts once."""
        recorded = Counter(
            path.split("/")[-2]
            for key, (path, _) in shop.asked.items()
            if path.endswith("/payments") and key in shop.settled and shop.settled[key][0] < 300
        )
        paid = {invoice["id"]: Decimal(invoice["paid_amount"]) for invoice in self.invoices}
        for invoice, count in recorded.items():
            if paid.get(invoice) != count * Decimal(RECORDED):
                yield f"of {invoice} {count} payments were recorded, and {paid.get(invoice)} is paid"

    def _gaps_of_events(self):
        sequences = defaultdict(list)
        for event in self.events:
            sequences[event["object_id"]].append(event["sequence"])
        for object_id, found in sequences.items():
            if sorted(found) != list(range(1, len(found) + 1)):
                yield f"the events of {object_id} are {sorted(found)}"


def kind_of(path):
    """The list in which its object can be found by its key."""
    if path.endswith("/refund"):
        return "refunds"
    return {"/v1/checkouts": "checkouts", "/v1/pay/invoices": "invoices"}.get(path)


def gaps(kind, numbers):
    """Each series begins at 1, and has every number once."""
    series = defaultdict(list)
    for number in numbers:
        name, _, place = number.rpartition("-")
        series[name].append(int(place))
    for name, found in series.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            yield f"the numbers of {kind} in {name} are {sorted(found)}"


def untold(events, arrived):
    """Of these events, those that never came, and those that came before the one before them."""
    first = {}
    for place, event in enumerate(arrived):
        first.setdefault(event, place)
    wanted = {(event["object_id"], event["sequence"]) for event in events}
    for object_id, sequence in sorted(wanted):
        if (object_id, sequence) not in first:
            yield f"event {sequence} of {object_id} was never told"
        elif (before := (object_id, sequence - 1)) in wanted and first.get(before, -1) > first[object_id, sequence]:
            yield f"event {sequence} of {object_id} was told before event {sequence - 1}"


def reconcile(shops, server, waiting=nullcontext, known=frozenset()):
    """After a restart: what of the acknowledged is missing or different, and what happened twice. It is `waiting` for what the
    server may have to finish first. Events that are `known` are older than the shops."""
    client = Client(server)
    faults = [fault for shop in shops for fault in shop.ask_again(client, waiting)]
    books = Books(client)
    faults += books.faults(shops)
    events = [event for event in books.events if event["id"] not in known]
    for mailbox in [shop.mailbox for shop in shops if shop.mailbox]:
        with waiting():
            faults += told_in_the_end(mailbox, events)
    return faults


def told_in_the_end(mailbox, events):
    try:
        eventually(lambda: not any("never" in fault for fault in untold(events, list(mailbox.arrived))), TOLD_S)
    except AssertionError:
        pass  # what is missing is said below
    return list(untold(events, list(mailbox.arrived)))


def controls(shops, server, mailbox):
    """The judge itself, by what it must not let pass in the books of a server that has done everything right."""
    books = Books(Client(server))
    keys = {key for shop in shops for key in shop.asked}

    def altered(change):
        other = copy.deepcopy(books)
        change(other)
        return any(other.faults(shops))

    def last_number_left_out(other):
        last = max(other.invoices, key=lambda invoice: invoice["invoice_number"])
        last["invoice_number"] = f"{last['invoice_number'][:-4]}9999"

    def again(records, is_meant):
        records.append(next(record for record in records if is_meant(record)))

    def paid_checkout(transaction):
        return transaction["object_id"].startswith("cs_") and transaction["status"] in PAID

    yield "what_is_right", not altered(lambda other: None)
    yield "a_refund_made_twice", altered(lambda other: again(other.refunds, lambda refund: refund["reason"] in keys))
    yield "paid_twice", altered(lambda other: again(other.transactions, paid_checkout))
    yield "a_number_left_out", altered(last_number_left_out)
    yield "a_payment_not_counted", altered(lambda other: [one.update(paid_amount="0.00") for one in other.invoices])
    arrived = mailbox.arrived
    told = [{"object_id": object_id, "sequence": sequence} for object_id, sequence in arrived]
    yield "an_event_never_told", any(untold(told, arrived[:-1]))
    yield "events_told_backwards", any(untold(told, arrived[::-1]))
