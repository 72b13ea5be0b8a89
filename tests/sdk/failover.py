"""Rows C8.failover and C8.frozen: the leader of a Patroni cluster with synchronous replication dies, or answers no more, while
merchants are busy; another takes over, and two servers go on by themselves: nothing acknowledged is lost, nothing is done twice."""

import statistics
import time
from collections import Counter
from random import Random

import pytest

import patroni_cluster
from checks import eventually
from load import LONGEST_ANSWER_S, Load
from patroni_cluster import Cluster
from proof import Proof
from scenario import Client, everything
from server import Api, Server
from shoppers import Retries, Shopper, reconcile
from store import PostgresStore

# From the death of the leader: its key in etcd runs out (`ttl`), one election, a standby that commits wait for; and a busy machine.
RESUMED_S = 20 + 5 + 20
# Beside that, a statement that a frozen leader never answers is waited for.
RESUMED_FROZEN_S = RESUMED_S + 20
# A new leader without a standby that it can wait for; then what the cluster said is of interest.
SLOW_S = 10
DELIVERED_S = 120


class Scene:
    """A cluster, two servers on it, a receiver of their webhooks, and who uses them."""

    def __init__(self, folder, watch, receiver, random, synchronous=True):
        self.cluster = Cluster(synchronous)
        self.folder, self.watch, self.receiver, self.random = folder, watch, receiver, random
        self.servers, self.loads, self.shoppers = [], [], []
        self.strikes = []  # (when, by the clock of the wall; what the cluster looked like)

    def __enter__(self):
        try:
            self.cluster.start()
            self.store = PostgresStore(self.folder / "store", self.cluster.url())
            keys = self.store.init()["keys"]
            for number in range(2):
                server = Server(self.store, self.folder / f"server{number}.log")
                server.keys = keys
                self.watch.servers.append(server)
                self.servers.append(server.start())
            self.mailbox = self.receiver.mailbox()
            api = Api(self.servers[0].url, keys["test"]["secret"])
            made = api.post("/v1/webhook_endpoints", {"url": self.mailbox.url, "enabled_events": ["*"]})
            assert made.status_code == 201, made.text
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.stop_load()
        for server in self.servers:
            server.kill()
            if server in self.watch.servers:
                self.watch.servers.remove(server)
        self.cluster.stop()

    def load(self):
        for server in self.servers:
            self.loads.append(Load(server, self.random, shops=2, pause=0.1, asks_again=True).start())
            self.shoppers += [Shopper(server, Random(self.random.getrandbits(64))).start() for _ in range(2)]

    def stop_load(self):
        for load in self.loads:
            load.stop()
        for shopper in self.shoppers:
            shopper.stop()

    def resumed(self, since):
        """When each server had acknowledged a write that was asked for after `since`, or None while one has not."""
        first = [
            min(
                (came for shop in load.shops for sent, came, status in shop.times if sent > since and status < 300),
                default=None,
            )
            for load in self.loads
        ]
        return None if None in first else max(first)

    def faults(self):
        """Afterwards: everything that is not as it was acknowledged."""
        faults = [f"{key} had no answer within {LONGEST_ANSWER_S} s" for load in self.loads for key in load.silent]
        # Where nobody can tell what became of a commit no answer is given, and who asks again is told.
        faults += [f"{key} had no answer, twice" for load in self.loads for key in load.unanswered]
        for server, load in zip(self.servers, self.loads):
            faults += load.reconcile(server)
        faults += reconcile(self.servers[0], self.shoppers)
        faults += self.undelivered()
        for server in self.servers:
            answer = Api(server.url).get("/health/invariants")
            if answer.status_code != 200:
                faults.append(f"/health/invariants: {answer.status_code} {answer.text}")
            if server.process.poll() is not None:
                faults.append(f"a server ended by itself: {server.process.returncode}")
            else:
                server.stop()
        verified = self.store.verify()
        if verified.returncode != 0:
            faults.append(f"dalasi verify: {verified.stdout}{verified.stderr}")
        return faults

    def undelivered(self):
        """Every event came, and none that is not there: nobody was told of what is lost."""
        client = Client(self.servers[1], timeout=40)

        def missing():
            events = {event["id"] for event in everything(client, "/v1/events")}
            return events - {delivery.id for delivery in list(self.mailbox.deliveries)}

        try:
            eventually(lambda: not missing(), timeout=DELIVERED_S, pause=1)
        except AssertionError:
            return [f"{len(missing())} events were not delivered within {DELIVERED_S} s"]
        # What comes while the pages are read can be newer than the first of them.
        delivered = list(self.mailbox.deliveries)
        events = list(everything(client, "/v1/events"))
        stored = {event["id"] for event in events}
        lost = [one for one in delivered if one.id not in stored]
        if lost:
            print(self.story(lost, events))
        # A list could leave out what is there.
        asked = [(one, client.call("GET", f"/v1/events/{one.id}")) for one in lost]
        return [f"{one.type} of {one.object_id} was delivered and is not listed: {answer and answer[0]}" for one, answer in asked]

    def story(self, lost, events):
        """When who was told what, and what is there instead: whether the cluster lost it or the service never had it."""
        objects = {one.object_id for one in lost}
        came = [(one.at, f"{one.id} {one.type} of {one.object_id} no. {one.sequence}") for one in self.mailbox.deliveries
                if one.object_id in objects]  # fmt: skip
        lines = [f"{at:.3f} {what}" for at, what in sorted([*self.strikes, *came])]
        lines += ["there is:", *(f"{one['created_at']} {one['id']} {one['type']} of {one['object_id']} no. {one['sequence']}"
                                 for one in events if one["object_id"] in objects)]  # fmt: skip
        lines += [f"lost: {', '.join(one.id for one in lost)}", f"changes of the leader: {self.cluster.history()}"]
        lines += [f"── server {number}\n{server.log.read_text(errors='replace')}" for number, server in enumerate(self.servers)]
        return "\n".join([*lines, self.cluster.log(most=1 << 20)])


