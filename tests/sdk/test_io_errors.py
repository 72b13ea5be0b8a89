"""Row B5: a system call fails. What failed is not acknowledged, nothing panics, the server goes on by itself; and a failed
sync ends it, with an exit code of its own, because nobody knows what is on the disk. Row B6: the disk is full."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from books import Told, reconcile
from checks import eventually
from injection import DRAWS, OWN_PIPE, STRACE, Injected, failing, why_not
from proof import Proof
from scenario import Client, Shop
from server import Server
from stocked import stocked
from store import BINARY, SqliteStore, dalasi, environment

STEPS = 25
EXIT_SYNC_FAILED = 74
MIB_OF_A_DISK = 6
# Each leaves a third of a MiB that is not given back: on a disk full of what was written nothing can be freed.
CYCLES_OF_A_DISK = 8
# The call, how it may fail, and up to which count of a thread it comes in the scenario.
FAULTS = [
    ("fsync,fdatasync", ["EIO", "ENOSPC", "EDQUOT"], 60),
    ("pwrite64", ["EIO", "ENOSPC", "EDQUOT", "EINTR"], 1700),
    ("ftruncate", ["EIO", "ENOSPC"], 16),
    ("openat", ["EIO", "EMFILE", "ENFILE", "ENOSPC"], 300),
    ("pread64", ["EIO", "EINTR"], 300),
    ("unlink", ["EIO"], 3),
    ("writev,sendto", ["ECONNRESET", "EPIPE"], 25),
    ("recvfrom", ["ECONNRESET"], 25),
    ("accept4", ["EMFILE", "ECONNABORTED", "ENFILE"], 2),
    # A server renames nothing; the commands do that give a file its name when it is whole.
    ("rename,renameat,renameat2", ["EIO", "ENOSPC", "EDQUOT", "EACCES"], 2),
]


@pytest.fixture(scope="module")
def stock(database, tmp_path_factory):
    """What every case takes a copy of."""
    if database != "sqlite":
        pytest.skip("PostgreSQL's files are its own")
    folder = tmp_path_factory.mktemp("stock")
    return stocked(SqliteStore(folder / "store"), folder)


def play(stock, folder, what, random, mailbox=None):
    """What is wrong with a server whose system calls fail so; its exit code, its shop and itself."""
    folder.mkdir(parents=True, exist_ok=True)
    store = stock.store.copy(folder / "store")
    log = folder / "server.log"
    server = Injected(store, log, what)
    server.keys = stock.keys
    shop, found, started = Shop(random, stock.paid, mailbox), [], True
    try:
        server.start()
    except AssertionError:
        started = False
    if started:
        client = Client(server)
        for _ in range(STEPS):
            shop.step(client)
        code = server.ended(0.2)
        if code is None:
            # Whatever failed is over: the same keys go through now.
            for key in [key for key in shop.asked if key not in shop.answered]:
                shop.ask(client, key, *shop.asked[key]) or shop.ask(client, key, *shop.asked[key])
                if key not in shop.answered:
                    found.append(f"{key}: never answered, {shop.failed.get(key)}")
            code = ended_as_told(server)
            allowed = (0, EXIT_SYNC_FAILED) if "sync" in what else (0,)
        else:
            allowed = (EXIT_SYNC_FAILED,) if "sync" in what else ()
    else:
        code = server.process.wait(timeout=20)
        allowed = (1, EXIT_SYNC_FAILED) if "sync" in what else (1,)
    said = log.read_text(errors="replace")
    # The runtime hears of signals by a pipe to itself, on which no kernel gives such an error: it ends the process.
    is_own_pipe = code == -signal.SIGABRT and "/runtime/signal/" in said
    if code not in allowed and not is_own_pipe:
        found.append(f"it ended with {code}")
    if "panicked" in said and not is_own_pipe:
        found.append("it panicked: " + said[said.index("panicked") - 100 :][:400])
    for key, failures in shop.failed.items():
        found += [f"{key}: {status}" for status, _ in failures if status not in (500, 503)]
    server.kill()
    store.end_pauses()
    again = Server(store, folder / "restarted.log")
    again.keys = stock.keys
    again.start()
    found += reconcile([shop], again, known=stock.known)
    again.stop()
    verified = store.verify()
    if verified.returncode != 0:
        found.append(f"verify: {verified.stdout}{verified.stderr}")
    store.drop()
    return found, code, shop, server


def ended_as_told(server):
    """The exit code after a signal to end; another is sent for each that was lost, because the runtime's pipe to itself failed."""

    def lost():
        return sum("(INJECTED)" in line and bool(OWN_PIPE.search(line)) for line in server.trace.read_text().splitlines())

    while True:
        before = lost()
        server.terminate()
        code = server.ended(2)
        if code is not None or lost() == before:
            return server.ended(40) if code is None else code


