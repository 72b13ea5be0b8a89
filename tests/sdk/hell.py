"""Receivers from hell: each on a port of its own, each wrong in its own way, until it heals. What arrived is noted with
whether it was answered well, so that the order can be judged."""

import itertools
import socket
import struct
import threading
import time

from receiver import Delivery

# An answer of which more than this could be sent was read without a cap; the kernel's buffers are allowed for.
MOST_TAKEN = 16 << 20
LONGEST = 20
LONGEST_CALL = 17
BACKLOG = 128
# Between two attempts: five seconds, a tenth less by jitter.
SHORTEST_WAIT = 4.4
RESET = struct.pack("ii", 1, 0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
STATUSES = [
    101,
    199,
    300,
    304,
    305,
    306,
    399,
    400,
    401,
    403,
    404,
    405,
    409,
    418,
    422,
    425,
    451,
    499,
    500,
    502,
    504,
    511,
    599,
]
STATUSES += [600, 777, 999]
ODD_WAITS = [
    "0", "-1", "-0", "+5", "1.5", "1e9", "0x10", "NaN", "", " ", "soon", "5 s", "5, 6", "\xb3",
    "99999999999999999999999", "86400",
    "18446744073709551616", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
    "Sun, 06 Nov 1994 08:49:37 CET",
    "Sunday, 06-Nov-94 08:49:37 GMT", "\t7\t", "7\x00",
]  # fmt: skip
GARBAGE = [
    b"SSH-2.0-OpenSSH_9.2p1\r\n", b"220 mail.example ESMTP\r\n", b"OK\r\n", b"HTTP/0.9 200 OK\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01",
    b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n: empty\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n", b"\x00" * 4096, b"\r\n" * 2048,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", b"\xff" * 70_000, b"A" * 70_000,
]  # fmt: skip
LIES = [
    "Content-Length: 10737418240", "Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2", "Content-Length: 0x10",
    "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Transfer-Encoding: gzip, identity", "Content-Encoding: gzip\r\nContent-Length: 5",
    "Upgrade: h2c\r\nConnection: Upgrade",
]  # fmt: skip


def answer(status, *headers, body=b""):
    lines = [f"HTTP/1.1 {status} Words", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def pour(link, head, more):
    """Without an end, as fast as it is taken."""
    link.send(head)
    while True:
        link.send(more)


def drip(link, text, pause=1.0):
    for byte in itertools.chain(text, itertools.repeat(0x20)):
        link.send(bytes([byte]))
        if link.receiver.healing.wait(pause):
            return


def hang_up(link, text):
    link.send(text)


def reset(link):
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


# What is done with a request that was read; True where it is a success all the same.
KINDS = {
    "statuses": lambda link: hang_up(link, answer(link.random.choice(STATUSES), body=b"no" * 50)),
    "odd waits": lambda link: hang_up(link, answer(503, f"Retry-After: {link.random.choice(ODD_WAITS)}")),
    "two waits": lambda link: hang_up(link, answer(429, "Retry-After: 7", "Retry-After: 9")),
    "gone": lambda link: hang_up(link, answer(410)),
    "redirects": lambda link: hang_up(
        link, answer(link.random.choice([301, 302, 303, 307, 308]), f"Location: {link.receiver.trap}")
    ),
    "reset": reset,
    "half a head": lambda link: hang_up(link, b"HTTP/1.1 200 OK\r\nContent-Le"),
    "no word": lambda link: None,
    "garbage": lambda link: hang_up(link, link.random.choice(GARBAGE)),
    "noise": lambda link: hang_up(link, link.random.randbytes(2048)),
    "lies": lambda link: hang_up(
        link, f"HTTP/1.1 500 Oops\r\n{link.random.choice(LIES)}\r\n\r\nzzzzz\r\n".encode("latin-1")
    ),
    "slow head": lambda link: drip(link, b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "slow body": lambda link: drip(link, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", 0.3),
    "silence": lambda link: link.socket.recv(1),
    "endless body": lambda link: pour(link, b"HTTP/1.1 500 Oops\r\n\r\n", b"y" * 65_536),
    "endless chunks": lambda link: pour(
        link, b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"z" * 4096 + b"\r\n"
    ),
    "endless head": lambda link: pour(link, b"HTTP/1.1 500 Oops\r\nX-Long: ", b"h" * 65_536),
    "endless headers": lambda link: pour(link, b"HTTP/1.1 500 Oops\r\n", b"X-More: and more\r\n" * 4096),
    "endless patience": lambda link: pour(link, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2048),
    "an endless success": lambda link: link.succeeds() or pour(link, b"HTTP/1.1 200 OK\r\n\r\n", b"y" * 65_536),
    "an odd success": lambda link: (
        link.succeeds()
        or hang_up(
            link, b"HTTP/1.1 103 Early\r\nLink: </>\r\n\r\n" + answer(link.random.choice([200, 201, 202, 206, 299]))
        )
    ),
    "well": lambda link: link.succeeds() or hang_up(link, OK),
}
# These are wrong before a request can be read.
KINDS |= {kind: None for kind in ("rude", "garbage for TLS", "slow to accept", "refuses", "no name")}
KINDS["anything"] = lambda link: KINDS[
    link.random.choice(sorted(kind for kind in KINDS if KINDS[kind] and kind not in ALONE))
](link)
# What would hide the others, or end the endpoint.
ALONE = {"anything", "gone"}


class Arrival(Delivery):
    """A request, and whether it was answered well, and when."""

    is_success = False


class Link:
    """One connection from the server."""

    def __init__(self, receiver, connection, random):
        self.receiver = receiver
        self.socket = connection
        self.random = random
        self.arrival = None
        self.sent = 0

    def send(self, data):
        self.sent += self.socket.send(data)
        self.receiver.most_sent = max(self.receiver.most_sent, self.sent)

    def succeeds(self):
        """Noted before it is said, so that what follows is never too early."""
        with self.receiver.lock:
            self.arrival.is_success = True
            self.receiver.succeeded.add((self.arrival.object_id, self.arrival.sequence))

    def read(self):
        """The next request; None at the end."""
        read = b""
        while b"\r\n\r\n" not in read:
            if not (more := self.socket.recv(65_536)):
                return None
            read += more
        head, body = read.split(b"\r\n\r\n", 1)
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        length = int(next(value for name, value in headers.items() if name.lower() == "content-length"))
        while len(body) < length:
            if not (more := self.socket.recv(65_536)):
                return None
            body += more
        return Arrival(headers, body)


class Wrong:
    """One receiver, wrong in the way of its kind until it `heal`s."""

    def __init__(self, kind, trap, random):
        self.kind = kind
        self.trap = trap
        self.random = random
        self.arrivals = []
        self.succeeded = set()
        self.connections = 0
        self.most_sent = 0
        self.longest = 0.0
        self.lock = threading.Lock()
        self.healing = threading.Event()
        self.open = set()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Who refuses has an address all the same: nobody else can get it meanwhile and answer in his place.
        self.listener.bind(("127.0.0.1", 0))
        self.place = self.listener.getsockname()
        if kind != "refuses":
            self.listener.listen(BACKLOG)
            if kind != "slow to accept":
                self._serve()

    @property
    def url(self):
        if self.kind == "no name" and not self.healing.is_set():
            return "https://receiver-from-hell.example/"
        scheme = "https" if self.kind == "garbage for TLS" and not self.healing.is_set() else "http"
        return f"{scheme}://127.0.0.1:{self.place[1]}/hook"

    def is_early(self, arrival):
        """It came before the one before it was answered well. What was given up with 410 holds nothing up any more."""
        before = (arrival.object_id, arrival.sequence - 1)
        return arrival.sequence > 1 and self.kind != "gone" and before not in self.succeeded

    def heal(self):
        """All connections end, and from now on every request is answered well."""
        if self.healing.is_set():
            return
        self.healing.set()
        with self.lock:
            links = list(self.open)
        for link in links:
            try:
                link.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it ended by itself
        if self.kind == "refuses":
            self.listener.listen(BACKLOG)
        if self.kind in ("refuses", "slow to accept"):
            self._serve()

    def close(self):
        self.heal()
        self.listener.close()

    def _serve(self):
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        connection.settimeout(LONGEST)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        link, start = Link(self, connection, self.random), None
        with self.lock:
            self.open.add(link)
        try:
            if not self.healing.is_set() and self.kind == "rude":
                return reset(link)
            if not self.healing.is_set() and self.kind == "garbage for TLS":
                return hang_up(link, self.random.choice(GARBAGE))
            while arrival := link.read():
                start = time.monotonic()
                arrival.is_healed = self.healing.is_set()
                link.arrival = arrival
                with self.lock:
                    arrival.is_early = self.is_early(arrival)
                    self.arrivals.append(arrival)
                if not arrival.is_healed:
                    KINDS[self.kind](link)
                    break
                link.succeeds()
                link.send(OK)
        except (OSError, TimeoutError):
            pass  # the server has had enough
        finally:
            # A connection that the server has opened and keeps for later is no attempt.
            if start is not None and not self.healing.is_set():
                self.longest = max(self.longest, time.monotonic() - start)
            with self.lock:
                self.open.discard(link)
            connection.close()


def faults(receiver, expected, secret):
    """What is wrong with what a receiver got. `expected`: how many events of each object there are."""
    with receiver.lock:
        arrivals = list(receiver.arrivals)
    first, last, succeeded = {}, {}, set()
    for arrival in arrivals:
        place = (arrival.object_id, arrival.sequence)
        try:
            arrival.verify(secret)
        except Exception as fault:  # whatever the official library says
            yield f"{place}: {fault!r}"
        if first.setdefault(arrival.id, arrival).body != arrival.body:
            yield f"{place}: other bytes than before"
        if arrival.is_early:
            yield f"{place} came before the one before it was answered well"
        if arrival.id in last and not arrival.is_healed and arrival.at - last[arrival.id].at < SHORTEST_WAIT:
            yield f"{place}: again after {arrival.at - last[arrival.id].at:.1f} s"
        last[arrival.id] = arrival
        if arrival.is_success:
            succeeded.add(place)
    for object_id, count in expected.items():
        missing = [sequence for sequence in range(1, count + 1) if (object_id, sequence) not in succeeded]
        if missing:
            yield f"{object_id}: {missing} never arrived"
    if receiver.longest > LONGEST_CALL:
        yield f"an attempt lasted {receiver.longest:.0f} s"
    if receiver.most_sent > MOST_TAKEN:
        yield f"{receiver.most_sent >> 20} MiB of an answer were taken"
