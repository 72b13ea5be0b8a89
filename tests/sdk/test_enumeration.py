"""Row D11: nobody learns by guessing or by the clock what there is. An id that is somebody else's takes as long to refuse as
one that is nobody's, and a wrong key as long, whatever of it is right."""

import hashlib
import socket
import statistics
import time
from math import sqrt
from random import Random
from urllib.parse import urlsplit

from checks import data
from proof import Proof
from server import Api

GATE_SAMPLES = 3_000
# Beyond this the difference of two means is none of chance.
MOST_T = 4.5
# Of the slowest, which are the machine's doing: kept out on both sides alike.
CROP = 0.9
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class Wire:
    """One connection, so that nothing but the server takes time."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path, key):
        """Nanoseconds until the answer is there, and its status."""
        head = f"GET {path} HTTP/1.1\r\nHost: dalasi\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        began = time.perf_counter_ns()
        self.socket.sendall(head)
        answer = self.socket.recv(65536)
        took = time.perf_counter_ns() - began
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.socket.recv(65536)
        return took, int(answer[9:12])


def welch(one, other):
    """How many standard errors the mean of the one is above the other's."""
    limit = sorted(one + other)[int(len(one + other) * CROP)]
    one, other = ([took for took in side if took <= limit] for side in (one, other))
    error = sqrt(statistics.variance(one) / len(one) + statistics.variance(other) / len(other))
    return (statistics.fmean(one) - statistics.fmean(other)) / error


def together(parts):
    """The same for several runs, each with its number of samples: what is too small to be seen in any of them adds up."""
    return sum(t * sqrt(count) for t, count in parts) / sqrt(sum(count for _, count in parts))


def compare(wire, random, count, one, other, status):
    """Asks for both in an order that nobody could know; what each is makes a path and a key."""
    times = ([], [])
    for number in range(2 * count + 200):
        # Both are made up, so that what comes before a request is the same.
        requests, side = (one(random), other(random)), random.random() < 0.5
        took, got = wire.ask(*requests[side])
        assert got == status, f"{got} instead of {status}"
        # The first ones warm up.
        if number >= 200:
            times[side].append(took)
    return welch(*times)


def guess(known, random):
    """An id of the same moment."""
    return known[:-8] + "".join(random.choice(ALPHABET) for _ in range(8))


def with_check(body):
    """A key that is refused only because nobody has it: with its six check characters."""
    bits = int.from_bytes(hashlib.sha256(body.encode()).digest()[:4], "big") >> 2
    return body + "".join(ALPHABET[bits >> 5 * place & 31] for place in reversed(range(6)))


def altered(key):
    """All that are right but for one character near their end."""
    body = key[:-6]
    places = range(len(body) - 9, len(body) - 1)
    return [with_check(body[:place] + letter + body[place + 1 :])
            for place in places for letter in ALPHABET.replace(body[place], "")]  # fmt: skip


def invented(random):
    return with_check("sk_test_" + "".join(random.choice(ALPHABET) for _ in range(51)) + "0")


def test_nobody_learns_what_there_is(new_server, database):
    with Proof("D11", database, GATE_SAMPLES) as proof:
        server = new_server()
        test, live = (server.keys[mode]["secret"] for mode in ("test", "live"))
        api = Api(server.url, test)
        theirs = [data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)["id"] for _ in range(50)]
        wire = Wire(server.url)
        random = Random(proof.seed)
        # As many of each, so that those of one kind are not asked for again more often than those of the other.
        nobodys = [guess(known, random) for known in theirs]
        near = altered(test)
        # As much alike as those: a processor is quicker with what it has just seen.
        wrong = altered(invented(random))

        def of_others(random):
            return f"/v1/checkouts/{random.choice(theirs)}", live

        def of_nobody(random):
            return f"/v1/checkouts/{random.choice(nobodys)}", live

        def nearly_right(random):
            return "/v1/checkouts/" + theirs[0], random.choice(near)

        def all_wrong(random):
            return "/v1/checkouts/" + theirs[0], random.choice(wrong)

        def without_form(random):
            return "/v1/checkouts/" + theirs[0], "x"

        pairs = {"ids": (of_others, of_nobody, 404), "keys": (nearly_right, all_wrong, 401)}
        for name, (one, other, status) in pairs.items():
            t = compare(wire, random, proof.wanted, one, other, status)
            proof.note(f"t of {name}", (t, proof.wanted))
            all_runs = together([*proof.earlier(f"t of {name}"), (t, proof.wanted)])
            print(f"{name}: t = {t:.2f}, with earlier runs {all_runs:.2f}")
            if max(abs(t), abs(all_runs)) > MOST_T:
                proof.violation(
                    f"seed {proof.seed}: the two kinds of {name} differ by {t:.1f} standard errors, with earlier runs {all_runs:.1f}"
                )
        proof.reached = proof.wanted
        # What is refused by its form alone, before anything is looked up, is told by the clock.
        t = compare(wire, random, min(proof.wanted, GATE_SAMPLES), nearly_right, without_form, 401)
        print(f"refused by its form: t = {t:.2f}")
        proof.control("refused_before_it_is_looked_up", abs(t) > MOST_T)
