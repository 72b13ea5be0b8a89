"""A server under strace, which kills it, or fails its system calls, where the test says."""

import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path

from server import Server

STRACE = ["strace", "--follow-forks", "--quiet=all", "--output=/dev/null"]


@cache
def why_not():
    """Why nothing can be injected on this machine; None where it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    words = [*STRACE, "--trace=write", "--inject=write:signal=SIGKILL:when=1", "echo", "said"]
    tried = subprocess.run(words, capture_output=True, text=True)
    if tried.returncode == -signal.SIGKILL and not tried.stdout:
        return None
    return f"processes can't be traced here: {tried.stderr.strip()}"


class Injected(Server):
    """`what` as strace has it, for instance `fdatasync:error=EIO:when=3`; the count is a thread's."""

    def __init__(self, store, log, what, **options):
        calls = what.split(":")[0]
        # Faster, but with it some versions of strace forget to send the signal.
        filtered = [] if "signal=" in what else ["--seccomp-bpf"]
        super().__init__(store, log, prefix=[*STRACE, *filtered, f"--trace={calls}", f"--inject={what}"], **options)

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
