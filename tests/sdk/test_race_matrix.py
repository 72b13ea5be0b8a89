"""Row A7: every pair of the actions of each object, from 2 to 64 requests whose last bytes were held back. What comes out
is what some order of them, one after the other, would have brought; so exactly one wins where only one can."""

import itertools
import json
import random

from checks import data, eventually
from proof import Proof
from races import held_back
from server import Api
from state_tables import ABSENT, WAITING, final_states
from wire import request

GATE_ROUNDS = 320
ITEM = {"description": "Pen", "quantity": 1, "unit_price": "1.00"}
BILL = {"customer_email": "race@shop.example", "customer_name": "Awa", "due_date": "2099-01-31", "items": [ITEM]}
FULL = {"amount": "1.00", "payment_method": "cash"}
# Outcomes with two winners or none, which no order explains: what the matrix must not let pass.
FORGED = [
    ("checkout", "pending", [("cancel", "ok")] * 2),
    ("checkout", "pending", [("cancel", "checkout_already_cancelled")]),
    ("checkout", "pending", [("cancel", "ok"), ("pay", "checkout_already_completed")]),
    ("invoice", "pending", [("record", "ok")] * 2),
    ("invoice", "pending", [("record", "ok"), ("cancel", "ok")]),
    ("invoice", "draft", [("finalize", "ok")] * 2),
    ("revision", "read", [("update", "ok")] * 2),
    ("link", "active", [("delete", "ok"), ("delete", "ok")]),
    ("link", "active", [("delete", "no answer")]),
    ("record", "there", [("delete", "ok"), ("delete", "ok")]),
    ("person", "nobody", [("create", "created")] * 2),
    ("payment", 100, [("half", "ok")] * 3),
    ("payment", 100, [("whole", "ok"), ("whole", "ok")]),
]


