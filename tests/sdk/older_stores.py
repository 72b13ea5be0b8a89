"""Stores of earlier schemas: what a server of today did with the means of one of them, under the tables that there were then.
Nothing here is the product's: the migrations are spelled and applied a second time, and whoever compares would see a mistake."""

import hashlib
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from jokoor import Jokoor

from checks import eventually, ok
from invoices import order
from scenario import Client, Shop, everything
from server import PLAIN, Server
from store import psql

MIGRATIONS = sorted((Path(__file__).parents[2] / "crates/store/migrations").glob("*.sql"))
LATEST = len(MIGRATIONS)
# From which schema on there is something to be done that there was not before.
AGES = [2, 3, 4, 6, 7, 8]
# What the migrations keep for themselves, and what SQLite's driver derives of the idempotency keys.
OTHERS = {"schema_migrations", "leases", "idempotency_runs", "idempotency_run_pages"}
# What has to be there and is there no longer, and what it was made of.
REMOVED = {("checkouts", "client_secret_digest"): "id"}
# What a migration sets anew in the rows of before: its number, and what was there, of what is there today.
SET_ANEW = {("jobs", "lane"): (29, "case when lane in (3, 4) then 0 else lane end")}
REFERRED_TO = {"organizations", "transactions"}
SHOP_STEPS = 12
# What a shop could do at any schema.
EVER_SINCE = ("checkout", "pay", "cancel")
# From which schema on answers are kept under their keys sealed.
SEALED_ANSWERS = 11
APPROVES, POOR = "+2207000000", "+2207000001"


def query(store, sql):
    """The rows as tuples of text."""
    if store.name == "sqlite":
        with closing(sqlite3.connect(store.database_file())) as database:
            return [tuple(map(str, row)) for row in database.execute(sql)]
    return [tuple(line.split("\t")) for line in psql(store.url, f"copy ({sql}) to stdout").splitlines()]


def execute(store, sql):
    if store.name == "postgres":
        psql(store.url, sql)
        return
    with closing(sqlite3.connect(store.database_file())) as database:
        database.executescript(f"begin; {sql}; commit;")


def statements(text, database):
    """Of a migration, for one database."""
    ours, theirs = ("sqlite", "postgres") if database == "sqlite" else ("postgres", "sqlite")
    lines = [line.removeprefix(f"-- {ours}:") for line in text.splitlines() if not line.startswith(f"-- {theirs}:")]
    code = re.sub("--[^\n]*", " ", "\n".join(lines))
    return [spelled(one.strip(), database) for one in code.split(";") if one.strip()]


def spelled(statement, database):
    if not statement.startswith(("create table", "alter table")):
        return statement
    if database == "postgres":
        return re.sub(r"\btext\b", 'text collate "C"', re.sub(r"\bblob\b", "bytea", statement))
    statement = re.sub(r"\bbigint\b", "integer", statement)
    if statement.startswith("create table"):
        statement += " strict" if statement.endswith(")") else ", strict"
    return statement


def applying(schema, database):
    """The statements of the first so many migrations, each with its record."""
    for number, path in enumerate(MIGRATIONS[:schema], 1):
        text = path.read_text()
        yield from statements(text, database)
        checksum = hashlib.sha256(text.encode()).hexdigest()
        yield f"insert into schema_migrations values ({number}, '{path.stem[5:]}', '{checksum}', {number})"


def shape(store):
    """{table: its columns}."""
    if store.name == "sqlite":
        sql = (
            "select tables.name, columns.name from sqlite_master as tables, pragma_table_info(tables.name) as columns"
            " where tables.type = 'table' and tables.name not like 'sqlite_%'"
        )
    else:
        sql = "select table_name, column_name from information_schema.columns where table_schema = current_schema()"
    found = {}
    for table, column in query(store, sql):
        if table not in OTHERS:
            found.setdefault(table, []).append(column)
    return found


def structure(store):
    """Tables, indexes and constraints as the database has them."""
    if store.name == "sqlite":
        sql = "select type, name, tbl_name, sql from sqlite_master"
    else:
        sql = (
            "select 'column', table_name, column_name, concat_ws(' ', ordinal_position, data_type, collation_name,"
            " is_nullable, column_default) from information_schema.columns where table_schema = current_schema()"
            " union all select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = current_schema()"
            " union all select 'constraint', cast(conrelid as regclass)::text, conname, pg_get_constraintdef(oid)"
            " from pg_constraint where connamespace = 'public'::regnamespace"
        )
    return {tuple(" ".join(part.split()) for part in row) for row in query(store, sql)}


