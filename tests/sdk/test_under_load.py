"""Rows B1, B8 and B10: a kill, a hot backup and a graceful stop, each while shops are busy."""

import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest

from load import Load
from proof import Proof
from scenario import Client
from server import Server
from store import PostgresStore, SqliteStore, dalasi

DRAIN_S = 25
# Cases that are under way at once. Most of them wait: on PostgreSQL a kill leaves what it interrupts to a lease of half a minute.
SIDE_BY_SIDE = 24


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


@pytest.fixture
def busy(new_store, tmp_path):
    """Starts servers on stores of their own, with shops that keep them busy."""
    servers = []

    def make(random, store=None, keys=None):
        if store is None:
            store = new_store()
            keys = store.init()["keys"]
        server = Server(store, tmp_path / f"server{len(servers)}.log")
        server.keys = keys
        servers.append(server)
        server.start()
        return server, Load(server, random).start()

    yield make
    for server in servers:
        server.kill()


def verified(store):
    result = store.verify()
    return [] if result.returncode == 0 else [f"verify: {result.stdout}{result.stderr}"]


def test_a_kill_at_any_moment(busy, database, new_store, tmp_path):
    """B1: every acknowledged answer, key and event is there once, and the server is ready again at once."""
    proof = Proof("B1", database, gate_count=5)
    prepared = new_store()
    keys = prepared.init()["keys"]
    machine = Machine()

    def killed(seed, random):
        store = prepared.copy(tmp_path / f"store{seed}")
        try:
            with machine:
                return lost_by_a_kill(*busy(random, store, keys), random, machine)
        finally:
            store.drop()

    with ThreadPoolExecutor(1) as beside:
        control = beside.submit(older_books_are_seen, busy, new_store, tmp_path, machine)
        proof.side_by_side(SIDE_BY_SIDE, killed)
        proof.control("older_books", control.result())
    proof.finish()


def lost_by_a_kill(server, load, random, machine):
    """What is wrong after the server was killed in the middle of its work and came back."""
    load.until(random.randrange(5, 120))
    time.sleep(random.random() / 20)
    server.kill()
    load.join()
    before = time.monotonic()
    server.start()
    took = time.monotonic() - before
    # Slow machines are allowed for; a recovery that takes long takes much longer.
    faults = [f"ready again after {took:.1f} s"] if took > 10 else []
    faults += load.reconcile(server, machine.left)
    server.stop()
    return faults + verified(server.store)


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


def test_a_graceful_stop_resets_nothing(busy, database):
    """B10: what was accepted is answered, without a 5xx, within 25 s and with exit code 0."""
    proof = Proof("B10", database, gate_count=3)
    for seed, random in proof.cases():
        server, load = busy(random)
        load.until(random.randrange(5, 120))
        before = time.monotonic()
        server.stop()
        if (took := time.monotonic() - before) > DRAIN_S:
            proof.violation(f"seed {seed}: stopped after {took:.1f} s")
        load.join()
        for shop in load.shops:
            for key, failures in shop.failed.items():
                proof.violation(f"seed {seed}: {key} got {failures}")
        server.start()
        client = Client(server)
        asked = {key: shop.asked[key] for shop in load.shops for key in shop.asked if key in load.unanswered}
        for key, (path, body) in asked.items():
            if replayed(client.call("POST", path, body, key)):
                proof.violation(f"seed {seed}: {key} was executed and not answered")
        for fault in load.reconcile(server):
            proof.violation(f"seed {seed}: {fault}")
        server.stop()
    proof.control("a_kill_instead", not_graceful(busy))
    proof.finish()


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
    for seed, random in proof.cases():
        server, load = busy(random)
        load.until(random.randrange(60, 200))
        before = acknowledged(load)
        file = tmp_path / f"{seed}.backup"
        back_up(server.store, file)
        load.stop()
        server.stop()
        store = restored(file, server.store, new_store())
        for fault in verified(store) + missing(before, store, server.keys, tmp_path / f"{seed}.log"):
            proof.violation(f"seed {seed}: {fault}")
    for name, is_seen in late_copies(busy, database, new_store, tmp_path).items():
        proof.control(name, is_seen)
    proof.finish()


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
    put_key(store, empty)
    dalasi("restore", file, *empty.location)
    return empty


def put_key(store, restored):
    """The master key is no part of a backup."""
    if isinstance(store, SqliteStore):
        restored.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(store.folder / "master.key", restored.folder / "master.key")
    else:
        assert isinstance(store, PostgresStore)
        shutil.copy(store.location[-1], restored.location[-1])


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
