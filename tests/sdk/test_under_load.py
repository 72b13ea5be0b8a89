"""Rows B1, B8 and B10: a kill, a hot backup and a graceful stop, each while shops are busy."""

import itertools
import shutil
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest

from books import Told, controls
from load import Load
from proof import Proof
from scenario import Client
from server import Server
from stocked import stocked
from store import dalasi
from waits import p99

DRAIN_S = 25
READY_P99_S = 2
# Slow machines are allowed for; a recovery that takes long takes much longer.
LONGEST_READY_S = 10
# So much longer may one of a hundred requests take beside a backup.
MOST_BESIDE = 2
# So many requests tell which one of a hundred is the slowest.
JUDGED = 500
# Cases that are under way at once. Most of them wait: on PostgreSQL a kill leaves what it interrupts to a lease of half a minute.
SIDE_BY_SIDE = 24
KILLS_OF_A_CONTROL = 10
STOPS_OF_A_CONTROL = 10


class Machine:
    """One case at a time has it, but for those that wait: what is killed is as busy as if it were alone."""

    def __init__(self):
        self._lock = threading.Lock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()

    @contextmanager
    def left(self):
        """Meanwhile it is somebody else's."""
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()


@pytest.fixture(scope="module")
def stock(new_store, tmp_path_factory):
    """What every case takes a copy of."""
    return stocked(new_store(), tmp_path_factory.mktemp("stock"))


@pytest.fixture
def busy(stock, receiver, tmp_path):
    """Starts servers on stores of their own, with shops that keep them busy."""
    servers, stores = [], []

    def make(random, planted=None):
        number = next(numbers)
        store = stock.store.copy(tmp_path / f"store{number}")
        stores.append(store)
        server = Server(store, tmp_path / f"server{number}.log", planted=planted)
        server.keys = stock.keys
        servers.append(server)
        server.start()
        return server, Load(server, random, stock=stock, mailbox=receiver.mailbox(Told)).start()

    numbers = itertools.count()
    yield make
    for server in servers:
        server.kill()
    for store in stores:
        store.drop()


def verified(store):
    result = store.verify()
    return [] if result.returncode == 0 else [f"verify: {result.stdout}{result.stderr}"]


def test_a_kill_at_any_moment(busy, receiver, database, new_store, tmp_path):
    """B1: every acknowledged answer, key and event is there once, and the server is ready again at once."""
    proof = Proof("B1", database, gate_count=5)
    machine = Machine()
    waits = []

    def killed(seed, random):
        with machine:
            server, load = busy(random)
            try:
                return lost_by_a_kill(server, load, random, machine, waits)
            finally:
                server.kill()
                server.store.drop()
                receiver.forget(load.mailbox)

    with ThreadPoolExecutor(2) as beside:
        planted = beside.submit(early_answers_are_seen, busy, proof.seed)
        control = beside.submit(older_books_are_seen, busy, new_store, tmp_path, machine)
        proof.side_by_side(SIDE_BY_SIDE, killed)
        proof.control("older_books", control.result())
        proof.control("answer_before_commit", planted.result())
    for name, is_seen in altered_books_are_seen(busy):
        proof.control(name, is_seen)
    for fault in slow(waits, proof.tier):
        proof.violation(fault)
    proof.note("ready_p99_s", round(p99(waits), 3))
    proof.control("a_slow_recovery", any(slow([*waits, *[READY_P99_S] * 100], "nightly")))
    proof.finish()


def lost_by_a_kill(server, load, random, machine, waits):
    """What is wrong after the server was killed in the middle of its work and came back."""
    load.until(random.randrange(5, 120))
    time.sleep(random.random() / 20)
    server.kill()
    load.join()
    before = time.monotonic()
    server.start()
    waits.append(time.monotonic() - before)
    faults = load.reconcile(server, machine.left)
    server.stop()
    return faults + verified(server.store)


def slow(waits, tier):
    """What is wrong with how long it took until a killed server was ready again."""
    if max(waits) > LONGEST_READY_S:
        yield f"ready again after {max(waits):.1f} s"
    if tier != "gate" and len(waits) >= 100 and p99(waits) >= READY_P99_S:
        yield f"ready again after {p99(waits):.1f} s in one of a hundred cases"