def rows(store, of):
    """{table: what stands in those columns, in order}."""
    if store.name == "sqlite":
        return {
            table: sorted(query(store, f"select {', '.join(columns)} from {table}")) for table, columns in of.items()
        }
    one = "select '{}', cast(row({}) as text) from {}"
    everything = " union all ".join(one.format(table, ", ".join(columns), table) for table, columns in of.items())
    found = {table: [] for table in of}
    for table, row in query(store, everything):
        found[table].append(row)
    return {table: sorted(found[table]) for table in found}


def older(store, schema, folder):
    """A copy of a store that no server has open, as it would have been at that schema."""
    older, today = store.copy(folder), shape(store)
    if store.name == "sqlite":
        file = older.database_file()
        file.unlink()
        with closing(sqlite3.connect(file)) as database:
            database.execute("pragma journal_mode = wal")
            database.executescript(";".join(["begin", *applying(schema, store.name), "commit"]))
            then = shape(older)
            database.execute("attach ? as newer", [str(store.database_file())])
            database.executescript(";".join(["begin", *copying(schema, then, today), "commit"]))
    else:
        psql(older.url, "alter schema public rename to newer; create schema public")
        psql(older.url, ";".join(applying(schema, store.name)))
        psql(older.url, ";".join([*copying(schema, shape(older), today), "drop schema newer cascade"]))
    return older


def copying(schema, then, today):
    """The statements that fill the tables of `then`, at that schema, of those of today."""
    for table in sorted(then, key=lambda table: table not in REFERRED_TO):
        of = {column: REMOVED.get((table, column), column) for column in then[table]}
        of = {column: source for column, source in of.items() if source in today[table]}
        of |= {column: SET_ANEW[table, column][1] for column in of if is_set_anew(table, column, schema)}
        yield f"insert into {table} ({', '.join(of)}) select {', '.join(of.values())} from newer.{table}"


def is_set_anew(table, column, schema):
    """By a migration after that schema."""
    return (table, column) in SET_ANEW and schema < SET_ANEW[table, column][0]


def work(server, schema, mailbox):
    """Does a bit of everything that could be done at that schema. Answers a shop that asks under idempotency keys."""
    shop = Shop(Random(schema), kinds=EVER_SINCE)
    client = Client(server)
    for _ in range(SHOP_STEPS):
        assert shop.step(client)
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        ok(sdk.webhooks.create(url=mailbox.url, enabled_events=["*"]))

        def pay(phone, **what):
            ok(sdk.payments.initialize(payment_method="afrimoney", customer_phone=phone, **what))

        checkouts = [ok(sdk.checkouts.create(amount=f"{amount}.00", reference=f"no {amount}")) for amount in (100, 200, 300)]
        for checkout, phone in zip(checkouts, (APPROVES, POOR, APPROVES), strict=True):
            pay(phone, client_secret=checkout["client_secret"])
        ok(sdk.checkouts.cancel(ok(sdk.checkouts.create(amount="7.00", metadata={"name": "Ndëy 🌿"}))["id"]))
        paid = [checkouts[0]["id"], checkouts[2]["id"]]
        if schema >= 3:
            customer = ok(sdk.customers.create(email="awa@example.gm"))["id"]
            product = ok(sdk.products.create(name="Atlas", price="1.00"))["id"]
            ok(sdk.checkouts.create(customer_id=customer, items=[{"product_id": product, "quantity": 2}]))
        if schema >= 4:
            invoices = [ok(sdk.invoices.create(**order(price)))["id"] for price in ("5.00", "6.00")]
            pay(APPROVES, object_type="invoice", object_id=invoices[0])
            eventually(lambda: ok(sdk.invoices.get(invoices[0]))["status"] == "paid")
        if schema >= 7:
            ok(sdk.invoices.send(invoices[1]))
        if schema >= 6:
            link = ok(sdk.payment_links.create(title="Concert", amount="5.00", expiration_date="2099-01-01"))["id"]
            pay(APPROVES, object_type="payment_link", object_id=link)
            eventually(lambda: ok(sdk.payment_links.get(link))["usage_count"] == 1)
        eventually(lambda: all(ok(sdk.checkouts.get(id))["status"] == "completed" for id in paid))
        if schema >= 8:
            refund = ok(sdk.refunds.create(ok(sdk.checkouts.get(paid[0]))["transaction"]["id"], amount="30.00"))["id"]
            eventually(lambda: ok(sdk.refunds.get(refund))["status"] == "completed")
    return shop


