"""Row D10: no page leads anywhere but where the merchant said when it was made; no form is taken that did not come from
its page; no page is shown in another's frame."""

import copy
from itertools import product
from random import Random
from types import SimpleNamespace

from checks import data
from hosted import FORM, Payer, strays, unframed
from proof import Proof
from server import Api
from wire import Wire, request

GATE_CASES = 2_000
# Of the queries that name another place: so many for each page in the gate, all of them later.
GATE_QUERIES = 60
SHOP = "https://shop.example"
QUIET = "+2207654321"
NAMES = [
    "success_url", "failure_url", "return_url", "return_to", "redirect", "redirect_uri", "next", "url", "continue",
    "back", "to",
    "note", "lang", "reads", "problem", "session_id", "path", "pay_url",
]  # fmt: skip
TARGETS = [
    "https://evil.example/", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example",
    "https:evil.example",
    "https:/evil.example", "http://evil.example", "javascript:alert(1)", "data:text/html,x", "/%2f%2fevil.example",
    "/%5cevil.example",
    "\thttps://evil.example", "%0d%0aLocation: https://evil.example", "https://shop.example@evil.example",
    "https://evil.example/shop.example", "https://shop.example.evil.example", "evil.example", "/.evil.example",
    "?//evil.example",
]  # fmt: skip
HEADERS = [
    {"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}, {"X-Forwarded-Proto": "https"},
    {"X-Original-URL": "//evil.example"},
    {"X-Rewrite-URL": "//evil.example"}, {"Forwarded": "host=evil.example;proto=https"},
    {"Referer": "https://evil.example/"},
    {"X-Forwarded-Prefix": "//evil.example"}, {"X-HTTP-Method-Override": "POST"}, {"Origin": "https://evil.example"},
    {"Accept-Language": "https://evil.example"},
]  # fmt: skip
RETURNS = [
    "javascript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example/", "/thanks", "thanks", "", "https://",
    "https:evil",
    "https:///evil.example", "https://user@evil.example/", "https://shop.example:x@evil.example/",
    "https://shop.example\\@evil.example/",
    "https://evil.example/\r\nX: y", "https://evil.example/\t", " https://evil.example/", "https://evil.example/\u0000",
    "file:///etc/passwd",
    "https://evil.example/" + "x" * 2048, "wave://pay", "blob:https://evil.example/1", "HTTPS:\\\\evil.example",
    "https://exa mple.com/",
]  # fmt: skip


def pages_of(server):
    """One of each page, in each state that has a form; each on an object of its own."""
    api = Api(server.url, server.keys["test"]["secret"])
    payer = Payer(server.url)
    back = {"success_url": f"{SHOP}/thanks", "failure_url": f"{SHOP}/sorry"}

    def checkout():
        made = data(api.post("/v1/checkouts", {"amount": "10.00"} | back), 201)
        return f"/v1/checkouts/{made['id']}", payer.look(f"/checkout/{made['id']}")

    def phone():
        where, page = checkout()
        return where, payer.press(page, "/method", method="afrimoney")

    def waiting():
        where, page = phone()
        return where, payer.press(page, "/phone", method="afrimoney", phone=QUIET)

    def code():
        where, page = checkout()
        page = payer.press(page, "/method", method="qmoney")
        return where, payer.press(page, "/phone", method="qmoney", phone="+2207000000")

    def redirecting():
        where, page = checkout()
        return where, payer.press(page, "/method", method="wave")

    def wallet():
        where, page = redirecting()
        simulator = next(lead for lead in page.leads if "/simulator/" in lead)
        return where, payer.look(simulator.removeprefix(server.url))

    def link():
        made = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "5.00"} | back), 201)
        return f"/v1/pay/payment-links/{made['id']}", payer.look(f"/pay/{made['id']}")

    def of_link():
        where, page = link()
        return where, payer.press(page, "/method", method="card")

    def left():
        where, page = checkout()
        return where, payer.press(page, "/leave")

    makers = [checkout, phone, waiting, code, redirecting, wallet, link, of_link, left]
    found = []
    for maker in makers:
        where, page = maker()
        found.append(SimpleNamespace(name=maker.__name__, where=where, page=page))
    verify = payer.look("/verify")
    found.append(SimpleNamespace(name="verify", where="/v1/checkouts", page=verify))
    return api, payer, found


def is_ours(answer, url):
    """Nothing leads away; a page is kept out of frames."""
    yield from (f"leads to {lead}" for lead in strays(answer, url, allowed=(SHOP,)))
    if answer.is_html:
        yield from unframed(answer)


