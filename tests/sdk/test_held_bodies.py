"""Bodies that never end: all together they take no more memory than they may, and small ones find room beside them
(promises P15 and P16)."""

import json
import select
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

from checks import data, eventually, refusal
from server import Api
from wire import request

CLIENTS = 300
# All of a body but this is sent.
KEPT_BACK = 64 << 10
STEP = 40_000
# What bodies may take, and more than that again for connections and the allocator. All of them are 280 MiB.
MOST_GROWTH = 160 << 20
MOST_HELD = 64 << 20


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


def test_bodies_that_never_end_take_no_more_than_their_share(new_server):
    server = new_server()
    parts, key = urlsplit(server.url), server.keys["test"]["secret"]
    api = Api(server.url, key)
    small = {"amount": "10.00"}

    def post_large():
        sent = json.dumps(small) + " " * 50_000
        return api.post("/v1/checkouts", data=sent, headers={"Content-Type": "application/json"})

    data(post_large(), 201)
    whole = request("POST", "/v1/checkouts", key, b" " * (1 << 20))
    before = server.resident()
    with ExitStack() as stack:
        place = (parts.hostname, parts.port)
        clients = [begin(stack, place, whole[:-KEPT_BACK]) for _ in range(CLIENTS)]
        most_held = MOST_HELD // (len(whole) - KEPT_BACK)
        refused = set()

        def are_refused():
            refused.update(client for client in clients if client not in refused and is_refused(client))
            return len(refused) >= CLIENTS - most_held - 1

        eventually(are_refused)
        assert server.resident() - before < MOST_GROWTH
        assert len(refused) < CLIENTS, "as many go on as there is room for"

        # They came together: more may have been refused than had to be, and what these left is taken step by step.
        def next_large():
            for _ in range(4):
                begin(stack, place, whole[:-KEPT_BACK])
            for _ in range(2 * KEPT_BACK // STEP):
                begin(stack, place, whole[:STEP])
            return post_large()

        [response] = eventually(lambda: [it for it in [next_large()] if it.status_code != 201])
        refusal(response, 503, "unavailable")
        assert response.headers["Retry-After"] == "1"
        data(api.post("/v1/checkouts", small), 201)
        shed = api.get("/metrics").text
        assert 'dalasi_requests_shed_total{kind="body"} 0' not in shed, shed
    # Whoever ends gives back what they held.
    eventually(lambda: post_large().status_code == 201)
    server.stop()
