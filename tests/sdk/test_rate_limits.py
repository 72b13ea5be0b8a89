"""Row D12: one request more than the limit is refused, and nobody gets round it: not by another spelling of a header, a
forged address, another address of the same network, another token; nor by many requests at once."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import requests

from checks import data
from hosted import Payer
from proof import Proof
from server import Api
from store import dalasi, psql
from wire import Wire, request

GATE_WAYS = 40
# A second earns one, and two may come at once.
SLOW = ("--rate-limit", "1")
BURST = 2
# With a publishable key, of the networks of one /48.
SITE_BURST = 4
# Of what needs no key.
OPEN_BURST, OPEN_RATE = 200, 100
MOST_ATTEMPTS = 10
POOR = "+2207000001"
# Waits for its owner, and until then is under way.
QUIET = "+2207654321"


class Bucket:
    """Requests that have to share one limit. Time goes on meanwhile, and earns some."""

    def __init__(self, proof, what, burst, rate):
        self.proof, self.what, self.burst, self.rate = proof, what, burst, rate
        self.passed, self.refused = 0, 0
        self.start = time.monotonic()

    def took(self, status, headers=()):
        if status == 429:
            self.refused += 1
            headers = {name.lower(): value for name, value in dict(headers).items()}
            if not 1 <= int(headers.get("retry-after", 0)) <= 5:
                self.fault(f"refused with Retry-After {headers.get('retry-after')!r}")
        elif status >= 500:
            self.fault(f"answered {status}")
        else:
            self.passed += 1

    def fault(self, what):
        self.proof.violation(f"{self.what}: {what}")

    def judge(self):
        """As many as the limit passes, and not one more."""
        earned = int((time.monotonic() - self.start) * self.rate) + 1
        if not self.burst <= self.passed <= self.burst + earned:
            self.fault(f"{self.passed} passed, {self.burst} to {self.burst + earned} may")
        if not self.refused:
            self.fault("nothing was refused")
        self.proof.reached += 1


def raw(server, *heads, path="/v1/pay/methods", source="127.0.0.1"):
    """One request on a connection of its own, from any address of this machine, its headers as they are written."""
    with Wire(server.url) as wire:
        wire.socket = socket.create_connection(wire.place, timeout=20, source_address=(source, 0))
        (status, headers, _), _ = wire.ask(request("GET", path, headers=heads))
    return status, headers


def tried(proof, what, plain, other):
    """The limit is used up plainly, then the other way is tried, and nothing is gained by it."""
    bucket = Bucket(proof, what, BURST, 1)
    for _ in range(BURST):
        bucket.took(*plain())
    for _ in range(3):
        bucket.took(*other())
    bucket.judge()


def of_one_key(server, proof):
    """Whatever it looks like, it is the same key. Each way has a key of its own, so that none waits for another."""

    def another_key():
        made = dalasi("keys", "create", *server.store.location, "--kind", "secret", "--json")
        return json.loads(made.stdout)["secret"]

    ways = {
        "as it is": lambda key: [("Authorization", f"Bearer {key}")],
        "small letters": lambda key: [("authorization", f"bearer {key}")],
        "large letters": lambda key: [("AUTHORIZATION", f"BEARER {key}")],
        "blanks": lambda key: [("Authorization", f"Bearer    {key}  ")],
        "another address": lambda key: [("Authorization", f"Bearer {key}"), ("X-Forwarded-For", "203.0.113.9")],
        "an idempotency key": lambda key: [("Authorization", f"Bearer {key}"), ("Idempotency-Key", "one")],
    }
    for name, way in ways.items():
        key = another_key()
        plain = ways["as it is"](key)
        tried(proof, f"the key, then by {name}", lambda: raw(server, *plain), lambda: raw(server, *way(key)))
    key = another_key()
    Api(server.url, key).post("/v1/pay/products", {})
    token = data(Api(server.url, key).post("/v1/auth/token", {}))["access_token"]
    answers = [raw(server, ("Authorization", f"Bearer {it}"))[0] for it in (key, token, token, key)]
    if answers.count(429) < 3:
        proof.violation(f"a token has a limit beside its key's: {answers}")
    proof.reached += 1
    key = another_key()
    bucket = Bucket(proof, "the key, many at once", BURST, 1)
    with ThreadPoolExecutor(16) as pool:
        for answer in pool.map(lambda _: raw(server, *ways["as it is"](key)), range(64)):
            bucket.took(*answer)
    bucket.judge()
    if raw(server, *ways["as it is"](another_key()))[0] != 200:
        proof.violation("another key is refused for this one")


def of_one_visitor(server, proof):
    """A publishable key is everybody's who looks at the page: one network gets half of a secret key's rate, and what several of
    them take leaves enough for the others."""

    def ask(source):
        return raw(server, ("Authorization", f"Bearer {server.keys['test']['publishable']}"), source=source)

    bucket = Bucket(proof, "a publishable key, by one network", BURST // 2, 1 / 2)
    for place in range(4):
        status, headers = ask("127.0.3.1")
        bucket.took(status, headers)
        shown = [{name.lower(): value for name, value in dict(headers).items()}.get(name) for name in
                 ("ratelimit-limit", "ratelimit-remaining")]  # fmt: skip
        if place == 0 and shown != ["1", "0"]:
            proof.violation(f"of its half a visitor is told {shown}")
    for number in range(2, 10):
        status, _ = ask(f"127.0.3.{number}")
        if status != 200:
            proof.violation(f"another payer is refused for the requests of {number - 1} networks: {status}")
    bucket.judge()


def of_one_site(server, proof):
    """Of IPv6 a place may have a /48, and as many networks in it as it likes: together they have a bound of their own."""

    def ask(address):
        key = ("Authorization", f"Bearer {server.keys['test']['publishable']}")
        return raw(server, key, ("X-Forwarded-For", address))

    bucket = Bucket(proof, "a publishable key, by the networks of one /48", SITE_BURST, 2)
    for number in range(20):
        bucket.took(*ask(f"2001:db8:3:{number:x}::1"))
    bucket.judge()
    if ask("2001:db8:4::1")[0] != 200:
        proof.violation("another payer is refused for the networks of one /48")


def guesses(others):
    return {
        "no key": [],
        "a malformed key": [("Authorization", "Bearer sk_test_x")],
        "no bearer": [("Authorization", "Basic dXNlcjpwYXNz")],
        "a token of nobody": [("Authorization", "Bearer a.b.c")],
        "a key of another installation": [("Authorization", f"Bearer {others['test']['secret']}")],
        "its live key": [("Authorization", f"Bearer {others['live']['secret']}")],
    }


def of_one_address(server, proof, others):
    """Without a valid key all of an address share a limit, whatever they say of themselves."""
    sources = (f"127.0.1.{number}" for number in range(1, 250))
    for name, heads in guesses(others).items():
        source = next(sources)
        tried(
            proof,
            f"an address, then by {name}",
            lambda: raw(server, source=source),
            lambda: raw(server, *heads, source=source),
        )
    source = next(sources)
    bucket = Bucket(proof, "an address, many at once", BURST, 1)
    with ThreadPoolExecutor(16) as pool:
        wrong = guesses(others)["a key of another installation"]
        for answer in pool.map(lambda _: raw(server, *wrong, source=source), range(64)):
            bucket.took(*answer)
    bucket.judge()
    if raw(server, source=next(sources))[0] != 401:
        proof.violation("another address is refused for this one")
    # A good key is not among the guesses, however many there are from its address.
    good = ("Authorization", f"Bearer {server.keys['live']['secret']}")
    first = raw(server, good, source=next(sources))[0]
    if (first, raw(server, good, source=source)[0]) != (200, 200):
        proof.violation("a key in use is refused for the guesses of its neighbours")


def of_one_address_that_says_more(server, proof):
    """Nobody has put a proxy in front of it: what a client says of its address is worth nothing."""
    sources = (f"127.0.4.{number}" for number in range(1, 250))
    for name, value in [
        ("X-Forwarded-For", "203.0.113.9"), ("x-forwarded-for", "::1"), ("Forwarded", "for=203.0.113.9"),
        ("X-Real-IP", "203.0.113.9"),
        ("True-Client-IP", "203.0.113.9"), ("CF-Connecting-IP", "203.0.113.9"), ("Via", "1.1 203.0.113.9"),
    ]:  # fmt: skip
        source = next(sources)
        tried(
            proof,
            f"an address that says {name}",
            lambda: raw(server, source=source),
            lambda: raw(server, (name, value), source=source),
        )


def behind_a_proxy(server, proof, others):
    """The address that the proxy saw counts, and of an IPv6 address its network."""
    wrong = guesses(others)["its live key"]
    for number, (plain, other) in enumerate(
        [
            ("2001:db8:1:N::1", "2001:db8:1:N::2"),
            ("2001:db8:1:N::1", "2001:DB8:1:N:0:0:0:1"),
            ("2001:db8:1:N::1", "2001:db8:1:N:ffff:ffff:ffff:ffff"),
            ("2001:db8:1:N::1", "[2001:db8:1:N::3]:443"),
            ("2001:db8:1:N::1", "203.0.113.1, 2001:db8:1:N::4"),
            ("2001:db8:1:N::1", "203.0.113.1\r\nX-Forwarded-For: 2001:db8:1:N::5"),
            ("198.51.100.N", "::ffff:198.51.100.N"),
            ("198.51.100.N", "198.51.100.N:1234"),
            ("198.51.100.N", "203.0.113.1, 198.51.100.N"),
            ("198.51.100.N", " 198.51.100.N "),
            ("198.51.100.N", "203.0.113.1\r\nx-forwarded-for: 198.51.100.N"),
        ],
        1,
    ):
        seen, said = (
            ("X-Forwarded-For", plain.replace("N", str(number))),
            ("X-Forwarded-For", other.replace("N", str(number))),
        )
        tried(
            proof,
            f"{seen[1]}, then as {said[1]!r}",
            lambda: raw(server, *wrong, seen),
            lambda: raw(server, *wrong, said),
        )
    for other in ("2001:db8:2:1::1", "198.51.100.200"):
        if raw(server, ("X-Forwarded-For", other))[0] != 401:
            proof.violation(f"{other} is refused for other addresses")


def to_everybody(server, proof):
    """What needs no key has a generous limit by address; who floods it does not make the service look ill."""
    picture = "/logos/org_01h455vb4pex5vsknk084sn02q/test/" + "0" * 64 + ".png"
    groups = [
        ["/docs", "/openapi.json", "/.well-known/jwks.json", "/docs/quickstart"],
        [picture],
        ["/health", "/v1/health", "/health/invariants"],
    ]
    for paths in groups:
        bucket = Bucket(proof, f"{paths[0]} and the like", OPEN_BURST, OPEN_RATE)

        def ask(number, paths=paths):
            spoofed = {"X-Forwarded-For": f"203.0.113.{number % 250}"}
            answer = sessions[number % len(sessions)].head(
                server.url + paths[number % len(paths)], headers=spoofed, timeout=20
            )
            return answer.status_code, answer.headers

        sessions = [requests.Session() for _ in range(8)]
        sent = 0
        with ThreadPoolExecutor(len(sessions)) as pool:
            while not bucket.refused and sent < 20 * OPEN_BURST:
                for answer in pool.map(ask, range(sent, sent + 80)):
                    bucket.took(*answer)
                sent += 80
            if paths is groups[0] and requests.get(f"{server.url}/health", timeout=20).status_code != 200:
                bucket.fault("a prober is refused for those who read the documentation")
        bucket.judge()


def attempts_of(api, checkout):
    return data(api.get("/v1/pay/transactions", params={"limit": 1}))["total"] - checkout.before


def of_one_object(server, proof):
    """Attempts to pay one thing with a publishable key: as many as its page allows, and those count for both."""
    api = Api(server.url, server.keys["test"]["secret"])
    browser = Api(server.url, server.keys["test"]["publishable"])

    def checkout():
        before = data(api.get("/v1/pay/transactions", params={"limit": 1}))["total"]
        made = data(api.post("/v1/checkouts", {"amount": "10.00"}), 201)
        return SimpleNamespace(id=made["id"], secret=made["client_secret"], before=before)

    def start(of, number, caller=browser, key=None, **fields):
        """Another method each time is another attempt."""
        body = {"client_secret": of.secret, "payment_method": ["wave", "card"][number % 2]} | fields
        return caller.post("/v1/pay/initialize", body, headers={"Idempotency-Key": key} if key else {})

    def judge(what, of, answers, most=MOST_ATTEMPTS):
        begun = attempts_of(api, of)
        passed = [answer.status_code for answer in answers].count(200)
        refused = [answer for answer in answers if answer.status_code == 429]
        if begun != most or not refused or any(not 1 <= int(one.headers["Retry-After"]) <= 5 for one in refused):
            proof.violation(f"{what}: {begun} attempts began, {passed} passed, {len(refused)} were refused")
        proof.reached += 1

    one = checkout()
    numbers = [*range(MOST_ATTEMPTS), *[MOST_ATTEMPTS] * 5]
    answers = [start(one, number, key=f"attempt-{place}") for place, number in enumerate(numbers)]
    judge("one after the other", one, answers)
    if [answer.status_code for answer in answers] != [200] * MOST_ATTEMPTS + [429] * 5:
        proof.violation(f"one after the other: {[answer.status_code for answer in answers]}")
    again = start(one, 0, key="attempt-0")
    if again.content != answers[0].content or again.headers.get("Idempotent-Replayed") != "true":
        proof.violation("what was answered already is not answered again")
    judge(
        "other words for it",
        one,
        [start(one, 0, key=f"other-{n}", customer_email=f"a{n}@shop.example") for n in range(5)],
    )
    payer = Payer(server.url)
    page = payer.press(payer.look(f"/checkout/{one.id}"), "/other")
    if "too often" not in payer.press(page, "/method", method="wave").text:
        proof.violation("its page knows nothing of it")
    judge("and by its page", one, [start(one, 0)])
    if start(one, 1, caller=api).status_code != 200:
        proof.violation("a merchant's own program is refused")
    if start(checkout(), 0).status_code != 200:
        proof.violation("another checkout is refused for this one")

    many = checkout()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: start(many, number), range(60)))
    while attempts_of(api, many) < MOST_ATTEMPTS and len(answers) < 200:
        answers.append(start(many, len(answers)))
    judge("many at once", many, answers + [start(many, number) for number in range(2)])

    # Where many pay, each phone is counted, whichever payment it is asked for.
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "5.00"}), 201)
    opened = {"object_type": "payment_link", "object_id": link["id"]}
    asked, answers = [], []
    for number in range(MOST_ATTEMPTS + 3):
        session = data(api.post("/v1/pay/initialize", opened))["id"]
        body = {"session_id": session, "payment_method": "afrimoney", "customer_phone": POOR}
        asked.append(body | {"idempotency_key": f"tea-{number}"})
        answers.append(browser.post("/v1/pay/initialize", asked[-1]))
    statuses = [answer.status_code for answer in answers]
    if statuses != [200] * MOST_ATTEMPTS + [429] * 3:
        proof.violation(f"one phone on the page of a link: {statuses}")
    if browser.post("/v1/pay/initialize", asked[0]).content != answers[0].content:
        proof.violation("what was answered once is counted again")
    body = {"session_id": session, "payment_method": "afrimoney", "customer_phone": "+2207000000"}
    if browser.post("/v1/pay/initialize", body).status_code != 200:
        proof.violation("another phone is refused for this one")
    # What never begins keeps nobody from paying.
    named = {"session_id": data(api.post("/v1/pay/initialize", opened))["id"], "customer_phone": QUIET}
    statuses = [browser.post("/v1/pay/initialize", named).status_code for _ in range(MOST_ATTEMPTS + 1)]
    named["payment_method"] = "afrimoney"
    statuses += [browser.post("/v1/pay/initialize", named).status_code for _ in range(MOST_ATTEMPTS + 1)]
    named["session_id"] = data(api.post("/v1/pay/initialize", opened))["id"]
    statuses.append(browser.post("/v1/pay/initialize", named).status_code)
    if statuses != [200] * (MOST_ATTEMPTS + 2) + [400] * MOST_ATTEMPTS + [200]:
        proof.violation(f"a phone that nobody was asked with: {statuses}")
    proof.reached += 4


def before_any_look(server, others, proof):
    """A guess that is one too many has nobody look into the database: that is locked, and it is answered all the same."""
    lock = "begin; lock table api_keys in access exclusive mode; select pg_sleep(4); commit"
    guess, source = ("Authorization", f"Bearer {others['test']['secret']}"), "127.0.2.1"
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(psql, server.store.url, lock)
        time.sleep(0.5)
        waits = []
        while not waits or 429 not in dict(waits):
            # What needs no look uses the limit up.
            for _ in range(BURST + 1):
                raw(server, source=source)
            start = time.monotonic()
            status, _ = raw(server, guess, source=source)
            waits.append((status, time.monotonic() - start))
            if len(waits) > 5:
                break
        if waits[0][0] != 429 or waits[0][1] > 1:
            proof.violation(f"a guess waits for the database: {waits}")
        held.result()
    proof.reached += 1


def another():
    """Takes violations as a proof does, and fails nothing."""
    other = SimpleNamespace(found=[], reached=0)
    other.violation = other.found.append
    return other


def controls(proof, new_server):
    """The judge itself, by what it must not let pass; and a server with a way round."""

    def judged(passed, refused, headers=(("Retry-After", "1"),)):
        other = another()
        bucket = Bucket(other, "a control", BURST, 1)
        for status in [200] * passed + [429] * refused:
            bucket.took(status, headers)
        bucket.judge()
        return bool(other.found)

    proof.control("a limit that holds", not judged(BURST, 3))
    proof.control("two more than the limit", judged(BURST + 2, 1))
    proof.control("one less than the limit", judged(BURST - 1, 4))
    proof.control("nothing is refused", judged(BURST, 0))
    proof.control("no word when to come back", judged(BURST, 3, ()))
    planted = another()
    of_one_address_that_says_more(new_server(options=SLOW, planted="forwarded_believed"), planted)
    proof.control("forwarded_believed", bool(planted.found))


def test_no_way_round_a_limit(new_server, new_store, database):
    with Proof("D12", database, GATE_WAYS) as proof:
        controls(proof, new_server)
        others = new_store().init()["keys"]
        server = new_server(options=SLOW)
        of_one_key(server, proof)
        of_one_visitor(server, proof)
        of_one_address(server, proof, others)
        of_one_address_that_says_more(server, proof)
        proxied = new_server(options=(*SLOW, "--trusted-proxies", "1"))
        behind_a_proxy(proxied, proof, others)
        of_one_site(proxied, proof)
        if database == "postgres":
            before_any_look(server, others, proof)
        to_everybody(server, proof)
        of_one_object(new_server(), proof)
        print(f"{proof.reached} ways")
        proof.wanted = proof.reached
