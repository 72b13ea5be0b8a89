"""A server under strace, which kills it, or fails its system calls, where the test says."""

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from server import Server

STRACE = ["strace", "--follow-forks", "--quiet=all"]
# A signal's handler tells the runtime by a byte to itself, on which no kernel gives an error.
OWN_PIPE = re.compile(r'sendto\(\d+, "\\1", 1, ')
CALL = re.compile(r"\d+ +\w+\(")
# So many tries for one point: each after the first is drawn among the calls that there were.
DRAWS = 6


@cache
def why_not():
    """Why nothing can be injected on this machine; None where it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    words = [*STRACE, *failing("write:signal=SIGKILL:when=1", "/dev/null"), "echo", "said"]
    tried = subprocess.run(words, capture_output=True, text=True)
    if tried.returncode == -signal.SIGKILL and not tried.stdout:
        return None
    return f"processes can't be traced here: {tried.stderr.strip()}"


def failing(what, trace):
    """The words for strace by which system calls end as said, and are told of in the file `trace`."""
    # Faster, but with it some versions of strace forget to send the signal.
    filtered = [] if "signal=" in what else ["--seccomp-bpf"]
    return [f"--output={trace}", *filtered, f"--trace={what.split(':')[0]}", f"--inject={what}"]


class Traced(Server):
    """`words` are strace's."""

    def __init__(self, store, log, words, **options):
        super().__init__(store, log, prefix=[*STRACE, *words], **options)

    def start(self, timeout=30):
        try:
            return super().start(timeout)
        except AssertionError:
            assert "strace: " not in self._tail(), self._tail()
            raise

    def _traced(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in children.read_text().split()]
        except FileNotFoundError:
            return []

    def terminate(self):
        for pid in self._traced():
            os.kill(pid, signal.SIGTERM)

    def kill(self):
        if self.process and self.process.poll() is None:
            for pid in self._traced():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def ended(self, timeout):
        """The exit code (strace passes it on; negative: the signal), or None while it runs."""
        try:
            return self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return None


class Injected(Traced):
    """`what` as strace has it, for instance `fdatasync:error=EIO:when=3`; the count is a thread's."""

    def __init__(self, store, log, what, **options):
        self.trace = Path(f"{log}.trace")
        super().__init__(store, log, failing(what, self.trace), **options)

    def calls(self):
        """How many of one of its calls the busiest thread has made."""
        return max(Counter(found.group() for line in self._lines() if (found := CALL.match(line))).values(), default=0)

    def failed_calls(self):
        """Those that were made to fail, as strace shows them, but for what can't fail."""
        return [line for line in self._lines() if "(INJECTED)" in line and not OWN_PIPE.search(line)]

    def _lines(self):
        return self.trace.read_text(errors="replace").splitlines() if self.trace.exists() else []

    def terminate(self):
        super().terminate()
        if self.ended(0.5) is None and any("(INJECTED)" in line and OWN_PIPE.search(line) for line in self._lines()):
            super().terminate()  # The first was never told to the runtime.
