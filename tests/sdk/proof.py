"""A row of the proof programme: what it is asked for, and how it says what it reached. The same protocol as `crates/proof`."""

import json
import os
import random
import time


class Proof:
    def __init__(self, row, database, gate):
        self.row, self.database = row, database
        self.count = int(os.environ.get("DALASI_PROOF_COUNT") or gate)
        self.seed = int(os.environ.get("DALASI_PROOF_SEED") or random.getrandbits(48))
        self.tier = os.environ.get("DALASI_TIER", "gate")
        self.reached = 0
        self._start = time.monotonic()
        self._found, self._caught, self._missed = [], [], []

    def cases(self):
        """A number and a generator for each case that is to run now; a case counts when the next one is asked for."""
        while self.reached < self.count:
            seed = self.seed + self.reached
            yield seed, random.Random(seed)
            self.reached += 1

    def violation(self, seed, what):
        self._found.append(f"seed {seed}: {what}")

    def control(self, name, caught):
        (self._caught if caught else self._missed).append(name)

    def not_run(self, reason):
        self._say({"row": self.row, "database": self.database, "not_run": reason})

    def finish(self):
        self._say(
            {
                "row": self.row,
                "database": self.database,
                "count": self.reached,
                "violations": len(self._found),
                "controls_caught": self._caught,
                "controls_missed": self._missed,
                "first_seed": self.seed,
                "last_seed": self.seed + max(self.reached, 1) - 1,
                "seconds": round(time.monotonic() - self._start, 1),
                "found": self._found,
            }
        )
        assert not self._found, "\n".join(self._found)
        assert not self._missed, f"planted and not caught: {', '.join(self._missed)}"
        assert self.reached * 10 >= self.count, f"{self.reached} of {self.count} reached"

    @staticmethod
    def _say(line):
        text = json.dumps(line)
        print(text)
        if path := os.environ.get("DALASI_PROOF_FILE"):
            with open(path, "a") as file:
                file.write(text + "\n")
