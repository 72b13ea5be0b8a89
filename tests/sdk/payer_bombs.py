"""The same requests for whoever has no secret key: what a payer's browser asks, the pages, and the forms on them.

None of them can begin a payment: the phone number beside what is meant to hurt is none. What ends a payment is asked of one that
nothing else is asked of.
"""

import json
from functools import cache
from urllib.parse import quote_from_bytes, urlencode, urlsplit

from bombs import NULS, VALUES, bodies, queries
from checks import data
from contract import DOCUMENT
from hosted import FORM, Payer
from invoices import order
from wire import request

LONGEST_FORM = 128 << 10
NO_PHONE = "+2207"
HTML = [("Accept", "text/html")]
# Of a page's forms: what is typed into each.
TYPED = {
    "method": ("method", "amount", "name", "email", "phone", "answer-0", "answer-1", "session"),
    "phone": ("phone", "amount", "method"),
    "code": ("code", "session"),
    "approved": ("session",),
    "resend": ("session",),
    "other": ("session",),
    "leave": ("session",),
    # The simulator's, whose address is its page's.
    "": ("outcome", "number"),
}
PUT_THERE = ("form_token", "shown", "shown_tag")
ASKED = ("lang", "note", "method", "amount", "reads", "problem", "code")

# As they come, and not as a browser would write them.
RAW = {
    "half an escape": b"%",
    "no escape": b"%zz%",
    "an escape of another kind": b"%u0041",
    "an overlong escape": b"%c0%80",
    "100,000 blanks": b"+" * 100_000,
    "40,000 escapes": b"%41" * 40_000,
    "bytes that are no text": b"\xff\xfe\xfa",
    "NUL as it is": b"a\0b",
}
FORMS = {
    "one byte over the limit": b"method=" + b"x" * (LONGEST_FORM + 1 - 7),
    "two megabytes": b"method=" + b"x" * (2 << 20),
    "30,000 fields": b"a=1&" * 30_000,
    "15,000 times the method": b"method=" + b"&method=".join([b"wave"] * 15_000),
    "fields without names": b"=1&" * 40_000,
    "nothing but &": b"&" * 120_000,
    "nothing but =": b"=" * 120_000,
    "nothing but %": b"%" * 120_000,
    "nothing but NUL": b"\0" * 1000,
    "an object": json.dumps({"method": "wave"}).encode(),
    "as many NULs as fit": NULS.encode()[:LONGEST_FORM],
    "UTF-16": "method=wave".encode("utf-16"),
    "nothing": b"",
}
MEDIA = ("application/json", "multipart/form-data; boundary=x", "text/plain", FORM + "; charset=utf-16", FORM + ";" * 10_000, "x")


class Place:
    """A page, what its forms send by themselves, and which of them it has."""

    def __init__(self, kind, page, *actions):
        self.kind = kind
        self.path = page.path.split("?")[0]
        assert page.forms, f"{self.path}: {page.status}"
        self.hidden = page.forms[0][1]
        self.actions = actions


class Scene:
    """One of each page that takes something."""

    def __init__(self, server, api):
        self.payer = Payer(server.url)
        asked = {"name": "pupil", "label": "Pupil", "type": "text"}, {"name": "form", "label": "Form", "type": "number"}
        link = {"title": "Fees", "amount": "50.00", "is_variable_amount": True, "collect_customer_info": True, "custom_fields": asked}
        self.api = api
        self.checkout = self.made()
        link = f"/pay/{data(api.post('/v1/pay/payment-links', link), 201)['id']}"
        invoice = f"/invoice/{data(api.post('/v1/pay/invoices', order()), 201)['id']}"
        by_wallet = self.payer.press(self.payer.look(self.address(self.made())), "/method", method="wave")
        simulator = next(urlsplit(lead).path for lead in by_wallet.leads if "/simulator/" in lead)
        of_link = self.payer.press(self.payer.look(link), "/method", method="wave", name="Awa", phone="+2207654321", **{"answer-1": "7"})
        self.places = [
            Place("checkout", self.payer.look(self.address(self.checkout)), "method", "phone", "approved"),
            Place("checkout that awaits a code", self.awaiting_code(), "code", "resend"),
            Place("checkout that awaits another way", self.awaiting_code(), "other"),
            Place("checkout that is left", self.payer.look(self.address(self.made())), "leave"),
            Place("link", self.payer.look(link), "method", "phone"),
            Place("payment of a link", of_link, "method", "phone", "approved", "other"),
            Place("invoice", self.payer.look(invoice), "method", "phone", "approved"),
            Place("simulator", self.payer.look(simulator), ""),
        ]

    def made(self):
        return data(self.api.post("/v1/checkouts", {"amount": "70.00"}), 201)

    @staticmethod
    def address(checkout):
        return f"/checkout/{checkout['id']}"

    def awaiting_code(self):
        page = self.payer.press(self.payer.look(self.address(self.made())), "/method", method="qmoney")
        return self.payer.press(page, "/phone", method="qmoney", phone="+2207000000")

    def is_as_it_was(self):
        """Whether what was to be paid first can still be paid."""
        return data(self.api.get(f"/v1/checkouts/{self.checkout['id']}"))["status"] == "pending"


