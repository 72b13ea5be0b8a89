"""A database that says nothing of a commit for longer than anybody waits, as a leader that stands still and is replaced: the
SDK, which then sends the same once more without a key, is told what it came to (contract §1.8)."""

import socket
import threading
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests
from jokoor import Jokoor

from checks import data, eventually, ok
from server import Api, Server

PAYS = "+2207000000"
# The server gives up before the SDK does, at 30 seconds; it comes again at once.
SILENT_S = 30


class Silent:
    """Stands before PostgreSQL. The commit of whoever sends a text arrives, and from then on nothing comes back to anybody."""

    def __init__(self, url):
        self.to = urlsplit(url)
        self.listener = socket.create_server(("127.0.0.1", 0))
        here = f"{self.to.username}@127.0.0.1:{self.listener.getsockname()[1]}"
        self.url = urlunsplit(self.to._replace(netloc=here))
        self.text = None  # it is listened for once
        self.speaks = threading.Event()
        self.speaks.set()
        self.is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.is_closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((self.to.hostname, self.to.port))
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _requests(self, client, server):
        is_meant = False
        try:
            while chunk := client.recv(1 << 16):
                is_meant = is_meant or (self.text is not None and self.text in chunk)
                if is_meant and b"commit" in chunk.lower():
                    self.text, is_meant = None, False
                    self.speaks.clear()
                server.sendall(chunk)
        except OSError:
            pass
        server.close()

    def _answers(self, server, client):
        try:
            while chunk := server.recv(1 << 16):
                self.speaks.wait()
                client.sendall(chunk)
        except OSError:
            pass
        client.close()

    def close(self):
        self.is_closed = True
        self.speaks.set()
        self.listener.close()


@pytest.fixture
def bought(database, new_store, tmp_path, watch):
    """A server, what stands before its database, and a transaction that was paid."""
    if database == "sqlite":
        pytest.skip("SQLite tells of a commit by itself")
    store = new_store()
    keys = store.init()["keys"]
    silent = Silent(store.url)
    direct, store.location[1] = store.location[1], silent.url
    server = Server(store, tmp_path / "server.log")
    server.keys = keys
    watch.servers.append(server)
    yield server.start(), silent, paid(Api(server.url, keys["test"]["secret"]))
    server.kill()
    watch.servers.remove(server)
    silent.close()
    store.location[1] = direct
    assert store.verify().returncode == 0


def paid(api):
    made = data(api.post("/v1/checkouts", {"amount": "90.00"}), 201)
    pay = {"client_secret": made["client_secret"], "payment_method": "afrimoney", "customer_phone": PAYS}
    data(api.post("/v1/pay/initialize", pay))

    def settled():
        found = data(api.get(f"/v1/checkouts/{made['id']}"))
        return found["status"] == "completed" and found["transaction"]["id"]

    return eventually(settled)


def test_the_sdk_makes_a_refund_once(bought):
    server, silent, transaction = bought
    silent.text = b"the refund nobody tells of"
    threading.Timer(SILENT_S, silent.speaks.set).start()
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        refund = ok(sdk.refunds.create(transaction, amount="30.00", reason=silent.text.decode()))
        assert silent.speaks.is_set(), "it went unnoticed"
        assert [one["id"] for one in ok(sdk.refunds.list())["items"]] == [refund["id"]]
        # Who wants it once more gets it.
        second = ok(sdk.refunds.create(transaction, amount="30.00", reason=refund["reason"]))
        assert second["id"] != refund["id"]


def test_the_sdk_begins_a_payment_of_a_link_once(bought):
    server, silent, transaction = bought
    payer = "Awa Whom-Nobody-Tells"
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        link = ok(sdk.payment_links.create(title="Tea", amount="25.00"))["id"]
        silent.text = payer.encode()
        threading.Timer(SILENT_S, silent.speaks.set).start()
        pay = {"payment_method": "afrimoney", "customer_phone": PAYS, "customer_name": payer}
        ok(sdk.payments.initialize(object_type="payment_link", object_id=link, **pay))
        assert silent.speaks.is_set(), "it went unnoticed"

        def paid():
            return [one for one in ok(sdk.transactions.list())["items"] if one["status"] == "completed"]

        # One would be begun by each of two requests, and handed over by the worker when its lease ends.
        attempts = eventually(lambda: len(paid()) >= 2 and paid(), timeout=60)
        assert len(attempts) == 2 and ok(sdk.transactions.list())["total"] == 2, attempts
        assert transaction in [one["id"] for one in attempts]
        assert ok(sdk.payment_links.get(link))["usage_count"] == 1


