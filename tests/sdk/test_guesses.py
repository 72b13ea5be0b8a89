"""Row D11.guesses: who asks for what he can't know finds nothing, however close his guesses are to what is there: ids of the same
moment, of the next one, with one character changed; codes, secrets and keys likewise."""

import hashlib
import re
import socket
import string
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from urllib.parse import urlsplit

from checks import data, eventually
from contract import DOCUMENT
from hosted import Payer
from invoices import order
from proof import Proof
from server import Api

GATE_GUESSES = 5_000
# Sent before the first answer is read; what is under way fits into the buffers of a connection.
AT_ONCE = 100
CONNECTIONS = 4
BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"
ID = re.compile(r"[a-z]+_[0-9a-hjkmnp-tv-z]{26}")
# Of an id's characters: the first ten say the moment, two more hold what makes it an id at all.
MOMENT, FREE = range(10), [11, 12, *range(14, 26)]


class Pipe:
    """One connection, on which many requests are under way."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""

    def ask(self, requests):
        self.socket.sendall(b"".join(requests))
        return [self._answer() for _ in requests]

    def _answer(self):
        """(status, body)"""
        while (end := self.read.find(b"\r\n\r\n")) < 0:
            self._more()
        head = self.read[:end].lower()
        length = int(re.search(rb"\r\ncontent-length: (\d+)", head)[1])
        while len(self.read) < end + 4 + length:
            self._more()
        body, self.read = self.read[end + 4 : end + 4 + length], self.read[end + 4 + length :]
        return int(head[9:12]), body

    def _more(self):
        more = self.socket.recv(1 << 20)
        assert more, "the server ended the connection"
        self.read += more


class Door:
    """Where something may be asked for by what only its owner knows."""

    def __init__(self, name, path, known, key=None, is_refused=lambda status, _: status == 404, alter=None):
        self.name, self.path, self.known, self.key = name, path, known, key
        self.is_refused = is_refused
        self.alter = alter or (an_id if ID.fullmatch(known) else a_code)

    def request(self, guess):
        key = f"Authorization: Bearer {self.key or guess}\r\n" if self.path.startswith("/v1") else ""
        return f"GET {self.path.replace('{}', guess)} HTTP/1.1\r\nHost: dalasi\r\n{key}\r\n".encode()


def changed(text, places, random, alphabet=None):
    text = list(text)
    for place in places:
        others = (alphabet or kind_of(text[place])).replace(text[place], "")
        text[place] = random.choice(others)
    return "".join(text)


def kind_of(letter):
    return next(kind for kind in (string.digits, string.ascii_lowercase, string.ascii_uppercase, "-_") if letter in kind)


def an_id(known, random):
    prefix, _, body = known.rpartition("_")
    way = random.randrange(4)
    if way == 0:  # Of the same moment.
        body = changed(body, random.sample(FREE, random.randrange(2, len(FREE))), random, BASE32)
    elif way == 1:  # As if only the moment counted.
        moment = sum(BASE32.index(body[place]) << 5 * (9 - place) for place in MOMENT) + random.randrange(1, 5_000)
        body = "".join(BASE32[moment >> 5 * (9 - place) & 31] for place in MOMENT) + body[10:]
    elif way == 2:  # The next one, or the one after.
        last = sum(BASE32.index(body[-place]) << 5 * (place - 1) for place in range(1, 5)) + random.randrange(1, 5_000)
        body = body[:-4] + "".join(BASE32[last >> 5 * place & 31] for place in reversed(range(4)))
    else:
        body = changed(body, [random.randrange(26)], random, BASE32)
    return f"{prefix}_{body}"


def a_code(known, random):
    """With the marks that every one of its kind has."""
    free = range(len(known) - len(known.split("_")[-1]), len(known))
    free = [place for place in free if known[place] not in "-_."]
    hexadecimal = "0123456789abcdef" if re.fullmatch(r"[0-9a-f]{32}", known) else None
    return changed(known, random.sample(free, random.randrange(1, min(8, len(free)))), random, hexadecimal)


def a_number(known, random):
    """The numbers of one month are counted: each of them, and those of other months."""
    return re.sub(r"-(\d\d)-(\d+)$", f"-{random.randrange(1, 13):02}-{random.randrange(1, 400):04}", known)


def with_check(guess):
    """A key that is refused only because nobody has it."""
    body = guess[:-6]
    bits = int.from_bytes(hashlib.sha256(body.encode()).digest()[:4], "big") >> 2
    return body + "".join(BASE32[bits >> 5 * place & 31] for place in reversed(range(6)))


def a_key(known, random):
    body = known[:-6]
    free = range(len(body) - 51, len(body) - 1)
    return with_check(changed(body, random.sample(free, random.randrange(1, 4)), random, BASE32) + "000000")


def stocked(server):
    """One of everything, in test mode; what only its owner knows, by name."""
    api = Api(server.url, server.keys["test"]["secret"])
    checkout = data(api.post("/v1/checkouts", {"amount": "90.00"}), 201)
    pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"}
    session = data(api.post("/v1/pay/initialize", pay))
    eventually(lambda: data(api.get(f"/v1/checkouts/{checkout['id']}"))["status"] == "completed")
    transaction = data(api.get("/v1/pay/transactions"))["items"][0]
    data(api.post(f"/v1/pay/transactions/{transaction['id']}/refund", {"amount": "1.00"}), 201)
    data(api.post("/v1/pay/payment-links", {"title": "Fees", "amount": "5.00"}), 201)
    data(api.post("/v1/pay/customers", {"name": "Awa Ceesay", "email": "awa@example.gm"}), 201)
    data(api.post("/v1/pay/products", {"name": "Rice", "price": "5.00"}), 201)
    data(api.post("/v1/webhook_endpoints", {"url": "https://shop.example/hook", "enabled_events": ["*"]}), 201)
    invoice = data(api.post("/v1/pay/invoices", order()), 201)
    data(api.post(f"/v1/pay/invoices/{invoice['id']}/payments", {"amount": "40.00", "payment_method": "cash"}), 201)
    receipt = data(api.get(f"/v1/pay/invoices/{invoice['id']}/receipts"))[0]
    open_checkout = data(api.post("/v1/checkouts", {"amount": "70.00"}), 201)
    payer = Payer(server.url)
    page = payer.press(payer.look(f"/checkout/{open_checkout['id']}"), "/method", method="wave")
    simulator = next(lead for lead in page.leads if "/simulator/" in lead)
    return api, {
        "checkout": checkout["id"],
        "session_id": session["session_id"],
        "receipt_number": receipt["receipt_number"],
        "validation_code": receipt["validation_code"],
        "invoice": invoice["id"],
        "link": data(api.get("/v1/pay/payment-links"))["items"][0]["id"],
        "simulator": re.search(r"/simulator/([^/?]+)", simulator)[1],
    }


def doors(server):
    """Every operation that takes an id, from the description, with a key of the other mode; and every public address."""
    api, known = stocked(server)
    live = server.keys["live"]["secret"]
    for path, operations in DOCUMENT["paths"].items():
        names = re.findall(r"{(\w+)}", path)
        if "get" not in operations or len(names) != 1:
            continue
        name = names[0]
        value = known.get(name) or data(api.get(path.split("/{")[0], params={"limit": 1}))["items"][0]["id"]
        place = path.replace(f"{{{name}}}", "{}")
        if name == "validation_code":
            yield Door(path, place, value, live, is_refused=lambda status, body: status == 200 and b'"valid":false' in body)
        else:
            yield Door(path, place, value, live, alter=a_number if name == "receipt_number" else None)
    for place, name in [
        ("/checkout/{}", "checkout"), ("/pay/{}", "link"), ("/invoice/{}", "invoice"), ("/invoice/{}/pdf", "invoice"),
        ("/receipts/{}.pdf", "validation_code"), ("/simulator/{}", "simulator"),
    ]:  # fmt: skip
        yield Door(place, place, known[name])
    key = server.keys["test"]["secret"]
    yield Door("a key", "/v1/pay/dashboard", key, is_refused=lambda status, _: status == 401, alter=a_key)


def test_nothing_is_found_by_guessing(new_server, watch, database):
    server = new_server()
    watch.servers.remove(server)  # It reads every answer, and these are many.
    with Proof("D11.guesses", database, GATE_GUESSES) as proof:
        all_doors = list(doors(server))
        pipe = Pipe(server.url)
        for door in all_doors:
            # The owner is let in: by the own key where it takes one.
            own = Door(door.name, door.path, door.known, server.keys["test"]["secret"])
            ((status, body),) = pipe.ask([own.request(door.known)])
            proof.control(f"who knows it: {door.name}", status == 200 and not door.is_refused(status, body))

        def part(number):
            random, pipe, found = Random(f"{proof.seed} {number}"), Pipe(server.url), []
            asked = Counter()
            while sum(asked.values()) < -(-proof.wanted // CONNECTIONS):
                tried = [(door, door.alter(door.known, random)) for door in random.choices(all_doors, k=AT_ONCE)]
                answers = pipe.ask([door.request(guess) for door, guess in tried])
                for (door, guess), (status, body) in zip(tried, answers):
                    asked[door.name] += 1
                    if not door.is_refused(status, body):
                        found.append(f"seed {proof.seed}: {door.name} answers {status} for {guess}")
            return asked, found

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for asked, found in pool.map(part, range(CONNECTIONS)):
                proof.reached += asked.total()
                for fault in found:
                    proof.violation(fault)
        print(f"{proof.reached} guesses at {len(all_doors)} doors")
