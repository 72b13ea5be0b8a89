"""Row D8: secrets that must not be kept, sent in every field and header there is; then everything that the server leaves
behind is searched for them, in whatever form: database, write-ahead log, traces, metrics, events, webhooks, mails, documents, the
ledger's export, backup. Phone numbers and addresses of people are kept, and stand in no log all the same."""

import base64
import json
import os
import re
import subprocess
import urllib.parse
import zlib
from pathlib import Path

from bombs import operations
from checks import data, eventually
from contract import DOCUMENT
from hosted import Payer
from mailserver import MailServer
from proof import Proof
from server import PLAIN, Api, Server
from store import dalasi, environment, psql

GATE_CANARIES = 300
# What else a request needs, so that only the card number is wrong with it.
ITEM = {"description": "Pen", "quantity": 1, "unit_price": "1.00"}
NESTED = {
    "items": ITEM,
    "custom_fields": {"name": "size", "label": "Size", "type": "select", "options": ["S"]},
}
# What people are reached by: kept, and written in no log.
CONTACTS = "a contact"
COMPLETE = {
    "create_checkout": {"amount": "1.00"},
    "create_payment_link": {"title": "Tea", "amount": "1.00"},
    "create_customer": {"email": "awa@shop.example"},
    "create_product": {"name": "Pen", "price": "1.00"},
    "create_invoice": {"customer_email": "awa@shop.example", "customer_name": "Awa", "due_date": "2099-01-31", "items": [ITEM]},
    "record_invoice_payment": {"amount": "1.00", "payment_method": "cash"},
    "create_webhook_endpoint": {"url": "https://hooks.shop.example/", "enabled_events": ["*"]},
}


def luhn(digits):
    """With its check digit."""
    total = sum(sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(digits))
    return digits + str(-total % 10)


class Cage:
    """Makes canaries, each another, and finds them again."""

    def __init__(self, seed):
        self.seed = seed
        self.names = {}

    def pan(self, name):
        number = luhn(f"4{self.seed % 10**8:08}{len(self.names):06}")
        return self._keep(name, number)

    def phone(self, name):
        return "+" + self._keep(f"{CONTACTS}: {name}", f"2203{(self.seed + len(self.names)) % 10**6:06}")

    def address(self, name):
        return self._keep(f"{CONTACTS}: {name}", f"canary{self.seed}x{len(self.names):06}") + "@shop.example"

    def text(self, name, kind="canary"):
        return self._keep(name, f"{kind}_{self.seed}_{len(self.names):06}_zq")

    def _keep(self, name, canary):
        self.names[canary] = name
        return canary

    def stand_in(self, text):
        """Those that stand in much text as they are."""
        # What all that are made up have in common, so that few are looked for one by one.
        is_near = any(mark in text for mark in (f"_{self.seed}_".encode(), f"4{self.seed % 10**8:08}".encode()))
        made_up = (f"_{self.seed}_", f"4{self.seed % 10**8:08}")
        # Of those that are kept, a few.
        wanted = (canary for canary, name in self.names.items() if not name.startswith(CONTACTS) or "an invoice" in name)
        return {canary for canary in wanted
                if (is_near or not any(mark in canary for mark in made_up)) and canary.encode() in text}  # fmt: skip

    def found_in(self, text):
        """The canaries that stand in it, in whatever form."""
        lower = text.lower()
        plain = {canary for canary in self.names if canary.encode() in text}
        for canary in self.names:
            raw = canary.encode()
            hexed, quoted = raw.hex().encode(), "".join(f"%{byte:02x}" for byte in raw).encode()
            percent = urllib.parse.quote(canary, safe="").encode()
            # Without what hangs on the neighbours, whichever of the three places it begins at.
            based = [base64.b64encode(b"\0" * shift + raw)[(0, 2, 3)[shift] : -4] for shift in range(3)]
            if hexed in lower or quoted in lower or percent in text or any(one in text for one in based):
                plain.add(canary)
        return plain


