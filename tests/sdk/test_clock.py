"""Row B11: the clock of the machine jumps by hours and years, runs backwards and stands still, under the real binary. Business
time never runs backwards, what expires does so exactly when the times that are shown say it, what has begun ends in its
time, and nothing spins."""

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from checks import data, eventually
from proof import Proof
from server import PLAIN, Api, Server

HOUR = 3600
YEARS = 10 * 365 * 24 * HOUR
JUMPS = [-YEARS, -HOUR, -90, -5, 5, 90, HOUR, YEARS]
# A jump of a minute or less is none.
JUMP_S = 60
# The simulated rail decides within seconds of business time, which goes at half its pace while the wall clock is behind.
PATIENCE_S = 20
# Of one core, by a server that has nothing to do.
IDLE = 0.4


def library():
    """Where libfaketime is, which moves the clocks of one process; None where it isn't."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Clock:
    """What a server takes for the clock of its machine."""

    def __init__(self, folder, moves_monotonic=False):
        self.file = folder / "clock"
        self.offset = 0
        self.is_frozen = False
        self.set(0)
        self.prefix = [
            "env",
            "TZ=UTC",
            f"LD_PRELOAD={library()}",
            f"FAKETIME_TIMESTAMP_FILE={self.file}",
            "FAKETIME_NO_CACHE=1",
            f"FAKETIME_DONT_FAKE_MONOTONIC={0 if moves_monotonic else 1}",
        ]

    def set(self, offset):
        """So many seconds away from what it is."""
        self.offset, self.is_frozen = offset, False
        self._write(f"{offset:+d}")

    def freeze(self):
        self.is_frozen = True
        at = datetime.fromtimestamp(time.time() + self.offset)
        self._write(f"{at:%Y-%m-%d %H:%M:%S}")

    def _write(self, text):
        beside = self.file.with_suffix(".new")
        beside.write_text(text + "\n")
        os.replace(beside, self.file)


class Till:
    """A merchant at a server whose clock is moved."""

    def __init__(self, server, mailbox):
        self.server = server
        self.api = Api(server.url, server.keys["test"]["secret"])
        self.mailbox = mailbox
        self.found = []
        self.latest = ""
        self.waiting = []
        data(self.api.post("/v1/webhook_endpoints", {"url": mailbox.url, "enabled_events": ["*"]}), 201)
        self.sell()

    def expect(self, holds, what):
        if not holds:
            self.found.append(what)

    def sell(self, **fields):
        """A new checkout: time has not run backwards since the last one."""
        checkout = data(self.api.post("/v1/checkouts", {"amount": "100.00", **fields}), 201)
        self.expect(checkout["created_at"] >= self.latest, f"{checkout['created_at']} comes after {self.latest}")
        self.latest = checkout["created_at"]
        if "expires_in" in fields:
            lasts = moment(checkout["expires_at"]) - moment(checkout["created_at"])
            self.expect(lasts == timedelta(seconds=fields["expires_in"]), f"{lasts} are not {fields}")
        return checkout

    def initialize(self, checkout):
        words = {
            "client_secret": checkout["client_secret"],
            "payment_method": "afrimoney",
            "customer_phone": "+2207000000",
        }
        return self.api.post("/v1/pay/initialize", words)

    def is_paid(self, checkout):
        return data(self.api.get(f"/v1/checkouts/{checkout['id']}"))["status"] == "completed"

    def pays(self, checkout, timeout=PATIENCE_S):
        """The payment ends, and the merchant hears of it, each in its time."""
        try:
            eventually(lambda: self.is_paid(checkout), timeout=timeout)
            eventually(lambda: self.is_told(checkout), timeout=timeout)
        except AssertionError as error:
            self.found.append(f"the payment of {checkout['id']}: {error}")

    def is_told(self, checkout):
        return any(
            one.type == "checkout.completed" and one.object_id == checkout["id"] for one in self.mailbox.deliveries
        )

    def expires_exactly(self, checkout):
        """Between two checkouts whose times tell when it was: expired if its time is over, and not before."""
        before = self.sell()["created_at"]
        status = data(self.api.get(f"/v1/checkouts/{checkout['id']}"))["status"]
        after = self.sell()["created_at"]
        ends = checkout["expires_at"]
        if status == "pending":
            self.expect(moment(before) < moment(ends), f"{checkout['id']} is open at {before} and ended at {ends}")
        else:
            self.expect(status == "expired", f"{checkout['id']} is {status}")
            self.expect(moment(after) >= moment(ends), f"{checkout['id']} is expired at {after} and ends at {ends}")
        return status

    def jumps(self):
        metrics = self.api.get("/metrics").text
        return int(float(metrics.split("\ndalasi_clock_jumps_total ")[1].split("\n")[0]))

    def is_busy(self, for_s=0.5):
        """The share of a core that it takes with nothing to do."""
        ticks = os.sysconf("SC_CLK_TCK")
        begun, work = time.monotonic(), self._work()
        time.sleep(for_s)
        return (self._work() - work) / ticks / (time.monotonic() - begun)

    def _work(self):
        words = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def strike(till, clock, random):
    """One jump, in the middle of a payment where nothing may expire by it; then everything is looked at."""
    began, was_frozen = till.sell(), clock.is_frozen
    offset, before = random.choice(JUMPS), till.jumps()
    freezes = random.random() < 0.2
    moves = 0 if freezes else offset - clock.offset
    if moves <= 5 and not was_frozen:
        data(till.initialize(began))
    else:
        began = None
    if freezes:
        clock.freeze()
    else:
        clock.set(offset)
    # A jump is seen where the time is asked for.
    till.sell()
    after = till.jumps()
    # How long a frozen clock has lost depends on how often it was read.
    if not was_frozen and not freezes:
        wanted = before + (abs(moves) > JUMP_S)
        till.expect(after == wanted, f"a jump by {moves} s made {before} jumps {after}")
    if began:
        till.pays(began)
    paid = till.sell()
    data(till.initialize(paid))
    till.pays(paid)
    till.waiting.append(till.sell(expires_in=random.choice([60, 1800, 2 * HOUR])))
    till.waiting = [one for one in till.waiting if till.expires_exactly(one) == "pending"][-5:]
    busy = till.is_busy()
    till.expect(busy < IDLE, f"with nothing to do it takes {busy:.0%} of a core")


@pytest.fixture
def started(new_store, tmp_path):
    """Starts servers with a clock of their own."""
    servers = []

    def start(**options):
        folder = tmp_path / f"clock{len(servers)}"
        folder.mkdir()
        clock, store = Clock(folder, **options), new_store()
        keys = store.init()
        server = Server(store, folder / "server.log", options=PLAIN, prefix=clock.prefix)
        server.keys = keys["keys"]
        servers.append(server)
        return server.start(), clock

    yield start
    for server in servers:
        server.kill()


def test_whatever_the_clock_does_what_has_begun_ends(database, started, receiver):
    proof = Proof("B11", database, gate_count=4)
    if not library():
        return proof.not_run("libfaketime is not installed (Debian: libfaketime)")
    server, clock = started()
    till = Till(server, receiver.mailbox())
    with proof:
        for seed, random in proof.cases():
            strike(till, clock, random)
            for fault in till.found:
                proof.violation(f"seed {seed}, clock {clock.file.read_text().strip()}: {fault}")
            till.found.clear()
        clock.set(0)
        server.stop()
        said = server.log.read_text(errors="replace")
        if "panicked" in said:
            proof.violation(said[said.index("panicked") - 100 :][:400])
        verified = server.store.verify()
        if verified.returncode != 0:
            proof.violation(f"verify: {verified.stdout}{verified.stderr}")
        proof.control("waits_on_a_clock_that_stands_still", stands_still(*started(moves_monotonic=True), receiver))


def stands_still(server, clock, receiver):
    """Whether the test sees that waits depend on the wall clock: here the clock for waits stands still together with it."""
    till = Till(server, receiver.mailbox())
    paid = till.sell()
    data(till.initialize(paid))
    clock.freeze()
    till.pays(paid, timeout=6)
    return bool(till.found)
