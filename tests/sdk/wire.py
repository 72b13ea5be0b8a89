"""Requests byte by byte, on a connection that is kept while the server keeps it."""

import json
import socket
import time
from urllib.parse import urlsplit

LONGEST_HEAD = 1 << 16


class Hangup(Exception):
    """The server ended the connection before it had answered."""


class Wire:
    """One connection to a server, opened anew whenever it was ended."""

    def __init__(self, url, timeout=15):
        parts = urlsplit(url)
        self.place = (parts.hostname, parts.port)
        self.timeout = timeout
        self.socket = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def connect(self):
        self.close()
        self.socket = socket.create_connection(self.place, timeout=self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.socket

    def send(self, data):
        try:
            (self.socket or self.connect()).sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough; what it said may still be there

    def _end(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was faster

    def answer(self, is_head=False):
        """Status, headers (names in small letters) and body of the next answer."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self.more()
            assert len(read) < LONGEST_HEAD or b"\r\n\r\n" in read, "a head without an end"
        head, body = read.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while not is_head and len(body) < length:
            body += self.more()
        if headers.get("connection") == "close":
            self.close()
        return int(first.split(" ", 2)[1]), headers, body

    def more(self):
        """The bytes that come next."""
        try:
            more = self.socket.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            self.close()
            raise Hangup
        return more

    def ask(self, data, is_head=False, is_last=False):
        """Answer and seconds; an answer of None: it hung up without a word. After the last one nothing more comes."""
        if self.socket is None or is_last:
            self.connect()
        start = time.monotonic()
        self.send(data)
        if is_last:
            self._end()
        try:
            answer = self.answer(is_head)
        except Hangup:
            answer = None
        return answer, time.monotonic() - start


def request(method, path, key=None, body=b"", headers=(), media="application/json"):
    """A request as bytes; a body that is no bytes is sent as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: dalasi"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines.append(f"Content-Type: {media}")
    if body or method not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
