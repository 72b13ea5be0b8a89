"""What a well-behaved description promises and random requests seldom bring about: one request for each documented success,
missing credential, missing right, object that is not there, body of another type, one that is too long or does not come, and
one request too many."""

from concurrent.futures import ThreadPoolExecutor

from bombs import MEGABYTE, operations
from checks import data, eventually
from invoices import order
from server import Api
from wire import Wire, request

# A right to none of them.
ELSEWHERE = "read:sms"
# Whoever has no key may ask 200 times at once, and 100 times a second, however few those may who have one.
MOST_ASKED = 5_000
ABSENT = "01h455vb4pex5vsknk084sn02q"
LINK = {"title": "Tea", "amount": "1.00"}
# What is made, changed and deleted.
KEPT = [
    ("customer", {"email": "awa@documented.example"}, {"name": "Awa"}),
    ("product", {"name": "Map", "price": "1.00"}, {"name": "Large map"}),
    ("payment_link", LINK, {"title": "Green tea"}),
]
PAYMENT = {"amount": "1.00", "payment_method": "cash"}
APPROVES = "+2207000000"


def asked_by_hand(server, receiver):
    """(operation, status) of each of them."""
    api = Api(server.url, server.keys["test"]["secret"])
    token = data(api.post("/v1/auth/token", {"scope": ELSEWHERE}))["access_token"]
    for verb, path, operation in operations():
        name = operation["operationId"]
        for other in (Api(server.url), api.with_credential(token)):
            yield name, other.request(verb, path).status_code
        yield name, api.request(verb, path).status_code
        if verb != "GET":
            typed = {"Content-Type": "text/plain"}
            yield name, api.request(verb, path, data="text", headers=typed).status_code
    yield from absent(api)
    yield from successes(api, receiver)


def asked_with_too_long_a_body(server):
    """It is enough to say so."""
    with Wire(server.url) as wire:
        for name, head in _heads(server, MEGABYTE + 1):
            answer, _ = wire.ask(head)
            yield name, answer and answer[0]
            wire.close()


def asked_with_a_body_that_never_comes(server):
    """All at once, since each takes as long as the server waits."""

    def ask(one):
        name, head = one
        with Wire(server.url, timeout=60) as wire:
            answer, _ = wire.ask(head + b"{")
        return name, answer and answer[0]

    heads = list(_heads(server, 10))
    with ThreadPoolExecutor(len(heads)) as pool:
        yield from pool.map(ask, heads)


def _heads(server, length):
    for verb, path, operation in operations():
        if verb != "GET":
            headers = [("Content-Type", "application/json"), ("Content-Length", length)]
            head = request(verb, path, server.keys["test"]["secret"]).replace(b"Content-Length: 0\r\n", b"")
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers).encode()
            yield operation["operationId"], head.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n", 1)


def asked_once_too_often(server):
    """Of a server that takes few requests."""
    api = Api(server.url, server.keys["test"]["secret"])
    for verb, path, operation in operations():
        who = api if operation["security"] else Api(server.url)
        statuses = (who.request(verb, path).status_code for _ in range(MOST_ASKED))
        yield operation["operationId"], next((status for status in statuses if status == 429), None)


def absent(api):
    """Of what asks for more than its address."""
    link = data(api.post("/v1/pay/payment-links", LINK), 201)["id"]
    api.delete(f"/v1/pay/payment-links/{link}")
    pay = {"object_type": "payment_link", "object_id": link}
    yield "initialize_payment", api.post("/v1/pay/initialize", pay).status_code
    yield "update_invoice", api.put(f"/v1/pay/invoices/inv_{ABSENT}", {"notes": "x"}).status_code
    yield "cancel_invoice", api.post(f"/v1/pay/invoices/inv_{ABSENT}/cancel").status_code
    yield "record_invoice_payment", api.post(f"/v1/pay/invoices/inv_{ABSENT}/payments", PAYMENT).status_code


