"""`dalasi logs tail`: a developer sees requests as they are answered, and nothing of what was sent with them."""

import json
import queue
import subprocess
import threading
from contextlib import contextmanager

import pytest

from checks import data, refusal
from server import Api
from store import BINARY, environment

PHONE = "+2207654321"
NAME = "Kumba Touray"


class Tail:
    def __init__(self, process):
        self.process = process
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next(self):
        line = self.lines.get(timeout=20)
        assert line is not None, f"it ended: {self.process.wait()}"
        return line


@contextmanager
def tailing(server, key, *options):
    process = subprocess.Popen(
        [BINARY, "logs", "tail", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | {"DALASI_API_KEY": key, "DALASI_API_URL": server.url, "NO_COLOR": "1"},
    )
    try:
        # From then on nothing is missed.
        said = process.stderr.readline()
        assert said.startswith("Showing test mode's requests"), said
        yield Tail(process)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def own(new_server):
    """A server of one's own: nobody else asks it."""
    server = new_server()
    return server, Api(server.url, server.keys["test"]["secret"])


def test_what_was_asked_is_shown_and_not_what_was_sent(own):
    server, api = own
    with tailing(server, api.credential) as tail:
        body = {"amount": "1.00", "customer_phone": PHONE, "customer_name": NAME}
        made = api.post("/v1/checkouts", body)
        checkout = data(made, 201)
        lists = api.get("/v1/pay/customers", params={"email": "kumba@example.gm"})
        wrong = api.post("/v1/checkouts", {"amount": "none", "customer_phone": PHONE})
        refusal(wrong, 400, "validation_failed")
        shown = [tail.next() for _ in range(3)]
    for line, answer, words in zip(
        shown,
        (made, lists, wrong),
        (["201", "POST", "/v1/checkouts"], ["200", "GET", "/v1/pay/customers"], ["400", "POST", "/v1/checkouts"]),
    ):
        assert line.split("  ")[1:4] == words, line
        assert answer.headers["X-Request-Id"] in line, line
    assert shown[2].endswith("  validation_failed"), shown
    for sent in (api.credential, "Bearer", PHONE, PHONE[1:], NAME, "kumba", "example.gm", checkout["id"], checkout["client_secret"]):
        assert sent not in "\n".join(shown), sent


def test_programs_read_json_and_filters_choose(own):
    server, api = own
    live = api.with_credential(server.keys["live"]["secret"])
    options = ["--json", "--filter-status-code", "4xx", "--filter-http-method", "get,put", "--filter-request-path", "/v1/checkouts"]
    with tailing(server, api.credential, *options) as tail:
        absent = "/v1/checkouts/cs_01h455vb4pex5vsknk084sn02q"
        data(api.get("/v1/checkouts"))
        refusal(api.post("/v1/checkouts", {}), 400, "validation_failed")
        refusal(api.get("/v1/pay/invoices/inv_01h455vb4pex5vsknk084sn02q"), 404, "invoice_not_found")
        refusal(live.get(absent), 404, "checkout_not_found")
        answer = api.get(absent)
        refusal(answer, 404, "checkout_not_found")
        shown = json.loads(tail.next())
    assert set(shown) == {"answered_at", "status", "method", "path", "duration_ms", "request_id", "code"}
    assert (shown["status"], shown["method"], shown["path"]) == (404, "GET", "/v1/checkouts/{id}")
    assert (shown["request_id"], shown["code"]) == (answer.headers["X-Request-Id"], "checkout_not_found")


def test_a_server_that_stops_ends_the_stream_at_once(own):
    server, api = own
    with tailing(server, api.credential, "--json") as tail:
        data(api.get("/v1/checkouts"))
        assert json.loads(tail.next())["status"] == 200
        server.stop()
        assert "trying again" in tail.process.stderr.readline()
    ended = subprocess.run(
        [BINARY, "logs", "tail", "--api-url", server.url],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment() | {"DALASI_API_KEY": api.credential},
    )
    assert (ended.returncode, ended.stdout) == (1, ""), ended
    assert "can't be reached" in ended.stderr, ended
