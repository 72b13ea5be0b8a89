"""Run by `test_ssrf.py` in a network of its own, where every address is this machine: gives the server URLs that lead
inside, and watches every connection that anybody begins. Prints what it saw."""

import ipaddress
import json
import re
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from inner_addresses import PUBLIC, PUBLIC_V4, PUBLIC_V6, V4, Names, urls
from server import Api, Server
from store import SqliteStore

OUTGOING = 4
LOST = (263, 6)
EVENTS = {"enabled_events": ["payout.failed"]}


class Watcher:
    """Sees each first packet of a connection, whichever address and port it goes to."""

    def __init__(self):
        self.begun = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self.socket.bind(("lo", 0))
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            frame, (_, protocol, way, *_) = self.socket.recvfrom(200)
            if way != OUTGOING:
                continue
            if protocol == 0x0800:
                kind, to, segment = frame[23], frame[30:34], frame[14 + (frame[14] & 15) * 4 :]
            elif protocol == 0x86DD:
                kind, to, segment = frame[20], frame[38:54], frame[54:]
            else:
                continue
            if kind == 6 and segment[13] & 0x12 == 2:
                self.begun.append((str(ipaddress.ip_address(to)), struct.unpack(">H", segment[2:4])[0]))

    def lost(self):
        return struct.unpack("II", self.socket.getsockopt(*LOST, 8))[1]


def is_allowed(place, loopback, ours):
    """Whether a connection may have been begun: to us, to what is public, in test mode to this machine."""
    address, port = place
    if place in ours:
        return True
    if address in (PUBLIC_V4, PUBLIC_V6):
        return port == 443 or port >= 1024
    return loopback and ipaddress.ip_address(address).is_loopback


class Tester:
    def __init__(self, server, watcher):
        self.server = server
        self.watcher = watcher
        self.ours = {("127.0.0.1", int(server.url.rsplit(":", 1)[1]))}
        self.found = []
        self.seen = 0
        self.accepted = 0
        self.log = open(server.log, errors="replace")
        self.apis = {mode: Api(server.url, server.keys[mode]["secret"]) for mode in ("live", "test")}
        self.spare = {}
        for mode, api in self.apis.items():
            body = EVENTS | {"url": f"https://{PUBLIC}/"}
            self.spare[mode] = api.post("/v1/webhook_endpoints", body).json()["data"]["id"]

    def judge(self, what, mode):
        time.sleep(0.002)
        begun = self.watcher.begun[self.seen :]
        self.seen += len(begun)
        bad = sorted({place for place in begun if not is_allowed(place, mode == "test", self.ours)})
        self.found += [f"{mode} {what!r} led to {address}:{port}" for address, port in bad]
        return bad

    def endpoint(self, url, mode, is_new, tests=1):
        """Made or changed with it; where it is taken, called as well."""
        api, identity = self.apis[mode], self.spare[mode]
        if is_new:
            answer = api.post("/v1/webhook_endpoints", EVENTS | {"url": url})
        else:
            answer = api.patch(f"/v1/webhook_endpoints/{identity}", {"url": url})
        if answer.status_code in (200, 201):
            self.accepted += 1
            identity = answer.json()["data"]["id"]
            for _ in range(tests):
                api.post(f"/v1/webhook_endpoints/{identity}/test")
            if is_new:
                api.delete(f"/v1/webhook_endpoints/{identity}")
        elif answer.status_code != 400:
            self.found.append(f"{mode} {url!r} is answered {answer.status_code}")
        self.judge(url, mode)

    def logo(self, url, mode):
        """Taken as text, and fetched by a job that says how it went."""
        answer = self.apis[mode].put("/v1/pay/settings", {"logo_url": url})
        if answer.status_code == 200:
            deadline = time.monotonic() + 20
            read = self.log.read()
            while "logo can't be shown" not in read:
                if time.monotonic() > deadline:
                    self.found.append(f"{mode}: nobody looked at the logo {url!r}")
                    break
                time.sleep(0.003)
                read += self.log.read()
        self.judge(f"logo {url}", mode)

    def redirects(self):
        """A receiver that is allowed sends the caller elsewhere."""

        class Elsewhere(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(self.server.status)
                self.send_header("Location", self.server.to)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_):
                pass

        receiver = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{receiver.server_port}/"
        self.ours.add(("127.0.0.1", receiver.server_port))
        api = self.apis["test"]
        made = api.post("/v1/webhook_endpoints", EVENTS | {"url": here}).json()["data"]["id"]
        targets = [f"http://{address}:9/" for address in V4] + [
            "//10.0.0.1/",
            "https://[::1]/",
            "/elsewhere",
            f"https://{PUBLIC}/",
        ]
        for number, receiver.to in enumerate(targets):
            receiver.status = [301, 302, 303, 307, 308][number % 5]
            before = len(self.watcher.begun)
            api.post(f"/v1/webhook_endpoints/{made}/test")
            self.logo(f"{here}logo-{number}", "test")
            begun = [place for place in self.watcher.begun[before:] if place not in self.ours]
            if begun:
                self.found.append(f"a redirect to {receiver.to} was followed: {begun}")
        return len(targets)


def names_that_change(random, count):
    for number in range(count):
        kind = ["flip1", "flip2", "flip3", "mixed", "six", "alias"][number % 6]
        yield f"https://{kind}-{number}.attacker.example{random.choice(['', ':8443', ':9000'])}/"


def main(folder, seed, most_urls, most_names, planted=None):
    folder, random = Path(folder), Random(int(seed))
    watcher, names = Watcher(), Names()
    store = SqliteStore(folder / "store")
    keys = store.init()
    server = Server(store, folder / "server.log", planted=planted)
    server.keys = keys["keys"]
    server.start()
    tester = Tester(server, watcher)
    given = 0
    for given, url in enumerate(urls(random, int(most_urls)), 1):
        tester.endpoint(url, ["live", "test"][given % 2], is_new=given % 4 < 2)
        tester.logo(url, ["test", "live"][given % 2])
    flips = 0
    for flips, url in enumerate(names_that_change(random, int(most_names)), 1):
        tester.endpoint(url, "live", is_new=flips % 2 == 0, tests=3)
        tester.logo(url.replace("attacker", "flipper"), "live")
    followed = tester.redirects()
    # What is judged can be seen: a public name is called, and somebody who calls inside is found.
    public = [place for place in watcher.begun if place[0] == PUBLIC_V4]
    before = len(tester.found)
    for address, family in [("10.1.2.3", socket.AF_INET), ("fd00:ec2::254", socket.AF_INET6)]:
        with socket.socket(family) as caller:
            caller.settimeout(1)
            caller.connect_ex((address, 6379))
    time.sleep(0.1)
    caught = tester.judge("a call of our own", "test")
    del tester.found[before:]
    resolved = sum(1 for name, _ in names.asked if re.match(r"(flip|mixed|six|alias)", name))
    server.stop()
    print(
        json.dumps(
            {
                "urls": given,
                "rebinds": flips,
                "redirects": followed,
                "accepted": tester.accepted,
                "begun": len(watcher.begun),
                "resolved": resolved,
                "found": tester.found,
                "lost": watcher.lost(),
                "controls": {"a public name is called": bool(public), "a call inside is seen": len(caught) == 2},
            }  # fmt: skip
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