def leaves(schema, path=()):
    """The ways to all texts of a body: names of fields, 0 for what stands in a list, `note` where any name will do."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for choice in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(choice, []):
            yield from leaves(one, path)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    for name, inner in schema.get("properties", {}).items():
        yield from leaves(inner, (*path, name))
    if "object" in kinds and "properties" not in schema:
        yield (*path, "note")
    if "array" in kinds:
        yield from leaves(schema["items"], (*path, 0))
    if "string" in kinds:
        yield path


def texts_of(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return sorted(set(leaves(content["schema"])), key=str) if content else []


def planted(body, path, value):
    """That body with the value at the end of that way."""
    name, *rest = path
    if rest and rest[0] == 0:
        inner = rest[1:]
        return body | {name: [planted(NESTED.get(name, {}), inner, value) if inner else value]}
    return body | {name: planted({}, rest, value) if rest else value}


def everything(server, store, backup):
    """(place, bytes) of all that a server leaves behind, but for a database's own files on PostgreSQL."""
    yield "the log", open(server.log, "rb").read()
    yield "the metrics", Api(server.url).get("/metrics").content
    if store.name == "sqlite":
        for path in store.folder.rglob("*"):
            if path.is_file():
                yield f"the file {path.name}", path.read_bytes()
    else:
        dumped = subprocess.run(["pg_dump", "--inserts", store.url], capture_output=True, timeout=60, check=True)
        yield "the database", dumped.stdout
    made = dalasi("backup", *store.location, backup, check=False)
    assert made.returncode == 0, made.stderr
    yield "the backup", backup.read_bytes()
    for mode in ("test", "live"):
        export = backup.with_suffix(f".{mode}.jsonl")
        dalasi("ledger", "export", *["--live"] * (mode == "live"), *store.location, export)
        yield f"the ledger's export of {mode} mode", export.read_bytes()


def files_of_postgres(store):
    """What rows that are gone leave in its files and its log; nothing where they are not ours to read."""
    psql(store.url, "checkpoint")
    folder = Path(psql(store.url, "show data_directory").strip())
    if not os.access(folder, os.R_OK | os.X_OK):
        print(f"NOT SEARCHED: {folder}: it is not ours to read")
        return
    own = psql(store.url, "select oid from pg_database where datname = current_database()").strip()
    for path in [*folder.glob(f"base/{own}/*"), *folder.glob("pg_wal/*")]:
        try:
            yield f"PostgreSQL's {path.parent.name}/{path.name}", path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            pass  # its log goes round


def is_readable_here(store):
    return store.name == "postgres" and any(True for _ in files_of_postgres(store))


def documents(api):
    """What is drawn in each, and what its parts hold."""
    invoices = data(api.get("/v1/pay/invoices", params={"limit": 100}))["items"]
    receipts = data(api.get("/v1/pay/receipts", params={"limit": 100}))["items"]
    paths = [f"/v1/pay/invoices/{one['id']}/pdf" for one in invoices] + [f"/v1/pay/receipts/{one['id']}/download" for one in receipts]
    assert invoices and receipts
    for path in paths:
        file = eventually(lambda: (answer := api.get(path)).status_code == 200 and answer.content)
        drawn = subprocess.run(["pdftotext", "-", "-"], input=file, capture_output=True, timeout=60, check=True)
        yield path, file + drawn.stdout + b"".join(inflated(file))


def inflated(file):
    for part in re.findall(rb"stream\r?\n(.*?)endstream", file, re.DOTALL):
        try:
            yield zlib.decompressobj().decompress(part)
        except zlib.error:
            pass  # it was not packed


class Searched:
    """A server that was told secrets, and everything that it left behind."""

    def __init__(self, store, folder, seed, planted=None):
        self.keys = store.init()["keys"]
        self.mails = MailServer().start()
        self.server = Server(store, folder / f"{planted}.log", options=PLAIN + self.mails.options, planted=planted)
        self.backup = folder / f"{planted}.backup"
        self.cage = Cage(seed)
        self.sent = []
        self.delivered = []
        # Where contacts were found, which are kept: whoever finds none there has not looked.
        self.known_in = set()

    def start(self, receiver):
        self.server.start()
        self.test, self.live = (Api(self.server.url, self.keys[mode]["secret"]) for mode in ("test", "live"))
        self.delivered = secrets_that_are_issued(self.cage, self.server, self.keys, self.test, receiver)
        contacts_of_mails(self.cage, self.test, self.mails)
        self.sent += secrets_that_are_typed(self.cage, self.server, self.test)
        return self

    def stop(self):
        self.server.kill()
        self.mails.stop()

    def send(self):
        self.sent += secrets_that_are_sent(self.cage, self.test, self.live)

    def faults(self):
        """Where there are secrets that must not be there."""
        for place, text in everything(self.server, self.server.store, self.backup):
            for canary in self.cage.found_in(text):
                if place in ("the log", "the metrics") or not self.cage.names[canary].startswith(CONTACTS):
                    yield f"{place} holds {self.cage.names[canary]}"
        if self.server.store.name == "postgres":
            for place, text in files_of_postgres(self.server.store):
                for canary in self.cage.stand_in(text):
                    self.known_in.add("files")
                    if not self.cage.names[canary].startswith(CONTACTS):
                        yield f"{place} holds {self.cage.names[canary]}"
        # Its sender may be told which word of his is none; what is a secret is not repeated even to him.
        for place, text in self.sent:
            for canary in self.cage.found_in(text):
                if not self.cage.names[canary].startswith(("a card number", CONTACTS)):
                    yield f"an answer to {place} repeats {self.cage.names[canary]}"
        events = json.dumps(data(self.test.get("/v1/events", params={"limit": 100}))).encode() + b"".join(self.delivered)
        told = [("an event or a webhook", events), *(("a mail", whole(mail)) for mail in self.mails.mails), *documents(self.test)]
        for place, text in told:
            for canary in self.cage.found_in(text):
                self.known_in.add("documents" if place.startswith("/v1") else place)
                if not self.cage.names[canary].startswith(CONTACTS):
                    yield f"{place} holds {self.cage.names[canary]}"