def unsealed(shop):
    """The statements that keep its answers under their keys in clear."""
    for key, (_, body) in shop.answered.items():
        quoted = body.decode().replace("'", "''")
        yield f"update idempotency_keys set body = '{quoted}' where idempotency_key = '{key}'"


def is_quiet(store):
    """Nothing waits to be done at once."""
    waiting = [
        "select 1 from events_unlogged",
        "select 1 from ledger_unsealed",
        "select 1 from webhook_deliveries where status = 'pending'",
        "select 1 from mails where status = 'pending'",
        "select 1 from jobs where kind not like 'expire_%' and kind <> 'overdue_invoice'",
    ]
    return not query(store, " union all ".join(waiting))


# What can be asked for, and from which schema on it tells the same after a migration as before.
LISTS = {
    "/v1/checkouts": 2,
    "/v1/pay/transactions": 2,
    "/v1/webhook_endpoints": 2,
    "/v1/pay/customers": 3,
    "/v1/pay/products": 3,
    # With what became of their documents.
    "/v1/pay/invoices": 5,
    "/v1/pay/receipts": 5,
    "/v1/pay/payment-links": 6,
    "/v1/pay/refunds": 8,
    # When a delivery changed was not noted before.
    "/v1/events": 16,
}


def told(server, schema):
    """{list: what the server says}, wherever it listens; events tell where it did."""
    client = Client(server)
    lists = {path: list(everything(client, path)) for path, since in LISTS.items() if since <= schema}
    return {path: re.sub(r"http://127\.0\.0\.1:\d+", "", json.dumps(items)) for path, items in lists.items()}


@dataclass
class Older:
    """A store of an earlier schema, and what has to be found in it afterwards."""

    schema: int
    store: object
    keys: dict
    shop: Shop
    columns: dict
    rows: dict
    told: dict
    structure: set
    # Of its migration, to be struck at.
    points: list = field(default_factory=list)

    def faults(self, store, log):
        """What is wrong with a copy of it after a server of today has started on it."""
        server = Server(store, log)
        server.keys = self.keys
        try:
            server.start()
        except AssertionError as error:
            return [f"it does not start: {error}"]
        try:
            # Before it is asked anything.
            server.stop()
            after = rows(store, self.columns)
            found = [f"{table} has other rows" for table in self.rows if self.rows[table] != after[table]]
            if structure(store) != self.structure:
                found.append(f"made otherwise than a new one: {structure(store) ^ self.structure}")
            verified = store.verify()
            if verified.returncode != 0:
                found.append(f"verify: {verified.stdout}{verified.stderr}")
            server.start()
            tells = told(server, self.schema)
            found += [f"{path} tells something else" for path in self.told if self.told[path] != tells[path]]
            return found + self.shop.ask_again(Client(server))
        finally:
            server.kill()


class OlderStores:
    """Makes the store of each schema once; whoever breaks one takes a copy."""

    def __init__(self, new_store, folder, mailbox, mail_server):
        self.new_store = new_store
        self.folder = folder
        self.mailbox = mailbox
        self.mail_server = mail_server
        self._worked = {}
        self._older = {}

    def worked(self, age):
        """A store of today with all that could be done then, its keys, its shop and what it tells."""
        if age not in self._worked:
            store = self.new_store()
            server = Server(store, self.folder / f"worked{age}.log", options=PLAIN + self.mail_server.options)
            server.keys = store.init()["keys"]
            server.start()
            try:
                shop = work(server, age, self.mailbox)
                eventually(lambda: is_quiet(store), timeout=60)
                self._worked[age] = store, server.keys, shop, told(server, LATEST)
                server.stop()
            finally:
                server.kill()
        return self._worked[age]

    def at(self, schema):
        if schema not in self._older:
            worked, keys, shop, tells = self.worked(max(age for age in AGES if age <= schema))
            store = older(worked, schema, self.folder / f"schema{schema}")
            if schema < SEALED_ANSWERS:
                execute(store, ";".join(unsealed(shop)))
            kept = {
                table: [
                    column
                    for column in columns
                    if (table, column) not in REMOVED and not is_set_anew(table, column, schema)
                ]
                for table, columns in shape(store).items()
            }
            tells = {path: told for path, told in tells.items() if LISTS[path] <= schema}
            self._older[schema] = Older(schema, store, keys, shop, kept, rows(store, kept), tells, structure(worked))
        return self._older[schema]

    def drop(self):
        for older in self._older.values():
            older.store.drop()
