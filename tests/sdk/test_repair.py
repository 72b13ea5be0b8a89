"""`dalasi repair`: what a flipped bit made unreadable is found, and put right from a backup or as it stands, beside the server."""

import hashlib
import json

import pytest

from checks import data, eventually, refusal
from server import Api
from store import dalasi

LISTS = {"customers": "/v1/pay/customers", "transactions": "/v1/pay/transactions"}
NAME = "Awa Ceesay"
ABSENT = "cus_01h455vb4pex5vsknk084sn02q"


class Shop:
    """A stopped server with a customer and a payment, and a backup of them that was made while it ran."""

    def __init__(self, server, folder):
        self.server, self.store = server, server.store
        self.backup = folder / "good.backup"
        api = self.api()
        customer = data(api.post(LISTS["customers"], {"email": "awa@example.gm", "name": NAME}), 201)
        checkout = data(api.post("/v1/checkouts", {"amount": "100.00"}), 201)
        payment = {"payment_method": "afrimoney", "customer_phone": "+2207000000"}
        data(api.post("/v1/pay/initialize", {"client_secret": checkout["client_secret"], **payment}))

        def paid():
            found = data(api.get(f"/v1/checkouts/{checkout['id']}"))
            return found if found["status"] == "completed" else None

        self.ids = {"customers": customer["id"], "transactions": eventually(paid)["transaction"]["id"]}
        dalasi("backup", self.backup, *self.store.location)
        server.stop()
        self.ids["events"] = self.store.ask("select id from events where type = 'checkout.completed'")

    def api(self):
        return Api(self.server.url, self.server.keys["test"]["secret"])

    def repair(self, *arguments):
        return dalasi("repair", *arguments, *self.store.location, check=False)

    def row(self, table):
        text = "body || ' ' || body_crc32" if table == "events" else "doc || ' ' || version"
        return self.store.ask(f"select {text} from {table} where id = '{self.ids[table]}'")

    def damage(self, table, old='"created_at":', new='"created_au":'):
        """Answers the row before and the row since."""
        before, text = self.row(table), "body" if table == "events" else "doc"
        changed = f"{text} = replace({text}, '{old}', '{new}')"
        self.store.ask(f"update {table} set {changed} where id = '{self.ids[table]}'")
        since = self.row(table)
        assert since != before, f"{old} is not in {before}"
        return before, since

    def records(self):
        """What the audit log says of repairs: the object and the reason of the only one."""
        said = "object_id || ' ' || reason"
        assert self.store.ask("select count(*) from audit_log where action = 'document.repaired'") == "1"
        return self.store.ask(f"select {said} from audit_log where action = 'document.repaired'")


@pytest.fixture
def shop(new_server, tmp_path):
    return Shop(new_server(), tmp_path)


def refused(result, code, words):
    """Ended with this code, and said why."""
    assert (result.returncode, result.stdout) == (code, ""), result
    assert words in result.stderr, result.stderr


@pytest.mark.parametrize("table", LISTS)
def test_a_damaged_row_is_found_and_put_back_while_the_server_runs(shop, table):
    assert shop.repair().returncode == 0, "nothing is damaged yet"
    before, _ = shop.damage(table)
    shop.server.start()
    api = shop.api()
    refusal(api.get(LISTS[table]), 500, "internal_error")

    listed = shop.repair("--json")
    found = json.loads(listed.stdout)
    assert (listed.returncode, found["damaged_count"]) == (1, 1)
    assert found["checked"] > 5
    [damaged] = found["damaged"]
    assert (damaged["table"], damaged["id"], damaged["mode"]) == (table, shop.ids[table], "test")
    assert damaged["organization_id"].startswith("org_")
    assert "its checksum is another" in damaged["what"]
    plain = shop.repair()
    assert plain.returncode == 1
    assert plain.stdout.startswith(f"{table}\t{shop.ids[table]}\torg_")
    assert "1 row is damaged" in plain.stderr

    repaired = shop.repair(table, shop.ids[table], "--from", shop.backup, "--yes")
    assert repaired.returncode == 0, repaired.stderr
    assert "written to the audit log" in repaired.stderr

    def listed_again():
        answer = api.get(LISTS[table])
        return answer if answer.status_code == 200 else None

    assert shop.ids[table] in [one["id"] for one in data(eventually(listed_again))["items"]]
    shop.server.stop()
    assert shop.row(table) == before
    assert shop.repair().returncode == 0
    verified = shop.store.verify()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert shop.records().startswith(f"{shop.ids[table]} {table}: from the backup of ")


def test_an_event_is_put_back_and_how_to_send_it_again_is_said(shop):
    before, _ = shop.damage("events", '"amount":"100.00"', '"amount":"900.00"')
    listed = shop.repair("--json")
    assert [(one["table"], one["id"]) for one in json.loads(listed.stdout)["damaged"]] == [("events", shop.ids["events"])]
    repaired = shop.repair("events", shop.ids["events"], "--from", shop.backup, "--yes")
    assert repaired.returncode == 0, repaired.stderr
    assert f"`dalasi events resend {shop.ids['events']}`" in repaired.stderr
    assert shop.row("events") == before
    assert shop.store.verify().returncode == 0


