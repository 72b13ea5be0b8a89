"""What a shop does, step by step under idempotency keys, through a server that may end at any moment; and afterwards, what
it is answered when it asks again. What must be in the books: `books`."""

import json
import time
from contextlib import nullcontext
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from invoices import order
from races import replayed

# Of a hundred requests, as far as there is something to ask them for; otherwise it is a checkout.
SHARES = {"checkout": 26, "pay": 22, "cancel": 8, "refund": 12, "invoice": 14, "finalize": 8, "record": 10}
# By their last two digits: paid back, and paid back with a lost answer.
REFUNDS = ["1.00", "2.00", "1.74"]
RECORDED = "1.00"
# Said of a body that did not arrive as a whole, under the code that other bodies have too.
CUT = b"The body ended before its end or is not framed as HTTP asks; send it again."
# What a payment by phone takes in test mode; until then it can't be paid back.
APPROVED_S = 1.2


class Client:
    """One connection. `None` stands for an answer that did not come."""

    def __init__(self, server, timeout=15):
        self.server = server
        address = urlsplit(server.url)
        self.connection = HTTPConnection(address.hostname, address.port, timeout=timeout)

    def call(self, method, path, body=None, key=None):
        headers = {"Authorization": f"Bearer {self.server.keys['test']['secret']}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = self.connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        except (OSError, HTTPException):
            self.connection.close()
            return None


class Shop:
    """Remembers what it asked for and what it was answered. `paid`: transactions that it may pay back from the beginning.
    `mailbox`: where it wants to be told of everything, before it does anything else. `kinds`: what it does."""

    def __init__(self, random, paid=(), mailbox=None, kinds=tuple(SHARES)):
        self.random = random
        self.shares = {kind: SHARES[kind] for kind in kinds}
        self.name = random.getrandbits(64)
        self.mailbox = mailbox
        self.asked = {}  # key: (path, body)
        self.answered = {}  # key: (status, body)
        self.settled = {}  # key: (status, body), of those too that were answered only when it asked again after a restart
        self.failed = {}  # key: the answers of 5xx and 429 that it got, after which nobody knows
        self.open = []  # client_secrets by ids of checkouts
        self.paid = [(transaction, 0) for transaction in paid]  # and when they were
        self.drafts = []
        self.owed = []  # ids of invoices
        self.times = []  # (sent, answered, status) of each answer

    def step(self, client):
        """One request. Answers whether an answer came."""
        if self.mailbox and not self.answered:
            body = {"url": self.mailbox.url, "enabled_events": ["*"]}
            return self.ask(client, f"key-{self.name:016x}-endpoint", "/v1/webhook_endpoints", body) is not None
        key = f"key-{self.name:016x}-{len(self.asked):05}"
        return self.ask(client, key, *self._request(key)) is not None

    def _request(self, key):
        """The path and the body of what it does next."""
        [kind] = self.random.choices(list(self.shares), self.shares.values())
        if kind == "pay" and self.open:
            _, secret = self._taken(self.open)
            phone = self.random.choice(["+2207000000", "+2207000000", "+2207000001"])
            body = {"client_secret": secret, "payment_method": "afrimoney", "customer_phone": phone}
            return "/v1/pay/initialize", body
        if kind == "cancel" and self.open:
            identity, _ = self._taken(self.open)
            return f"/v1/checkouts/{identity}/cancel", {}
        before = time.monotonic() - APPROVED_S
        if kind == "refund" and (paid := [transaction for transaction, at in self.paid if at < before]):
            body = {"amount": self.random.choice(REFUNDS), "reason": key}
            return f"/v1/pay/transactions/{self.random.choice(paid)}/refund", body
        amount = f"{self.random.randrange(1, 500)}.00"
        if kind == "invoice":
            return "/v1/pay/invoices", order(amount, is_draft=self.random.random() < 0.5, metadata={"key": key})
        if kind == "finalize" and self.drafts:
            return f"/v1/pay/invoices/{self._taken(self.drafts)}/finalize", {}
        if kind == "record" and self.owed:
            body = {"amount": RECORDED, "payment_method": "cash", "notes": key}
            return f"/v1/pay/invoices/{self.random.choice(self.owed)}/payments", body
        return "/v1/checkouts", {"amount": amount, "metadata": {"key": key}}

    def _taken(self, some):
        return some.pop(self.random.randrange(len(some)))

    def _remember(self, path, made):
        """What can be asked for now that this was made."""
        if path == "/v1/checkouts":
            self.open.append((made["id"], made["client_secret"]))
        elif path == "/v1/pay/initialize" and (reference := made["provider_session_id"]):
            self.paid.append((reference.removeprefix("SIM-"), time.monotonic()))
        elif path == "/v1/pay/invoices" or path.endswith("/finalize"):
            (self.drafts if made["status"] == "draft" else self.owed).append(made["id"])

    def ask(self, client, key, path, body):
        self.asked[key] = (path, body)
        sent = time.monotonic()
        answer = client.call("POST", path, body, key)
        if answer is None:
            return None
        status, _, content = answer
        self.times.append((sent, time.monotonic(), status))
        if status == 400 and b'"invalid_json"' in content and CUT in content:
            return None  # Refused before it was executed, so its key is free.
        if status >= 500 or status == 429:
            self.failed.setdefault(key, []).append((status, content))
            return answer
        self.answered[key] = (status, content)
        if status in (200, 201):
            self._remember(path, json.loads(content)["data"])
        return answer

    def ask_again(self, client, waiting=nullcontext):
        """After a restart: what of the acknowledged is different now, or nothing stands still. It is `waiting` for what was
        never answered, which the server may have to finish first."""
        faults = []
        for key, (path, body) in self.asked.items():
            if key in self.answered:
                again = self._again(client, key)
            else:
                with waiting():
                    again = self._again(client, key)
                client.connection.close()  # If that took long the server has closed it.
            if again is None or again[0] >= 500:
                faults.append(f"{key} {path}: the retry got {again and again[::2]}")
                continue
            status, _, content = again
            self.settled[key] = (status, content)
            if key in self.answered:
                if (status, content) != self.answered[key]:
                    faults.append(f"{key} {path}: {self.answered[key]} became {(status, content)}")
                elif status < 300 and not replayed(again):
                    faults.append(f"{key} {path}: acknowledged and not remembered")
            once = client.call("POST", path, body, key)
            if once is None or (once[0], once[2]) != (status, content):
                faults.append(f"{key} {path}: {(status, content)}, and then {once and once[::2]}")
        return faults

    def _again(self, client, key):
        """The answer under the key; what a crash left running is finished by the server first."""
        for _ in range(30):
            answer = client.call("POST", *self.asked[key], key)
            if answer is None or answer[0] != 429:
                return answer
            time.sleep(1)
        return answer


def everything(client, path):
    """All pages of a list."""
    after = ""
    while True:
        status, _, content = client.call("GET", f"{path}?limit=100{after}")
        assert status == 200, content
        page = json.loads(content)["data"]
        yield from page["items"]
        if not page["has_more"]:
            return
        after = f"&after={page['items'][-1]['id']}"