@pytest.fixture
def scene(tmp_path, watch, receiver, monkeypatch):
    # For psql, which is told the servers' names and not which of them can be written to.
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "read-write")
    return lambda name, random, **how: Scene(new_folder(tmp_path / name), watch, receiver, random, **how)


def new_folder(path):
    path.mkdir()
    return path


def test_a_leader_that_dies_takes_nothing_with_it(scene, monkeypatch):
    """C8.failover: all its processes get a SIGKILL, sessions and all; later it comes back as a standby."""
    proof = Proof("C8.failover", "postgres", gate_count=1)
    rehearse(proof, scene, monkeypatch, dies, RESUMED_S)
    proof.control("asynchronous_replication", loses(scene, proof.seed, dies))
    proof.finish()


def test_a_leader_that_freezes_acknowledges_nothing_when_it_wakes(scene, monkeypatch):
    """C8.frozen: it stands still with all its connections, and goes on as if it still led when another does."""
    proof = Proof("C8.frozen", "postgres", gate_count=1)
    if old := not patroni_cluster.missing() and patroni_cluster.forgets_who_leads():
        proof.not_run(old)
    rehearse(proof, scene, monkeypatch, freezes, RESUMED_FROZEN_S)
    proof.control("asynchronous_replication", loses(scene, proof.seed, freezes))
    proof.finish()


def dies(cluster, leader):
    cluster.kill(leader)
    return leader.start


def freezes(cluster, leader):
    return cluster.freeze(leader)


def rehearse(proof, scene, monkeypatch, strike, limit_s):
    """One failover after the other under one load; then everything is compared."""
    if lacking := patroni_cluster.missing():
        proof.not_run(lacking)
    retries = Retries(monkeypatch)
    took = []
    with scene("synchronous", Random(proof.seed)) as busy:
        busy.load()
        for seed, random in proof.cases():
            time.sleep(2 + 3 * random.random())
            took.append(failover(busy, random, retries, strike))
            if took[-1] > limit_s:
                proof.violation(f"seed {seed}: writes went on only after {took[-1]:.1f} s\n{busy.cluster.log()}")
        time.sleep(2)
        busy.stop_load()
        faults = busy.faults()
        for fault in faults:
            proof.violation(f"seeds from {proof.seed}: {fault}")
        summary(busy, took, faults)


