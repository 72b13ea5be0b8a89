"""Many requests at the same moment, on a connection each or all on one."""

import http.client
import json
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, PingAckReceived, ResponseReceived, StreamEnded, StreamReset
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


def in_one_packet(server, requests, at=0):
    """The same with one connection of HTTP/2: when all of the requests but their last bytes have arrived, those go in one
    packet, so that nothing on the way comes between them. Each has a body, and they are no more than a connection may have."""
    spoken = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    spoken.initiate_connection()
    streams, last = [], []
    for sent in requests:
        head, body = sent.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        fields = [tuple(line.split(": ", 1)) for line in lines]
        streams.append(spoken.get_next_available_stream_id())
        last.append(body[-1:])
        pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "dalasi")]
        spoken.send_headers(
            streams[-1], pseudo + [(name.lower(), value) for name, value in fields if name.lower() != "host"]
        )
        spoken.send_data(streams[-1], body[:-1])
    spoken.ping(b"all here")
    answers = {stream: [0, {}, b""] for stream in streams}
    open_streams = set(streams)
    with Wire(server.url, 60) as wire:
        wire.send(spoken.data_to_send())
        _hear(wire, spoken, answers, open_streams, until=lambda event: isinstance(event, PingAckReceived))
        for stream, byte in zip(streams, last):
            if stream in open_streams:
                spoken.send_data(stream, byte, end_stream=True)
        time.sleep(max(0, at - time.time()))
        wire.send(spoken.data_to_send())
        _hear(wire, spoken, answers, open_streams, until=lambda _: not open_streams)
    return [tuple(answers[stream]) for stream in streams]


def _hear(wire, spoken, answers, open_streams, until):
    """Takes what the server says until something has happened, or it says no more."""
    heard = False
    try:
        while open_streams and not heard:
            for event in spoken.receive_data(wire.more()):
                if isinstance(event, ResponseReceived):
                    fields = dict(event.headers)
                    answers[event.stream_id][:2] = int(fields[":status"]), fields
                elif isinstance(event, DataReceived):
                    answers[event.stream_id][2] += event.data
                    spoken.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, (StreamEnded, StreamReset)):
                    open_streams.discard(event.stream_id)
                elif isinstance(event, ConnectionTerminated):
                    return
                heard = heard or until(event)
            wire.send(spoken.data_to_send())
    except (Hangup, OSError):
        pass  # what has no answer has none
