"""Row B2: the server is killed at the Nth write or sync of a scripted scenario. Nothing that was acknowledged is missing,
nothing happened twice, and the books are right."""

import shutil
import signal
from random import Random

import pytest

from books import Told, reconcile
from injection import DRAWS, Injected, why_not
from proof import Proof
from scenario import Client, Shop
from server import Server
from stocked import stocked
from store import SqliteStore

STEPS = 200
# About as many of them the writing thread makes in the scenario.
CALLS = {"pwrite64": 15_000, "fsync,fdatasync": 400}
# Has no divisor in common with their number, so that a few seeds in a row lie far apart.
STRIDE = 1_009


@pytest.fixture(scope="module")
def stock(database, tmp_path_factory):
    """What every case takes a copy of."""
    if database != "sqlite":
        pytest.skip("PostgreSQL's files are its own")
    folder = tmp_path_factory.mktemp("stock")
    return stocked(SqliteStore(folder / "store"), folder)


def point(seed):
    """Which call of which kind: as many seeds as there are calls, one after the other, come to each once, in no order."""
    place = seed * STRIDE % sum(CALLS.values())
    for call, most in CALLS.items():
        if place < most:
            return call, place + 1
        place -= most
    raise AssertionError("there are as many places as calls")


def strike(stock, folder, call, when, shop, planted=None):
    """Runs the scenario until the server dies or all steps are done. Answers the server, and whether it died of that call."""
    folder.mkdir(parents=True)
    what = f"{call}:signal=SIGKILL:when={when}"
    server = Injected(stock.store.copy(folder / "store"), folder / "server.log", what, planted=planted)
    server.keys = stock.keys
    try:
        server.start()
    except AssertionError:
        return server, server.ended(5) == -signal.SIGKILL
    client = Client(server)
    for _ in range(STEPS):
        if not shop.step(client) and server.ended(1) is not None:
            break
    was_killed = server.ended(0) == -signal.SIGKILL
    server.kill()
    return server, was_killed


def killed(stock, folder, seed, random, mailbox):
    """A point of which a server died, its store, and the shop that was there. One that is never come to is drawn anew."""
    call, when = point(seed)
    for draw in range(DRAWS):
        mailbox.arrived.clear()
        shop = Shop(Random(seed), stock.paid, mailbox)
        server, was_killed = strike(stock, folder / str(draw), call, when, shop)
        if was_killed:
            return f"{call} {when}", server.store, shop
        server.store.drop()
        when = random.randrange(1, server.calls() + 1)
    raise AssertionError(f"no server died of {call} in {DRAWS} tries, at last of call {when}")


def recovered(store, stock, folder, shop):
    """What is wrong after the restart."""
    server = Server(store, folder / "restarted.log")
    server.keys = stock.keys
    server.start()
    try:
        found = reconcile([shop], server, known=stock.known)
    finally:
        server.stop()
    verified = store.verify()
    if verified.returncode != 0:
        found.append(f"verify: {verified.stdout}{verified.stderr}")
    return found


def test_a_kill_at_any_write_loses_nothing(stock, receiver, tmp_path):
    proof = Proof("B2", "sqlite", gate_count=4)
    if reason := why_not():
        return proof.not_run(reason)
    answered = 0
    for seed, random in proof.cases():
        folder = tmp_path / str(seed)
        mailbox = receiver.mailbox(Told)
        what, store, shop = killed(stock, folder, seed, random, mailbox)
        for fault in recovered(store, stock, folder, shop):
            proof.violation(f"seed {seed}: {what}: {fault}")
        answered += len(shop.answered)
        receiver.forget(mailbox)
        shutil.rmtree(folder)
    assert answered, "a scenario that gets no answer proves nothing"
    proof.control("forgotten_acknowledgement", forgets(stock, tmp_path / "control"))
    proof.control("answer_before_commit", early_answers_are_seen(stock, tmp_path / "planted"))
    proof.finish()


def forgets(stock, folder):
    """Whether the reconciliation sees that acknowledged work is gone: the store is put back to before the scenario."""
    shop = Shop(Random(1), stock.paid)
    strike(stock, folder, "fsync,fdatasync", 40, shop)
    return bool(recovered(stock.store.copy(folder / "before"), stock, folder, shop))


def early_answers_are_seen(stock, folder):
    """Whether one of a few kills in the middle of a commit shows that it was answered before."""
    for when in (500, 800, 1_100):
        place, shop = folder / str(when), Shop(Random(when), stock.paid)
        server, _ = strike(stock, place, "pwrite64", when, shop, planted="answer_before_commit")
        if recovered(server.store, stock, place, shop):
            return True
    return False
