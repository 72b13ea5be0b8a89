"""The published SDK against the real binary, on SQLite and on PostgreSQL.

`DALASI_BIN` names the binary (default: target/debug/dalasi), `DALASI_PLANTED_BIN` the one with defects on purpose (default:
target/optimized/debug/dalasi), `DALASI_TEST_POSTGRES_URL` a cluster in which databases may
be created. `cargo xtask test --only sdk` sets all three, and runs one `--database` beside the other.
"""

import os
import time
from types import SimpleNamespace

import pytest
from jokoor import Jokoor

pytest.register_assert_rewrite("checks", "invoices", "mailserver", "receiver", "samples", "server", "store")

from checks import data, eventually, ok
from contract import Watch
from invoices import order
from mailserver import MailServer
from receiver import Receiver
from server import PLAIN, Api, Server
from store import PostgresStore, SqliteStore

DATABASES = ["sqlite", "postgres"]


def pytest_addoption(parser):
    parser.addoption("--database", choices=DATABASES, help="run on this database only; without it on both in turn")


def pytest_configure(config):
    needs_cluster = config.option.database != "sqlite" and not config.option.collectonly
    if needs_cluster and not os.environ.get("DALASI_TEST_POSTGRES_URL"):
        raise pytest.UsageError(
            "DALASI_TEST_POSTGRES_URL is not set; `cargo xtask postgres` starts a cluster and prints it"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def watch():
    """Sees every answer of every server of this run, whoever asked."""
    watch = Watch()
    watch.start()
    yield watch
    watch.stop()


@pytest.fixture(autouse=True)
def answers_are_as_described(watch):
    """Fails the test in which an answer was not what `openapi.json` says."""
    yield
    found = watch.take_faults()
    assert not found, "answers that openapi.json does not describe:\n" + "\n".join(found[:20])


def pytest_generate_tests(metafunc):
    if "database" in metafunc.fixturenames:
        only = metafunc.config.option.database
        metafunc.parametrize("database", [only] if only else DATABASES, scope="session")


@pytest.fixture(scope="session")
def new_store(database, tmp_path_factory):
    """Makes fresh stores on this run's database; they are dropped at the end."""
    stores = []

    def make():
        folder = tmp_path_factory.mktemp(database) / "store"
        if database == "sqlite":
            store = SqliteStore(folder)
        else:
            store = PostgresStore(folder, os.environ["DALASI_TEST_POSTGRES_URL"])
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.drop()


@pytest.fixture(scope="session")
def mail_server():
    """Takes the mails of the shared server."""
    mail_server = MailServer().start()
    yield mail_server
    mail_server.stop()


@pytest.fixture(scope="session")
def server(new_store, tmp_path_factory, watch, mail_server):
    """The server that most tests share. When all is done, its store must verify."""
    store = new_store()
    keys = store.init()
    log = tmp_path_factory.mktemp("log") / "server.log"
    server = Server(store, log, options=PLAIN + mail_server.options)
    server.organization_id = keys["organization_id"]
    server.keys = keys["keys"]
    watch.servers.append(server)
    server.start()
    yield server
    server.stop()
    result = store.verify()
    assert result.returncode == 0, f"`dalasi verify` after all tests:\n{result.stdout}{result.stderr}"


@pytest.fixture
def new_server(new_store, tmp_path, watch):
    """Starts servers of a test's own, on stores of their own."""
    servers = []

    def make(**options):
        store = new_store()
        keys = store.init()
        server = Server(store, tmp_path / f"server{len(servers)}.log", **options)
        server.keys = keys["keys"]
        servers.append(server)
        # What a defect makes of an answer is for its row to find.
        if not server.planted:
            watch.servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.kill()
        # Its port is anybody's again, and what comes from there may have no end.
        if server in watch.servers:
            watch.servers.remove(server)


@pytest.fixture(scope="session", autouse=True)
def slow(server):
    """What takes real time to happen is started before the first test and looked at in the last ones."""
    api = Api(server.url, server.keys["test"]["secret"])
    expiring = data(api.post("/v1/checkouts", {"amount": "60.00", "expires_in": 60}), 201)
    late = data(api.post("/v1/checkouts", {"amount": "30.00"}), 201)
    attempt = data(
        api.post(
            "/v1/pay/initialize",
            {
                "client_secret": late["client_secret"],
                "payment_method": "afrimoney",
                "customer_phone": "+2207000005",
            },
        )
    )
    return SimpleNamespace(started=time.monotonic(), expiring=expiring, late=late, attempt=attempt)


@pytest.fixture
def api(server):
    """Plain HTTP with the secret test key."""
    return Api(server.url, server.keys["test"]["secret"])


@pytest.fixture
def anonymous(server):
    return Api(server.url)


@pytest.fixture
def publishable(server):
    return Api(server.url, server.keys["test"]["publishable"])


@pytest.fixture
def sdk(server):
    """The SDK with the secret test key. Without retries: an answer that needs one is a fault to be seen."""
    with Jokoor(server.keys["test"]["secret"], base_url=server.url, max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def endpoint(sdk, receiver):
    """A webhook endpoint for all events, with its mailbox."""
    mailbox = receiver.mailbox()
    created = ok(sdk.webhooks.create(url=mailbox.url, enabled_events=["*"]))
    yield SimpleNamespace(id=created["id"], secret=created["secret"], mailbox=mailbox)
    sdk.webhooks.delete(created["id"])


@pytest.fixture
def pay(sdk):
    """Starts a payment of a fresh checkout by a test number; answers the checkout and the session."""

    def start(phone, method="afrimoney", amount="100.00", **fields):
        checkout = ok(sdk.checkouts.create(amount=amount, **fields))
        session = ok(
            sdk.payments.initialize(
                client_secret=checkout["client_secret"], payment_method=method, customer_phone=phone
            )
        )
        return checkout, session

    return start


@pytest.fixture
def paid(sdk, pay):
    """A checkout that was paid by the number that approves."""

    def start(**options):
        checkout, _ = pay("+2207000000", **options)

        def completed():
            found = ok(sdk.checkouts.get(checkout["id"]))
            return found if found["status"] == "completed" else None

        return eventually(completed) | {"client_secret": checkout["client_secret"]}

    return start


@pytest.fixture
def bill(sdk):
    """Makes an invoice: 100.00 for Awa Ceesay, unless the test says otherwise."""
    return lambda **fields: ok(sdk.invoices.create(**order(**fields)))
