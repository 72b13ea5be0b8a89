"""Every sample of the documentation does what it says, as it is printed."""

import json
import re
import socket
import subprocess
import time
import uuid

import pytest

import samples
from checks import data, eventually
from invoices import order

OPERATIONS = [name for name in samples.names(".sh") + samples.names(".py") if not name.startswith("quickstart")]


@pytest.fixture
def values(server, api, receiver):
    """Something real for each placeholder, made only if the sample has it. No endpoint outlives its sample."""
    before = endpoints(api)

    def of(name):
        wanted = samples.placeholders(name)
        found = {"base_url": server.url, "key": server.keys["test"]["secret"]}
        if wanted & {"webhook_url", "endpoint_id"} or name.startswith("retry_event"):
            found["webhook_url"] = receiver.mailbox().url
            endpoint = {"url": found["webhook_url"], "enabled_events": ["*"]}
            found["endpoint_id"] = data(api.post("/v1/webhook_endpoints", endpoint), 201)["id"]
        if "customer_id" in wanted:
            found["customer_id"] = data(api.post("/v1/pay/customers", {"email": f"{uuid.uuid4().hex}@example.gm"}), 201)["id"]
        if "product_id" in wanted:
            found["product_id"] = data(api.post("/v1/pay/products", {"name": "Pen", "price": "5.00"}), 201)["id"]
        if wanted & {"checkout_id", "client_secret", "session_id", "event_id"}:
            checkout = data(api.post("/v1/checkouts", {"amount": "100.00"}), 201)
            found |= {"checkout_id": checkout["id"], "client_secret": checkout["client_secret"]}
        if wanted & {"session_id", "event_id"}:
            start = {
                "client_secret": found["client_secret"],
                "payment_method": "afrimoney",
                "customer_phone": "+2207000000",
            }
            found["session_id"] = data(api.post("/v1/pay/initialize", start))["id"]
        if wanted & {"transaction_id", "refund_id"}:
            found["transaction_id"] = paid_transaction(api)
        if "refund_id" in wanted:
            asked = api.post(f"/v1/pay/transactions/{found['transaction_id']}/refund", {"amount": "10.00"})
            found["refund_id"] = data(asked, 201)["id"]
        if "payment_link_id" in wanted:
            link = {"title": "Concert", "amount": "250.00"}
            found["payment_link_id"] = data(api.post("/v1/pay/payment-links", link), 201)["id"]
        if "event_id" in wanted:
            found["event_id"] = eventually(lambda: completed(api, found["checkout_id"]))
        if wanted & {"invoice_id", "draft_id"}:
            made = data(api.post("/v1/pay/invoices", order(is_draft="draft_id" in wanted)), 201)
            found |= {"invoice_id": made["id"], "draft_id": made["id"]}
        if wanted & {"paid_invoice_id", "receipt_id", "receipt_number", "validation_code"}:
            made = data(api.post("/v1/pay/invoices", order()), 201)
            payments = f"/v1/pay/invoices/{made['id']}/payments"
            data(api.post(payments, {"amount": "100.00", "payment_method": "cash"}), 201)
            [receipt] = data(api.get(f"/v1/pay/invoices/{made['id']}/receipts"))
            found |= {"paid_invoice_id": made["id"], "receipt_id": receipt["id"]}
            found |= {name: receipt[name] for name in ("receipt_number", "validation_code")}
        return found

    yield of
    for endpoint in endpoints(api) - before:
        assert api.delete(f"/v1/webhook_endpoints/{endpoint}").status_code == 204


def paid_transaction(api):
    checkout = data(api.post("/v1/checkouts", {"amount": "100.00"}), 201)
    start = {
        "client_secret": checkout["client_secret"],
        "payment_method": "afrimoney",
        "customer_phone": "+2207000000",
    }
    data(api.post("/v1/pay/initialize", start))

    def paid():
        found = data(api.get(f"/v1/checkouts/{checkout['id']}"))
        return found["transaction"]["id"] if found["status"] == "completed" else None

    return eventually(paid)


def endpoints(api):
    return {endpoint["id"] for endpoint in data(api.get("/v1/webhook_endpoints?limit=100"))["items"]}


def completed(api, checkout_id):
    events = data(api.get("/v1/events?type=checkout.completed"))["items"]
    return next((event["id"] for event in events if event["object_id"] == checkout_id), None)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_sample_of_an_operation_works(name, values, tmp_path):
    printed = samples.run(name, values(name), folder=tmp_path)
    if name.startswith("download_"):
        [file] = tmp_path.iterdir()
        assert file.suffix == ".pdf" and file.read_bytes().startswith(b"%PDF-")
    elif name.startswith("delete_") and name.endswith(".sh"):
        assert printed == ""
    elif name.endswith(".sh"):
        assert set(json.loads(printed)) in ({"data"}, {"keys"}), printed
    elif not name.startswith("list_"):
        assert printed.strip(), "a sample shows what it got"


def test_every_operation_has_its_samples(anonymous):
    document = anonymous.get("/openapi.json").json()
    operations = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert {f"{name}.sh" for name in operations} | {f"{name}.py" for name in operations} == set(OPERATIONS)


def test_the_quick_start_by_curl(server, values, api):
    mine = values("quickstart_create.sh")
    checkout = json.loads(samples.run("quickstart_create.sh", mine))["data"]
    mine["checkout_id"] = checkout["id"]
    assert checkout["payment_url"].startswith("http")
    samples.run("quickstart_pay.sh", mine)

    def status():
        return json.loads(samples.run("quickstart_status.sh", mine))["data"]

    paid = eventually(lambda: status()["status"] == "completed" and status())
    assert paid["transaction"]["net_amount"] == "97.50"


def test_the_quick_start_in_python(values):
    printed = samples.run("quickstart.py", values("quickstart.py"))
    assert re.search(r"^pay here: http\S+/checkout/cs_\w+$", printed, re.MULTILINE), printed
    assert printed.endswith("completed 97.50 GMD\n"), printed


def test_the_quick_start_receiver_takes_what_is_signed_and_nothing_else(values, anonymous):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mine = values("quickstart.py") | {"webhook_url": f"http://127.0.0.1:{port}/", "webhook_port": port}
    endpoint = json.loads(samples.run("quickstart_endpoint.sh", mine))["data"]
    mine["webhook_secret"] = endpoint["secret"]
    program = subprocess.Popen(
        samples.command("quickstart_receiver.py", mine),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        eventually(lambda: accepts(port))
        forged = anonymous.session.post(mine["webhook_url"], data=b"{}", headers={"webhook-id": "evt_1"}, timeout=5)
        assert forged.status_code == 400
        samples.run("quickstart.py", mine)
        line = program.stdout.readline()
        assert re.fullmatch(r"checkout\.completed cs_\w+ completed\n", line), line
    finally:
        program.kill()
        program.wait()


def accepts(port):
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex(("127.0.0.1", port)) == 0 or time.sleep(0.05)
