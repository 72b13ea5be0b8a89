"""A running Dalasi server, started as an operator would, and the plain HTTP client for what the SDK can't send."""

import queue
import re
import signal
import subprocess
import threading
from pathlib import Path

import requests

from store import BINARY, PLANTED_BINARY, environment

READY = re.compile(r"listening on (http://\S+)")


# No limit on requests.
PLAIN = ("--rate-limit", "0")


class Server:
    """`dalasi serve` on a free port of the loopback address; with `planted`, of the build that has this defect (`domain::planted`)."""

    def __init__(self, store, log, *, options=PLAIN, prefix=(), planted=None):
        self.store = store
        self.log = log
        self.options = list(options)
        self.planted = planted
        # What runs the server, if not the system itself.
        self.prefix = list(prefix)
        self.process = None
        self.url = None

    def start(self, timeout=30):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, PLANTED_BINARY if self.planted else BINARY, "serve", "--listen", "127.0.0.1:0", "--allow-loopback-webhooks"]
                + [str(word) for word in (*self.store.location, *self.options)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment() | ({"DALASI_PLANTED": self.planted} if self.planted else {}),
            )
        # A thread reads on to the end, so that a chatty server never blocks on a full pipe.
        lines = queue.Queue()
        threading.Thread(target=self._read, args=(self.process.stdout, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=timeout)
            except queue.Empty:
                self.kill()
                raise AssertionError(f"the server said nothing for {timeout} s; its log:\n{self._tail()}") from None
            if line is None:
                raise AssertionError(f"the server ended with {self.process.wait()}; its log:\n{self._tail()}")
            if ready := READY.search(line):
                self.url = ready.group(1)
                return self

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.put(line)
        lines.put(None)

    def stop(self):
        """SIGTERM: finishes what it accepted and exits with 0."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                code = self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("the server did not end within 30 s of SIGTERM") from None
            assert code == 0, f"the server ended with {code}; its log:\n{self._tail()}"

    def kill(self):
        """SIGKILL: nothing is finished."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def resident(self):
        """Bytes that are the process's own: pages of its program come and go as the machine has memory for them."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon:"))

    def _tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-40:])


class Api:
    """Plain HTTP with one credential. Every answer is checked for what holds of all answers."""

    def __init__(self, url, credential=None):
        self.url = url
        self.credential = credential
        self.session = requests.Session()

    def with_credential(self, credential):
        return Api(self.url, credential)

    def request(self, method, path, body=None, **options):
        headers = {"Accept": "application/json", **options.pop("headers", {})}
        if self.credential is not None:
            headers.setdefault("Authorization", f"Bearer {self.credential}")
        if body is not None:
            options["json"] = body
        response = self.session.request(
            method, self.url + path, headers=headers, timeout=40, allow_redirects=False, **options
        )
        if path.startswith("/v1"):
            assert re.fullmatch(r"req_[0-9a-hjkmnp-tv-z]{26}", response.headers.get("X-Request-Id", "")), (
                f"{method} {path}: X-Request-Id is {response.headers.get('X-Request-Id')!r}"
            )
        return response

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body, **options)

    def put(self, path, body=None, **options):
        return self.request("PUT", path, body, **options)

    def patch(self, path, body=None, **options):
        return self.request("PATCH", path, body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)