def early_answers_are_seen(busy, seed):
    """Whether one of a few kills shows that a server answers before it commits. It need not be alone, and a few answers are enough:
    mostly it waits for payments that such a server has lost."""
    for random in map(Random, range(seed, seed + KILLS_OF_A_CONTROL)):
        server, load = busy(random, planted="answer_before_commit")
        load.until(5)
        time.sleep(random.random() / 20)
        server.kill()
        load.join()
        server.start()
        if load.reconcile(server):
            return True
        server.kill()
    return False


def older_books_are_seen(busy, new_store, folder, machine):
    """Whether a server that comes back after its kill with less than it had acknowledged is told from one that lost nothing."""
    with machine:
        server, load = busy(Random(1))
        load.until(20)
        back_up(server.store, folder / "older.backup")
        load.until(load.answers() + 20)
        server.kill()
        load.join()
        again = Server(restored(folder / "older.backup", server.store, new_store()), folder / "older.log")
        again.keys = server.keys
        again.start()
    try:
        return bool(load.reconcile(again))
    finally:
        again.kill()


def altered_books_are_seen(busy):
    """By what was altered, whether the reconciliation sees it."""
    server, load = busy(Random(2))
    load.until(120)
    load.stop()
    assert not load.reconcile(server), "a server that nobody kills loses nothing"
    yield from controls(load.shops, server, load.mailbox)
    server.stop()


def test_a_graceful_stop_resets_nothing(busy, database):
    """B10: what was accepted is answered, without a 5xx, within 25 s and with exit code 0; and nothing is lost where the stop
    itself is cut short by a kill."""
    proof = Proof("B10", database, gate_count=3)
    machine = Machine()
    cut = []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as beside:
        for seed, random in proof.cases():
            with machine:
                for fault in reset_by_a_stop(*busy(random), random):
                    proof.violation(f"seed {seed}: {fault}")
            if proof.reached % 5 < 2:
                cut.append((seed, beside.submit(lost_by_a_cut_stop, busy, random, machine)))
    for seed, lost in cut:
        for fault in lost.result():
            proof.violation(f"seed {seed}, killed while it stopped: {fault}")
    proof.note("killed_while_stopping", len(cut))
    proof.control("a_kill_instead", not_graceful(busy))
    proof.control("listener_dropped_first", a_cut_drain_is_seen(busy, proof.seed))
    proof.finish()


def reset_by_a_stop(server, load, random):
    """What is wrong with a stop in the middle of work, and after it."""
    load.until(random.randrange(5, 120))
    before = time.monotonic()
    server.stop()
    took = time.monotonic() - before
    faults = [f"stopped after {took:.1f} s"] if took > DRAIN_S else []
    load.join()
    for shop in load.shops:
        faults += [f"{key} got {failures}" for key, failures in shop.failed.items()]
    server.start()
    client = Client(server)
    asked = {key: shop.asked[key] for shop in load.shops for key in shop.asked if key in load.unanswered}
    for key, (path, body) in asked.items():
        if replayed(client.call("POST", path, body, key)):
            faults.append(f"{key} was executed and not answered")
    faults += load.reconcile(server)
    server.stop()
    return faults


def a_cut_drain_is_seen(busy, seed):
    """Whether one of a few stops shows that connections ended before what they had accepted was answered."""
    stops = map(Random, range(seed, seed + STOPS_OF_A_CONTROL))
    return any(reset_by_a_stop(*busy(random, planted="listener_dropped_first"), random) for random in stops)


def lost_by_a_cut_stop(busy, random, machine):
    """What is wrong after a server was killed between SIGTERM and its end, and came back."""
    with machine:
        for longest in (0.2, 0.05, 0.01, 0):
            server, load = busy(random)
            load.until(random.randrange(5, 120))
            server.process.send_signal(signal.SIGTERM)
            time.sleep(longest * random.random())
            server.kill()
            load.join()
            if server.process.returncode == -signal.SIGKILL:
                server.start()
                faults = load.reconcile(server, machine.left)
                server.stop()
                return faults + verified(server.store)
    return ["it was never killed in time"]


def replayed(answer):
    return answer is not None and {name.lower(): value for name, value in answer[1].items()}.get(
        "idempotent-replayed"
    ) == "true"


