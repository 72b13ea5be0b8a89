"""Row C5: more than 2,000 requests that are meant to hurt. No 5xx, an answer within 100 ms, no memory kept, nothing
stored (promise P15)."""

import os
import random
from itertools import islice
from pathlib import Path

from bombs import MEGABYTE, all_of_them
from checks import data
from payer_bombs import Scene, of_payers
from proof import Proof
from server import Api
from store import BINARY
from wire import Wire, request

# Of more than 17,500, other ones each time.
GATE_BOMBS = 2_500
# Seconds of the processor, whatever else the machine does; an unoptimized build takes its time.
LONGEST = 0.1 if "release" in BINARY else 0.5
MOST_GROWTH = 8 << 20
# Read once before the count begins, so that what the server keeps for good is there.
WARM_UP = 250
BOMBS_OF_A_CONTROL = 5


def worked(server):
    """Seconds of the processor that the process has had."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def judge(answer, right):
    """What is wrong with an answer, or nothing. Without a list of right ones, any but a 5xx is."""
    status = answer[0] if answer else None
    if status is not None and status >= 500 and status not in (right or ()):
        return f"a {status}: {answer[2][:200]!r}"
    if right is not None and status not in right:
        return f"{status} and none of {sorted(map(str, right))}: {answer and answer[2][:200]!r}"
    if right is None and status is None:
        return "it hung up without a word"
    return None


def test_no_bomb_hurts(new_server, database):
    server = new_server()
    key = server.keys["test"]["secret"]
    counted = ("/v1/webhook_endpoints", "/v1/pay/products", "/v1/pay/invoices", "/v1/checkouts")
    with Proof("C5", database, GATE_BOMBS) as proof, Wire(server.url) as wire:
        scene = Scene(server, Api(server.url, key))
        bombs = [*all_of_them(key), *of_payers(server, scene)]
        known = len(bombs)
        assert known > 17_500, known
        bombs = random.Random(proof.seed).sample(bombs, min(proof.wanted, known))

        def totals():
            return [wire.ask(request("GET", path, key))[0][2].split(b'"total":')[1][:3] for path in counted]

        def throw(name, sent):
            # What promises more than it brings is cut off, or both would wait.
            return wire.ask(sent, is_last="cut: " in name)

        for name, sent, _ in bombs[:: len(bombs) // WARM_UP]:
            throw(name, sent)
        before, held, slow = totals(), server.resident(), []
        for name, sent, right in bombs:
            start = worked(server)
            answer, _ = throw(name, sent)
            if fault := judge(answer, right):
                proof.violation(f"{name}: {fault}")
            if worked(server) - start > LONGEST:
                slow.append((name, sent))
            proof.reached += 1
        # Something else may have been done just then; a bomb costs as much each time.
        for name, sent in slow:
            costs = []
            for _ in range(5):
                start = worked(server)
                throw(name, sent)
                costs.append(worked(server) - start)
            if min(costs) > LONGEST:
                proof.violation(f"{name}: {min(costs) * 1000:.0f} ms of the processor at best")
        growth = server.resident() - held
        for _ in range(8):
            if growth <= MOST_GROWTH:
                break
            # What each of its threads keeps ready it gets once, and gives back when it likes; what it loses it loses each time.
            held = server.resident()
            for name, sent, _ in bombs:
                throw(name, sent)
            growth = server.resident() - held
        if growth > MOST_GROWTH:
            proof.violation(f"the server holds {growth >> 10} KiB more than before")
        if not scene.is_as_it_was():
            proof.violation("what was to be paid can't be paid any more")
        created = [after for after in zip(before, totals()) if after[0] != after[1]]
        if created:
            proof.violation(f"something was stored: {created}")
        print(f"{len(bombs)} of {known} bombs, {len(slow)} looked at again, {growth >> 10} KiB")
        # The judge itself: what it must not let pass.
        proof.control("a 500 is answered", judge((500, {}, b""), None) is not None)
        proof.control("a bomb is accepted", judge((201, {}, b""), {413, None}) is not None)
        proof.control("body_uncapped", is_length_seen(new_server(planted="body_uncapped")))


def is_length_seen(server):
    """Whether a server that takes a body of any length is told from one that has a limit."""
    bombs = all_of_them(server.keys["test"]["secret"])
    long = ((sent, right) for _, sent, right in bombs if right == {413, None} and len(sent) > MEGABYTE)
    with Wire(server.url) as wire:
        return any(judge(wire.ask(sent)[0], right) for sent, right in islice(long, BOMBS_OF_A_CONTROL))
