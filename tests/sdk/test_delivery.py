"""The worker is killed in mid-delivery; every event still arrives, in order (contract §6)."""

import socket
import time

import pytest
from jokoor import Jokoor

from checks import data, eventually, ok
from invoices import order
from server import Api
from store import psql

CHECKOUTS = 25
# More than there are places for deliveries.
HANGING = 160


def test_kill_and_restart_lose_nothing(new_server, receiver):
    server = new_server()
    mailbox = receiver.mailbox()
    mailbox.delay = 0.05
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        secret = ok(sdk.webhooks.create(url=mailbox.url, enabled_events=["*"]))["secret"]
        expected = {}
        for index in range(CHECKOUTS):
            checkout = ok(sdk.checkouts.create(amount="10.00"))
            ok(
                sdk.payments.initialize(
                    client_secret=checkout["client_secret"],
                    payment_method="afrimoney",
                    # Every fifth payer fails first, so that objects have one, two or three events.
                    customer_phone="+2207000001" if index % 5 == 0 else "+2207000000",
                )
            )
            expected[checkout["id"]] = (
                ["payment.failed"] if index % 5 == 0 else ["payment.succeeded", "checkout.completed"]
            )

    for _ in range(3):
        seen = len(mailbox.deliveries)
        mailbox.wait(lambda deliveries, seen=seen: len(deliveries) > seen or len(deliveries) >= CHECKOUTS, timeout=120)
        server.kill()
        time.sleep(0.2)
        server.start()

    def complete(deliveries):
        return len({delivery.id for delivery in deliveries}) >= sum(map(len, expected.values()))

    mailbox.wait(complete, timeout=240)
    for object_id, types in expected.items():
        arrived = {}
        for delivery in mailbox.of(object_id):
            delivery.verify(secret)
            arrived.setdefault(delivery.id, delivery)
        first_arrivals = list(arrived.values())
        assert [one.type for one in first_arrivals] == types
        assert [one.sequence for one in first_arrivals] == list(range(1, len(types) + 1))
    by_id = {}
    for delivery in mailbox.deliveries:
        assert by_id.setdefault(delivery.id, delivery.body) == delivery.body, "each attempt sends the same bytes"

    server.stop()
    result = server.store.verify()
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_was_acknowledged_survives_a_kill(new_server):
    server = new_server()
    ids = []
    for _ in range(3):
        with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
            ids += [ok(sdk.checkouts.create(amount="1.00", metadata={"n": str(n)}))["id"] for n in range(10)]
            server.kill()
            server.start()
        with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
            for id in ids:
                assert ok(sdk.checkouts.get(id))["status"] == "pending"


def test_receivers_of_test_mode_that_hang_hold_up_no_live_webhook(new_server):
    server = new_server()
    test, live = (Api(server.url, server.keys[mode]["secret"]) for mode in ("test", "live"))
    # The name leads nowhere, so that an attempt ends at once.
    endpoint = {"url": "https://hooks.shop.example/", "enabled_events": ["invoice.created"]}
    data(live.post("/v1/webhook_endpoints", endpoint), 201)
    with socket.create_server(("127.0.0.1", 0), backlog=2 * HANGING) as silent:
        endpoint["url"] = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        for _ in range(HANGING):
            data(test.post("/v1/webhook_endpoints", endpoint), 201)
        owed = data(test.post("/v1/pay/invoices", order()), 201)["id"]
        # An attempt lasts 15 s: until then nothing is given back.
        time.sleep(2)
        data(live.post("/v1/pay/invoices", order()), 201)

        def of(api):
            [event] = data(api.get("/v1/events?type=invoice.created"))["items"]
            return event

        eventually(lambda: of(live)["attempts"] == 1, timeout=8)
        assert of(test)["object_id"] == owed and of(test)["attempts"] == 0, "those still hang"
    server.kill()


# As long as a claim lasts.
LEASE_S = 30
# Of what commits a claim. An attempt could last half of a lease, so that this leaves too little.
SLOW_COMMIT = """
create function takes_long() returns trigger language plpgsql as $$ begin perform pg_sleep(15); return null; end $$;
create constraint trigger takes_long after update on webhook_deliveries deferrable initially deferred
    for each row when (new.lease_token > old.lease_token and new.lease_until > 0) execute function takes_long();
"""


def test_who_holds_a_delivery_no_longer_does_not_begin_it(new_server, receiver):
    """Another process could hold it by then, and have sent what comes after it."""
    server = new_server()
    if server.store.name != "postgres":
        pytest.skip("on SQLite nobody else claims")
    mailbox = receiver.mailbox()
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        ok(sdk.webhooks.create(url=mailbox.url, enabled_events=["*"]))
        psql(server.store.url, SLOW_COMMIT)
        checkout = ok(sdk.checkouts.create(amount="10.00"))
        payer = {"payment_method": "afrimoney", "customer_phone": "+2207000000"}
        ok(sdk.payments.initialize(client_secret=checkout["client_secret"], **payer))
    time.sleep(18)
    assert mailbox.deliveries == []
    psql(server.store.url, "drop trigger takes_long on webhook_deliveries")
    mailbox.wait(lambda deliveries: len(deliveries) == 2, timeout=2 * LEASE_S)
    assert [one.type for one in mailbox.deliveries] == ["payment.succeeded", "checkout.completed"]
    server.stop()
