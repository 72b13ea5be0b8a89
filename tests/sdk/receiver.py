"""A merchant's webhook receiver: records what arrives, byte for byte, and checks both signatures."""

import hashlib
import hmac
import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

from contract import event_faults


class Delivery:
    """One request as it arrived."""

    def __init__(self, headers, body):
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body
        self.at = time.time()
        self.event = json.loads(body)

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def type(self):
        return self.event["type"]

    @property
    def object_id(self):
        return self.event["object_id"]

    @property
    def sequence(self):
        return self.event["sequence"]

    def verify(self, secret):
        """Both signatures, the envelope and the headers that a receiver relies on."""
        assert Webhook(secret).verify(self.body, self.headers) == self.event
        self.verify_jokoor(secret)
        assert self.id == self.event["id"] == self.headers["x-jokoor-event-id"]
        assert self.headers["x-jokoor-event"] == self.type
        assert self.headers["content-type"] == "application/json"
        assert self.headers["user-agent"] == "Dalasi-Webhooks/1.0"
        assert set(self.event) == {
            "id", "type", "api_version", "created_at", "created", "livemode", "object_id", "sequence", "data",
        }  # fmt: skip
        assert not event_faults(self.event), event_faults(self.event)
        assert self.event["api_version"] == "v1"
        assert self.event["created"] == self.event["created_at"]
        assert b"client_secret" not in self.body and b"whsec_" not in self.body

    def verify_jokoor(self, secret):
        digest = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(self.headers["x-jokoor-signature"], f"sha256={digest}")


class Mailbox:
    """One address of the receiver: what came, and how it answers."""

    def __init__(self, url):
        self.url = url
        self.deliveries = []
        self.statuses = []
        self.status = 200
        self.delay = 0.0
        self.begun = threading.Event()
        self.headers = {}
        self.changed = threading.Condition()

    def answer(self, *statuses):
        """The next answers, one each; afterwards `status` again."""
        with self.changed:
            self.statuses.extend(statuses)

    def put(self, delivery):
        with self.changed:
            self.deliveries.append(delivery)
            self.changed.notify_all()
            return self.statuses.pop(0) if self.statuses else self.status

    def of(self, object_id):
        with self.changed:
            return [delivery for delivery in self.deliveries if delivery.object_id == object_id]

    def wait(self, condition, timeout=20):
        """Until `condition` of the deliveries so far is true; its value."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not (value := condition(list(self.deliveries))):
                left = deadline - time.monotonic()
                came = [(delivery.type, delivery.object_id) for delivery in self.deliveries]
                assert left > 0, f"not within {timeout} s; {len(came)} deliveries came: {came[-12:]}"
                self.changed.wait(left)
            return value

    def wait_for(self, object_id, *types, timeout=20):
        """Until exactly these types came for the object, in this order; a repetition of one id counts once."""

        def came(deliveries):
            distinct = {}
            for delivery in deliveries:
                if delivery.object_id == object_id:
                    distinct.setdefault(delivery.id, delivery)
            return list(distinct.values()) if len(distinct) >= len(types) else None

        found = self.wait(came, timeout)
        assert [delivery.type for delivery in found] == list(types)
        return found


class Receiver:
    """An HTTP server on the loopback address with any number of mailboxes."""

    def __init__(self):
        self.mailboxes = {}
        self._numbers = itertools.count(1)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                mailbox = receiver.mailboxes.get(self.path)
                status = 404
                headers = {}
                if mailbox:
                    mailbox.begun.set()
                    time.sleep(mailbox.delay)
                    status = mailbox.put(Delivery(self.headers, body))
                    headers = mailbox.headers
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the server was killed while we were answering; the delivery was recorded

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def mailbox(self, kind=Mailbox):
        path = f"/{next(self._numbers)}"
        self.mailboxes[path] = kind(self.url + path)
        return self.mailboxes[path]

    def forget(self, mailbox):
        del self.mailboxes[mailbox.url.removeprefix(self.url)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
