"""Row A6: 64 clients change and read the same objects at once, on PostgreSQL through two processes. There is an order of all
that was answered, each at one moment between its question and its answer, in which every read shows the latest write; and a
list counts what is there."""

import json
import threading
import time
from dataclasses import dataclass
from itertools import count
from random import Random

from checks import data
from invoices import order
from proof import Proof
from scenario import Client
from server import PLAIN, Api, Server

CLIENTS = 64
GATE_HISTORIES = 2
OPERATIONS = {"gate": 2_000, "nightly": 10_000, "release": 10_000}
OF_EACH_KIND = 5
NEVER = float("inf")


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
        made = [one for one in self.history if one.is_write]
        faults = []
        for one in self.history:
            if not one.is_write:
                least = self.before + sum(other.end < one.start for other in made)
                most = self.before + sum(other.start < one.end for other in made)
                if not least <= one.value <= most:
                    faults.append(f"a list of {least} to {most} checkouts counts {one.value}")
        return faults


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
    objects, sales = registers(api), Sales(api)
    fresh, left = count(), count()

    def shop(seed):
        own = Random(seed)
        clients = [Client(server) for server in servers]
        while next(left) < operations:
            target = sales if own.random() < 0.1 else own.choice(objects)
            target.step(own.choice(clients), own, fresh)

    threads = [threading.Thread(target=shop, args=[random.getrandbits(32)]) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sales.faults + sales.disorder()
    for one in objects:
        found += one.faults + [f"{one.path}: {fault}" for fault in disorder(one.history, one.initial)]
    return found, objects


def remembered(history):
    """The same history if every fifth read had come from a cache: what the read before it said, if that was over long ago."""
    reads = sorted((one for one in history if not one.is_write), key=lambda one: one.start)
    stale = {id(one): earlier.value for earlier, one in list(zip(reads, reads[8:]))[::5]}
    return [Operation(one.start, one.end, stale.get(id(one), one.value), one.is_write) for one in history]


def test_an_order_explains_what_was_answered(new_server, database, tmp_path):
    proof = Proof("A6", database, GATE_HISTORIES)
    servers = [new_server()]
    if database == "postgres":
        second = Server(servers[0].store, tmp_path / "second.log", options=PLAIN)
        second.keys = servers[0].keys
        servers.append(second.start())
    try:
        seen = []
        with proof:
            for seed, random in proof.cases():
                found, objects = play(servers, random, OPERATIONS[proof.tier])
                for fault in found:
                    proof.violation(f"seed {seed}: {fault}")
                seen += [disorder(remembered(one.history), one.initial) for one in objects]
            proof.control("a_read_from_a_cache", sum(map(bool, seen)) > len(seen) / 2)
    finally:
        for server in servers:
            server.stop()
