"""Row A6: 64 clients change and read the same objects at once, on PostgreSQL through two processes. There is an order of all
that was answered, each at one moment between its question and its answer, in which every read shows the latest write; a list
counts what is there, and the balance and the ledger's accounts tell of every refund that was made and of no other."""

import json
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from random import Random

from checks import data
from invoices import order
from proof import Proof
from scenario import Client
from server import PLAIN, Api, Server
from stocked import paid

CLIENTS = 64
GATE_HISTORIES = 2
OPERATIONS = {"gate": 2_000, "nightly": 10_000, "release": 10_000}
OPERATIONS_OF_A_CONTROL = 500
MOST_OF_A_CONTROL = 10
OF_EACH_KIND = 5
NEVER = float("inf")
BALANCE = "/v1/payouts/balance"
ACCOUNTS = "/v1/ledger/accounts"


@dataclass
class Operation:
    """From its question to its answer, in seconds; `value` is what was written or read. Nobody knows when one without an answer
    ended."""

    start: float
    end: float
    value: object
    is_write: bool


class Register:
    """An object of which one field is changed and read."""

    def __init__(self, path, field, initial, write):
        self.path = path
        self.field = field
        self.write = write
        self.initial = initial
        self.history = []
        self.faults = []

    def step(self, client, random, fresh):
        if random.random() < 0.4:
            self.write(self, client, fresh)
            return
        start = time.monotonic()
        answer = client.call("GET", self.path)
        if answer and answer[0] == 200:
            self.history.append(Operation(start, time.monotonic(), self.shown(answer), False))
        else:
            self.faults.append(f"GET {self.path}: {answer and answer[0]}")

    def shown(self, answer):
        return json.loads(answer[2])["data"][self.field]


def put(register, client, fresh):
    """Writes a text that nobody else writes."""
    value = f"value {next(fresh)}"
    start = time.monotonic()
    answer = client.call("PUT", register.path, {register.field: value})
    if answer is None or answer[0] >= 500:
        register.history.append(Operation(start, NEVER, value, True))
    elif answer[0] == 200:
        register.history.append(Operation(start, time.monotonic(), value, True))
        if register.shown(answer) != value:
            register.faults.append(f"{value} was answered with {register.shown(answer)}")
    else:
        register.faults.append(f"PUT {register.path}: {answer[0]} {answer[2][:200]}")


def record_payment(register, client, _):
    """Adds one payment; its answer says the sum, which is what was written."""
    start = time.monotonic()
    answer = client.call("POST", f"{register.path}/payments", {"amount": "1.00", "payment_method": "cash"})
    if answer and answer[0] == 201:
        register.history.append(Operation(start, time.monotonic(), register.shown(answer), True))
    else:
        register.faults.append(f"POST {register.path}/payments: {answer and answer[0]}")


def disorder(history, initial):
    """Why no order explains a register's history in which no value was written twice; nothing if one does.

    Gibbons and Korach, "Testing shared memories" (1997), theorem 4.2: the writes and reads of one value follow each other, so
    what lies between the first that ended and the last that began belongs to that value alone.
    """
    groups = {initial: [Operation(-1, 0, initial, True)]}
    faults = []
    for one in history:
        if one.is_write:
            if one.value in groups:
                faults.append(f"{one.value} was written twice")
            groups[one.value] = [one]
    for one in history:
        if not one.is_write:
            if one.value not in groups:
                faults.append(f"{one.value} was read and never written")
            elif one.end < groups[one.value][0].start:
                faults.append(f"{one.value} was read before it was written")
            else:
                groups[one.value].append(one)
    forward, backward = [], []
    for value, group in groups.items():
        ended, began = min(one.end for one in group), max(one.start for one in group)
        # A write that nobody saw and nobody answered may never have been.
        if ended < began:
            forward.append((ended, began, value))
        elif ended < NEVER:
            backward.append((began, ended, value))
    forward.sort()
    for (_, end, value), (start, _, other) in zip(forward, forward[1:]):
        if start < end:
            faults.append(f"{value} and {other} were both the latest")
    for start, end, value in backward:
        if outer := [other for begin, until, other in forward if begin < start and end < until]:
            faults.append(f"{value} came and went while {outer[0]} was the latest")
    return faults


class Sales:
    """A list that only grows, and how many it says there are."""

    def __init__(self, api):
        self.before = total(api.get("/v1/checkouts?limit=1").json())
        self.history = []
        self.faults = []

    def step(self, client, random, _):
        start = time.monotonic()
        is_write = random.random() < 0.4
        if is_write:
            answer = client.call("POST", "/v1/checkouts", {"amount": "1.00"})
        else:
            answer = client.call("GET", "/v1/checkouts?limit=1")
        if answer is None or answer[0] not in (200, 201):
            self.faults.append(f"checkouts: {answer and answer[0]}")
            return
        value = None if is_write else total(json.loads(answer[2]))
        self.history.append(Operation(start, time.monotonic(), value, is_write))

    def disorder(self):
        return [f"a list of checkouts: {fault}" for fault in miscounted(self.history, self.before)]


def miscounted(history, before):
    """What is wrong with reads that count how many writes there were, and those before."""
    made = [one for one in history if one.is_write]
    reads = sorted((one for one in history if not one.is_write), key=lambda one: one.end)
    faults, latest = [], before
    by_start = sorted(reads, key=lambda one: one.start)
    ended = 0
    for one in by_start:
        while reads[ended].end < one.start:
            latest = max(latest, reads[ended].value)
            ended += 1
        least = max(latest, before + sum(other.end < one.start for other in made))
        most = before + sum(other.start < one.end for other in made)
        if not least <= one.value <= most:
            faults.append(f"{least} to {most} are there, and it counts {one.value}")
    return faults


