"""Row D3: what an answer shows can't be posted back, unless it is a field of the request: it is refused by its name, and nothing
changes. Of every operation that writes, every field of its answer."""

import json

from bombs import operations
from canaries import COMPLETE, ITEM
from checks import data, eventually
from contract import DOCUMENT
from contract import operation as described
from proof import Proof
from server import Api

GATE_FIELDS = 300
# Told nothing, so that no delivery changes what is compared.
QUIET = {"create_webhook_endpoint": {"enabled_events": ["payout.failed"]}}
# Where the specification says of a field that it is ignored: the value of a line is always computed.
IGNORED = {("items", "amount"), ("items", "total")}
# Where it says of one that it can't change, that is what is answered.
FIXED = {("update_payment_link", "amount"), ("update_payment_link", "currency")}
LISTS = [
    "/v1/checkouts", "/v1/pay/transactions", "/v1/pay/refunds", "/v1/pay/payment-links", "/v1/pay/customers",
    "/v1/pay/products", "/v1/pay/invoices", "/v1/pay/receipts", "/v1/webhook_endpoints", "/v1/events",
]  # fmt: skip


def resolved(schema):
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for part in schema.get("allOf", []) + [one for one in schema.get("oneOf", []) if one.get("type") != "null"][:1]:
        schema = schema | {"properties": schema.get("properties", {}) | resolved(part).get("properties", {})}
    return schema


def fields_of(content):
    """The names of an object's fields, and of those in the objects of its lists."""
    schema = resolved((content or {}).get("application/json", {}).get("schema", {}))
    schema = resolved(schema.get("properties", {}).get("data", schema))
    names = {(name,) for name in schema.get("properties", {})}
    for name, part in schema.get("properties", {}).items():
        within = resolved(resolved(part).get("items", {}))
        names |= {(name, inner) for inner in within.get("properties", {})}
    return names


def shown_but_not_asked(operation):
    """Of an operation: the fields of its answer that are none of its request."""
    answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    shown = set().union(*(fields_of(answer.get("content")) for answer in answers))
    asked = fields_of(operation.get("requestBody", {}).get("content"))
    lists = {name for name, *inner in asked if inner}
    return sorted(names for names in shown - asked if len(names) == 1 or names[0] in lists)


def everything(api):
    return {path: data(api.get(path)) for path in LISTS}


def is_refused(answer, names, code="unknown_field"):
    """By its own name, as a field that isn't one: a value that is merely wrong was read."""
    if answer.status_code != 400:
        return False
    path = names[0] if len(names) == 1 else f"{names[0]}[0].{names[1]}"
    return any((fault["field"], fault["code"]) == (path, code) for fault in answer.json().get("details") or [])


class Shown:
    """What answers have shown, by the name of their schema."""

    def __init__(self):
        self.objects = {}

    def learn(self, operation, record):
        """A value rather than none."""
        known = self.objects.setdefault(schema_of(operation), {})
        known.update({name: value for name, value in record.items() if value is not None or name not in known})

    def value(self, operation, names):
        """As it was shown; what never had a value, any."""
        value = self.objects[schema_of(operation)]
        for name in names:
            value = (value[0] if isinstance(value, list) else value).get(name)
        return "1" if value is None else value


def schema_of(operation):
    """The name of what it answers."""
    answer = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    return answer["content"]["application/json"]["schema"]["properties"]["data"]["$ref"].rsplit("/", 1)[1]


def posted_back(operation, names, value):
    """A whole request of the operation, with a field of its answer."""
    body = json.loads(json.dumps(COMPLETE.get(operation["operationId"], {})))
    if len(names) == 1:
        return body | {names[0]: value}
    outer, inner = names
    line = ITEM if outer == "items" else {}
    return body | {outer: [line | {inner: value}]}


