"""Row A8: 100 requests with one key at the same moment, of several bodies, and a server that is killed on the way. Asked
until all are answered: one effect a key, the same bytes for everybody with its body, nobody else's."""

import json
import random
import threading
import time

from checks import data
from proof import Proof
from races import held_back
from scenario import Client, everything
from server import Api
from stocked import MOST_REFUNDS, paid
from wire import request

GATE_KEYS = 12
AT_ONCE = 100
# Every so many keys the server is killed in the middle of it.
KILLED = 4


class Checkout:
    """What a key asks for, in three bodies; how an answer shows that it is this one's, and of which body; what it made."""

    path = "/v1/checkouts"
    success = 201
    variants = ("1.00", "2.00", "3.00")

    def __init__(self, server, key):
        self.key = key

    def body(self, variant):
        return {"amount": variant, "reference": self.key}

    def is_shown(self, made):
        return made["reference"] == self.key

    def variant(self, made):
        return made["amount"]

    def identity(self, made):
        return made["id"]

    def found(self, server):
        api = Api(server.url, server.keys["test"]["secret"])
        return [one["id"] for one in data(api.get(self.path, params={"reference": self.key}))["items"]]


class Payment(Checkout):
    """One payment of a checkout, by one of three telephones."""

    path = "/v1/pay/initialize"
    success = 200
    variants = ("+2207654321", "+2207654322", "+2207654323")

    def __init__(self, server, key):
        self.checkout = bought(server, "1.00")

    def body(self, variant):
        secret = self.checkout["client_secret"]
        return {"client_secret": secret, "payment_method": "afrimoney", "customer_phone": variant}

    def is_shown(self, made):
        return made["object_id"] == self.checkout["id"]

    def variant(self, made):
        return made["customer_phone"]

    def identity(self, made):
        return made["provider_session_id"].removeprefix("SIM-")

    def found(self, server):
        transactions = everything(Client(server), "/v1/pay/transactions")
        return [one["id"] for one in transactions if one["object_id"] == self.checkout["id"]]


class Refund(Checkout):
    """A part of a large payment."""

    payments = {}  # by the server: the latest transaction, and how many refunds of it were asked for

    def __init__(self, server, key):
        self.key = key
        transaction, refunds = self.payments.get(server, (None, MOST_REFUNDS))
        if refunds == MOST_REFUNDS:
            transaction, refunds = paid(Api(server.url, server.keys["test"]["secret"])), 0
        self.payments[server] = transaction, refunds + 1
        self.path = f"/v1/pay/transactions/{transaction}/refund"

    def body(self, variant):
        return {"amount": variant, "reason": self.key}

    def is_shown(self, made):
        return made["reason"] == self.key

    def found(self, server):
        refunds = everything(Client(server), "/v1/pay/refunds")
        return [one["id"] for one in refunds if one["reason"] == self.key]


KINDS = (Checkout, Payment, Refund)


def bought(server, amount):
    return data(Api(server.url, server.keys["test"]["secret"]).post("/v1/checkouts", {"amount": amount}), 201)


def judge(kind, wanted, answers, found):
    """What is wrong with the final answers to one key; `found` are the ids of what it made."""
    taken = {body for status, _, body in answers if status == kind.success}
    if len(taken) != 1:
        yield f"{len(taken)} different answers of success"
        return
    made = json.loads(taken.pop())["data"]
    if not kind.is_shown(made):
        yield f"an answer of something else: {made}"
    if found != [kind.identity(made)]:
        yield f"it made {found}, and {kind.identity(made)} was answered"
    for variant, (status, _, body) in zip(wanted, answers):
        if variant == kind.variant(made):
            if status != kind.success:
                yield f"{status} to a request like the one that was taken: {body[:200]}"
        elif (status, json.loads(body).get("code")) != (400, "idempotency_key_reused"):
            yield f"{status} to another body: {body[:200]}"


class Storm:
    """Many requests with one key, each with a body of its own choice."""

    def __init__(self, server, seed, kind):
        self.server = server
        self.key = f"storm-{seed}"
        self.kind = kind(server, self.key)
        self.chance = random.Random(seed)
        self.wanted = [self.chance.choice(kind.variants) for _ in range(AT_ONCE)]
        headers, secret = [("Idempotency-Key", self.key)], server.keys["test"]["secret"]
        bodies = map(self.kind.body, self.wanted)
        self.requests = [request("POST", self.kind.path, secret, body, headers) for body in bodies]
        self.asked = 0
        self.answers = []

    def break_out(self, is_killed=False):
        """All of them at once, then again whoever was not answered; `is_killed`: the server, in the middle of it."""
        killer = None
        if is_killed:
            # From before the first commit to after the last.
            killer = threading.Timer(self.chance.random() * 0.3, self.server.kill)
        self.answers = held_back(self.server, self.requests, release=killer and killer.start)
        if killer:
            killer.join()
            self.server.start()
        self.asked += AT_ONCE
        deadline = time.monotonic() + 60
        while again := [place for place, answer in enumerate(self.answers) if answer[0] in (0, 429, 503)]:
            assert time.monotonic() < deadline, f"{self.key}: {len(again)} are still not answered"
            for place, answer in zip(again, held_back(self.server, [self.requests[place] for place in again])):
                self.answers[place] = answer
            self.asked += len(again)
        return self

    def faults(self):
        found = judge(self.kind, self.wanted, self.answers, self.kind.found(self.server))
        return [f"{self.key}, {self.kind.path}: {fault}" for fault in found]

    def controls(self):
        """The judge itself, by what it must not let pass: made of a good storm's answers."""
        kind, answers, found = self.kind, self.answers, self.kind.found(self.server)
        last = max(place for place, answer in enumerate(answers) if answer[0] == kind.success)
        status, head, body = answers[last]
        made = json.loads(body)["data"]

        def with_last(changed):
            return [*answers[:last], (status, head, changed), *answers[last + 1 :]]

        forged = {
            "two effects": (answers, found * 2),
            "other bytes": (with_last(body.replace(b"GMD", b"gmd")), found),
            "another's answer": (with_last(body.replace(kind.identity(made).encode(), b"another")), found),
            "no effect": (answers, []),
        }
        for name, (said, objects) in forged.items():
            yield f"{name} of {type(kind).__name__}", any(judge(kind, self.wanted, said, objects))


def test_a_storm_of_one_key(new_server, database):
    server = new_server()
    with Proof("A8", database, GATE_KEYS) as proof:
        kills = asked = 0
        while proof.reached < proof.wanted:
            storm = Storm(server, proof.seed + proof.reached, KINDS[proof.reached % len(KINDS)])
            is_killed = proof.reached % KILLED == KILLED - 1
            for fault in storm.break_out(is_killed).faults():
                proof.violation(fault)
            kills += is_killed
            asked += storm.asked
            proof.reached += 1
            if proof.reached <= len(KINDS):
                for name, is_caught in storm.controls():
                    proof.control(name, is_caught)
        print(f"{proof.reached} keys, {asked} requests, {kills} times killed")
        planted = Storm(new_server(planted="key_outside_transaction"), proof.seed, Checkout)
        proof.control("key_outside_transaction", bool(planted.break_out().faults()))
    server.stop()
    result = server.store.verify()
    assert result.returncode == 0, result.stdout