def not_graceful(busy):
    """Whether a server that is killed is told from one that stops: its exit code is not 0."""
    server, load = busy(Random(1))
    load.until(10)
    server.process.kill()
    try:
        server.process.wait(timeout=20)
        load.join()
        return server.process.returncode != 0 and bool(load.unanswered)
    finally:
        server.kill()


def test_a_hot_backup_holds_what_was_acknowledged_before(busy, database, new_store, tmp_path):
    """B8: taken while shops are busy, restored into an empty place, verified, and everything older than its start is there."""
    proof = Proof("B8", database, gate_count=1)
    alone, beside = [], []
    for seed, random in proof.cases():
        server, load = busy(random)
        load.until(random.randrange(60, 200))
        before = acknowledged(load)
        file = tmp_path / f"{seed}.backup"
        begun = time.monotonic()
        back_up(server.store, file)
        ended = time.monotonic()
        if proof.tier != "gate":
            time.sleep(ended - begun)  # as long without it
        load.stop()
        beside += durations(load, begun, ended)
        alone += durations(load, ended, time.monotonic())
        server.stop()
        store = restored(file, server.store, new_store())
        for fault in verified(store) + missing(before, store, server.keys, tmp_path / f"{seed}.log"):
            proof.violation(f"seed {seed}: {fault}")
    if proof.tier != "gate" and min(len(alone), len(beside)) >= JUDGED:
        proof.note("p99_beside_ms", [round(p99(one) * 1000, 1) for one in (alone, beside)])
        if holds_up(alone, beside):
            proof.violation(f"beside a backup a write takes {p99(beside):.3f} s, without one {p99(alone):.3f} s")
        proof.control("a_backup_that_holds_up", holds_up(alone, [2.1 * took for took in alone]))
    for name, is_seen in late_copies(busy, database, new_store, tmp_path).items():
        proof.control(name, is_seen)
    proof.finish()


def durations(load, begun, ended):
    """How long the answers took to requests of that time."""
    times = [times for shop in load.shops for times in shop.times]
    return [answered - sent for sent, answered, _ in times if begun <= sent and answered <= ended]


def holds_up(alone, beside):
    return p99(beside) > MOST_BESIDE * p99(alone)


def late_copies(busy, database, new_store, folder):
    """Copies that lack something acknowledged, by what is wrong with them: whether that is seen."""
    server, load = busy(Random(1))
    load.until(60)
    seen = {}
    if database == "sqlite":
        seen["plain_copy_of_the_file"] = plain_copy_loses(server.store, load, folder)
    back_up(server.store, folder / "early.backup")
    load.until(load.answers() + 20)
    before = acknowledged(load)
    load.stop()
    server.stop()
    store = restored(folder / "early.backup", server.store, new_store())
    seen["a_backup_that_is_too_old"] = bool(missing(before, store, server.keys, folder / "early.log"))
    return seen


def acknowledged(load):
    return [(shop, dict(shop.answered)) for shop in load.shops]


def missing(acknowledged, store, keys, log):
    """What a server on this store doesn't answer as it was answered before."""
    server = Server(store, log)
    server.keys = keys
    server.start()
    client = Client(server)
    faults = []
    for shop, answered in acknowledged:
        for key, (status, content) in answered.items():
            answer = client.call("POST", *shop.asked[key], key)
            if answer is None or (answer[0], answer[2]) != (status, content):
                faults.append(f"{key}: {(status, content)} became {answer and answer[::2]}")
    server.stop()
    return faults


def back_up(store, file):
    dalasi("backup", file, *store.location)


def restored(file, store, empty):
    """The empty store, with what the backup of the other holds."""
    store.give_key_to(empty)
    dalasi("restore", file, *empty.location)
    return empty


def plain_copy_loses(store, load, folder):
    """Whether an operator who copies the database file of a running server is without something acknowledged."""
    for number in range(10):
        acknowledged = load.answers()
        copy = folder / f"copy{number}.sqlite"
        shutil.copy(store.database_file(), copy)
        if keys_in(copy) < acknowledged:
            return True
        time.sleep(0.05)
    return False


def keys_in(file):
    """How many stored answers there are; none in what can't be read."""
    try:
        return sqlite3.connect(file).execute("select count(*) from idempotency_keys").fetchone()[0]
    except sqlite3.DatabaseError:
        return 0