class Installation:
    """One of each object, so that nothing is refused for want of it, and what was answered of them."""

    def __init__(self, server):
        self.api = Api(server.url, server.keys["test"]["secret"])
        self.shown = Shown()
        checkout = self.ask("POST", "/v1/checkouts", COMPLETE["create_checkout"])
        pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"}
        self.ask("POST", "/v1/pay/initialize", pay)
        place = f"/v1/checkouts/{checkout['id']}"
        paid = eventually(lambda: (found := self.ask("GET", place))["status"] == "completed" and found)
        transaction = f"/v1/pay/transactions/{paid['transaction']['id']}"
        refund = self.ask("POST", f"{transaction}/refund", {"amount": "0.10"})["id"]
        eventually(lambda: self.ask("GET", f"/v1/pay/refunds/{refund}")["status"] == "completed")
        self.objects = {
            "/v1/checkouts": self.made("/v1/checkouts", "create_checkout"),
            "/v1/pay/transactions": paid["transaction"]["id"],
            "/v1/pay/payment-links": self.made("/v1/pay/payment-links", "create_payment_link"),
            "/v1/pay/customers": self.made("/v1/pay/customers", "create_customer"),
            "/v1/pay/products": self.made("/v1/pay/products", "create_product"),
            "/v1/pay/invoices": self.made("/v1/pay/invoices", "create_invoice"),
            "/v1/webhook_endpoints": self.made("/v1/webhook_endpoints", "create_webhook_endpoint"),
            "/v1/events": data(self.api.get("/v1/events"))["items"][0]["id"],
        }
        self.ask("POST", "/v1/auth/token", {})
        cancelled = self.ask("POST", "/v1/checkouts", {"items": [ITEM]})["id"]
        self.ask("POST", f"/v1/checkouts/{cancelled}/cancel")
        self.ask("PUT", "/v1/pay/settings", {})
        endpoint = f"/v1/webhook_endpoints/{self.objects['/v1/webhook_endpoints']}"
        self.ask("PATCH", endpoint, {"description": "Shop"})
        self.ask("POST", f"{endpoint}/test")
        self.ask("GET", f"/v1/events/{self.objects['/v1/events']}")

    def ask(self, verb, path, body=None):
        answer = self.api.request(verb, path, body)
        record = data(answer, answer.status_code)
        self.shown.learn(described(verb, path)[1], record)
        return record

    def made(self, path, operation):
        return self.ask("POST", path, COMPLETE[operation] | QUIET.get(operation, {}))["id"]

    def place(self, path):
        """The address of an operation, with an object that is there."""
        for start, identity in self.objects.items():
            if path.startswith(start + "/"):
                return "/".join([*start.split("/"), identity, *path.split("/")[len(start.split("/")) + 1 :]])
        return path

    def posted_back(self):
        """Of every field, one after the other: what is wrong with the answer to whoever posts it back, or nothing."""
        for verb, path, operation in operations():
            if verb in ("GET", "DELETE") or not operation["security"]:
                continue
            for names in shown_but_not_asked(operation):
                body = posted_back(operation, names, self.shown.value(operation, names))
                answer = self.api.request(verb, self.place(path), body)
                name = (operation["operationId"], ".".join(names))
                code = "not_allowed" if name in FIXED else "unknown_field"
                is_right = names in IGNORED or is_refused(answer, names, code)
                yield None if is_right else f"{' '.join(name)}: {answer.status_code} {answer.text[:200]}"


def test_what_is_shown_can_t_be_posted_back(new_server, database):
    installation = Installation(new_server())
    api = installation.api
    with Proof("D3", database, GATE_FIELDS) as proof:
        before = everything(api)
        for fault in installation.posted_back():
            if fault:
                proof.violation(fault)
            proof.reached += 1
        after = everything(api)
        for path in LISTS:
            if before[path] != after[path]:
                proof.violation(f"{path} is another one afterwards")
        proof.wanted = proof.reached
        print(f"{proof.reached} fields")
        taken = api.request("POST", "/v1/pay/products", COMPLETE["create_product"] | {"description": "1"})
        proof.control("a field that is taken", not is_refused(taken, ("description",)))
        wrong = api.request("POST", "/v1/pay/products", COMPLETE["create_product"] | {"active": "1"})
        proof.control("a field that is read", not is_refused(wrong, ("active",)))
        proof.control("an object more", everything(api) != before)
        planted = Installation(new_server(planted="livemode_taken"))
        proof.control("livemode_taken", any(planted.posted_back()))
