"""Row C4: clients that are slow on purpose, 20 of each kind at the same time. Each is cut off in time, and whoever comes
honestly meanwhile is served as before."""

import asyncio
import statistics
import threading
import time
from urllib.parse import urlsplit

import requests

import attackers
from proof import Proof

GATE_ATTACKERS = 20
# What the server allows itself, and a while for a busy machine.
SLACK = 6
ALLOWED = {
    attackers.silent: 5,
    attackers.slow_header: 10,
    attackers.slow_body: 30,
    attackers.slow_chunks: 30,
    attackers.never_reads: 30,
    attackers.zero_window: 30,
    attackers.tiny_window: 30,
    attackers.rapid_reset: 10,
    attackers.endless_headers: 10,
    attackers.pipelined: 20,
}
MOST_SECONDS_OF_THE_HONEST = 1.0


class Honest:
    """Asks ten times a second, as long as the attack lasts."""

    def __init__(self, url):
        self.url = url
        self.seconds = []
        self.faults = []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        with requests.Session() as session:
            while not self.is_over.wait(0.1):
                start = time.monotonic()
                try:
                    status = session.get(f"{self.url}/health", timeout=30).status_code
                    if status != 200:
                        self.faults.append(str(status))
                except requests.RequestException as fault:
                    self.faults.append(repr(fault))
                self.seconds.append(time.monotonic() - start)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


async def siege(place, key, each):
    kinds = [kind for kind in ALLOWED for _ in range(each)]
    held = await asyncio.gather(*[attackers.attack(place, kind, key, ALLOWED[kind] + SLACK) for kind in kinds])
    return list(zip(kinds, held))


def test_whoever_dawdles_is_cut_off(new_server, database):
    server = new_server()
    parts = urlsplit(server.url)
    place = (parts.hostname, parts.port)
    with Proof("C4", database, GATE_ATTACKERS) as proof:
        with Honest(server.url) as honest:
            outcome = asyncio.run(siege(place, server.keys["test"]["secret"], proof.wanted))
        for kind, seconds in outcome:
            if seconds is None:
                proof.violation(f"{kind.__name__}: not cut off within {ALLOWED[kind] + SLACK} s")
        for fault in honest.faults:
            proof.violation(f"an honest client: {fault}")
        slowest = statistics.quantiles(honest.seconds, n=100)[98]
        if slowest > MOST_SECONDS_OF_THE_HONEST:
            proof.violation(f"an honest client waits {slowest:.2f} s (99th percentile)")
        by_kind = {kind.__name__: max((held or 99) for of, held in outcome if of is kind) for kind in ALLOWED}
        print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in by_kind.items()), f"honest p99 {slowest:.3f} s")
        proof.reached = proof.wanted
        # The check itself: who is let in for ever is noticed. This server waits for nobody to speak first.
        proof.control("a server without timers", asyncio.run(patient()) is None)


async def patient():
    """How long a server without any limits bears a silent client."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with server:
        return await attackers.attack(server.sockets[0].getsockname(), attackers.silent, "", 2)
