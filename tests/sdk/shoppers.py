"""Merchants who use the published SDK as it comes, and remember what each call gave them: checkouts under a key, payments and
refunds, which the SDK sends without one and repeats by itself."""

import re
import threading
import time
from collections import Counter, defaultdict

from jokoor import Jokoor
from urllib3.util.retry import Retry

from books import PAID
from checks import eventually
from scenario import Client, everything

APPROVES = "+2207000000"
# Refunds by their last two digits: paid back, and paid back with a lost answer.
REFUNDS = ["1.00", "2.00", "1.74"]
# Of a payment whose answer went lost: a lease of 30 seconds, and the first questions to the rail.
SETTLED_S = 150


class Shopper:
    def __init__(self, server, random):
        self.server = server
        self.random = random
        self.name = f"shopper-{random.getrandbits(64):016x}"
        self.calls = []  # (sent, answered, operation, what the caller saw)
        self.created = {}  # key: id
        self.paid = set()  # ids of checkouts whose payment was taken on
        self.refunds = {}  # reason: (transaction, id or None)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(timeout=180)
        assert not self._thread.is_alive(), f"{self.name} waits for ever"

    def _run(self):
        with Jokoor(self.server.keys["test"]["secret"], base_url=self.server.url) as client:
            while not self._stop.is_set():
                self._order(client)
                self._stop.wait(0.1)

    def call(self, operation, function, *arguments, **fields):
        sent = time.monotonic()
        value, error = function(*arguments, **fields)
        self.calls.append((sent, time.monotonic(), operation, kind(error)))
        return value

    def _order(self, client):
        """One order: created under a key until it is there, paid, perhaps paid back."""
        key = f"{self.name}-{len(self.created):05}"
        fields = {"amount": f"{self.random.randrange(10, 500)}.00", "metadata": {"key": key}, "idempotency_key": key}
        while (checkout := self.call("create", client.checkouts.create, **fields)) is None:
            if self._stop.wait(0.5):
                return
        self.created[key] = checkout["id"]
        pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": APPROVES}
        if self.call("pay", client.payments.initialize, **pay) is None:
            return  # Whether it was taken on is not known, and a second one could pay twice.
        self.paid.add(checkout["id"])
        if self.random.random() < 0.6 and (transaction := self._transaction(client, checkout["id"])):
            reason = f"{key}-refund"
            self.refunds[reason] = (transaction, None)
            amount = self.random.choice(REFUNDS)
            refund = self.call("refund", client.refunds.create, transaction, amount=amount, reason=reason)
            if refund is not None:
                self.refunds[reason] = (transaction, refund["id"])

    def _transaction(self, client, checkout):
        for _ in range(20):
            found = self.call("get", client.checkouts.get, checkout)
            if found and found["status"] == "completed":
                return found["transaction"]["id"]
            if self._stop.wait(0.1):
                break
        return None


def kind(error):
    """What the caller of the SDK is told, without what differs from call to call."""
    if error is None:
        return "ok"
    if found := re.search(r"too many (\d+) error responses", error):
        return f"error: too many {found[1]}"
    if "timed out" in error:
        return "error: timed out"
    return "error: " + error[:120]


class Retries:
    """What the SDK repeats by itself, which its caller never sees."""

    def __init__(self, monkeypatch):
        self.seen = []  # (when, what)
        increment = Retry.increment

        def counted(retry, method=None, url=None, response=None, error=None, **rest):
            self.seen.append((time.monotonic(), str(response.status) if response else type(error).__name__))
            return increment(retry, method, url, response, error, **rest)

        monkeypatch.setattr(Retry, "increment", counted)

    def between(self, start, end):
        return Counter(what for at, what in self.seen if start <= at <= end)


def reconcile(server, shoppers):
    """What of the acknowledged is missing, and what happened twice."""
    client = Client(server, timeout=40)
    faults = []

    def settled():
        """Every payment that was taken on is completed; its phone number approves."""
        checkouts = {checkout["id"]: checkout for checkout in everything(client, "/v1/checkouts")}
        paid = set().union(*(shopper.paid for shopper in shoppers))
        return all(checkouts.get(one, {}).get("status") == "completed" for one in paid)

    try:
        eventually(settled, timeout=SETTLED_S, pause=2)
    except AssertionError as error:
        faults.append(f"payments that were taken on are not completed: {error}")
    checkouts = list(everything(client, "/v1/checkouts"))
    status = {checkout["id"]: checkout["status"] for checkout in checkouts}
    made = defaultdict(list)
    for checkout in checkouts:
        made[(checkout.get("metadata") or {}).get("key")].append(checkout["id"])
    refunded = defaultdict(list)
    for refund in everything(client, "/v1/pay/refunds"):
        refunded[refund["reason"]].append(refund["id"])
    transactions = list(everything(client, "/v1/pay/transactions"))
    # An invoice may be paid in parts, which the books of those who do so know.
    completed = Counter(
        transaction["object_id"]
        for transaction in transactions
        if transaction["object_id"] in status and transaction["status"] in PAID
    )
    moves = defaultdict(list)
    for transaction in transactions:
        moves[transaction["object_id"]].append((transaction["id"], transaction["state_transitions"]))
    for shopper in shoppers:
        for key, one in shopper.created.items():
            if made[key] != [one]:
                faults.append(f"{key} was answered by {one}, and there is {made[key]}")
        for one in shopper.paid:
            if status.get(one) != "completed" or completed[one] != 1:
                faults.append(f"{one} was paid, is {status.get(one)} and has {completed[one]} payments: {moves[one]}")
        for reason, (_, one) in shopper.refunds.items():
            if len(refunded[reason]) > 1 or (one and refunded[reason] != [one]):
                faults.append(f"{reason} was asked for once, answered by {one}, and there is {refunded[reason]}")
    faults += [f"{one} was paid {count} times" for one, count in completed.items() if count > 1]
    return faults
