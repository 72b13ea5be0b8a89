"""Many requests at the same moment, a connection each."""

import http.client
import json
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

from wire import Hangup, Wire


def at_once(server, requests, method="POST"):
    """Sends all (path, body) or (path, body, headers) together; their (status, headers, body) in the same order."""
    host = urlsplit(server.url)
    start = threading.Barrier(len(requests))
    answers = [None] * len(requests)

    def send(index, path, body, headers=None):
        payload = json.dumps(body).encode()
        connection = http.client.HTTPConnection(host.hostname, host.port, timeout=60)
        try:
            try:
                connection.connect()
            except OSError:
                start.abort()  # nobody waits for one that can't come
                raise
            start.wait(timeout=60)
            connection.request(
                method,
                path,
                payload,
                {
                    "Authorization": f"Bearer {server.keys['test']['secret']}",
                    "Content-Type": "application/json",
                    **(headers or {}),
                },
            )
            response = connection.getresponse()
            answers[index] = (response.status, dict(response.getheaders()), response.read())
        except (OSError, http.client.HTTPException, threading.BrokenBarrierError) as fault:
            answers[index] = (0, {}, repr(fault).encode())
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(index, *request)) for index, request in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def codes(answers):
    """How often each code came, `ok` for a success."""
    return Counter(json.loads(body).get("code", "ok") if status else body for status, _, body in answers)


def replayed(answer):
    """Whether it was given before."""
    _, headers, _ = answer
    return {name.lower(): value for name, value in headers.items()}.get("idempotent-replayed") == "true"


def held_back(server, requests, release=None, timeout=60, at=0):
    """Requests as bytes, a connection each. All but their last bytes are sent; then, one after the other and as fast as
    can be, those, `at` that time if it is still to come. `release` is called in between. The answers in the same order; (0, {}, b"") for none."""
    wires = [Wire(server.url, timeout) for _ in requests]
    answers = []
    try:
        for wire, sent in zip(wires, requests):
            wire.connect()
            wire.send(sent[:-1])
        time.sleep(max(0, at - time.time()))
        for wire, sent in zip(wires, requests):
            wire.send(sent[-1:])
        if release:
            release()
        for wire in wires:
            try:
                answers.append(wire.answer())
            except (Hangup, OSError):
                answers.append((0, {}, b""))
    finally:
        for wire in wires:
            wire.close()
    return answers
