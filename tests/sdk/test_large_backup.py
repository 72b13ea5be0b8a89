"""Row B8.size: a store of a GiB is backed up, and restored within a minute, and nothing of it is missing."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

from checks import data
from proof import Proof
from server import Api
from store import SqliteStore, dalasi

GATE_BYTES, ALL_BYTES = 32 << 20, 1 << 30
MOST_SECONDS = 60
CLIENTS = 8
AT_ONCE = 200
# As much as a checkout may be told.
NOTES, NOTE = 31, 500


def wide(number):
    """A checkout whose texts no database makes smaller."""
    random = Random(number)
    notes = {f"note{place}": base64.b64encode(random.randbytes(NOTE)).decode()[:NOTE] for place in range(NOTES)}
    return {"amount": "5.00", "reference": f"wide-{number}", "metadata": notes}


def size(store):
    if isinstance(store, SqliteStore):
        return store.database_file().stat().st_size
    return int(store.ask("select pg_database_size(current_database())"))


def filled(server, least):
    """How many checkouts it took. Each is there once it is answered."""
    key = server.keys["test"]["secret"]
    apis = [Api(server.url, key) for _ in range(CLIENTS)]
    made = 0

    def post(number):
        data(apis[number % CLIENTS].post("/v1/checkouts", wide(number)), 201)

    with ThreadPoolExecutor(CLIENTS) as pool:
        while size(server.store) < least:
            list(pool.map(post, range(made, made + AT_ONCE)))
            made += AT_ONCE
    return made


def faults(store, made):
    """What the store lacks of so many checkouts."""
    found = int(store.ask("select count(*) from checkouts where reference like 'wide-%'"))
    if found != made:
        yield f"{found} of {made} checkouts are there"
    verified = store.verify()
    if verified.returncode:
        yield f"it does not verify: {verified.stdout}{verified.stderr}"


def test_a_large_store_is_restored_in_a_minute(new_server, new_store, watch, database, tmp_path):
    with Proof("B8.size", database, gate_count=1) as proof:
        least = GATE_BYTES if proof.tier == "gate" else ALL_BYTES
        for seed, _ in proof.cases():
            server = new_server()
            watch.servers.remove(server)  # It reads every answer, and these are long.
            made = filled(server, least)
            server.stop()
            store, file, empty = server.store, tmp_path / f"{seed}.backup", new_store()
            begun = time.monotonic()
            dalasi("backup", file, *store.location, timeout=600)
            backed_up = time.monotonic()
            store.give_key_to(empty)
            dalasi("restore", file, *empty.location, timeout=600)
            restored = time.monotonic()
            sizes = [round(one / (1 << 20)) for one in (size(store), file.stat().st_size, size(empty))]
            print(
                f"{made} checkouts, {sizes[0]} MiB: backed up to {sizes[1]} MiB in {backed_up - begun:.1f} s,"
                f" restored to {sizes[2]} MiB in {restored - backed_up:.1f} s"
            )
            proof.note("seconds_of_restore", round(restored - backed_up, 1))
            if restored - backed_up > MOST_SECONDS:
                proof.violation(f"{sizes[0]} MiB took {restored - backed_up:.1f} s to restore")
            for fault in faults(empty, made):
                proof.violation(fault)
            proof.control("a_checkout_that_is_missing", any("checkouts are there" in it for it in faults(empty, made + 1)))
            for one in (store, empty):
                one.drop()
            file.unlink()