def unnamed(stock, folder, what, random):
    """What is wrong with a command that can't give its file the name that was asked for; and whether that was so."""
    folder.mkdir(parents=True)
    file, trace = folder / "file", folder.with_suffix(".trace")
    command = random.choice(["backup", "ledger export"])
    before = None
    if command == "backup":
        dalasi("backup", file, *stock.store.location)
        before = file.read_bytes()
    words = [*STRACE, *failing(what, trace), BINARY, *command.split(), file, *stock.store.location]
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=60)
    found = [] if ended.returncode == 1 else [f"{command} ended with {ended.returncode}: {ended.stderr}"]
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    if kept != ({} if before is None else {file.name: before}):
        found.append(f"{command} left {sorted(kept)}")
    return found, "(INJECTED)" in trace.read_text()


def test_a_failed_call_is_never_acknowledged(stock, receiver, tmp_path):
    proof = Proof("B5", "sqlite", gate_count=20)
    if reason := why_not():
        return proof.not_run(reason)
    ended = 0
    for seed, random in proof.cases():
        folder = tmp_path / str(seed)
        mailbox = receiver.mailbox(Told)
        for what, found, code in until_it_fails(stock, folder, FAULTS[seed % len(FAULTS)], random, mailbox):
            ended += code == EXIT_SYNC_FAILED
            for fault in found:
                proof.violation(f"seed {seed}: {what}: {fault}")
        receiver.forget(mailbox)
        shutil.rmtree(folder)
    proof.note("ended_by_a_sync", ended)
    proof.control("a_sync_that_only_says_so", lies_are_seen(stock, tmp_path / "control"))
    proof.finish()


def until_it_fails(stock, folder, fault, random, mailbox):
    """Tries at one point, until the call has failed; what is wrong with each. The first may lie behind all that come."""
    call, errors, most = fault
    when = random.randrange(1, most)
    for draw in range(DRAWS):
        what = f"{call}:error={random.choice(errors)}:when={when}"
        mailbox.arrived.clear()
        if "rename" in call:
            found, has_failed = unnamed(stock, folder / str(draw), what, random)
            yield what, found, None
            calls = 1
        else:
            found, code, _, server = play(stock, folder / str(draw), what, random, mailbox)
            yield what, found, code
            has_failed, calls = server.failed_calls(), server.calls()
        if has_failed:
            return
        when = random.randrange(1, calls + 1)
    raise AssertionError(f"{call} never failed in {DRAWS} tries, at last {what}")


def lies_are_seen(stock, folder):
    """Whether the test sees that a failed sync doesn't end the server: here it isn't told of the failure."""
    _, code, shop, _ = play(stock, folder, "fsync,fdatasync:retval=0:when=12", Random(1))
    return code != EXIT_SYNC_FAILED and bool(shop.answered)


def test_a_failed_sync_ends_the_server_with_its_own_code(stock, tmp_path):
    if reason := why_not():
        return Proof("B5.sync", "sqlite", gate_count=1).not_run(reason)
    found, code, shop, _ = play(stock, tmp_path, "fsync,fdatasync:error=EIO:when=12", Random(3))
    assert not found, found
    assert code == EXIT_SYNC_FAILED
    assert shop.answered


def test_a_commit_that_fails_behind_its_sync_is_not_denied(stock, tmp_path):
    """There is no room for the shared index of the log when the log, with the commit in it, is on the disk: the next process would
    find the commit there, and whoever was told that nothing was changed would order again."""
    if reason := why_not():
        pytest.skip(reason)
    store = stock.store.copy(tmp_path / "store")
    server = Server(store, tmp_path / "server.log")
    server.keys = stock.keys
    server.start()
    client, trace = Client(server), tmp_path / "trace"
    known = json.loads(client.call("GET", "/v1/checkouts?limit=1")[2])["data"]["total"]
    # Found before the reader is there: who opens and closes a file loses all their locks on it.
    index = f"{store.database_file()}-shm"
    # It grows with a log of 16 MiB; a smaller one is used again but for this reader.
    with reading(store):
        words = ["--trace=pwrite64", f"--trace-path={index}", "--inject=pwrite64:error=ENOSPC", f"--output={trace}"]
        tracer = subprocess.Popen([*STRACE, *words, f"--attach={server.process.pid}"])
        threads = Path(f"/proc/{server.process.pid}/task")
        is_traced = f"TracerPid:\t{tracer.pid}\n"
        eventually(lambda: all(is_traced in (thread / "status").read_text() for thread in threads.iterdir()))
        item = {"description": "x" * 2000, "quantity": 1, "unit_price": "1.00"}
        answers = []
        while len(answers) < 100 and (answer := client.call("POST", "/v1/checkouts", {"items": [item] * 200})):
            answers.append(answer[0])
        code = server.process.wait(20) if len(answers) < 100 else None
        tracer.terminate()
        tracer.wait()
    assert "(INJECTED)" in trace.read_text(), f"the index never had to grow: {answers}"
    assert (set(answers), code) == ({201}, EXIT_SYNC_FAILED), answers
    server.start()
    # The last is there or not: nobody was told.
    total = json.loads(Client(server).call("GET", "/v1/checkouts?limit=1")[2])["data"]["total"]
    assert total - known in (len(answers), len(answers) + 1)
    server.stop()
    assert store.verify().returncode == 0


