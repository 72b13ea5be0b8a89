"""`dalasi verify` is clean after real work, and finds a row that was altered by hand."""

import sqlite3

import pytest
from jokoor import Jokoor

from checks import eventually, ok
from store import PostgresStore, psql

# Each alteration finds its place by the names of tables and columns, and must change a row to count.
ALTERATIONS = {
    "a posting's amount": ("posting", "amount_minor", "amount_minor + 1"),
    "a checkout's amount": ("checkout", "amount_minor", "amount_minor + 1"),
    "a checkout's status": ("checkout", "status", "'pending'"),
    "an event's sequence": ("event", "sequence", "sequence + 5"),
}


@pytest.fixture
def worked(new_server):
    """A stopped store with payments in it."""
    server = new_server()
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as sdk:
        ids = []
        for phone in ("+2207000000", "+2207000001", "+2207000006"):
            checkout = ok(sdk.checkouts.create(amount="100.00"))
            ok(
                sdk.payments.initialize(
                    client_secret=checkout["client_secret"], payment_method="afrimoney", customer_phone=phone
                )
            )
            ids.append(checkout["id"])
        ok(sdk.checkouts.cancel(ok(sdk.checkouts.create(amount="1.00"))["id"]))
        eventually(lambda: [ok(sdk.checkouts.get(id))["status"] for id in ids] == ["completed", "pending", "completed"])
    server.stop()
    return server.store


def test_it_is_clean_after_real_work(worked):
    result = worked.verify()
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", ALTERATIONS)
def test_it_finds_an_altered_row(worked, tmp_path, name):
    table_word, column, expression = ALTERATIONS[name]
    if isinstance(worked, PostgresStore):
        altered = worked
        alter_postgres(worked.url, table_word, column, expression)
    else:
        altered = worked.copy(tmp_path / "copy")
        alter_sqlite(altered.database_file(), table_word, column, expression)
    result = altered.verify()
    assert result.returncode == 1, f"{name}: exit {result.returncode}\n{result.stdout}{result.stderr}"
    if altered is not worked:
        assert worked.verify().returncode == 0, "the original is untouched"


def candidates(names, table_word):
    """The table whose name is the word or its plural."""
    found = [name for name in names if name.rsplit(".")[-1] in (table_word, f"{table_word}s")]
    assert found, f"no table is called {table_word} among {names}"
    return found[0]


def alter_sqlite(path, table_word, column, expression):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        table = candidates(names, table_word)
        where = "where status = 'completed'" if column == "status" else ""
        changed = connection.execute(
            f"update {table} set {column} = {expression}"
            f" where rowid = (select rowid from {table} {where} order by rowid limit 1)"
        ).rowcount
        assert changed == 1
    finally:
        connection.close()


def alter_postgres(url, table_word, column, expression):
    names = psql(url, "select table_name from information_schema.tables where table_schema = current_schema()").split()
    table = candidates(names, table_word)
    where = "where status = 'completed'" if column == "status" else ""
    changed = psql(
        url,
        f"update {table} set {column} = {expression}"
        f" where ctid = (select ctid from {table} {where} order by id limit 1) returning 1"
        if table_word != "posting"
        else f"update {table} set {column} = {expression} where ctid = (select ctid from {table} limit 1) returning 1",
    )
    assert changed == "1", changed