def of_payers(server, scene):
    """Stored by rule; only the names of what is paid differ from run to run."""
    yield from _calls(server.keys["test"]["publishable"], scene.checkout["client_secret"])
    for place in scene.places:
        page = f"page of a {place.kind}"
        for name, sent, right in queries(page, place.path, None):
            yield name, sent.replace(b"\r\n\r\n", b"\r\nAccept: text/html\r\n\r\n", 1), right
        for asked in ASKED:
            for value_name, value in _values():
                if len(value) < 8_000:
                    yield f"{page}: ?{asked} is {value_name}", _page(f"{place.path}?{asked}=".encode() + value), None
        for name, language in (("long", "en;q=0.1," * 1_500), ("odd", ";;;q=NaN,*;q=1e400,\u00ff-\u00ff")):
            sent = request("GET", place.path, headers=[*HTML, ("Accept-Language", language)])
            yield f"{page}: a {name} list of languages", sent, None
        for action in place.actions:
            path = f"{place.path}/{action}" if action else place.path
            yield from _forms(f"form {action} of a {place.kind}", path, place.hidden, TYPED[action])
    for prefix in ("checkout", "pay", "invoice", "receipts", "simulator", "logos/x/test", "verify", "assets"):
        for value_name, value in _values():
            if 0 < len(value) < 8_000:
                yield f"page /{prefix}/ of {value_name}", _page(f"/{prefix}/".encode() + value), None


def _calls(key, secret):
    """What a publishable key opens."""
    known = {"client_secret": secret, "payment_method": "afrimoney", "customer_phone": NO_PHONE}
    for path, operations in DOCUMENT["paths"].items():
        for verb, operation in operations.items():
            name, verb = operation["operationId"] + " by a payer", verb.upper()
            is_open = not operation["security"] or {"publishable_key": []} in operation["security"]
            if not is_open:
                continue
            address = path.replace("{session_id}", "ps_01h455vb4pex5vsknk084sn02q").replace("{validation_code}", "ABCD-EFGH")
            if verb == "GET":
                yield from queries(name, address, key)
                continue
            for bomb, sent, right in bodies(name, verb, address, key):
                # What does not name a payment that was opened for a payer is not said to be wrong in any other way.
                yield bomb, sent, right | {403} if 400 in right else right
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            fields = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]["properties"]
            for field in fields:
                others = "".join(f',"{name}":"{value}"' for name, value in known.items() if name != field)
                for value_name, value in VALUES.items():
                    if len(value) > 50_000 and field != next(iter(fields)):
                        continue
                    body = ('{"%s":%s%s}' % (field, value, others)).encode()
                    yield f"{name}: {field} is {value_name}", request(verb, address, key, body), None


@cache
def _values():
    """What is written into JSON elsewhere, as a form or an address has it. Megabytes, which take their time to be written so."""
    return (*_quoted(), *RAW.items())


def _quoted():
    for name, value in VALUES.items():
        try:
            text = json.loads(value)
        except (ValueError, RecursionError):
            text = None
        text = text if isinstance(text, str) else value.strip('"')
        yield name, quote_from_bytes(text.encode("utf-8", "surrogatepass")).encode()


def _page(address):
    return b"GET " + address.replace(b"\0", b"%00") + b" HTTP/1.1\r\nHost: dalasi\r\nAccept: text/html\r\n\r\n"


def _forms(name, path, hidden, typed):
    known = {"method": "afrimoney", "phone": NO_PHONE} | hidden

    def sent(body, media=FORM, headers=()):
        return request("POST", path, body=body, headers=[*HTML, *headers], media=media)

    for field in (*typed, *PUT_THERE):
        others = urlencode({other: value for other, value in known.items() if other != field}).encode()
        for value_name, value in _values():
            # A million of anything in one field of each form; the rest in all of them.
            if len(value) > 50_000 and field != typed[0]:
                continue
            yield f"{name}: {field} is {value_name}", sent(field.encode() + b"=" + value + b"&" + others), None
    for body_name, body in FORMS.items():
        right = {413, None} if len(body) > LONGEST_FORM else {303, 403}
        yield f"{name}: {body_name}", sent(body), right
    whole = urlencode(known).encode()
    for media in MEDIA:
        yield f"{name}: as {media[:40]}", sent(whole, media), None
    yield f"{name}: packed", sent(b"\x1f\x8b" + b"\0" * 64, headers=[("Content-Encoding", "gzip")]), None