class SmallDisk:
    """A disk of a few MiB in memory."""

    def __init__(self, folder, mebibytes):
        self.folder = folder
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
        mounted = subprocess.run(words, capture_output=True, text=True)
        self.reason = None if mounted.returncode == 0 else f"nothing can be mounted: {mounted.stderr.strip()}"

    def fill(self):
        with open(self.folder / "filler", "wb", buffering=0) as file:
            for size in (65536, 4096, 512):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    pass

    def free(self):
        os.remove(self.folder / "filler")

    def unmount(self):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False)


def test_a_full_disk_refuses_and_recovers(stock, tmp_path):
    proof = Proof("B6", "sqlite", gate_count=3)
    disk = SmallDisk(tmp_path / "can_be", MIB_OF_A_DISK)
    disk.unmount()
    if disk.reason:
        return proof.not_run(disk.reason)
    cases = proof.cases()
    while of_this_disk := list(islice(cases, CYCLES_OF_A_DISK)):
        folder = tmp_path / str(of_this_disk[0][0])
        with served_from_a_small_disk(stock, folder, proof) as (disk, server):
            for seed, random in of_this_disk:
                for fault in full_and_free(disk, server, Shop(random, stock.paid), disk.free):
                    proof.violation(f"seed {seed}: {fault}")
    with served_from_a_small_disk(stock, tmp_path / "stays_full", proof) as (disk, server):
        with reading(server.store):
            kept_full = full_and_free(disk, server, Shop(Random(proof.seed), stock.paid), free=lambda: use_up(server))
        disk.free()
    proof.control("a_disk_that_stays_full", any("space again" in fault for fault in kept_full))
    proof.control("latch_stays_read_only", is_latch_seen(stock, tmp_path))
    proof.finish()


@contextmanager
def served_from_a_small_disk(stock, folder, proof):
    """A disk and the server whose store is on it. What is left there at the end must verify."""
    disk = SmallDisk(folder, MIB_OF_A_DISK)
    server = on_disk(stock, disk, folder.with_suffix(".log"))
    try:
        server.start()
        yield disk, server
        server.stop()
        verified = server.store.verify()
        if verified.returncode != 0:
            proof.violation(f"verify: {verified.stdout}{verified.stderr}")
    finally:
        server.kill()
        disk.unmount()


def on_disk(stock, disk, log, planted=None):
    """A server with its store there."""
    server = Server(stock.store.copy(disk.folder / "store"), log, planted=planted)
    server.keys = stock.keys
    return server


def is_latch_seen(stock, folder):
    """Whether a server that never writes again is told from one that does as soon as there is space."""
    disk = SmallDisk(folder / "another", MIB_OF_A_DISK)
    server = on_disk(stock, disk, folder / "planted.log", "latch_stays_read_only")
    try:
        server.start()
        found = full_and_free(disk, server, Shop(Random(1), stock.paid), disk.free)
        return any("space again" in fault for fault in found)
    finally:
        server.kill()
        disk.unmount()


@contextmanager
def reading(store):
    """Somebody reads the database as it is now: no space of its log is used again meanwhile."""
    with closing(sqlite3.connect(f"file:{store.database_file()}?mode=ro", uri=True)) as connection:
        connection.execute("begin")
        connection.execute("select count(*) from organizations").fetchone()
        yield


def use_up(server):
    """A large commit that failed leaves room for small ones."""
    client, refused = Client(server), 0
    while refused < 10:
        status, *_ = client.call("POST", "/v1/checkouts", {"amount": "1.00"})
        refused = 0 if status == 201 else refused + 1


def full_and_free(disk, server, shop, free):
    """What is wrong while the disk is full, and after space was freed on it."""
    client = Client(server)
    disk.fill()
    found = []
    refused = 0
    for _ in range(200):
        shop.step(client)
        if shop.failed:
            refused += 1
            if refused >= 5:
                break
    else:
        return ["the disk never was full"]
    # 503 says that nothing was changed: a payment that was begun, and no more, is told that its key is in use.
    answers = {(shop.asked[key][0], status) for key, failures in shop.failed.items() for status, _ in failures}
    if all(status != 503 for _, status in answers):
        found.append(f"a full disk was answered with {answers}")
    for path, status in answers:
        if status != 503 and (path, status) != ("/v1/pay/initialize", 429):
            found.append(f"a full disk was answered with {status} by {path}")
    read = client.call("GET", "/v1/checkouts?limit=1")
    if read is None or read[0] != 200:
        found.append(f"a read on a full disk got {read and read[::2]}")
    free()
    freed = time.monotonic()
    while (answer := client.call("POST", "/v1/checkouts", {"amount": "1.00"}))[0] != 201:
        if time.monotonic() - freed > 5:
            return [*found, f"5 s after there was space again: {answer[::2]}"]
        time.sleep(0.1)
    return found + reconcile([shop], server)
