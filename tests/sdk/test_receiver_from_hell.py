"""Row C1: receivers that fail, hang, lie and never end, all at once; then they heal. Every event is delivered, in the
order of its object, signed as the official library checks it; whoever was well is told at once, and no answer is read
without an end."""

import copy
import time
from random import Random

import requests

import hell
from checks import data, eventually
from proof import Proof
from server import Api

GATE_DELIVERIES = 560
# Of one server; hell takes its time, however few there are.
MOST_AT_ONCE = 14_000
# So many events each object has: made, and changed.
EVENTS = 4
# Time for two attempts; in the longer tiers also for one that hangs to its end.
HELL_SECONDS = {"gate": 7, "nightly": 24, "release": 24}
MOST_GROWTH = 64 << 20
DAY = 24 * 3600


class Trap:
    """Where redirects lead: nobody may come."""

    def __init__(self, random):
        self.receiver = hell.Wrong("well", None, random)
        self.url = self.receiver.url

    @property
    def visitors(self):
        return self.receiver.connections


def pass_time(store, proof):
    longest = store.ask("select coalesce(max(next_retry_at), 0) from webhook_deliveries where status = 'pending' and attempts > 0")
    ahead = int(longest) / 1e6 - time.time()
    if ahead > DAY + 60:
        proof.violation(f"a receiver put off its next attempt by {ahead / 3600:.0f} h")
    store.end_pauses()


def tell(api, objects):
    """Events of so many objects; how many each has."""
    expected = {}
    for _ in range(objects):
        link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)
        expected[link["id"]] = EVENTS
    for change in range(1, EVENTS):
        for identity in expected:
            data(api.put(f"/v1/pay/payment-links/{identity}", {"title": f"Tea {change}"}))
    return expected


def is_told(receiver, expected):
    with receiver.lock:
        return len(receiver.succeeded) >= sum(expected.values())


def set_all(api, endpoints, status):
    for endpoint in endpoints:
        data(api.patch(f"/v1/webhook_endpoints/{endpoint['id']}", {"status": status}))


def events_of(api, expected):
    found, after = [], None
    while True:
        page = data(api.get("/v1/events", params={"order": "asc", "limit": 100} | ({"after": after} if after else {})))
        found += [event for event in page["items"] if event["object_id"] in expected]
        if not page["has_more"]:
            return found
        after = page["items"][-1]["id"]


def test_every_event_arrives_in_the_end(new_server, database):
    with Proof("C1", database, GATE_DELIVERIES) as proof:
        while proof.reached < proof.wanted and not proof.found:
            play(proof, new_server, min(proof.wanted - proof.reached, MOST_AT_ONCE))


def play(proof, new_server, deliveries):
    """About so many of them by a server of its own: hell, healing, and a look at all that arrived."""
    server = new_server()
    api = Api(server.url, server.keys["test"]["secret"])
    random = Random(proof.seed + proof.reached)
    trap = Trap(random)
    receivers = {kind: hell.Wrong(kind, trap.url, Random(random.getrandbits(64))) for kind in hell.KINDS}
    endpoints = {}
    for kind, receiver in receivers.items():
        body = {"url": receiver.url, "enabled_events": ["payment_link.*"]}
        endpoints[kind] = data(api.post("/v1/webhook_endpoints", body), 201)
    objects = max(2, round(deliveries / len(receivers) / EVENTS))
    before, most, start = server.resident(), 0, time.monotonic()
    expected = tell(api, objects)
    told = time.monotonic()
    shortest = HELL_SECONDS[proof.tier]
    while time.monotonic() - start < shortest or not is_told(receivers["well"], expected):
        most = max(most, server.resident() - before)
        time.sleep(0.1)
        if time.monotonic() - told > shortest + 60:
            proof.violation("whoever is well waits for those who are not")
            break
    if most > MOST_GROWTH:
        proof.violation(f"the server grew by {most >> 20} MiB")
    seen = sum(len(receiver.arrivals) for receiver in receivers.values())

    for receiver in receivers.values():
        receiver.heal()
    for kind in ("garbage for TLS", "no name"):
        data(api.patch(f"/v1/webhook_endpoints/{endpoints[kind]['id']}", {"url": receivers[kind].url}))
    server.stop()
    pass_time(server.store, proof)
    server.start()
    api = Api(server.url, server.keys["test"]["secret"])
    waiting = [receiver for kind, receiver in receivers.items() if kind != "gone"]
    limit = 60 + deliveries / 20
    eventually(lambda: all(is_told(receiver, expected) for receiver in waiting) or late(start, limit), limit + 60)

    # What a 410 ended comes back by hand, when it is wanted again.
    assert data(api.get(f"/v1/webhook_endpoints/{endpoints['gone']['id']}"))["disable_reason"] == "gone"
    set_all(api, [one for kind, one in endpoints.items() if kind != "gone"], "inactive")
    set_all(api, [endpoints["gone"]], "active")
    events = sorted(events_of(api, expected), key=lambda event: event["sequence"])
    for event in events:
        data(api.post(f"/v1/events/{event['id']}/retry"))
    eventually(lambda: is_told(receivers["gone"], expected) or late(start, limit + 60), limit + 120)
    eventually(lambda: all(event["status"] == "delivered" for event in events_of(api, expected)), 20)

    assert len(events) == sum(expected.values()), "every change has its event"
    for kind, receiver in receivers.items():
        for fault in hell.faults(receiver, expected, endpoints[kind]["secret"]):
            proof.violation(f"{kind}: {fault}")
        proof.reached += len(receiver.succeeded)
    if trap.visitors:
        proof.violation(f"{trap.visitors} redirects were followed")
    arrived = sum(len(receiver.arrivals) for receiver in receivers.values())
    taken = max(receiver.most_sent for receiver in receivers.values())
    print(f"{seen} of {arrived} attempts in hell, {taken >> 10} KiB taken of an answer, {most >> 10} KiB more held")
    if not proof.caught:
        for name, is_caught in controls(receivers["well"], expected, endpoints):
            proof.control(name, is_caught)
        proof.control("delivered_out_of_order", is_disorder_seen(new_server(planted="delivered_out_of_order")))
        thirsty = new_server(planted="answer_uncapped")
        proof.control("answer_uncapped", all(is_thirst_seen(thirsty, kind) for kind in ("endless body", "endless patience")))
    for receiver in (*receivers.values(), trap.receiver):
        receiver.close()
    server.stop()
    result = server.store.verify()
    assert result.returncode == 0, result.stdout + result.stderr
    server.store.drop()


