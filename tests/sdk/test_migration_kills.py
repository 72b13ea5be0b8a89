"""Row B9: a store of any earlier schema is brought up to date, and killed or cut off from its database meanwhile. After the next
start it holds what it held, tells what it told, is made as a new one is, and its books are right."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from injection import Injected, Traced, why_not
from older_stores import LATEST, MIGRATIONS, OlderStores, execute, query, statements
from proof import Proof
from server import Server
from store import psql

# How the migrating thread speaks to its database.
CALLS = {"sqlite": "pwrite64,fsync,fdatasync,ftruncate", "postgres": "sendto,writev"}
CUT = """
do $$
declare
    cut bigint := 0;
    latest timestamptz := clock_timestamp() + interval '30 s';
begin
    while cut = 0 and clock_timestamp() < latest loop
        perform pg_sleep(0.001);
        perform pg_stat_clear_snapshot();
        if (select max(number) from schema_migrations) >= {after} then
            perform pg_sleep({delay});
            select count(pg_terminate_backend(pid)) into cut
            from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid();
        end if;
    end loop;
end $$;
select max(number) from schema_migrations"""
CALL = re.compile(r"(\d+) +(\w+)\(")
# The migration after it makes most tables anew.
BEFORE_REBUILDING = 12


@pytest.fixture(scope="module")
def stores(new_store, tmp_path_factory, receiver, mail_server):
    stores = OlderStores(new_store, tmp_path_factory.mktemp("older"), receiver.mailbox(), mail_server)
    yield stores
    stores.drop()


def test_whatever_ends_a_migration_no_row_is_lost(stores, database, tmp_path):
    proof = Proof("B9", database, gate_count=6)
    if reason := why_not():
        return proof.not_run(reason)
    strikes = [kill] if database == "sqlite" else [kill, cut_off]
    in_time = 0
    for seed, random in proof.cases():
        older = stores.at(random.randrange(2, LATEST))
        if not older.points:
            older.points = points(older, tmp_path / f"course{older.schema}")
        store = older.store.copy(tmp_path / f"store{seed}")
        strike = strikes[seed % len(strikes)]
        what, is_in_time = strike(older, store, tmp_path / f"struck{seed}.log", random)
        in_time += is_in_time
        if database == "postgres":
            # As if so much time had passed: whoever died holds the lease for half a minute.
            execute(store, "update leases set expires_at = 0 where name = 'migrate'")
        for fault in older.faults(store, tmp_path / f"restarted{seed}.log"):
            proof.violation(f"seed {seed}: from schema {older.schema}, {what}: {fault}")
        store.drop()
    assert in_time * 3 >= proof.reached, f"only {in_time} of {proof.reached} migrations were interrupted"
    controls(proof, stores.at(BEFORE_REBUILDING), tmp_path)
    proof.finish()


def controls(proof, older, folder):
    """A migration that began and was not undone, and a row that went with it."""
    half = statements(MIGRATIONS[older.schema].read_text(), older.store.name)
    dropped = next(at for at, statement in enumerate(half) if statement.startswith("drop table"))
    proof.control("step_outside_transaction", is_seen(older, folder / "half", ";".join(half[: dropped + 1])))
    proof.control("lost_row", is_seen(older, folder / "lost", "delete from products"))


def is_seen(older, folder, sql):
    """Whether what befell the store is found."""
    store = older.store.copy(folder)
    execute(store, sql)
    try:
        return bool(older.faults(store, folder.with_suffix(".log")))
    finally:
        store.drop()


def applied(store):
    [[number]] = query(store, "select max(number) from schema_migrations")
    return int(number)


def points(older, folder):
    """Every call of the thread that migrates, where nobody disturbs it."""
    folder.mkdir()
    store, calls = older.store.copy(folder / "store"), folder / "calls"
    server = Traced(store, folder / "server.log", [f"--output={calls}", f"--trace={CALLS[store.name]}"])
    server.start()
    server.kill()
    store.drop()
    noted = Counter(CALL.match(line).groups() for line in calls.read_text().splitlines() if CALL.match(line))
    (migrating, _), _ = noted.most_common(1)[0]
    of_it = {call: count for (thread, call), count in noted.items() if thread == migrating}
    return [(call, number) for call, count in of_it.items() for number in range(1, count + 1)]


def kill(older, store, log, random):
    """At the Nth call. Answers what it did and whether that was in time."""
    call, number = random.choice(older.points)
    disturbed(Injected(store, log, f"{call}:signal=SIGKILL:when={number}"))
    return f"killed at {call} {number}", applied(store) < LATEST


def cut_off(older, store, log, random):
    """At any moment after any of the steps. The same answer."""
    after, delay = random.randrange(older.schema, LATEST), random.random() / 50
    with ThreadPoolExecutor(1) as beside:
        starting = beside.submit(disturbed, Server(store, log))
        reached = int(psql(store.url, CUT.format(after=after, delay=delay)))
        starting.result()
    return f"cut off {delay:.4f} s after {after}", reached < LATEST


def disturbed(server):
    """Starts a server that may not get far."""
    try:
        server.start()
    except AssertionError:
        pass
    server.kill()


def test_each_step_is_announced(stores, tmp_path):
    """Before it is done: somebody may be waiting for it."""
    older = stores.at(LATEST - 3)
    store, log = older.store.copy(tmp_path / "store"), tmp_path / "server.log"
    server = Server(store, log)
    server.start()
    server.stop()
    store.drop()
    said = log.read_text()
    steps = []
    for number, path in list(enumerate(MIGRATIONS, 1))[older.schema :]:
        steps.append(f" migrating {number}/{LATEST} {path.stem[5:]}; do not stop the server")
        steps.append(f" migrated number={number} ")
    assert [step for step in steps if step not in said] == []
    assert steps == sorted(steps, key=said.index)
    assert said.count(" migrating ") == 3