class Bank:
    """Refunds of large payments, and what the balance and the accounts say of them."""

    AMOUNT = "1.00"
    # Twice as many as are enough for the refunds of a history (`MOST_REFUNDS`).
    PAYMENTS = 4

    def __init__(self, api):
        self.paths = [f"/v1/pay/transactions/{paid(api)}/refund" for _ in range(self.PAYMENTS)]
        self.history = []
        self.faults = []
        self.balance = self.balance_of(api.get(BALANCE).json())
        self.merchant = self.merchant_of(api.get(ACCOUNTS).json())

    def step(self, client, random, _):
        kind = random.choice(["refund", "balance", "accounts"])
        start = time.monotonic()
        if kind == "refund":
            answer = client.call("POST", random.choice(self.paths), {"amount": self.AMOUNT})
        else:
            answer = client.call("GET", BALANCE if kind == "balance" else ACCOUNTS)
        end = time.monotonic()
        if answer is None or answer[0] not in (200, 201):
            self.faults.append(f"{kind}: {answer and answer[::2]}")
            return
        read = None
        if kind == "balance":
            read = self.balance - self.balance_of(json.loads(answer[2]))
        elif kind == "accounts":
            read = self.merchant_of(json.loads(answer[2])) - self.merchant
        self.history.append(Operation(start, end, read, kind == "refund"))

    @staticmethod
    def balance_of(answer):
        return Decimal(answer["data"]["available_balance"])

    def merchant_of(self, answer):
        """What the ledger owes the merchant is below zero; all accounts together are zero, at every moment."""
        accounts = answer["data"]["accounts"]
        if total := sum(Decimal(account["balance"]) for account in accounts):
            self.faults.append(f"the accounts add up to {total}")
        return next(Decimal(account["balance"]) for account in accounts if account["account"] == "merchant")

    def disorder(self):
        # Each refund is of 1.00, so that an amount counts them.
        return [f"the balance: {fault}" for fault in miscounted(self.history, 0)]


def total(answer):
    return answer["data"]["total"]


def registers(api):
    made = []
    for number in range(OF_EACH_KIND):
        product = data(api.post("/v1/pay/products", {"name": "Map", "price": "1.00", "description": "new"}), 201)
        email = f"awa{number}-{time.monotonic_ns()}@example.gm"
        customer = data(api.post("/v1/pay/customers", {"email": email, "name": "new"}), 201)
        billed = data(api.post("/v1/pay/invoices", order(notes="new")), 201)
        owed = data(api.post("/v1/pay/invoices", order(items=[line(100_000)])), 201)
        for kind, one, field, write in [
            ("products", product, "description", put),
            ("customers", customer, "name", put),
            ("invoices", billed, "notes", put),
            ("invoices", owed, "paid_amount", record_payment),
        ]:
            made.append(Register(f"/v1/pay/{kind}/{one['id']}", field, one[field], write))
    return made


def line(amount):
    return {"description": "Bricks", "quantity": 1, "unit_price": f"{amount}.00"}


def play(servers, random, operations):
    """One history: what was found, and its registers."""
    api = Api(servers[0].url, servers[0].keys["test"]["secret"])
    # The bank sells something of its own first.
    objects, bank = registers(api), Bank(api)
    sums = [Sales(api), bank]
    fresh, left = count(), count()

    def shop(seed):
        own = Random(seed)
        clients = [Client(server) for server in servers]
        while next(left) < operations:
            target = own.choice(sums) if own.random() < 0.2 else own.choice(objects)
            target.step(own.choice(clients), own, fresh)

    threads = [threading.Thread(target=shop, args=[random.getrandbits(32)]) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [fault for one in sums for fault in one.faults + one.disorder()]
    for one in objects:
        found += one.faults + [f"{one.path}: {fault}" for fault in disorder(one.history, one.initial)]
    return found, objects, sums


def remembered(history):
    """The same history if every fifth read had come from a cache: what the read before it said, if that was over long ago."""
    reads = sorted((one for one in history if not one.is_write), key=lambda one: one.start)
    stale = {id(one): earlier.value for earlier, one in list(zip(reads, reads[8:]))[::5]}
    return [Operation(one.start, one.end, stale.get(id(one), one.value), one.is_write) for one in history]


def is_staleness_seen(server, random):
    """Whether a server that reads what was there a tenth of a second ago is told from one that does not; on a slow machine
    what was read is seldom that young."""
    return any(play([server], random, OPERATIONS_OF_A_CONTROL)[0] for _ in range(MOST_OF_A_CONTROL))


def test_an_order_explains_what_was_answered(new_server, database, tmp_path):
    proof = Proof("A6", database, GATE_HISTORIES)
    servers = [new_server()]
    if database == "postgres":
        second = Server(servers[0].store, tmp_path / "second.log", options=PLAIN)
        second.keys = servers[0].keys
        servers.append(second.start())
    try:
        seen, miscounts = [], []
        with proof:
            for seed, random in proof.cases():
                found, objects, sums = play(servers, random, OPERATIONS[proof.tier])
                for fault in found:
                    proof.violation(f"seed {seed}: {fault}")
                seen += [disorder(remembered(one.history), one.initial) for one in objects]
                miscounts += [miscounted(remembered(one.history), getattr(one, "before", 0)) for one in sums]
            proof.control("a_read_from_a_cache", sum(map(bool, seen)) > len(seen) / 2)
            proof.control("a_sum_from_a_cache", all(miscounts))
            proof.control("stale_read", is_staleness_seen(new_server(planted="stale_read"), Random(proof.seed)))
    finally:
        for server in servers:
            server.stop()
