"""Row B7: one bit flips in the database, in its log or in a backup. It is found, or it changes no amount."""

import json
import shutil
import sqlite3
from random import Random
from types import SimpleNamespace

import pytest

from checks import eventually
from proof import Proof
from scenario import Client, Shop, everything
from server import Server
from store import SqliteStore, dalasi

STEPS = 40


@pytest.fixture(scope="module")
def kept(database, tmp_path_factory):
    """A store that was closed well, one whose log is still there, a backup, and what they hold."""
    if database != "sqlite":
        pytest.skip("PostgreSQL's files are its own")
    folder = tmp_path_factory.mktemp("kept")
    store = SqliteStore(folder / "store")
    server = Server(store, folder / "server.log")
    server.keys = store.init()["keys"]
    server.start()
    shop, client = Shop(Random(7)), Client(server)
    for _ in range(STEPS):
        shop.step(client)
    # The books are what a flipped bit would do harm to, and payments need their time.
    eventually(lambda: any(one["status"] == "completed" for one in everything(client, "/v1/pay/transactions")))
    server.kill()
    killed = store.copy(folder / "killed")
    server.start()
    server.stop()
    file = folder / "kept.backup"
    dalasi("backup", file, *store.location)
    rows = rows_of(file)
    assert rows["ledger_postings"][1], "there is nothing that could be altered"
    return SimpleNamespace(closed=store, killed=killed, backup=file, rows=rows)


def rows_of(file):
    """The tables of a backup: their columns and rows."""
    tables, rows = {}, None
    for line in file.read_text().splitlines():
        value = json.loads(line)
        if isinstance(value, list):
            rows.append(value)
        elif "table" in value:
            rows = []
            tables[value["table"]] = (value["columns"], rows)
    return tables


def amounts(tables):
    """Every amount that there is, with the row that it stands in."""
    found = set()
    for table, (columns, rows) in tables.items():
        minor = [place for place, column in enumerate(columns) if column.endswith("_minor")]
        names = [place for place, column in enumerate(columns) if column in ("id", "entry_id", "line")]
        for row in rows:
            found |= {(table, columns[place], row[place], *(row[name] for name in names)) for place in minor}
    return found


def flip(file, random):
    content = bytearray(file.read_bytes())
    place = random.randrange(len(content))
    content[place] ^= 1 << random.randrange(8)
    file.write_bytes(content)
    return place


def judged(store, folder, kept, *, is_log, verify=True):
    """What is wrong with a store that says that nothing is."""
    if verify and store.verify().returncode != 0:
        return []
    file = folder / "judged.backup"
    if dalasi("backup", file, *store.location, check=False).returncode != 0:
        return []
    is_amount, should = amounts(rows_of(file)), amounts(kept.rows)
    if is_log:
        # SQLite takes a torn end of its log for the end: an earlier state. Postings are never changed, so none may differ.
        postings = {amount for amount in is_amount if amount[0] == "ledger_postings"}
        return sorted(postings - should)
    return sorted(is_amount ^ should, key=str)


def strike(kept, folder, random):
    """Flips one bit; answers where, and the amounts that are wrong in silence."""
    kind = random.choice(["database", "log", "backup"])
    if kind == "backup":
        file = folder / "flipped.backup"
        shutil.copy(kept.backup, file)
        place = flip(file, random)
        restored = SqliteStore(folder / "restored")
        restored.folder.mkdir()
        shutil.copy(kept.closed.folder / "master.key", restored.folder)
        is_taken = dalasi("restore", file, *restored.location, check=False).returncode == 0
        return f"backup, byte {place}", ["it was restored"] if is_taken else []
    if kind == "database":
        store = kept.closed.copy(folder / "store")
        place = flip(store.database_file(), random)
    else:
        store = kept.killed.copy(folder / "store")
        place = flip(log_of(store), random)
    return f"{kind}, byte {place}", judged(store, folder, kept, is_log=kind == "log")


def log_of(store):
    return next(store.folder.glob("*-wal"))


def test_a_flipped_bit_is_found_or_harmless(kept, tmp_path):
    proof = Proof("B7", "sqlite", gate_count=20)
    for seed, random in proof.cases():
        folder = tmp_path / str(seed)
        folder.mkdir()
        where, wrong = strike(kept, folder, random)
        if wrong:
            proof.violation(f"seed {seed}: {where}: {wrong[:5]}")
        shutil.rmtree(folder)
    proof.control("nobody_verifies", is_seen_unverified(kept, tmp_path))
    proof.control("a_posting_is_altered", is_found(kept, tmp_path))
    proof.finish()


def altered(kept, folder):
    store = kept.closed.copy(folder)
    with sqlite3.connect(store.database_file()) as database:
        database.execute("update ledger_postings set amount_minor = amount_minor * 2")
    database.close()
    return store


def is_seen_unverified(kept, folder):
    """Whether the comparison sees wrong amounts where `dalasi verify` is left out."""
    return bool(judged(altered(kept, folder / "unverified"), folder, kept, is_log=False, verify=False))


def is_found(kept, folder):
    """Whether `dalasi verify` finds postings that were altered and still sum to zero."""
    return altered(kept, folder / "altered").verify().returncode != 0