def test_who_gives_up_sooner_than_the_server_makes_it_once(bought):
    server, silent, transaction = bought
    silent.text = b"the refund nobody waits for"
    api = Api(server.url, server.keys["test"]["secret"])
    call = {"url": f"{server.url}/v1/pay/transactions/{transaction}/refund", "headers": {"Authorization": f"Bearer {api.credential}"}}
    body = {"amount": "30.00", "reason": silent.text.decode()}
    with pytest.raises(requests.Timeout):
        requests.post(**call, json=body, timeout=2)
    threading.Timer(2, silent.speaks.set).start()
    # Another one, which nobody has asked for yet.
    other = requests.post(**call, json=body | {"amount": "20.00"}, timeout=30)
    told = requests.post(**call, json=body, timeout=30)
    assert (told.status_code, told.headers.get("Idempotent-Replayed")) == (201, "true"), told.text
    assert (other.status_code, other.headers.get("Idempotent-Replayed")) == (201, None), other.text
    made = {told.json()["data"]["id"], other.json()["data"]["id"]}
    assert {one["id"] for one in data(api.get("/v1/pay/refunds"))["items"]} == made


def test_what_was_set_and_set_otherwise_since_is_set_anew(bought):
    server, silent, _ = bought
    api = Api(server.url, server.keys["test"]["secret"])
    product = data(api.post("/v1/pay/products", {"name": "Tea", "price": "10.00"}), 201)
    call = {"url": f"{server.url}/v1/pay/products/{product['id']}", "headers": {"Authorization": f"Bearer {api.credential}"}}
    silent.text = b"the tea nobody tells of"
    cheap = {"price": "5.00", "description": silent.text.decode()}
    with pytest.raises(requests.Timeout):
        requests.put(**call, json=cheap, timeout=2)
    silent.speaks.set()
    dear = requests.put(**call, json={"price": "20.00"}, timeout=30)
    again = requests.put(**call, json=cheap, timeout=30)
    assert (dear.status_code, again.status_code, again.headers.get("Idempotent-Replayed")) == (200, 200, None), again.text
    assert data(api.get(f"/v1/pay/products/{product['id']}"))["price"] == "5.00"


def test_what_was_done_and_not_told_is_not_refused_to_whoever_asks_again(bought):
    server, silent, _ = bought
    api = Api(server.url, server.keys["test"]["secret"])
    headers = {"Authorization": f"Bearer {api.credential}"}
    product = data(api.post("/v1/pay/products", {"name": "Tea", "price": "10.00"}), 201)
    line = {"description": "Tea", "quantity": 1, "unit_price": "10.00"}
    order = {"customer_email": "awa@example.gm", "customer_name": "Awa", "due_date": "2099-01-31", "items": [line]}
    invoice = data(api.post("/v1/pay/invoices", order), 201)
    change = {"version": invoice["version"], "notes": "a change nobody tells of"}

    def unheard(text, method, path, body=None):
        silent.text = text
        with pytest.raises(requests.Timeout):
            requests.request(method, server.url + path, json=body, headers=headers, timeout=2)
        silent.speaks.set()
        again = requests.request(method, server.url + path, json=body, headers=headers, timeout=30)
        return again.status_code, again.headers.get("Idempotent-Replayed"), again.text

    status, replayed, text = unheard(change["notes"].encode(), "PUT", f"/v1/pay/invoices/{invoice['id']}", change)
    assert (status, replayed) == (200, "true"), text
    assert data(api.get(f"/v1/pay/invoices/{invoice['id']}"))["version"] == invoice["version"] + 1
    status, replayed, text = unheard(product["id"].encode(), "DELETE", f"/v1/pay/products/{product['id']}")
    assert (status, replayed) == (204, "true"), text
