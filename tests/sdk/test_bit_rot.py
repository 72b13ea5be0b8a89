"""Row B7: one bit flips in the database, in its log or in a backup. It is found, or it changes no amount."""

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from random import Random
from types import SimpleNamespace

import pytest

from checks import eventually
from proof import Proof
from scenario import Client, Shop, everything
from server import Server
from store import BINARY, PLANTED_BINARY, SqliteStore, dalasi, environment

STEPS = 40
FINAL = {"completed", "failed", "refunded", "partially_refunded"}
# What has a price and is not asked for by a shop.
SOLD = {
    "/v1/pay/products": {"name": "Map", "price": "12.00"},
    "/v1/pay/payment-links": {"title": "Tea", "amount": "11.00"},
}
# As versions left a document that kept no checksum at its end.
WITHOUT_CHECKSUM = "substr(doc, 1, length(doc) - 20) || '}'"
# What `dalasi verify` has to find: postings that still sum to zero, and a price that stands in one place alone.
ALTERATIONS = {
    "a_posting_is_altered": "update ledger_postings set amount_minor = amount_minor * 2",
    "a_price_is_altered": f"""update payment_links set doc = replace({WITHOUT_CHECKSUM}, '"minor":', '"minor":1')""",
}
CHECKSUM = re.compile(r',"crc32":"[0-9a-f]{8}"\}$')
# What has a checksum: the column of each table.
TEXTS = {
    "api_keys": "doc",
    "checkouts": "doc",
    "customers": "doc",
    "events": "body",
    "invoice_payments": "doc",
    "invoices": "doc",
    "organizations": "doc",
    "payment_links": "doc",
    "payment_sessions": "doc",
    "products": "doc",
    "receipts": "doc",
    "refunds": "doc",
    "transactions": "doc",
}
# Of more damaged rows a backup tells the number only.
MOST_NAMED = 100
# Every list of what has an amount.
LISTS = ["/v1/checkouts", "/v1/pay/transactions", "/v1/pay/refunds", "/v1/pay/invoices", "/v1/pay/receipts", *SOLD]
# An earlier state of what is paid in parts, or paid back, shows others.
CHANGES = {"paid_amount", "remaining_amount", "fee", "net_amount", "refunded_amount"}
AMOUNT = re.compile(r"-?\d+\.\d\d")


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
    for path, body in SOLD.items():
        assert client.call("POST", path, body)[0] == 201
    for _ in range(STEPS):
        shop.step(client)
    # The books are what a flipped bit would do harm to, and payments need their time.
    eventually(lambda: all(one["status"] in FINAL for one in everything(client, "/v1/pay/transactions")))
    for _ in range(STEPS):
        shop.step(client)
    eventually(lambda: all(one["status"] in FINAL for one in everything(client, "/v1/pay/transactions")))
    paid = next(one for one in everything(client, "/v1/checkouts") if one["status"] == "completed")["transaction"]["id"]
    assert client.call("POST", f"/v1/pay/transactions/{paid}/refund", {"amount": "1.00"})[0] == 201
    eventually(lambda: all(one["status"] in FINAL for one in everything(client, "/v1/pay/refunds")))
    server.kill()
    killed = store.copy(folder / "killed")
    server.start()
    told = list(served(Client(server)))
    server.stop()
    file = folder / "kept.backup"
    dalasi("backup", file, *store.location)
    rows = rows_of(file)
    assert rows["ledger_postings"][1], "there is nothing that could be altered"
    return SimpleNamespace(closed=store, killed=killed, backup=file, rows=rows, keys=server.keys, told=set(told))


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
    """Every amount that there is, with the row that it stands in: in columns, documents and the bodies of events. (The wallets of
    the simulated rail are nobody's money.)"""
    found = set()
    for table, (columns, rows) in tables.items():
        minor = [place for place, column in enumerate(columns) if column.endswith("_minor")]
        texts = [place for place, column in enumerate(columns) if column in ("doc", "body")]
        names = [place for place, column in enumerate(columns) if column in ("id", "entry_id", "line")]
        for row in rows:
            name = [row[place] for place in names]
            found |= {(table, columns[place], row[place], *name) for place in minor}
            if not table.startswith("simulated_"):
                for place in texts:
                    found |= {(table, path, value, *name) for path, value in money_in(document(row[place]))}
    return found