def failover(busy, random, retries, strike):
    """One; answers how long nobody could write."""
    cluster = busy.cluster
    old = cluster.leader()
    may_lead = cluster.may_lead(old)
    standbys = (old.status() or {}).get("replication")
    come_back = strike(cluster, old)
    struck = time.monotonic()
    busy.strikes.append((time.time(), f"{old.name} was struck; {may_lead} may lead; its standbys: {standbys}"))
    leader = eventually(lambda: (new := cluster.leader()) and new is not old and new, timeout=90)
    led = time.monotonic() - struck
    # Patroni's promise, on which ours stands.
    assert leader.name in may_lead, f"{leader.name} leads, and {may_lead} had what {old.name} acknowledged\n{cluster.log()}"
    try:
        resumed = eventually(lambda: busy.resumed(struck), timeout=90) - struck
    except AssertionError:
        resumed = float("inf")
    time.sleep(2 + 3 * random.random())
    come_back()
    cluster.wait_until_whole()
    calls = [(asked, saw, came - sent) for one in busy.shoppers for sent, came, asked, saw in one.calls if came >= struck]
    saw = Counter("ok" if saw == "ok" else f"{asked} {saw}" for asked, saw, _ in calls)
    times = [one for load in busy.loads for shop in load.shops for one in shop.times]
    print(
        f"failover: {old.name} → {leader.name}; a leader after {led:.1f} s, writes on both servers after {resumed:.1f} s\n"
        f"  the SDK's callers saw {shown(saw)}, waited {max(took for *_, took in calls):.1f} s at most; "
        f"it repeated {shown(retries.between(struck, time.monotonic()))}\n"
        f"  plain HTTP was answered {shown(Counter(status for _, came, status in times if came >= struck))}, "
        f"after {max(came - sent for sent, came, _ in times if came >= struck):.1f} s at most"
    )
    if resumed - led > SLOW_S:
        print(f"that is long after the leader:\n{cluster.log()}")
    return resumed


def shown(counted):
    return ", ".join(f"{count} × {what}" for what, count in sorted(counted.items(), key=str)) or "nothing"


def summary(busy, took, faults):
    calls = Counter(saw for one in busy.shoppers for *_, saw in one.calls)
    print(
        f"{len(took)} failovers: writes went on after {statistics.median(took):.1f} s (median), {max(took):.1f} s (worst)\n"
        f"{sum(len(one.created) for one in busy.shoppers)} checkouts, {sum(len(one.paid) for one in busy.shoppers)} payments and "
        f"{sum(len(one.refunds) for one in busy.shoppers)} refunds by the SDK, {sum(load.answers() for load in busy.loads)} "
        f"answers to plain HTTP, {len(busy.mailbox.deliveries)} webhooks; the SDK's callers saw {shown(calls)}\n"
        f"lost, done twice or left undone: {len(faults)}"
    )


def loses(scene, seed, strike):
    """The control: without synchronous replication, and with standbys that lag, acknowledged writes go with the leader."""
    with scene("asynchronous", Random(seed), synchronous=False) as busy:
        busy.load()
        time.sleep(2)
        cluster = busy.cluster
        old = cluster.leader()
        cluster.hold_back(old)
        before = sum(load.answers() for load in busy.loads)
        time.sleep(2)
        acknowledged = sum(load.answers() for load in busy.loads) - before
        died = time.monotonic()
        strike(cluster, old)
        eventually(lambda: busy.resumed(died), timeout=120)
        busy.stop_load()
        faults = [fault for server, load in zip(busy.servers, busy.loads) for fault in load.reconcile(server)]
        print(
            f"control: {acknowledged} answers while the standbys were held back; found: {len(faults)}, "
            f"such as {[fault[:60] for fault in faults[:2]]}"
        )
        return bool(acknowledged and faults)