def late(start, limit):
    """Who waited so long goes on, to say what is missing."""
    return time.monotonic() - start > limit


def told_by(server, receiver):
    """The secret of an endpoint that is told of a few objects."""
    api = Api(server.url, server.keys["test"]["secret"])
    endpoint = data(api.post("/v1/webhook_endpoints", {"url": receiver.url, "enabled_events": ["payment_link.*"]}), 201)
    tell(api, 2)
    return endpoint["secret"]


def is_disorder_seen(server):
    """Whether a server that sends an event before the one in front of it has arrived is told from one that waits."""
    receiver = hell.Wrong("statuses", None, Random(1))
    secret = told_by(server, receiver)
    deadline = time.monotonic() + HELL_SECONDS["nightly"]
    while not (is_seen := any(hell.faults(receiver, {}, secret))) and time.monotonic() < deadline:
        time.sleep(0.1)
    receiver.close()
    return is_seen


def is_thirst_seen(server, kind):
    """Whether a server that takes whatever it is answered is told from one that has a limit: by how much, not by how long it took."""
    receiver = hell.Wrong(kind, None, Random(1))
    secret = told_by(server, receiver)
    deadline = time.monotonic() + HELL_SECONDS["nightly"]
    is_too_much = lambda: any("of an answer were taken" in fault for fault in hell.faults(receiver, {}, secret))
    while not (is_seen := is_too_much()) and time.monotonic() < deadline:
        time.sleep(0.1)
    receiver.close()
    return is_seen


def controls(good, expected, endpoints):
    """The judge itself, by what it must not let pass."""
    secret = endpoints["well"]["secret"]

    def altered(change):
        other = copy.copy(good)
        other.arrivals = [copy.copy(arrival) for arrival in good.arrivals]
        change(other)
        return any(hell.faults(other, expected, secret))

    def overtaken(other):
        """Played again to a receiver that has not answered anything well yet, the second event first."""
        other.succeeded = set()
        late = next(arrival for arrival in other.arrivals if arrival.sequence == 2)
        late.is_early = other.is_early(late)

    def changed(other):
        other.arrivals[-1].body = other.arrivals[-1].body.replace(b"Tea", b"Pea", 1)

    yield "what is right", not altered(lambda other: None)
    yield "an event that never comes", altered(lambda other: other.arrivals.pop())
    yield "n+1 before n", altered(overtaken)
    yield "a changed byte", altered(changed)
    yield "another secret", any(hell.faults(good, expected, endpoints["gone"]["secret"]))
    # A client without a cap: more is poured into it than anybody may take.
    patient = hell.Wrong("endless body", None, Random(1))
    with requests.post(patient.url, data=good.arrivals[0].body, stream=True, timeout=10) as answer:
        read = 0
        for piece in answer.iter_content(1 << 20):
            read += len(piece)
            if read > 2 * hell.MOST_TAKEN:
                break
    patient.arrivals.clear()
    yield "an answer read without a cap", any(hell.faults(patient, {}, secret))
    patient.close()
