"""Row C3: many clients that keep a connection and say nothing. They cost little memory, they can go on when they want to,
and who is busy meanwhile is answered as soon as without them."""

import asyncio
import gc
import resource
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from checks import data
from proof import Proof
from server import Api
from waits import judge, p99, times_as_long

# As many as the promise is about, and as many as a shared machine bears.
ALL_IDLE = 10_000
GATE_IDLE = 500
BUSY = 1_000
MOST_BYTES_EACH = 150 * 1024 * 1024 // ALL_IDLE
# What a server takes for its first connections, however few.
START_BYTES = 16 * 1024 * 1024
MOST_SLOWER = 1.2
ROUNDS = 5
# So many rounds decide when the first say that it is: a percentile of so short a time leaps on a shared machine.
ROUNDS_IN_DOUBT = 20
ROUND_S = 4
SETTLED_S = 2
# Requests.
AT_ONCE = 200
# Files that a process has open besides.
OTHERS = 200

# A server that never gives back what it once needed for a connection.
GREEDY = """
import asyncio
async def serve(reader, writer):
    buffer = bytearray(b"x" * 65536)
    while await reader.readline():
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


class Refused(Exception):
    """Who is busy is not served."""


class Client:
    """A connection that is kept."""

    async def connect(self, place):
        self.reader, self.writer = await asyncio.open_connection(*place)
        return self

    async def ask(self, path="/health", key=""):
        """The status of the answer; it is read to its end."""
        head = f"GET {path} HTTP/1.1\r\nHost: dalasi\r\nAuthorization: Bearer {key}\r\n\r\n"
        self.writer.write(head.encode())
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.split("content-length: ")[1].split("\r\n")[0])
        await self.reader.readexactly(length)
        return int(answer.split(" ", 2)[1])


async def crowd(place, count):
    """So many connections, each of which was used once."""
    clients = []
    while len(clients) < count:
        some = await asyncio.gather(*[Client().connect(place) for _ in range(min(AT_ONCE, count - len(clients)))])
        await asyncio.gather(*[client.ask() for client in some])
        clients += some
    return clients


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


async def hold(pid, place, count, each):
    """Faults of a server with so many idle connections, one of which may take so many bytes."""
    faults = []
    # What is taken once, for whatever number of them.
    for client in await crowd(place, 64):
        client.writer.close()
    before = resident(pid)
    clients = await crowd(place, count)
    await asyncio.sleep(1)
    taken = resident(pid) - before
    print(f"{count} idle connections take {taken / 2**20:.1f} MiB")
    if taken > START_BYTES + each * count:
        faults.append(f"{count} idle connections take {taken} bytes")
    answers = []
    # All at once would be an overload, which is refused in part.
    for first in range(0, count, AT_ONCE):
        some = clients[first : first + AT_ONCE]
        answers += await asyncio.gather(*[client.ask() for client in some], return_exceptions=True)
    if lost := [answer for answer in answers if answer != 200]:
        faults.append(f"{len(lost)} of {count} can't go on: {lost[0]!r}")
    for client in clients:
        client.writer.close()
    return faults


async def pace(place, path, key, count):
    """The 99th percentile of the seconds until an answer, each of so many connections asking once a second."""
    took = []

    async def ask(client, start):
        end = start + ROUND_S
        while start < end:
            await asyncio.sleep(max(0.0, start - time.monotonic()))
            began = time.monotonic()
            if (status := await client.ask(path, key)) != 200:
                raise Refused(f"answered {status}")
            took.append(time.monotonic() - began)
            start += 1

    clients = await crowd(place, count)
    # Thousands that came or went a moment ago are done with, and the wait of a client is not its own tidying up.
    await asyncio.sleep(SETTLED_S)
    gc.collect()
    gc.disable()
    begin = time.monotonic() + 0.2
    await asyncio.gather(*[ask(client, begin + number / count) for number, client in enumerate(clients)])
    gc.enable()
    for client in clients:
        client.writer.close()
    return p99(took)


class Beside:
    """How much longer the busy wait beside all the idle ones, in rounds that take turns."""

    def __init__(self, place, path, key):
        self.place, self.path, self.key = place, path, key
        self.alone, self.beside = [], []

    async def round(self, want=None):
        """`want` is what the idle connections do meanwhile."""
        self.alone.append(await pace(self.place, self.path, self.key, BUSY))
        idle = await crowd(self.place, ALL_IDLE)
        wanting = asyncio.create_task(want(idle)) if want else None
        self.beside.append(await pace(self.place, self.path, self.key, BUSY))
        if wanting:
            wanting.cancel()
        for client in idle:
            client.writer.close()

    def ratio(self):
        return times_as_long(self.alone, self.beside)

    def print(self):
        for name, rounds in (("alone", self.alone), ("beside", self.beside)):
            print("p99", name, *(f"{one * 1000:.2f}" for one in rounds), "ms")


async def slower(place, path, key):
    rounds = Beside(place, path, key)
    while len(rounds.alone) < ROUNDS or (rounds.ratio() > MOST_SLOWER and len(rounds.alone) < ROUNDS_IN_DOUBT):
        await rounds.round()
    rounds.print()
    return rounds


async def slower_when_not_idle(place, path, key):
    """Beside connections each of which is a cost after all: they go on asking, in turns."""

    async def ask_on(clients):
        while True:
            await asyncio.gather(*[client.ask() for client in clients[:AT_ONCE]])
            clients = clients[AT_ONCE:] + clients[:AT_ONCE]

    rounds = Beside(place, path, key)
    try:
        await rounds.round(ask_on)
    except Refused:
        return float("inf")
    rounds.print()
    return rounds.ratio()


def test_idle_connections_cost_little(new_server, database):
    proof = Proof("C3", database, gate_count=1)
    idle = GATE_IDLE if proof.tier == "gate" else ALL_IDLE
    needed = idle + BUSY + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < needed:
        return proof.not_run(f"a process may open {hard} files here, {needed} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    server = new_server()
    parts = urlsplit(server.url)
    place = (parts.hostname, parts.port)
    key = server.keys["test"]["secret"]
    # Lists wait in a short line, in which a machine that stands still for a moment leaves no room.
    checkout = data(Api(server.url, key).post("/v1/checkouts", {"amount": "10.00"}), 201)
    path = f"/v1/checkouts/{checkout['id']}"
    undecided = []
    with proof:
        for _ in proof.cases():
            for fault in asyncio.run(hold(server.process.pid, place, idle, MOST_BYTES_EACH)):
                proof.violation(fault)
            if idle == ALL_IDLE:
                rounds = asyncio.run(slower(place, path, key))
                verdict, why = judge(rounds.alone, rounds.beside, MOST_SLOWER)
                if verdict == "undecided":
                    undecided.append(why)
                elif verdict == "slower":
                    proof.violation(f"beside idle connections the busy wait {why}")
        if undecided and not proof.found:
            proof.not_run(undecided[0])
        proof.control("64_kib_for_each_connection", greed_is_seen(idle))
        if idle == ALL_IDLE:
            ratio = asyncio.run(slower_when_not_idle(place, path, key))
            proof.control("connections_that_are_not_idle", ratio > MOST_SLOWER)


def greed_is_seen(count):
    greedy = subprocess.Popen([sys.executable, "-c", GREEDY], stdout=subprocess.PIPE, text=True)
    try:
        place = ("127.0.0.1", int(greedy.stdout.readline()))
        return any("bytes" in fault for fault in asyncio.run(hold(greedy.pid, place, count, MOST_BYTES_EACH)))
    finally:
        greedy.kill()
        greedy.wait()
