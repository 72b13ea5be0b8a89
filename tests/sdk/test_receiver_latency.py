"""Row C1.latency: a receiver that answers at once is told as soon beside one from hell as without it, and, where that one is tried
with each event because it fails at once, as soon as beside another that is well: to tell two takes longer than to tell one."""

import statistics
import time
from random import Random

import hell
from checks import data, eventually
from proof import Proof
from server import Api
from waits import judge, times_as_long

# The ways to be wrong that cost the receiver itself nothing: it runs on the same machine.
KINDS = ["statuses", "silence", "slow head", "slow body", "slow to accept", "refuses", "reset", "half a head", "no word"]
FAIL_AT_ONCE = {"statuses", "refuses", "reset", "half a head", "no word"}
MOST_SLOWER = 1.05
ROUNDS = 5
# So many rounds decide when the first say that it is slower: a short time leaps on a shared machine.
ROUNDS_IN_DOUBT = 25
EVENTS = 60
PAUSE_S = 0.02


class Merchant:
    """A server of its own, with a receiver that is well and perhaps another."""

    def __init__(self, server, random, other=None):
        self.api = Api(server.url, server.keys["test"]["secret"])
        self.receivers = [hell.Wrong(kind, None, random) for kind in ("well", other) if kind]
        self.rounds = []
        for receiver in self.receivers:
            body = {"url": receiver.url, "enabled_events": ["payment_link.*"]}
            data(self.api.post("/v1/webhook_endpoints", body), 201)

    def round(self):
        """The median of the seconds from the answer about a change until the receiver that is well was told of it."""
        answered = {}
        for _ in range(EVENTS):
            link = data(self.api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)
            answered[link["id"]] = time.time()
            time.sleep(PAUSE_S)
        well = self.receivers[0]
        eventually(lambda: len(well.succeeded) >= len(answered), 60)
        with well.lock:
            took = [arrival.at - answered[arrival.object_id] for arrival in well.arrivals]
            well.arrivals.clear()
            well.succeeded.clear()
        self.rounds.append(statistics.median(took))

    def close(self):
        for receiver in self.receivers:
            receiver.close()


def measured(alone, beside):
    """By rounds that take turns, how many times as long it takes beside hell."""
    while len(alone.rounds) < ROUNDS or (
        times_as_long(alone.rounds, beside.rounds) > MOST_SLOWER and len(alone.rounds) < ROUNDS_IN_DOUBT
    ):
        alone.round()
        beside.round()
    for name, merchant in (("alone", alone), ("beside", beside)):
        print("told after", name, *(f"{one * 1000:.1f}" for one in merchant.rounds), "ms")
    return times_as_long(alone.rounds, beside.rounds)


def test_a_bad_receiver_delays_nobody_else(new_server, database):
    proof = Proof("C1.latency", database, gate_count=1)
    with proof:
        undecided = []
        for seed, random in proof.cases():
            kind = random.choice(KINDS)
            servers = new_server(), new_server()
            alone = Merchant(servers[0], Random(seed), "well" if kind in FAIL_AT_ONCE else None)
            beside = Merchant(servers[1], Random(seed), kind)
            # The first of anything takes longer.
            for merchant in (alone, beside):
                merchant.round()
                merchant.rounds.clear()
            # The gate sees that all of them are told: it is no place to measure.
            if proof.tier != "gate":
                ratio = measured(alone, beside)
                proof.note("times_as_long", round(ratio, 3))
                verdict, why = judge(alone.rounds, beside.rounds, MOST_SLOWER)
                if verdict == "undecided":
                    undecided.append(why)
                elif verdict == "slower":
                    proof.violation(f"seed {seed}: beside one with {kind} it takes {why}")
            for merchant in (alone, beside):
                merchant.close()
            for server in servers:
                server.kill()
        if undecided and not proof.found:
            proof.not_run(undecided[0])
        even, later = ([one + turn / 10_000 for turn in range(ROUNDS_IN_DOUBT // 5)] * 5 for one in (0.010, 0.011))
        proof.control("a_tenth_later", judge(even, later, MOST_SLOWER)[0] == "slower")