def test_an_event_stands_as_it_is(shop):
    _, since = shop.damage("events", '"amount":"100.00"', '"amount":"900.00"')
    assert shop.repair("events", shop.ids["events"], "--accept", "--yes").returncode == 0
    is_now = shop.row("events")
    assert is_now != since
    assert is_now.rpartition(" ")[0] == since.rpartition(" ")[0], "only its checksum is another"
    assert shop.repair().returncode == 0


def test_a_row_that_changed_since_the_backup_is_left_as_it_is(shop):
    shop.server.start()
    data(shop.api().put(f"{LISTS['customers']}/{shop.ids['customers']}", {"name": "Binta Jallow"}))
    shop.server.stop()
    _, since = shop.damage("customers")
    refused(shop.repair("customers", shop.ids["customers"], "--from", shop.backup, "--yes"), 5, "version")
    assert shop.row("customers") == since


def test_only_a_whole_backup_of_this_schema_that_has_the_row_undamaged_is_taken(shop, tmp_path):
    row = ("customers", shop.ids["customers"])
    empty = tmp_path / "empty.backup"
    without(shop.backup, empty, row)
    _, since = shop.damage("customers")
    also_damaged = tmp_path / "damaged.backup"
    assert dalasi("backup", also_damaged, *shop.store.location, check=False).returncode == 1
    older = tmp_path / "older.backup"
    of_another_schema(shop.backup, older)
    torn = tmp_path / "torn.backup"
    torn.write_bytes(shop.backup.read_bytes()[:-10])
    flipped = tmp_path / "flipped.backup"
    flipped.write_bytes(shop.backup.read_bytes().replace(NAME.encode(), b"Bwa Ceesay"))
    for file, code, words in [
        (also_damaged, 5, "damaged in that backup too"),
        (empty, 5, "it is not in that backup"),
        (older, 5, "the backup has schema"),
        (torn, 1, "damaged or incomplete"),
        (flipped, 1, "damaged or incomplete"),
        (tmp_path / "none.backup", 4, "there is no file"),
    ]:
        refused(shop.repair(*row, "--from", file, "--yes"), code, words)
        assert shop.row("customers") == since, file


def of_another_schema(file, to):
    lines = file.read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0])
    header["schema"] -= 1
    lines[0] = line(header)
    to.write_bytes(signed(lines))


def without(file, to, row):
    """The same backup, before there was that row."""
    table, name = row
    lines, rows, now = [], {}, None
    for one in file.read_bytes().splitlines(keepends=True):
        value = json.loads(one)
        if isinstance(value, dict):
            now = value.get("table", now)
            rows.setdefault(now, 0)
        elif now == table and name in value:
            continue
        else:
            rows[now] += 1
        lines.append(one)
    trailer = json.loads(lines[-1])
    assert trailer["rows"][table] == rows[table] + 1
    trailer["rows"][table] -= 1
    lines[-1] = line(trailer)
    to.write_bytes(signed(lines))


def signed(lines):
    """With the SHA-256 of what was made of it."""
    trailer = json.loads(lines[-1])
    trailer["sha256"] = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    return b"".join(lines[:-1]) + line(trailer)


def line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def test_a_text_that_can_be_read_stands_once_somebody_has_looked(shop):
    _, since = shop.damage("customers", NAME, "Awa Ceesaz")
    row = ("customers", shop.ids["customers"])
    shown = shop.repair(*row)
    assert shown.returncode == 0
    assert '  "name":"Awa Ceesaz",' in shown.stdout.splitlines()
    assert "its checksum is another" in shown.stderr
    as_json = json.loads(shop.repair(*row, "--json").stdout)
    assert (as_json["id"], as_json["not_acceptable"]) == (row[1], None)
    assert since.startswith(as_json["text"])

    asked = shop.repair(*row, "--accept")
    assert asked.returncode == 2
    assert "give --yes" in asked.stderr
    assert "Awa Ceesaz" in asked.stdout
    assert shop.row("customers") == since

    repaired = shop.repair(*row, "--accept", "--yes")
    assert repaired.returncode == 0, repaired.stderr
    assert shop.repair().returncode == 0
    verified = shop.store.verify()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    said, _, checksums = shop.records().partition("; checksum ")
    assert said == f"{row[1]} customers: as it stood, with a new checksum"
    was, is_now = checksums.split(", now ")
    assert was != is_now
    assert f'"crc32":"{was}"' in since
    assert f'"crc32":"{is_now}"' in shop.row("customers")
    shop.server.start()
    assert data(shop.api().get(f"{LISTS['customers']}/{row[1]}"))["name"] == "Awa Ceesaz"
    refused(shop.repair(*row, "--accept", "--yes"), 5, "nothing is wrong with it")
    refused(shop.repair(*row, "--from", shop.backup, "--yes"), 5, "nothing is wrong with it")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [('"contact":', '"contact:', "does not parse"), ("awa@", "bwa@", "email_key"), ('"id":"cus_', '"id":"cut_', "parse")],
)
def test_a_text_that_can_not_be_of_its_row_does_not_stand(shop, old, new, why):
    _, since = shop.damage("customers", old, new)
    row = ("customers", shop.ids["customers"])
    shown = shop.repair(*row)
    assert shown.returncode == 0
    assert "--accept would be refused" in shown.stderr
    result = shop.repair(*row, "--accept", "--yes")
    refused(result, 5, "take it from a backup")
    assert why in result.stderr
    assert shop.row("customers") == since


