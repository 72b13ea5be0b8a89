"""Row A7: every pair of the actions of each object, and three of those that move money, from 2 to 64 requests whose last bytes
were held back, on a connection each or in one packet of HTTP/2. What comes out is what some order of them, one after the other, would have brought; so exactly one wins where only
one can. The end of a checkout's time is one of the contenders."""

import itertools
import json
import random
import time
from collections import deque
from datetime import datetime

from checks import data, eventually
from proof import Proof
from races import held_back, in_one_packet
from server import Api
from state_tables import ABSENT, WAITING, final_states
from wire import request

GATE_ROUNDS = 320
ROUNDS_OF_A_CONTROL = 50
ITEM = {"description": "Pen", "quantity": 1, "unit_price": "1.00"}
BILL = {"customer_email": "race@shop.example", "customer_name": "Awa", "due_date": "2099-01-31", "items": [ITEM]}
FULL = {"amount": "1.00", "payment_method": "cash"}
# What moves money, or decides whether it may move.
MONEY = {"cancel", "finalize", "record", "pay", "whole", "half", "third"}
AT_THE_END = [("cancel",), ("pay",), ("cancel", "pay")]
FEWEST_AT_THE_END = 3
# The shortest that there is, and how long before it the requests are made.
LIFETIME_S = 60
BEFORE_S = 1.5
WAYS = [held_back, in_one_packet]
# Around the moment.
JITTER_S = 0.03
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
    ("payment", 100, [("half", "ok"), ("third", "ok"), ("third", "ok")]),
    ("paid invoice", 100, [("cancel", "ok"), ("whole", "ok")]),
    ("paid invoice", 100, [("pay", "ok"), ("whole", "ok")]),
    ("checkout", "pending", [("expire", "ok"), ("cancel", "checkout_expired"), ("pay", "payment_in_progress")]),
    ("checkout", "pending", [("expire", "ok"), ("cancel", "ok"), ("cancel", "checkout_expired")]),
]


class Racecourse:
    """Makes objects to race for, and knows how each action is sent."""

    def __init__(self, server):
        self.server = server
        self.key = server.keys["test"]["secret"]
        self.api = Api(server.url, self.key)
        self.made = 0
        self.paid = []
        self.paid_invoices = []
        self.ending = deque()

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
        yield "paid invoice", 100, self.paid_invoice, ("whole", "half", "cancel", "pay", "record", "update")

    def groups(self):
        for table, start, make, actions in self.subjects():
            for pair in itertools.combinations_with_replacement(actions, 2):
                yield table, start, make, pair
            for triple in itertools.combinations([name for name in actions if name in MONEY], 3):
                yield table, start, make, triple

    def _new(self, path, body):
        return data(self.api.post(path, body), 201)

    def _sent(self, verb, path, body=None):
        return request(verb, path, self.key, body if body is not None else {})

    def checkout(self):
        return self._checkout(self._new("/v1/checkouts", {"amount": "1.00"}))

    def at_its_end(self):
        """When the time of a checkout is over, in a moment, and that checkout. They are made a minute before, one for each second."""
        now = time.time()
        while self.ending and self.ending[0][0] < now + BEFORE_S / 2:
            self.ending.popleft()
        if not self.ending:
            for more in range(20):
                made = self._new("/v1/checkouts", {"amount": "1.00", "expires_in": LIFETIME_S + more})
                self.ending.append((datetime.fromisoformat(made["expires_at"]).timestamp(), made))
        return self.ending.popleft() if self.ending[0][0] < now + BEFORE_S else None

    def _checkout(self, made):
        path = f"/v1/checkouts/{made['id']}"
        pay = {"client_secret": made["client_secret"], "payment_method": "afrimoney", "customer_phone": WAITING}
        actions = {
            "cancel": self._sent("POST", f"{path}/cancel"),
            "pay": self._sent("POST", "/v1/pay/initialize", pay),
        }
        return actions, lambda: self._checkout_states(data(self.api.get(path)))

    def _checkout_states(self, shown):
        """What the checkout that is shown so can be in the state table."""
        if shown["status"] == "expired" and shown["transaction"]:
            attempt = data(self.api.get(f"/v1/pay/transactions/{shown['transaction']['id']}"))
            was_refused = (attempt["status"], attempt["failure_reason"]) == ("failed", "expired")
            return {"not sent" if was_refused else "expired"}
        return {"pending": {"pending", "paying", "held"}}.get(shown["status"], {shown["status"]})

    def invoice(self, is_draft):
        return self._invoice(self._new("/v1/pay/invoices", BILL | {"is_draft": is_draft}))

    def _invoice(self, made):
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
        return self._refunds(self.paid.pop()), None

    def _refunds(self, transaction):
        path = f"/v1/pay/transactions/{transaction}/refund"
        amounts = {"whole": {}, "half": {"amount": "50.00"}, "third": {"amount": "33.00"}}
        return {name: self._sent("POST", path, body) for name, body in amounts.items()}

    def paid_invoice(self):
        """What is left to do with an invoice that was paid online, beside refunds of that payment."""
        if not self.paid_invoices:
            self.paid_invoices = self._pay_invoices(16)
        made, transaction = self.paid_invoices.pop()
        actions, _ = self._invoice(made)
        return actions | self._refunds(transaction), None

    def _pay_invoices(self, count):
        item = ITEM | {"unit_price": "100.00"}
        invoices = [self._new("/v1/pay/invoices", BILL | {"items": [item]}) for _ in range(count)]
        transactions = []
        for made in invoices:
            pay = {"object_type": "invoice", "object_id": made["id"], "payment_method": "afrimoney"}
            session = data(self.api.post("/v1/pay/initialize", pay | {"customer_phone": "+2207000000"}))
            transactions.append(session["provider_session_id"].removeprefix("SIM-"))
        for made in invoices:
            path = f"/v1/pay/invoices/{made['id']}"
            eventually(lambda path=path: self._status(path) == "paid", timeout=60)
        return list(zip(invoices, transactions))

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


