"""What a row of the proof programme is asked for, and how it says what it reached; as `crates/proof` does for Rust."""

import json
import os
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

# Of one row in the gate, without its controls: on a slow machine it reaches less, and a tenth of its count at least.
GATE_SECONDS = 45

class Proof:
    """One run of one row. Used as a context: at its end it prints its line, and fails what has to fail."""

    def __init__(self, row, database, gate_count):
        self.row = row
        self.database = database
        self.tier = os.environ.get("DALASI_TIER", "gate")
        assert self.tier in ("gate", "nightly", "release"), f"DALASI_TIER: {self.tier!r}"
        self.wanted = int(os.environ.get("DALASI_PROOF_COUNT", gate_count))
        self.least = int(os.environ.get("DALASI_PROOF_LEAST", self.wanted if self.tier == "gate" else -(-self.wanted // 10)))
        self.has_budget = self.tier == "gate" and "DALASI_PROOF_COUNT" not in os.environ
        self.commit = os.environ.get("DALASI_PROOF_COMMIT")
        # The gate judges a commit: its seeds are new with each, and the same whenever that one is judged again. The longer tiers
        # look for what nobody has seen yet.
        drawn = zlib.crc32((row + (self.commit or "")).encode()) if self.tier == "gate" else time.time_ns() // 1000 % (1 << 48)
        self.seed = int(os.environ.get("DALASI_PROOF_SEED") or self._after_the_last() or drawn)
        self.reached = 0
        # Told so by `goes_on`: whoever did not ask has no excuse.
        self.is_out_of_time = False
        self.found = []
        self.caught = []
        self.missed = []
        self.notes = {}
        self.start = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.finish()

    def control(self, name, is_caught):
        """A defect was put in front of the check: was it seen?"""
        (self.caught if is_caught else self.missed).append(name)

    def violation(self, what):
        self.found.append(what)

    def note(self, name, value):
        """Something to find again with `earlier`."""
        self.notes[name] = value

    def earlier(self, name):
        """What earlier runs of this row for the same code have said under this name."""
        try:
            with open(os.environ["DALASI_PROOF_FILE"]) as file:
                lines = [json.loads(line) for line in file]
        except (KeyError, OSError, ValueError):
            return []
        of_row = [line for line in lines if (line.get("row"), line.get("database")) == (self.row, self.database)]
        return [line[name] for line in of_row if name in line]

    def goes_on(self):
        """Whether there is more to run, and time for it."""
        if self.reached >= self.wanted:
            return False
        is_late = self.has_budget and time.monotonic() - self.start > GATE_SECONDS
        self.is_out_of_time = is_late and self.reached >= -(-self.wanted // 10)
        return not self.is_out_of_time

    def cases(self):
        """A seed and its generator for each case that is to run now; a case counts when the next one is asked for."""
        while self.goes_on():
            seed = self.seed + self.reached
            yield seed, Random(seed)
            self.reached += 1

    def side_by_side(self, most, case):
        """The same for a `case` that waits more than it works: up to `most` of them at once, each of which answers what it found."""
        seeds = range(self.seed, self.seed + self.wanted)
        with ThreadPoolExecutor(most) as pool:
            for seed, found in zip(seeds, pool.map(lambda seed: case(seed, Random(seed)), seeds), strict=True):
                for what in found:
                    self.violation(f"seed {seed}: {what}")
                self.reached += 1

    def not_run(self, reason):
        """This machine can't do it: never a pass. The test ends here, as skipped."""
        self._say({"row": self.row, "database": self.database, "not_run": reason})
        pytest.skip(f"{self.row}: NOT RUN: {reason}")

    def finish(self):
        line = {
            "row": self.row,
            "database": self.database,
            "commit": self.commit,
            "count": self.reached,
            "violations": len(self.found),
            "controls_caught": self.caught,
            "controls_missed": self.missed,
            "first_seed": self.seed,
            "last_seed": self.seed + max(self.reached - 1, 0),
            "seconds": round(time.monotonic() - self.start, 3),
            "found": self.found[:50],
            **self.notes,
        }
        self._say(line)
        assert not self.found, f"{self.row}: {len(self.found)} violations:\n" + "\n".join(self.found[:20])
        assert not self.missed, f"{self.row}: planted and not caught: {self.missed}"
        least = 0 if self.is_out_of_time else min(self.least, self.wanted)
        assert self.reached >= least, f"{self.row}: {self.reached} of {self.wanted} reached, and {least} are the least"

    def _after_the_last(self):
        """Where the last run of this row left off, when somebody adds them up: none is played twice, and none left out."""
        return max((last + 1 for last in self.earlier("last_seed")), default=None)

    @staticmethod
    def _say(line):
        print(json.dumps(line))
        if path := os.environ.get("DALASI_PROOF_FILE"):
            with open(path, "a") as file:
                file.write(json.dumps(line) + "\n")