def test_no_secret_is_left_behind(new_store, tmp_path, database, monkeypatch, receiver):
    monkeypatch.setattr("server.environment", lambda: environment() | {"DALASI_LOG": "trace"})
    servers = []

    def searched(seed, planted=None):
        servers.append(Searched(new_store(), tmp_path, seed, planted))
        return servers[-1].start(receiver)

    try:
        with Proof("D8", database, GATE_CANARIES) as proof:
            good = searched(proof.seed)
            good.send()
            while len(good.cage.names) < proof.wanted:
                good.send()
            proof.reached = len(good.cage.names)
            for fault in good.faults():
                proof.violation(fault)
            traces = os.path.getsize(good.server.log) >> 10
            print(f"{proof.reached} canaries, {len(good.sent)} answers, {traces} KiB of traces")
            for name, text in forms(good.cage).items():
                proof.control(f"a canary {name}", bool(good.cage.found_in(text)))
            one = next(iter(good.cage.names)).encode()
            packed = b"stream\n" + zlib.compress(one) + b"\nendstream"
            proof.control("a canary packed in a document", bool(good.cage.found_in(b"".join(inflated(packed)))))
            proof.control("a contact in a mail and in what is drawn", {"a mail", "documents"} <= good.known_in)
            if is_readable_here(good.server.store):
                proof.control("a contact in PostgreSQL's files", "files" in good.known_in)
            proof.control("request_logged", any(searched(proof.seed, "request_logged").faults()))
    finally:
        for one in servers:
            one.stop()


def forms(cage):
    """What the search must find."""
    canary = next(iter(cage.names)).encode()
    return {
        "as it is": b"x" + canary,
        "in base64": base64.b64encode(b"ab" + canary + b"cd"),
        "in hex": canary.hex().upper().encode(),
        "in percent signs": "".join(f"%{byte:02X}" for byte in canary).encode(),
    }


def contacts_of_mails(cage, api, mails):
    """Invoices that are sent, one of them to somebody whose mail server repeats the address as it refuses."""
    refused = cage.address("an invoice that is refused")
    mails.on_data = lambda mail: f"550 5.1.1 <{mail.recipients[0]}> is nobody" if refused in mail.recipients else "250 taken"
    for address in (cage.address("an invoice that arrives"), refused):
        person = {"customer_email": address, "customer_phone": cage.phone("an invoice that is sent")}
        made = data(api.post("/v1/pay/invoices", COMPLETE["create_invoice"] | person), 201)
        mails.heard.clear()
        data(api.post(f"/v1/pay/invoices/{made['id']}/send"))
        assert mails.heard.wait(20), "no mail came"
        data(api.post(f"/v1/pay/invoices/{made['id']}/payments", COMPLETE["record_invoice_payment"]), 201)


def whole(mail):
    """As it came, and what its files are unpacked."""
    files = [file if isinstance(file, bytes) else file.encode() for file in mail.files.values()]
    return b"\n".join([mail.bytes, mail.text.encode(), mail.html.encode(), *files, *(part for file in files for part in inflated(file))])


def secrets_that_are_typed(cage, server, api):
    """What a payer types on a page, asked for or not; (place, answer) of each."""
    payer, answers = Payer(server.url), []
    for number in range(2):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
        path = f"/checkout/{checkout['id']}"
        page = payer.look(path)
        if number:
            page = payer.press(page, "/method", method="qmoney")
            page = payer.press(page, "/phone", method="qmoney", phone="+2207000000")
        for action in ("method", "phone", "code", "resend", "other"):
            place = f"{action} of a page" + " that asks for a code" * number
            typed = {
                "phone": cage.phone(place), "email": cage.address(place), "code": cage.text(f"a code for {place}", "pin"),
                "pin": cage.text(f"a PIN for {place}", "pin"), "card": cage.pan(f"a card for {place}"),
            }  # fmt: skip
            answer = payer.ask("POST", f"{path}/{action}", page.forms[0][1] | {"method": "qmoney"} | typed, headers={"Origin": server.url})
            answers.append((place, (answer.location or "").encode() + answer.text.encode()))
        asked = payer.ask("GET", f"{path}?code={cage.text('a code in an address', 'pin')}&card={cage.pan('a card in an address')}")
        answers.append(("an address of a page", asked.text.encode()))
    return answers


