"""Row D3: what an answer shows can't be posted back, unless it is a field of the request: it is refused by its name, and nothing
changes. Of every operation that writes, every field of its answer."""

import json

from bombs import operations
from canaries import COMPLETE, ITEM
from checks import data, eventually
from contract import DOCUMENT
from proof import Proof
from server import Api

GATE_FIELDS = 300
# Told nothing, so that no delivery changes what is compared.
QUIET = {"create_webhook_endpoint": {"enabled_events": ["payout.failed"]}}
# Where the specification says of a field that it is ignored: the value of a line is always computed.
IGNORED = {("items", "amount")}
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


def is_refused(answer, names):
    """By its own name, as a field that isn't one."""
    if answer.status_code != 400:
        return False
    path = names[0] if len(names) == 1 else f"{names[0]}[0].{names[1]}"
    return any(fault["field"] == path for fault in answer.json().get("details") or [])


def posted_back(operation, names):
    """A whole request of the operation, with a field of its answer."""
    body = json.loads(json.dumps(COMPLETE.get(operation["operationId"], {})))
    if len(names) == 1:
        return body | {names[0]: "1"}
    outer, inner = names
    line = ITEM if outer == "items" else {}
    return body | {outer: [line | {inner: "1"}]}


def one_of_each(server):
    """So that nothing is refused for want of it."""
    api = Api(server.url, server.keys["test"]["secret"])
    checkout = data(api.post("/v1/checkouts", COMPLETE["create_checkout"]), 201)
    pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"}
    data(api.post("/v1/pay/initialize", pay))
    eventually(lambda: data(api.get(f"/v1/checkouts/{checkout['id']}"))["status"] == "completed")
    transaction = data(api.get(f"/v1/checkouts/{checkout['id']}"))["transaction"]["id"]

    def made(path, operation):
        answer = api.post(path, COMPLETE[operation] | QUIET.get(operation, {}))
        return data(answer, answer.status_code)["id"]

    return {
        "/v1/checkouts": made("/v1/checkouts", "create_checkout"),
        "/v1/pay/transactions": transaction,
        "/v1/pay/payment-links": made("/v1/pay/payment-links", "create_payment_link"),
        "/v1/pay/customers": made("/v1/pay/customers", "create_customer"),
        "/v1/pay/products": made("/v1/pay/products", "create_product"),
        "/v1/pay/invoices": made("/v1/pay/invoices", "create_invoice"),
        "/v1/webhook_endpoints": made("/v1/webhook_endpoints", "create_webhook_endpoint"),
        "/v1/events": data(api.get("/v1/events"))["items"][0]["id"],
    }


def test_what_is_shown_can_t_be_posted_back(new_server, database):
    server = new_server()
    objects = one_of_each(server)
    api = Api(server.url, server.keys["test"]["secret"])
    with Proof("D3", database, GATE_FIELDS) as proof:
        before = everything(api)
        for verb, path, operation in operations():
            if verb in ("GET", "DELETE") or not operation["security"]:
                continue
            for start, identity in objects.items():
                if path.startswith(start + "/"):
                    path = "/".join([*start.split("/"), identity, *path.split("/")[len(start.split("/")) + 1 :]])
            for names in shown_but_not_asked(operation):
                answer = api.request(verb, path, posted_back(operation, names))
                if names not in IGNORED and not is_refused(answer, names):
                    proof.violation(f"{operation['operationId']} {'.'.join(names)}: {answer.status_code} {answer.text[:200]}")
                proof.reached += 1
        after = everything(api)
        for path in LISTS:
            if before[path] != after[path]:
                proof.violation(f"{path} is another one afterwards")
        proof.wanted = proof.reached
        print(f"{proof.reached} fields")
        taken = api.request("POST", "/v1/pay/products", COMPLETE["create_product"] | {"description": "1"})
        proof.control("a field that is taken", not is_refused(taken, ("description",)))
        proof.control("an object more", everything(api) != before)