def race(course, chance, actions, names, at=0, way=None):
    """Sends some of these actions together; the name and the code of each. Many now and then; two or three race most closely."""
    count = max(len(names), chance.choice([2, 2, 4, 8, 16, 64]))
    chosen = [names[place % len(names)] for place in range(count)]
    chance.shuffle(chosen)
    send = way or chance.choice(WAYS)
    return chosen, send(course.server, [actions[name] for name in chosen], at=at)


def unexplained(table, start, outcomes, read):
    """Why no order explains it; nothing where one does."""
    ends = final_states(table, start, outcomes)
    said = {f"{name}: {code}": outcomes.count((name, code)) for name, code in sorted(set(outcomes))}
    if not ends:
        return f"{said}: no order explains it"
    if read and not (found := read()) & ends:
        return f"{said}: it is {found}, and not one of {set(ends)}"
    return None


def raced(course, group, seed, way=None):
    """What is wrong with one round; nothing where nothing is."""
    table, start, make, names = group
    actions, read = make()
    chosen, answers = race(course, random.Random(seed), actions, names, way=way)
    outcomes = [(name, code_of(answer, table)) for name, answer in zip(chosen, answers)]
    fault = unexplained(table, start, outcomes, read)
    return fault and f"{table} from {start}, {'×'.join(names)}, seed {seed}: {fault}"


def raced_at_its_end(course, end, made, names, seed):
    """The same of a checkout that expires meanwhile."""
    chance = random.Random(seed)
    actions, read = course._checkout(made)
    chosen, answers = race(course, chance, actions, names, at=end + chance.uniform(-JITTER_S, JITTER_S))
    time.sleep(max(0, end - time.time()))
    outcomes = [*((name, code_of(answer, "checkout")) for name, answer in zip(chosen, answers)), ("expire", "ok")]
    fault = unexplained("checkout", "pending", outcomes, read)
    return fault and f"checkout at its end, {'×'.join(names)}, seed {seed}: {fault}"


def test_every_pair_of_actions(new_server, database):
    course = Racecourse(new_server())
    at_the_end = 0
    with Proof("A7.pairs", database, GATE_ROUNDS) as proof:
        groups = list(course.groups())
        while proof.goes_on() or at_the_end < FEWEST_AT_THE_END:
            seed = proof.seed + proof.reached
            if ending := course.at_its_end():
                fault = raced_at_its_end(course, *ending, AT_THE_END[at_the_end % len(AT_THE_END)], seed)
                at_the_end += 1
            elif proof.goes_on():
                fault = raced(course, groups[proof.reached % len(groups)], seed)
            else:
                time.sleep(0.2)
                continue
            if fault:
                proof.violation(fault)
            proof.reached += 1
        proof.note("at_the_end_of_time", at_the_end)
        for table, start, outcomes in FORGED:
            proof.control(f"{table}: {outcomes}", not final_states(table, start, outcomes))
        let_go = unexplained("checkout", "pending", [("pay", "ok"), ("expire", "ok")], lambda: {"expired"})
        proof.control("an attempt that the provider has, let go at the end", let_go)
        for way in WAYS:
            seen = is_seen(new_server(planted="version_unguarded"), proof.seed, way)
            proof.control(f"version_unguarded: {way.__name__}", seen)
        print(f"{len(groups)} groups, {proof.reached} rounds, {at_the_end} at the end of a checkout's time")


def is_seen(server, seed, way):
    """Whether a round of the first few is wrong."""
    course = Racecourse(server)
    rounds = itertools.islice(itertools.cycle(course.groups()), ROUNDS_OF_A_CONTROL)
    return any(raced(course, group, seed + number, way) for number, group in enumerate(rounds))
