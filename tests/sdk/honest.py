"""A client that reads a list twenty times a second, in a process of its own: what it waits for is the server alone."""

import json
import subprocess
import sys
import time
from threading import Event, Thread

import requests

PATH = "/v1/checkouts?limit=1"


class Honest:
    """Asks from its beginning to its end; then knows how long each answer took, and what was wrong."""

    def __init__(self, server):
        self.words = [sys.executable, __file__, server.url, server.keys["test"]["secret"]]
        self.seconds = []
        self.faults = []

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        said, _ = self.process.communicate()
        self.seconds, self.faults = json.loads(said)


def ask(url, key, is_over):
    """Until it is over: the seconds that each answer took, and what came instead of one."""
    seconds, faults = [], []
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {key}"
        while not is_over.wait(0.05):
            start = time.monotonic()
            try:
                status = session.get(url + PATH, timeout=30).status_code
                if status != 200:
                    faults.append(str(status))
            except requests.RequestException as fault:
                faults.append(repr(fault))
            seconds.append(time.monotonic() - start)
    return seconds, faults


def main():
    is_over = Event()
    Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    print(json.dumps(ask(*sys.argv[1:], is_over)))


if __name__ == "__main__":
    main()