def document(text):
    """What a column holds that is no document is none."""
    try:
        return json.loads(text) if text else None
    except (TypeError, ValueError):
        return None


def money_in(value, path=""):
    """The leaves that are amounts, or that amounts are made of, with the way to them."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        place = f"{path}/{name}"
        is_amount = isinstance(one, str) and AMOUNT.fullmatch(one)
        if is_amount or str(name).endswith("minor") or name in ("quantity", "tax_rate"):
            yield place, one
        elif not is_amount:
            yield from money_in(one, place)


def served(client):
    """(id, way, amount) of everything with an amount, as the lists show it and as it is shown alone."""
    for path in LISTS:
        for record in everything(client, path):
            yield from shown(record)
            status, _, content = client.call("GET", f"{path}/{record['id']}")
            assert status == 200, content
            yield from shown(json.loads(content)["data"])
    status, _, content = client.call("GET", "/v1/payouts/balance")
    assert status == 200, content
    yield from (("balance", path, value) for path, value in money_in(json.loads(content)["data"]))


def shown(record):
    return ((record["id"], path, value) for path, value in money_in(record))


def wrongly_served(store, folder, kept, *, is_log):
    """Amounts that a server on that store shows and that are wrong. One that doesn't start or says that something failed is not
    silent."""
    server = Server(store, folder / "served.log")
    server.keys = kept.keys
    try:
        server.start()
        found = set(served(Client(server)))
        server.stop()
    except (AssertionError, TypeError, ValueError):
        return []
    finally:
        server.kill()
    if is_log:
        # An earlier state lacks something, and what it has is as it was then.
        known = {identity for identity, _, _ in kept.told} - {"balance"}
        wrong = {one for one in found - kept.told if one[0] in known}
        return sorted(one for one in wrong if one[1].rpartition("/")[2] not in CHANGES)
    return sorted(found ^ kept.told)


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
    if wrong := wrongly_served(store, folder, kept, is_log=is_log):
        return wrong
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
        kept.closed.give_key_to(restored)
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
    for name, statement in ALTERATIONS.items():
        proof.control(name, altered(kept, tmp_path / name, statement).verify().returncode != 0)
    store, rows = with_flipped_texts(kept, tmp_path / "texts", "transactions", Random(proof.seed))
    proof.control("checksum_ignored", bool(rows - named(store, planted="checksum_ignored")))
    proof.finish()


@pytest.mark.parametrize("table", TEXTS)
def test_a_flipped_bit_in_any_text_is_found(table, kept, tmp_path):
    store, rows = with_flipped_texts(kept, tmp_path / "store", table, Random(table))
    assert rows, "nothing of the kind is there"
    assert rows <= named(store)
    made = ran("backup", tmp_path / "new.backup", "--json", *store.location)
    assert made.returncode == 1, made
    answer, count = json.loads(made.stdout), int(store.ask(f"select count(*) from {table}"))
    assert (answer["damaged_count"], len(answer["damaged"])) == (count, min(count, MOST_NAMED))
    assert {row["table"] for row in answer["damaged"]} == {table}
    assert {row["id"] for row in answer["damaged"]} <= rows


def test_a_damaged_backup_is_whole_and_takes_no_earlier_ones_place(kept, tmp_path):
    store, file, beside = kept.closed.copy(tmp_path / "store"), tmp_path / "kept", tmp_path / "kept.damaged"
    made = json.loads(dalasi("backup", file, "--json", *store.location).stdout)
    assert (made["damaged"], made["damaged_count"]) == ([], 0)
    whole, rows = file.read_bytes(), rows_of(file)
    row = store.ask("select min(id) from payment_links")
    # With the checksum of the price before.
    store.ask(f"""update payment_links set doc = replace(doc, '"minor":', '"minor":1') where id = '{row}'""")

    made = ran("backup", file, *store.location)
    assert made.returncode == 1, made
    for words in (f"payment_links {row}: ", "1 damaged row", "Keep every earlier backup", "dalasi repair", str(beside)):
        assert words in made.stderr, made
    assert file.read_bytes() == whole
    damaged = rows_of(beside)
    assert damaged.pop("payment_links") != rows.pop("payment_links")
    assert damaged == rows
    new = ran("backup", tmp_path / "new", "--json", *store.location)
    assert new.returncode == 1, new
    answer = json.loads(new.stdout)
    named = {"table": "payment_links", "mode": "test", "id": row}
    assert (answer["file"], answer["damaged"]) == (str(tmp_path / "new"), [named])
    missed = ran("backup", tmp_path / "planted", *store.location, planted="checksum_ignored")
    assert missed.returncode == 0, missed

    restored = SqliteStore(tmp_path / "restored")
    kept.closed.give_key_to(restored)
    told = ran("restore", tmp_path / "new", *restored.location)
    assert told.returncode == 1, told
    assert f"payment_links {row}: " in told.stderr, told
    assert "restored as it is" in told.stderr, told


def test_every_copy_of_a_posting_is_looked_at(kept, tmp_path):
    """A table and each of its indexes hold which entry a posting belongs to, and an answer may come from any of them."""
    columns, rows = kept.rows["ledger_postings"]
    entry = rows[len(rows) // 2][columns.index("entry_id")].encode()
    whole = kept.closed.database_file().read_bytes()
    places = [found.end() - 1 for found in re.finditer(entry, whole)]
    assert len(places) >= 2 * 3, "two postings, each in the table, by its key and by its transaction"
    wrong = {}
    for place in places:
        folder = tmp_path / str(place)
        folder.mkdir()
        store = kept.closed.copy(folder / "store")
        store.database_file().write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if found := judged(store, folder, kept, is_log=False):
            wrong[place] = found
        shutil.rmtree(folder)
    assert not wrong


def altered(kept, folder, statement):
    store = kept.closed.copy(folder)
    store.ask(statement)
    return store


def with_flipped_texts(kept, folder, table, random):
    """A store in which one bit of each text in a table is another; and the names of its rows."""
    store, names = kept.closed.copy(folder), set()
    with closing(sqlite3.connect(store.database_file())) as database, database:
        column = TEXTS[table]
        for rowid, name, text in database.execute(f"select rowid, id, {column} from {table}").fetchall():
            length = len(text) - (0 if column == "body" else len(CHECKSUM.search(text)[0]))
            flipped = flipped_text(text.encode(), len(text[:length].encode()), random)
            database.execute(f"update {table} set {column} = ? where rowid = ?", (flipped, rowid))
            names.add(name)
    return store, names


def flipped_text(text, length, random):
    """With another bit among the first so many bytes. (What is no text any longer is nothing that anybody could take for one.)"""
    while True:
        flipped = bytearray(text)
        flipped[random.randrange(length)] ^= 1 << random.randrange(7)
        try:
            return flipped.decode()
        except UnicodeDecodeError:
            continue


def ran(*arguments, planted=None):
    """One command of the real binary, or of the one with this defect, to whatever end."""
    binary, environ = (PLANTED_BINARY, {"DALASI_PLANTED": planted}) if planted else (BINARY, {})
    command = [binary, *map(str, arguments)]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment() | environ,
        timeout=60,
        check=False,
    )


def named(store, planted=None):
    """The rows that `dalasi verify` finds a fault in."""
    verified = ran("verify", "--json", *store.location, planted=planted)
    return {fault["row"] for fault in json.loads(verified.stdout)["faults"]}


def is_seen_unverified(kept, folder):
    """Whether a comparison sees wrong amounts where `dalasi verify` is left out: that of what is served, and that of the rows."""
    documents = altered(kept, folder / "documents", ALTERATIONS["a_price_is_altered"])
    is_served = wrongly_served(documents, folder, kept, is_log=False)
    postings = altered(kept, folder / "postings", ALTERATIONS["a_posting_is_altered"])
    return bool(is_served) and bool(judged(postings, folder, kept, is_log=False, verify=False))