def redirect_cases(payer, place, proof):
    """Queries, fields, paths and headers that name another place."""
    path = place.page.path.split("?")[0]
    queries = list(product(NAMES, TARGETS))
    if proof.tier == "gate":
        queries = Random(proof.seed).sample(queries, GATE_QUERIES)
    for name, target in queries:
        yield f"?{name}={target}", lambda n=name, t=target: payer.ask("GET", path, params={n: t})
    for target in TARGETS:
        yield (
            f"returned?{target}",
            lambda t=target: payer.ask("GET", f"{path}/returned", params={"success_url": t, "next": t}),
        )
        yield f"/{target}", lambda t=target: payer.ask("GET", f"{path}/{t}")
        for action, _ in place.page.forms:
            yield (
                f"{action} by GET {target}",
                lambda a=action, t=target: payer.ask("GET", a, params={"next": t, "lang": t}),
            )
    for headers in HEADERS:
        yield f"{headers}", lambda h=headers: payer.ask("GET", path, headers=h)
        yield f"returned {headers}", lambda h=headers: payer.ask("GET", f"{path}/returned", headers=h)


def raw_cases(server, path):
    """What a proper client can't ask for."""
    for target in [
        f"//evil.example{path}", f"{path}//evil.example", "/%2f%2fevil.example", "/\\evil.example",
        f"https://evil.example{path}", "//evil.example",
        f"{path}/..%2f..%2fevil.example", f"{path};https://evil.example", "/%0d%0aLocation:%20https://evil.example",
        "/.evil.example",
        f"{path}/returned;//evil.example", f"{path}/method//evil.example", "/verify//evil.example",
        "/simulator///evil.example",
    ]:  # fmt: skip
        for host in (b"dalasi", b"evil.example"):
            with Wire(server.url) as wire:
                answer, _ = wire.ask(request("GET", target).replace(b"Host: dalasi", b"Host: " + host), is_last=True)
            if answer:
                location = answer[1].get("location", "")
                yield target, answer[0], location


def foreign_forms(payer, place, others):
    """Each form, as another site, another page or another time would send it."""
    ours = payer.url
    port = ours.rsplit(":", 1)[1]
    other_token = next(form[1]["form_token"] for one in others if one is not place for form in one.page.forms)
    origins = [
        "https://evil.example", "http://evil.example", f"{ours}.evil.example", f"{ours}0", "https://127.0.0.1",
        f"http://user@127.0.0.1:{port}", "http://127.0.0.1", "http://localhost", "file://", "", "chrome-extension://x",
        ours.upper(), f"{ours}/",
        f"{ours}, https://evil.example",
    ]  # fmt: skip
    for action, hidden in place.page.forms:
        fields = hidden | {"method": "wave", "phone": QUIET, "code": "123456", "outcome": "approve"}
        token = hidden["form_token"]

        def send(fields=fields, headers=(), action=action, **options):
            return payer.ask("POST", action, fields, headers=headers, **options)

        for origin in origins:
            yield f"{action} Origin {origin!r}", lambda send=send, it=origin: send(headers={"Origin": it})
            site = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
            yield f"{action} Origin {origin!r}, same-origin", lambda send=send, it=site: send(headers=it)
        for site in ("cross-site", "same-site", "anything", "", "Same-Origin", "none, cross-site"):
            for origin in (None, "null", ours):
                both = {"Sec-Fetch-Site": site} | ({"Origin": origin} if origin else {})
                yield f"{action} {both}", lambda send=send, it=both: send(headers=it)
        altered = [
            ("no token", None), ("empty", ""), ("another page's", other_token), ("cut", token[:-1]),
            ("longer", token + "A"),
            ("padded", token + "="), ("blank", " " + token), ("NUL", token + "\0"), ("zeros", "A" * 75),
            ("words", "form_token"),
        ]  # fmt: skip
        altered += [
            (f"changed at {at}", token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :])
            for at in range(0, 74, 6)
        ]
        for name, other in altered:
            changed = {name: value for name, value in (fields | {"form_token": other}).items() if value is not None}
            yield f"{action} {name}", lambda send=send, it=changed: send(it)
        wrong_first = [("form_token", other_token), *fields.items()]
        yield f"{action} two tokens", lambda send=send, it=wrong_first: send(it)
        for kind in (
            "text/plain",
            "application/json",
            "multipart/form-data; boundary=x",
            "",
            "application/x-www-form-urlencoded2",
        ):
            body = "&".join(f"{name}={value}" for name, value in fields.items())
            yield (
                f"{action} as {kind!r}",
                lambda send=send, kind=kind, body=body: send(None, {"Content-Type": kind}, data=body),
            )
        for name in (*fields, "note"):
            changed = fields | {name: fields.get(name, "x") + "\0"}
            yield f"{action} NUL in {name}", lambda send=send, it=changed: send(it)
        query = {name: value for name, value in fields.items()}
        yield (
            f"{action} token in the query",
            lambda action=action, it=query: payer.ask("POST", action, {}, {"Content-Type": FORM}, params=it),
        )


def other_verbs(payer, place):
    for action, hidden in place.page.forms:
        for verb in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
            fields = hidden | {"method": "wave", "outcome": "approve"}
            yield f"{verb} {action}", lambda v=verb, a=action, f=fields: payer.ask(v, a, params=f)


