"""Row C4: clients that are slow on purpose, 20 of each kind at the same time. Each is cut off in time, and whoever comes
honestly meanwhile is served as before."""

import asyncio
import time
from urllib.parse import urlsplit

import attackers
from honest import Honest
from proof import Proof
from waits import p99, times_as_long

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
# Beside the attack; measured in the longer tiers, in rounds that take turns.
MOST_SLOWER = 2
ROUNDS = 3
ALONE_S = 15


async def siege(server, kinds):
    """For how long each held on to its connection."""
    parts = urlsplit(server.url)
    place, key = (parts.hostname, parts.port), server.keys["test"]["secret"]
    held = await asyncio.gather(*[attackers.attack(place, kind, key, ALLOWED[kind] + SLACK) for kind in kinds])
    return list(zip(kinds, held))


def test_whoever_dawdles_is_cut_off(new_server, database):
    server = new_server()
    planted = new_server(planted="no_header_timer")
    with Proof("C4", database, GATE_ATTACKERS) as proof:
        alone, beside = [], []
        for _ in range(1 if proof.tier == "gate" else ROUNDS):
            if proof.tier != "gate":
                alone.append(p99(served(proof, server, lambda: time.sleep(ALONE_S))))
            beside.append(p99(served(proof, server, lambda: besiege(proof, server))))
        if max(beside) > MOST_SECONDS_OF_THE_HONEST:
            proof.violation(f"an honest client waits {max(beside):.2f} s (99th percentile)")
        if alone:
            proof.note("honest_p99_ms", [[round(one * 1000, 1) for one in some] for some in (alone, beside)])
            if times_as_long(alone, beside) > MOST_SLOWER:
                proof.violation(f"an honest client waits {times_as_long(alone, beside):.1f} times as long")
            proof.control("an_honest_client_that_waits", times_as_long(alone, [2.1 * one for one in alone]) > MOST_SLOWER)
        proof.reached = proof.wanted
        # The check itself: who is let in for ever is noticed.
        for name, held in asyncio.run(borne(planted)).items():
            proof.control(name, held is None)


def besiege(proof, server):
    outcome = asyncio.run(siege(server, [kind for kind in ALLOWED for _ in range(proof.wanted)]))
    for kind, seconds in outcome:
        if seconds is None:
            proof.violation(f"{kind.__name__}: not cut off within {ALLOWED[kind] + SLACK} s")
    by_kind = {kind.__name__: max((held or 99) for of, held in outcome if of is kind) for kind in ALLOWED}
    print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in by_kind.items()))


def served(proof, server, meanwhile):
    """How long an honest client waits for each answer meanwhile."""
    with Honest(server) as honest:
        meanwhile()
    for fault in honest.faults:
        proof.violation(f"an honest client: {fault}")
    return honest.seconds


async def borne(planted):
    """How long servers that lack something bear what they should not. One waits for nobody to speak first."""
    silent, [(_, slow)] = await asyncio.gather(patient(), siege(planted, [attackers.slow_header]))
    return {"a server without timers": silent, "no_header_timer": slow}


async def patient():
    """How long a server without any limits bears a silent client."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with server:
        return await attackers.attack(server.sockets[0].getsockname(), attackers.silent, "", 2)
