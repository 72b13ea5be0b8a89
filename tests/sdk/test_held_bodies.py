"""Bodies that never end: all together they take no more memory than they may, those of one client no more than its share, and
small ones find room beside them (promises P15 and P16)."""

import itertools
import json
import select
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

from checks import data, eventually, refusal
from server import PLAIN, Api
from wire import request

# Each request says whose it is: here all come from one machine.
BEHIND_A_PROXY = (*PLAIN, "--trusted-proxies", "1")
CLIENTS = 300
# All of a body but this is sent.
KEPT_BACK = 64 << 10
STEP = 40_000
# What bodies may take, and more than that again for connections and the allocator. All of them are 280 MiB.
MOST_GROWTH = 160 << 20
MOST_HELD = 64 << 20
# Of one client, beside whom nobody has anything.
MOST_OF_ONE = MOST_HELD // 2
SMALL = {"amount": "10.00"}


def begin(stack, place, sent):
    """Sends, as far as the server takes it."""
    client = stack.enter_context(socket.create_connection(place, timeout=15))
    try:
        client.sendall(sent)
    except OSError:
        pass  # it was refused meanwhile
    return client


def is_refused(client):
    if not select.select([client], [], [], 0)[0]:
        return False
    try:
        # The connection ends while more is on its way, which may overtake the answer.
        return client.recv(4096).startswith(b"HTTP/1.1 503 ")
    except ConnectionResetError:
        return True


class Senders:
    """Who sends bodies to one server, and does not end them."""

    def __init__(self, server, stack):
        parts = urlsplit(server.url)
        self.place, self.key = (parts.hostname, parts.port), server.keys["test"]["secret"]
        self.api, self.stack = Api(server.url, self.key), stack

    def begin(self, address, length=None):
        """So much of a body of a megabyte; without a length all that is sent of one."""
        whole = request("POST", "/v1/checkouts", self.key, b" " * (1 << 20), [("X-Forwarded-For", address)])
        return begin(self.stack, self.place, whole[: length or -KEPT_BACK])

    def siege(self, addresses, most_held):
        """Many at once, who get as many bytes as may be held: whoever comes beyond that is refused."""
        clients = [self.begin(address) for address in addresses]
        most_held //= (1 << 20) - KEPT_BACK
        refused = set()

        def are_refused():
            refused.update(client for client in clients if client not in refused and is_refused(client))
            return len(refused) >= len(clients) - most_held - 1

        eventually(are_refused)
        assert len(refused) < len(clients), "as many go on as there is room for"

    def fill(self, address):
        """A siege comes at once: more may have been refused than had to be, and what these left is taken step by step."""
        for _ in range(4):
            self.begin(address)
        for _ in range(2 * KEPT_BACK // STEP):
            self.begin(address, STEP)

    def post_large(self, address):
        """One that ends."""
        sent = json.dumps(SMALL) + " " * 50_000
        headers = {"Content-Type": "application/json", "X-Forwarded-For": address}
        return self.api.post("/v1/checkouts", data=sent, headers=headers)

    def post_small(self, address):
        return self.api.post("/v1/checkouts", SMALL, headers={"X-Forwarded-For": address})

    def is_counted(self):
        shed = self.api.get("/metrics").text
        assert 'dalasi_requests_shed_total{kind="body"} 0' not in shed, shed


def test_bodies_that_never_end_take_no_more_than_their_share(new_server):
    server = new_server(options=BEHIND_A_PROXY)
    addresses = (f"198.51.{number // 256}.{number % 256}" for number in itertools.count())
    payer = "192.0.2.1"
    with ExitStack() as stack:
        senders = Senders(server, stack)
        data(senders.post_large(payer), 201)
        before = server.resident()
        senders.siege(list(itertools.islice(addresses, CLIENTS)), MOST_HELD)
        assert server.resident() - before < MOST_GROWTH

        def next_large():
            senders.fill(next(addresses))
            return senders.post_large(payer)

        [response] = eventually(lambda: [it for it in [next_large()] if it.status_code != 201])
        refusal(response, 503, "unavailable")
        assert response.headers["Retry-After"] == "1"
        data(senders.post_small(payer), 201)
        senders.is_counted()
    # Whoever ends gives back what they held.
    eventually(lambda: senders.post_large(payer).status_code == 201)
    server.stop()


def test_one_who_sends_slowly_keeps_nobody_else_out(new_server):
    server = new_server(options=BEHIND_A_PROXY)
    greedy, payer, other = "198.51.100.1", "192.0.2.1", "192.0.2.2"
    with ExitStack() as stack:
        senders = Senders(server, stack)
        senders.siege([greedy] * CLIENTS, MOST_OF_ONE)

        def next_large():
            senders.fill(greedy)
            return senders.post_large(greedy)

        # As long as it gets another one in, it does not hold as much as it can.
        [response] = eventually(lambda: [it for it in [next_large()] if it.status_code != 201])
        refusal(response, 503, "unavailable")
        assert response.headers["Retry-After"] == "1"
        for address in (payer, other, payer):
            data(senders.post_large(address), 201)
            data(senders.post_small(address), 201)
        senders.is_counted()
    eventually(lambda: senders.post_large(greedy).status_code == 201)
    server.stop()