def secrets_that_are_issued(cage, server, keys, api, receiver):
    """Keys, tokens, client secrets, webhook secrets and codes, used as they are meant to be; what was delivered."""
    for mode in ("test", "live"):
        for kind in ("secret", "publishable"):
            cage._keep(f"the {mode} {kind} key", keys[mode][kind])
    token = data(api.post("/v1/auth/token", {"expires_in": 60}))["access_token"]
    cage._keep("an access token", token)
    cage._keep("a token's signature", token.rsplit(".", 1)[1])
    Api(server.url, token).get("/v1/checkouts")
    mailbox = receiver.mailbox()
    endpoint = data(api.post("/v1/webhook_endpoints", {"url": mailbox.url, "enabled_events": ["*"]}), 201)
    cage._keep("a webhook secret", endpoint["secret"].removeprefix("whsec_"))
    rotated = data(api.post(f"/v1/webhook_endpoints/{endpoint['id']}/rotate-secret"))
    cage._keep("a rotated webhook secret", rotated["secret"].removeprefix("whsec_"))
    checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
    cage._keep("a client secret", checkout["client_secret"])
    # The same where the answer is kept for a retry.
    for place, body in {"/v1/checkouts": {"amount": "1.00"}, "/v1/webhook_endpoints": {"url": mailbox.url, "enabled_events": ["*"]}}.items():
        answers = [data(api.post(place, body, headers={"Idempotency-Key": f"kept-{place}"}), 201) for _ in range(2)]
        assert answers[0] == answers[1], "a retry gets the same answer"
        secret = answers[0].get("client_secret") or answers[0]["secret"].removeprefix("whsec_")
        cage._keep(f"a secret of a kept answer of {place}", secret)
    pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"}
    data(api.post("/v1/pay/initialize", pay))
    eventually(lambda: data(api.get(f"/v1/checkouts/{checkout['id']}"))["status"] == "completed")
    eventually(lambda: len(mailbox.deliveries) >= 2)
    return [str(one.headers).encode() + one.body for one in mailbox.deliveries]


def secrets_that_are_sent(cage, test, live):
    """Card numbers in live mode, and secrets where nobody asks for them; (operation, body) of each answer."""
    answers = []

    def ask(api, name, verb, path, **options):
        answers.append((name, api.request(verb, path, **options).content))

    for verb, path, operation in operations():
        name = operation["operationId"]
        headers = {
            header: cage.text(f"{header} of {name}")
            for header in ("Cookie", "X-Api-Key", "Proxy-Authorization", "User-Agent", "Referer", "X-Forwarded-For", "X-Request-Id")
        }
        ask(test, name, verb, path, headers=headers)
        ask(test, name, verb, f"{path}?api_key={cage.text(f'a query of {name}')}")
        ask(test.with_credential("sk_live_" + cage.text(f"a wrong key for {name}", "key")), name, verb, path)
        ask(test.with_credential("eyJ." + cage.text(f"a wrong token for {name}", "jwt") + ".x"), name, verb, path)
        if verb == "GET":
            continue
        for number, way in enumerate(texts_of(operation)):
            place = f"{'.'.join(map(str, way))} of {name}"
            pan = cage.pan(f"a card number in {place}")
            text = f"Take it from {pan}, please" if number % 2 else pan
            ask(live, name, verb, path, body=planted(COMPLETE.get(name, {}), way, text))
            if way[-1] in ("phone", "customer_phone"):
                ask(test, name, verb, path, body=planted(COMPLETE.get(name, {}), way, cage.phone(place)))
            if way[-1] in ("email", "customer_email"):
                ask(test, name, verb, path, body=planted(COMPLETE.get(name, {}), way, cage.address(place)))
        cvv = {"cvv": cage.text(f"cvv of {name}"), "card": {"number": cage.pan(f"card.number of {name}"), "cvc": "123"}}
        ask(test, name, verb, path, body=cvv)
    pin = {"session_id": "ps_01h455vb4pex5vsknk084sn02q", "customer_pin": cage.text("a code", "pin")}
    ask(test, "initialize_payment", "POST", "/v1/pay/initialize", body=pin)
    return answers