def test_a_member_whose_name_is_damaged_does_not_stand(shop):
    _, since = shop.damage("customers", '"name":', '"nbme":')
    row = ("customers", shop.ids["customers"])
    refused(shop.repair(*row, "--accept", "--yes"), 5, '"nbme"')
    assert shop.row("customers") == since
    assert shop.repair(*row, "--from", shop.backup, "--yes").returncode == 0


def test_where_only_the_checksum_is_damaged_every_kind_of_document_stands(shop):
    tables = ["organizations", "api_keys", "customers", "checkouts"]
    tables += ["payment_sessions", "transactions", "simulated_payments"]
    before = {table: shop.store.ask(f"select max(doc) from {table}") for table in tables}
    for table in tables:
        shop.store.ask(f"update {table} set doc = substr(doc, 1, length(doc) - 3) || 'x\"}}'")
    found = json.loads(shop.repair("--json").stdout)["damaged"]
    assert {one["table"] for one in found} == set(tables)
    for one in found:
        repaired = shop.repair(one["table"], one["id"], f"--{one['mode']}", "--accept", "--yes")
        assert repaired.returncode == 0, repaired.stderr
    assert shop.repair().returncode == 0
    assert {table: shop.store.ask(f"select max(doc) from {table}") for table in tables} == before


def test_a_row_of_no_organization_and_an_organization_that_can_not_be_read_are_named(shop):
    if shop.store.name == "postgres":
        pytest.skip("its constraints let nobody make one")
    shop.store.ask(f"update customers set organization_id = 'org_nobody' where id = '{shop.ids['customers']}'")
    listed = shop.repair("--json")
    [damaged] = json.loads(listed.stdout)["damaged"]
    assert listed.returncode == 1
    assert (damaged["table"], damaged["id"], damaged["mode"]) == ("customers", shop.ids["customers"], None)
    assert "belongs to no organization" in damaged["what"]
    refused(shop.repair("customers", shop.ids["customers"]), 4, "of any organization")

    shop.store.ask("update organizations set organization_id = 'orh_1', id = 'orh_1'")
    listed = shop.repair("--json")
    assert listed.returncode == 1, listed.stderr
    found = json.loads(listed.stdout)["damaged"]
    assert [one["id"] for one in found if one["table"] == "organizations"] == ["orh_1", "orh_1"]


def test_whoever_is_asked_beside_json_reads_what_it_is_about(shop):
    _, since = shop.damage("customers", NAME, "Awa Ceesaz")
    row = ("customers", shop.ids["customers"])
    for way, words in [(("--accept",), '"name":"Awa Ceesaz"'), (("--from", shop.backup), f'+   "name":"{NAME}"')]:
        asked = shop.repair(*row, *way, "--json")
        assert (asked.returncode, asked.stdout) == (2, "")
        assert words in asked.stderr
    assert shop.row("customers") == since


def test_without_yes_a_backup_is_compared_and_nothing_is_changed(shop):
    _, since = shop.damage("customers", NAME, "Awa Ceesaz")
    asked = shop.repair("customers", shop.ids["customers"], "--from", shop.backup)
    assert asked.returncode == 2
    assert "give --yes" in asked.stderr
    assert asked.stdout.splitlines() == ['-   "name":"Awa Ceesaz",', f'+   "name":"{NAME}",']
    assert shop.row("customers") == since


def test_what_is_not_there_is_said(shop):
    refused(shop.repair("customers", ABSENT), 4, ABSENT)
    refused(shop.repair("customers", ABSENT, "--accept", "--yes"), 4, "`dalasi repair` lists")
    unknown = shop.repair("ledger_postings", ABSENT)
    refused(unknown, 2, "transactions")
    assert "customers" in unknown.stderr and "events" in unknown.stderr
    refused(shop.repair("customers"), 2, "required")
    refused(shop.repair("customers", ABSENT, "--accept", "--from", shop.backup), 2, "cannot be used with")


def test_of_an_organization_in_both_modes_the_damaged_row_is_meant(shop):
    organization = shop.store.ask("select id from organizations where mode = 'live'")
    refused(shop.repair("organizations", organization, "--accept", "--yes"), 2, "--test or --live")
    changed = "doc = replace(doc, '\"created_at\":', '\"created_au\":')"
    shop.store.ask(f"update organizations set {changed} where mode = 'live'")
    refused(shop.repair("organizations", organization, "--test", "--from", shop.backup, "--yes"), 5, "nothing is wrong")
    repaired = shop.repair("organizations", organization, "--from", shop.backup, "--yes", "--json")
    assert repaired.returncode == 0, repaired.stderr
    assert json.loads(repaired.stdout)["mode"] == "live"
    assert shop.repair().returncode == 0