def state(api, place):
    """What a form could have changed."""
    attempts = data(api.get("/v1/pay/transactions"))["total"]
    return data(api.get(place.where)), attempts


def controls(places, url):
    """The judges themselves, by what they must not let pass."""
    plain = places[0].page

    def changed(change):
        page = copy.copy(plain)
        page.headers, page.leads = plain.headers.copy(), list(plain.leads)
        change(page)
        return any(is_ours(page, url))

    yield "a page as it is", not changed(lambda page: None)
    yield "a link to another site", changed(lambda page: page.leads.append("//evil.example"))
    yield "a backslash", changed(lambda page: page.leads.append("/\\evil.example"))
    yield "a redirect away", changed(lambda page: setattr(page, "location", "https://evil.example/"))
    yield "no X-Frame-Options", changed(lambda page: page.headers.pop("X-Frame-Options"))
    framed = plain.headers["Content-Security-Policy"].replace("frame-ancestors 'none'", "frame-ancestors *")
    yield "a page to be framed", changed(lambda page: page.headers.update({"Content-Security-Policy": framed}))


def test_nobody_is_led_away_or_pressed(new_server, database):
    server = new_server()
    api, payer, places = pages_of(server)
    with Proof("D10", database, GATE_CASES) as proof:
        for name, is_caught in controls(places, server.url):
            proof.control(name, is_caught)
        for place in places:
            for fault in is_ours(place.page, server.url):
                proof.violation(f"{place.name}: {fault}")
            begun = state(api, place)
            for what, ask in redirect_cases(payer, place, proof):
                for fault in is_ours(ask(), server.url):
                    proof.violation(f"{place.name} {what}: {fault}")
                proof.reached += 1
            # Who comes back from a rail's page has it asked, by a GET: that may be seen, but begins and ends nothing.
            before = state(api, place)
            if (begun[0].get("status"), begun[1]) != (before[0].get("status"), before[1]):
                proof.violation(f"{place.name}: a look did something")
            for what, ask in foreign_forms(payer, place, places):
                answer = ask()
                if answer.status != 403:
                    proof.violation(f"{place.name} {what}: {answer.status}")
                for fault in is_ours(answer, server.url):
                    proof.violation(f"{place.name} {what}: {fault}")
                proof.reached += 1
            for what, ask in other_verbs(payer, place):
                answer = ask()
                if answer.status not in (200, 303, 404, 405) or any(strays(answer, server.url, allowed=(SHOP,))):
                    proof.violation(f"{place.name} {what}: {answer.status} {answer.location}")
                proof.reached += 1
            if (after := state(api, place)) != before:
                proof.violation(f"{place.name}: something was done: {before} is {after}")
            for target, status, location in raw_cases(server, place.page.path.split("?")[0]):
                if status >= 500 or "evil" in location.split("?")[0].split("/checkout/")[0]:
                    proof.violation(f"{place.name} {target}: {status} {location}")
                proof.reached += 1
        for fields, path in (
            ({"amount": "1.00"}, "/v1/checkouts"),
            ({"title": "T", "amount": "1.00"}, "/v1/pay/payment-links"),
        ):
            for mode in ("live", "test"):
                merchant = Api(server.url, server.keys[mode]["secret"])
                for name in ("success_url", "failure_url"):
                    for address in RETURNS:
                        answer = merchant.post(path, fields | {name: address})
                        if answer.status_code != 400:
                            proof.violation(f"{path} {name} {address[:60]!r} in {mode} mode: {answer.status_code}")
                        proof.reached += 1
        replayed(api, payer, proof)
        proof.control("foreign_form_taken", takes_foreign_forms(new_server(planted="foreign_form_taken")))
        print(f"{proof.reached} cases on {len(places)} pages")
        proof.wanted = proof.reached


def takes_foreign_forms(server):
    """Whether a server that believes every browser is told from one that asks where a form came from."""
    _, payer, places = pages_of(server)
    return any(ask().status != 403 for _, ask in foreign_forms(payer, places[0], places))


def replayed(api, payer, proof):
    """A form that is sent again is the same press of the button; its page is not the page of others."""
    made = data(api.post("/v1/checkouts", {"amount": "10.00"}), 201)
    action, hidden = payer.look(f"/checkout/{made['id']}").form("/method")
    attempts = data(api.get("/v1/pay/transactions"))["total"]
    for _ in range(20):
        answer = payer.ask("POST", action, hidden | {"method": "wave"})
        if answer.status != 303:
            proof.violation(f"a form that is sent again is answered {answer.status}")
        proof.reached += 1
    begun = data(api.get("/v1/pay/transactions"))["total"] - attempts
    if begun != 1:
        proof.violation(f"one form that is sent 20 times began {begun} payments")
    proof.control("a press is seen", begun > 0)
    other = data(api.post("/v1/checkouts", {"amount": "10.00"}), 201)
    moved = action.replace(made["id"], other["id"])
    if payer.ask("POST", moved, hidden | {"method": "wave"}).status != 403:
        proof.violation("a form is taken on the page of another checkout")