def successes(api, receiver):
    """In the order in which one makes the next possible."""

    def done(name, answer, *statuses):
        assert answer.status_code in (statuses or (200,)), f"{name}: {answer.status_code} {answer.text}"
        seen.append((name, answer.status_code))
        return answer.json()["data"] if answer.content else None

    seen = []
    checkout = done("create_checkout", api.post("/v1/checkouts", {"amount": "5.00"}), 201)
    other = done("create_checkout", api.post("/v1/checkouts", {"amount": "5.00"}), 201)
    done("cancel_checkout", api.post(f"/v1/checkouts/{other['id']}/cancel"))
    pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": APPROVES}
    session = done("initialize_payment", api.post("/v1/pay/initialize", pay))["id"]
    done("get_payment_status", api.get(f"/v1/pay/status/{session}"))
    done("get_payment_session", api.get(f"/v1/pay/session/{session}"))

    def completed():
        found = done("get_checkout", api.get(f"/v1/checkouts/{checkout['id']}"))
        return found["transaction"]["id"] if found["status"] == "completed" else None

    transaction = eventually(completed)
    done("get_transaction", api.get(f"/v1/pay/transactions/{transaction}"))
    refund = done("create_refund", api.post(f"/v1/pay/transactions/{transaction}/refund", {"amount": "1.00"}), 201)
    done("get_refund", api.get(f"/v1/pay/refunds/{refund['id']}"))

    invoice = done("create_invoice", api.post("/v1/pay/invoices", order(is_draft=True)), 201)
    path = f"/v1/pay/invoices/{invoice['id']}"
    done("get_invoice", api.get(path))
    done("update_invoice", api.put(path, {"notes": "Changed"}))
    done("finalize_invoice", api.post(f"{path}/finalize"))
    done("send_invoice", api.post(f"{path}/send"))
    done("record_invoice_payment", api.post(f"{path}/payments", PAYMENT), 201)
    done("list_invoice_payments", api.get(f"{path}/payments"))
    [receipt] = done("list_invoice_receipts", api.get(f"{path}/receipts"))
    done("get_receipt", api.get(f"/v1/pay/receipts/{receipt['id']}"))
    done("get_receipt_by_number", api.get(f"/v1/pay/receipts/number/{receipt['receipt_number']}"))
    files = {"download_invoice_pdf": f"{path}/pdf", "download_receipt": f"/v1/pay/receipts/{receipt['id']}/download"}
    for name, place in files.items():
        seen.append((name, eventually(lambda place=place: (answer := api.get(place)).ok and answer).status_code))
    drawn = done("create_invoice", api.post("/v1/pay/invoices", order(is_draft=True)), 201)
    done("cancel_invoice", api.post(f"/v1/pay/invoices/{drawn['id']}/cancel"))

    for kind, body, change in KEPT:
        made = done(f"create_{kind}", api.post(f"/v1/pay/{kind.replace('_', '-')}s", body), 200, 201)
        path = f"/v1/pay/{kind.replace('_', '-')}s/{made['id']}"
        done(f"get_{kind}", api.get(path))
        done(f"update_{kind}", api.put(path, change))
        done(f"delete_{kind}", api.delete(path), 200, 204)

    body = {"url": receiver.mailbox().url, "enabled_events": ["*"]}
    endpoint = done("create_webhook_endpoint", api.post("/v1/webhook_endpoints", body), 201)
    path = f"/v1/webhook_endpoints/{endpoint['id']}"
    done("get_webhook_endpoint", api.get(path))
    done("put_webhook_endpoint", api.put(path, body))
    done("update_webhook_endpoint", api.post(path, {"description": "Changed"}))
    done("patch_webhook_endpoint", api.patch(path, {"description": "Changed"}))
    done("test_webhook_endpoint", api.post(f"{path}/test"))
    done("rotate_webhook_secret", api.post(f"{path}/rotate-secret"))
    event = done("list_events", api.get("/v1/events"))["items"][0]["id"]
    done("get_event", api.get(f"/v1/events/{event}"))
    done("retry_event", api.post(f"/v1/events/{event}/retry"))
    done("delete_webhook_endpoint", api.delete(path), 204)
    yield from seen
