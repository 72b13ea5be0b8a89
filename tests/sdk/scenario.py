"""What a shop does, step by step under idempotency keys, through a server that may end at any moment; and afterwards, what
of it must be there."""

import json
import time
from collections import defaultdict
from contextlib import nullcontext
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit


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
    """Remembers what it asked for and what it was answered."""

    def __init__(self, random):
        self.random = random
        self.name = random.getrandbits(64)
        self.asked = {}  # key: (path, body)
        self.answered = {}  # key: (status, body)
        self.failed = {}  # key: the answers of 5xx and 429 that it got, after which nobody knows
        self.open = []  # (id, client_secret) of checkouts
        self.times = []  # (sent, answered, status) of each answer

    def step(self, client):
        """One request. Answers whether an answer came."""
        key = f"key-{self.name:016x}-{len(self.asked):05}"
        kind = self.random.random()
        if self.open and kind < 0.35:
            identity, secret = self.open.pop(self.random.randrange(len(self.open)))
            phone = self.random.choice(["+2207000000", "+2207000000", "+2207000001"])
            body = {"client_secret": secret, "payment_method": "afrimoney", "customer_phone": phone}
            return self.ask(client, key, "/v1/pay/initialize", body) is not None
        if self.open and kind < 0.45:
            identity, _ = self.open.pop(self.random.randrange(len(self.open)))
            return self.ask(client, key, f"/v1/checkouts/{identity}/cancel", {}) is not None
        amount = f"{self.random.randrange(1, 500)}.00"
        return self.ask(client, key, "/v1/checkouts", {"amount": amount, "metadata": {"key": key}}) is not None

    def ask(self, client, key, path, body):
        self.asked[key] = (path, body)
        sent = time.monotonic()
        answer = client.call("POST", path, body, key)
        if answer is None:
            return None
        status, _, content = answer
        self.times.append((sent, time.monotonic(), status))
        if status == 400 and b'"incomplete_body"' in content:
            return None  # Refused before it was executed, so its key is free.
        if status >= 500 or status == 429:
            self.failed.setdefault(key, []).append((status, content))
            return answer
        self.answered[key] = (status, content)
        if path == "/v1/checkouts" and status == 201:
            checkout = json.loads(content)["data"]
            self.open.append((checkout["id"], checkout["client_secret"]))
        return answer

    def reconcile(self, server, waiting=nullcontext):
        """After a restart: what of the acknowledged is missing or different, and what happened twice. It is `waiting` for what
        was never answered, which the server may have to finish first."""
        faults = []
        client = Client(server)
        for key, (path, body) in self.asked.items():
            if key in self.answered:
                again = self._settled(client, key)
            else:
                with waiting():
                    again = self._settled(client, key)
                client.connection.close()  # If that took long the server has closed it.
            if again is None or again[0] >= 500:
                faults.append(f"{key} {path}: the retry got {again and again[::2]}")
                continue
            status, headers, content = again
            replayed = {name.lower(): value for name, value in headers.items()}.get("idempotent-replayed") == "true"
            if key in self.answered:
                if (status, content) != self.answered[key]:
                    faults.append(f"{key} {path}: {self.answered[key]} became {(status, content)}")
                elif status < 300 and not replayed:
                    faults.append(f"{key} {path}: acknowledged and not remembered")
            once = client.call("POST", path, body, key)
            if once is None or (once[0], once[2]) != (status, content):
                faults.append(f"{key} {path}: {(status, content)}, and then {once and once[::2]}")
        return faults + self._doubles(client) + events_with_gaps(client)

    def _settled(self, client, key):
        """The answer under the key; what a crash left running is finished by the server first."""
        for _ in range(30):
            answer = client.call("POST", *self.asked[key], key)
            if answer is None or answer[0] != 429:
                return answer
            time.sleep(1)
        return answer

    def _doubles(self, client):
        """Each key made exactly one checkout."""
        made = defaultdict(list)
        for checkout in everything(client, "/v1/checkouts"):
            if (key := (checkout.get("metadata") or {}).get("key")) in self.asked:
                made[key].append(checkout["id"])
        created = [key for key, (path, _) in self.asked.items() if path == "/v1/checkouts"]
        return [f"{key} made {made[key]}" for key in created if len(made[key]) != 1]


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


def events_with_gaps(client):
    """Objects whose events are not 1, 2, 3 …"""
    sequences = defaultdict(list)
    for event in everything(client, "/v1/events"):
        sequences[event["object_id"]].append(event["sequence"])
    return [
        f"the events of {object} are {sorted(found)}"
        for object, found in sequences.items()
        if sorted(found) != list(range(1, len(found) + 1))
    ]
