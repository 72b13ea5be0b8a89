"""`dalasi verify` is clean after real work, and finds a row that was altered by hand."""

import sqlite3

import pytest
from jokoor import Jokoor

from checks import eventually, ok
from invoices import order
from store import PostgresStore, psql

# One row of a table is altered; each must change one to count.
ALTERATIONS = {
    "a posting's amount": "update ledger_postings set amount_minor = amount_minor + 1",
    "a posting's account": "update ledger_postings set account = 'unapplied'",
    "a posting is gone": "delete from ledger_postings",
    "a checkout's amount": "update checkouts set amount_minor = amount_minor + 1",
    "a checkout's status": "update checkouts set status = 'pending'|status = 'completed'",
    "a transaction's status": "update transactions set status = 'failed'|status = 'completed'",
    "a transaction's fee": "update transactions set fee_minor = fee_minor - 1|status = 'completed'",
    "a session is gone": "delete from payment_sessions|status = 'succeeded'",
    "an event's sequence": "update events set sequence = sequence + 5",
    "an event is gone": "delete from events",
    "an event of nothing": "update events set object_id = 'xx_1'|object_id like 'cs_%'",
    "an event of a link's payment is gone": "delete from events|object_id like 'ps_%'",
    "an event of a link is gone": "delete from events|object_id like 'pl_%'",
    "a link's uses": "update payment_links set usage_count = usage_count + 1",
    "a link's attempt is gone": "delete from transactions|object_id like 'pl_%' and status = 'completed'",
    "a link's timer is gone": "delete from jobs|kind = 'expire_payment_link'",
    "an open session's timer is gone": "delete from jobs|kind = 'expire_session'",
    "an invoice's event is gone": "delete from events|object_id like 'inv_%' and type = 'payment.succeeded'",
    "an invoice's attempt is gone": "delete from transactions|object_id like 'inv_%'",
    "an invoice's receipt is gone": "delete from receipts",
    "what an invoice is paid": "update invoices set paid_minor = 0, remaining_minor = total_minor, status = 'overdue'",
    "a customer's address": "update customers set email_key = 'somebody@example.gm'",
    "a customer is gone": "delete from customers",
    "a product's price": "update products set price_minor = price_minor + 1",
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
        customer = ok(sdk.customers.create(email="awa@example.gm"))["id"]
        product = ok(sdk.products.create(name="Atlas", price="1.00"))["id"]
        items = [{"product_id": product, "quantity": 1}]
        ok(sdk.checkouts.cancel(ok(sdk.checkouts.create(customer_id=customer, items=items))["id"]))
        link = ok(sdk.payment_links.create(title="Concert", amount="5.00", expiration_date="2099-01-01"))
        invoice = ok(sdk.invoices.create(**order("5.00")))
        for kind, one in (("payment_link", link), ("invoice", invoice)):
            ok(
                sdk.payments.initialize(
                    object_type=kind, object_id=one["id"], payment_method="wave", customer_phone="+2207000000"
                )
            )
        # Nobody goes on with this one.
        ok(sdk.payments.initialize(object_type="payment_link", object_id=link["id"]))
        eventually(lambda: ok(sdk.invoices.get(invoice["id"]))["status"] == "paid")
        eventually(lambda: ok(sdk.payment_links.get(link["id"]))["usage_count"] == 1)
        eventually(lambda: [ok(sdk.checkouts.get(id))["status"] for id in ids] == ["completed", "pending", "completed"])
    server.stop()
    return server.store


def test_it_is_clean_after_real_work(worked):
    result = worked.verify()
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", ALTERATIONS)
def test_it_finds_an_altered_row(worked, tmp_path, name):
    statement, _, condition = ALTERATIONS[name].partition("|")
    if isinstance(worked, PostgresStore):
        altered = worked
        alter_postgres(worked.url, statement, condition or "true")
    else:
        altered = worked.copy(tmp_path / "copy")
        alter_sqlite(altered.database_file(), statement, condition or "true")
    result = altered.verify()
    assert result.returncode == 1, f"{name}: exit {result.returncode}\n{result.stdout}{result.stderr}"
    if altered is not worked:
        assert worked.verify().returncode == 0, "the original is untouched"


def table_of(statement):
    return statement.removeprefix("delete from ").removeprefix("update ").split()[0]


def alter_sqlite(path, statement, condition):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        first = f"select rowid from {table_of(statement)} where {condition} order by rowid limit 1"
        changed = connection.execute(f"{statement} where rowid = ({first})").rowcount
        assert changed == 1
    finally:
        connection.close()


def alter_postgres(url, statement, condition):
    first = f"select ctid from {table_of(statement)} where {condition} limit 1"
    assert psql(url, f"{statement} where ctid = ({first}) returning 1") == "1"