class Racecourse:
    """Makes objects to race for, and knows how each action is sent."""

    def __init__(self, server):
        self.server = server
        self.key = server.keys["test"]["secret"]
        self.api = Api(server.url, self.key)
        self.made = 0
        self.paid = []

    def subjects(self):
        """Table, first state, actions, how to make one, how to read its state (or nothing)."""
        yield "checkout", "pending", self.checkout, ("cancel", "pay")
        yield "invoice", "draft", lambda: self.invoice(True), ("finalize", "cancel", "update", "record", "pay")
        yield "invoice", "pending", lambda: self.invoice(False), ("finalize", "cancel", "update", "record", "pay")
        yield "revision", "read", self.revision, ("update",)
        yield "link", "active", self.link, ("delete", "close", "open", "pay")
        yield "record", "there", self.customer, ("delete", "update")
        yield "record", "there", self.product, ("delete", "update")
        yield "record", "there", self.endpoint, ("delete", "update", "rotate")
        yield "person", "nobody", self.person, ("create",)
        yield "payment", 100, self.payment, ("whole", "half", "third")

    def pairs(self):
        for table, start, make, actions in self.subjects():
            for pair in itertools.combinations_with_replacement(actions, 2):
                yield table, start, make, pair

    def _new(self, path, body):
        return data(self.api.post(path, body), 201)

    def _sent(self, verb, path, body=None):
        return request(verb, path, self.key, body if body is not None else {})

    def checkout(self):
        made = self._new("/v1/checkouts", {"amount": "1.00"})
        path = f"/v1/checkouts/{made['id']}"
        pay = {"client_secret": made["client_secret"], "payment_method": "afrimoney", "customer_phone": WAITING}
        actions = {
            "cancel": self._sent("POST", f"{path}/cancel"),
            "pay": self._sent("POST", "/v1/pay/initialize", pay),
        }
        return actions, lambda: {"pending": {"pending", "paying"}}.get(status := self._status(path), {status})

    def invoice(self, is_draft):
        made = self._new("/v1/pay/invoices", BILL | {"is_draft": is_draft})
        path = f"/v1/pay/invoices/{made['id']}"
        pay = {"object_type": "invoice", "object_id": made["id"], "payment_method": "wave"}
        actions = {
            "finalize": self._sent("POST", f"{path}/finalize"),
            "cancel": self._sent("POST", f"{path}/cancel"),
            "update": self._sent("PUT", path, {"notes": "Changed"}),
            "record": self._sent("POST", f"{path}/payments", FULL),
            "pay": self._sent("POST", "/v1/pay/initialize", pay),
        }
        return actions, lambda: {"pending": {"pending", "paying"}}.get(status := self._status(path), {status})

    def revision(self):
        made = self._new("/v1/pay/invoices", BILL)
        self.made += 1
        change = {"notes": f"Changed {self.made}", "version": made["version"]}
        return {"update": self._sent("PUT", f"/v1/pay/invoices/{made['id']}", change)}, None

    def link(self):
        made = self._new("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"})
        path = f"/v1/pay/payment-links/{made['id']}"
        pay = {"object_type": "payment_link", "object_id": made["id"]}
        actions = {
            "delete": self._sent("DELETE", path),
            "close": self._sent("PUT", path, {"status": "inactive"}),
            "open": self._sent("PUT", path, {"status": "active"}),
            "pay": self._sent("POST", "/v1/pay/initialize", pay),
        }
        return actions, lambda: {self._status(path)}

    def _record(self, path, made, change):
        place = f"{path}/{made['id']}"
        actions = {
            "delete": self._sent("DELETE", place),
            "update": self._sent("PUT", place, change),
            "rotate": self._sent("POST", f"{place}/rotate-secret"),
        }
        return actions, lambda: {"there" if self.api.get(place).status_code == 200 else "deleted"}

    def customer(self):
        self.made += 1
        made = self._new("/v1/pay/customers", {"email": f"race{self.made}@shop.example"})
        return self._record("/v1/pay/customers", made, {"name": "Changed"})

    def product(self):
        made = self._new("/v1/pay/products", {"name": "Pen", "price": "1.00"})
        return self._record("/v1/pay/products", made, {"name": "Changed"})

    def endpoint(self):
        made = self._new("/v1/webhook_endpoints", {"url": "http://127.0.0.1:9/", "enabled_events": ["refund.failed"]})
        return self._record("/v1/webhook_endpoints", made, {"description": "Changed"})

    def person(self):
        self.made += 1
        return {"create": self._sent("POST", "/v1/pay/customers", {"email": f"new{self.made}@shop.example"})}, None

    def payment(self):
        if not self.paid:
            self.paid = self._pay(16)
        path = f"/v1/pay/transactions/{self.paid.pop()}/refund"
        amounts = {"whole": {}, "half": {"amount": "50.00"}, "third": {"amount": "33.00"}}
        return {name: self._sent("POST", path, body) for name, body in amounts.items()}, None

    def _pay(self, count):
        """Payments of 100.00 that went through."""
        checkouts = [self._new("/v1/checkouts", {"amount": "100.00"}) for _ in range(count)]
        for made in checkouts:
            pay = {"client_secret": made["client_secret"], "payment_method": "afrimoney"}
            data(self.api.post("/v1/pay/initialize", pay | {"customer_phone": "+2207000000"}))

        def settled(made):
            found = data(self.api.get(f"/v1/checkouts/{made['id']}"))
            return found["transaction"]["id"] if found["status"] == "completed" else None

        return [eventually(lambda made=made: settled(made), timeout=60) for made in checkouts]

    def _status(self, path):
        answer = self.api.get(path)
        return "deleted" if answer.status_code == 404 else data(answer)["status"]


def code_of(answer, table):
    status, _, body = answer
    if status in (200, 201, 204):
        return "created" if (table, status) == ("person", 201) else "ok"
    if status == 0:
        return "no answer"
    code = json.loads(body)["code"]
    return ABSENT if status == 404 and table == "record" or code == "payment_link_not_found" else code


def test_every_pair_of_actions(new_server, database):
    course = Racecourse(new_server())
    with Proof("A7.pairs", database, GATE_ROUNDS) as proof:
        pairs = list(course.pairs())
        while proof.reached < proof.wanted:
            chance = random.Random(proof.seed + proof.reached)
            table, start, make, pair = pairs[proof.reached % len(pairs)]
            actions, read = make()
            # Many contenders now and then; two of them race most closely.
            count = chance.choice([2, 2, 4, 8, 16, 64])
            chosen = [pair[place % 2] for place in range(count)]
            chance.shuffle(chosen)
            answers = held_back(course.server, [actions[name] for name in chosen])
            outcomes = [(name, code_of(answer, table)) for name, answer in zip(chosen, answers)]
            ends = final_states(table, start, outcomes)
            said = {f"{name}: {code}": outcomes.count((name, code)) for name, code in sorted(set(outcomes))}
            round_ = f"{table} from {start}, {'×'.join(pair)}, seed {proof.seed + proof.reached}: {said}"
            if not ends:
                proof.violation(f"{round_}: no order explains it")
            elif read and not (found := read()) & ends:
                proof.violation(f"{round_}: it is {found}, and not one of {set(ends)}")
            proof.reached += 1
        for table, start, outcomes in FORGED:
            proof.control(f"{table}: {outcomes}", not final_states(table, start, outcomes))
        print(f"{len(pairs)} pairs, {proof.reached} rounds")
