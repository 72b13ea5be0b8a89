"""Row B2: the server is killed at the Nth write or sync of a scripted scenario. Nothing that was acknowledged is missing,
nothing happened twice, and the books are right."""

import signal
from random import Random

import pytest

from injection import Injected, why_not
from proof import Proof
from scenario import Client, Shop
from server import Server
from store import SqliteStore

STEPS = 40
# About as many of them the writing thread makes in the scenario.
CALLS = {"pwrite64": 2_600, "fsync,fdatasync": 75}
# Has no divisor in common with their number, so that a few seeds in a row lie far apart.
STRIDE = 1_009


@pytest.fixture(scope="module")
def prepared(database, tmp_path_factory):
    """A store with keys; each case takes a copy."""
    if database != "sqlite":
        pytest.skip("PostgreSQL's files are its own")
    store = SqliteStore(tmp_path_factory.mktemp("prepared") / "store")
    return store, store.init()["keys"]


def point(seed):
    """Which call of which kind: as many seeds as there are calls, one after the other, come to each once, in no order."""
    place = seed * STRIDE % sum(CALLS.values())
    for call, most in CALLS.items():
        if place < most:
            return call, place + 1
        place -= most
    raise AssertionError("there are as many places as calls")


def strike(prepared, folder, what, shop):
    """Runs the scenario until the server dies or all steps are done. Answers the store, its keys and whether it died."""
    store, keys = prepared
    store = store.copy(folder / "store")
    server = Injected(store, folder / "server.log", what)
    server.keys = keys
    try:
        server.start()
    except AssertionError:
        return store, keys, server.ended(5) == -signal.SIGKILL
    client = Client(server)
    for _ in range(STEPS):
        if not shop.step(client) and server.ended(1) is not None:
            break
    was_killed = server.ended(0) == -signal.SIGKILL
    server.kill()
    return store, keys, was_killed


def recovered(store, keys, folder, shop):
    """What is wrong after the restart."""
    server = Server(store, folder / "restarted.log")
    server.keys = keys
    server.start()
    try:
        found = shop.reconcile(server)
    finally:
        server.stop()
    verified = store.verify()
    if verified.returncode != 0:
        found.append(f"verify: {verified.stdout}{verified.stderr}")
    return found


def test_a_kill_at_any_write_loses_nothing(prepared, tmp_path):
    proof = Proof("B2", "sqlite", gate_count=4)
    if reason := why_not():
        return proof.not_run(reason)
    answered = killed = 0
    for seed, random in proof.cases():
        folder = tmp_path / str(seed)
        folder.mkdir()
        call, when = point(seed)
        what = f"{call}:signal=SIGKILL:when={when}"
        shop = Shop(random)
        store, keys, was_killed = strike(prepared, folder, what, shop)
        killed += was_killed
        for fault in recovered(store, keys, folder, shop):
            proof.violation(f"seed {seed}: {what}: {fault}")
        answered += len(shop.answered)
        store.drop()
    assert answered, "a scenario that gets no answer proves nothing"
    assert killed * 2 >= proof.reached, f"only {killed} of {proof.reached} servers were killed"
    proof.control("forgotten_acknowledgement", forgets(prepared, tmp_path))
    proof.finish()


def forgets(prepared, folder):
    """Whether the reconciliation sees that acknowledged work is gone: the store is put back to before the scenario."""
    folder = folder / "control"
    folder.mkdir()
    shop = Shop(Random(1))
    lost, keys, _ = strike(prepared, folder, "fsync,fdatasync:signal=SIGKILL:when=40", shop)
    lost.drop()
    before = prepared[0].copy(folder / "before")
    return bool(recovered(before, keys, folder, shop))
