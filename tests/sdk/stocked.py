"""What was sold already, so that it can be paid back: a payment, and a store with some from the first moment on."""

from types import SimpleNamespace

from checks import data, eventually
from scenario import Client, everything
from server import Api, Server

# Of one payment, but for one that is all that is left.
MOST_REFUNDS = 250
SALES = 6
# Of each: it is paid, and completed.
EVENTS = 2


def stocked(store, folder):
    """Fills an empty store. What it answers has its keys, the transactions of the sales, and the ids of their events."""
    keys = store.init()["keys"]
    server = Server(store, folder / "stocked.log")
    server.keys = keys
    server.start()
    api, client = Api(server.url, keys["test"]["secret"]), Client(server)
    for _ in range(SALES):
        checkout = data(api.post("/v1/checkouts", {"amount": "900.00"}), 201)
        pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney"}
        data(api.post("/v1/pay/initialize", pay | {"customer_phone": "+2207000000"}))
    events = eventually(lambda: all_there(list(everything(client, "/v1/events"))), 60)
    paid = [transaction["id"] for transaction in everything(client, "/v1/pay/transactions")]
    server.stop()
    return SimpleNamespace(store=store, keys=keys, paid=paid, known=frozenset(event["id"] for event in events))


def paid(api):
    """The transaction of a payment that went through, large enough for all refunds that there may be of it."""
    checkout = data(api.post("/v1/checkouts", {"amount": "90000.00"}), 201)
    pay = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"}
    data(api.post("/v1/pay/initialize", pay))

    def completed():
        found = data(api.get(f"/v1/checkouts/{checkout['id']}"))
        return found["transaction"]["id"] if found["status"] == "completed" else None

    return eventually(completed)


def all_there(events):
    return events if len(events) == SALES * EVENTS else None
