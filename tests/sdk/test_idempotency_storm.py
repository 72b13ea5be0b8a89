"""Row A8: 100 requests with one key at the same moment, of several bodies, and a server that is killed on the way. Asked
until all are answered: one effect a key, the same bytes for everybody with its body, nobody else's."""

import json
import random
import threading
import time

from checks import data
from proof import Proof
from races import held_back
from server import Api
from wire import request

GATE_KEYS = 12
AT_ONCE = 100
AMOUNTS = ("1.00", "2.00", "3.00")
# Every so many keys the server is killed in the middle of it.
KILLED = 4


def judge(key, wanted, answers, found):
    """What is wrong with the final answers to one key; `found` are the objects that it made."""
    taken = {body for status, _, body in answers if status == 201}
    if len(taken) != 1:
        yield f"{key}: {len(taken)} different answers of success"
        return
    made = json.loads(taken.pop())["data"]
    if made["reference"] != key:
        yield f"{key}: an answer of {made['reference']}"
    if [one["id"] for one in found] != [made["id"]]:
        yield f"{key}: it made {[one['id'] for one in found]}, and {made['id']} was answered"
    for amount, (status, _, body) in zip(wanted, answers):
        if amount == made["amount"]:
            if status != 201:
                yield f"{key}: {status} to a request like the one that was taken: {body[:200]}"
        elif (status, json.loads(body).get("code")) != (400, "idempotency_key_reused"):
            yield f"{key}: {status} to another body: {body[:200]}"


def test_a_storm_of_one_key(new_server, database):
    server = new_server()
    secret = server.keys["test"]["secret"]
    with Proof("A8", database, GATE_KEYS) as proof:
        kills = asked = 0
        while proof.reached < proof.wanted:
            chance = random.Random(proof.seed + proof.reached)
            key = f"storm-{proof.seed + proof.reached}"
            wanted = [chance.choice(AMOUNTS) for _ in range(AT_ONCE)]
            headers = [("Idempotency-Key", key)]
            requests = [
                request("POST", "/v1/checkouts", secret, {"amount": amount, "reference": key}, headers)
                for amount in wanted
            ]
            is_killed = proof.reached % KILLED == KILLED - 1
            killer = None
            if is_killed:
                # From before the first commit to after the last.
                killer = threading.Timer(chance.random() * 0.3, server.kill)
            answers = held_back(server, requests, release=killer and killer.start)
            if killer:
                killer.join()
                server.start()
                kills += 1
            asked += AT_ONCE
            deadline = time.monotonic() + 60
            while again := [place for place, answer in enumerate(answers) if answer[0] in (0, 429, 503)]:
                assert time.monotonic() < deadline, f"{key}: {len(again)} are still not answered"
                for place, answer in zip(again, held_back(server, [requests[place] for place in again])):
                    answers[place] = answer
                asked += len(again)
            found = data(Api(server.url, secret).get("/v1/checkouts", params={"reference": key}))["items"]
            for fault in judge(key, wanted, answers, found):
                proof.violation(fault)
            proof.reached += 1
        print(f"{proof.reached} keys, {asked} requests, {kills} times killed")
        # What the judge must not let pass, made of the last key's answers.
        last = max(place for place, answer in enumerate(answers) if answer[0] == 201)
        status, head, body = answers[last]

        def with_last(changed):
            return [*answers[:last], (status, head, changed), *answers[last + 1 :]]

        forged = {
            "two effects": (answers, found * 2),
            "other bytes": (with_last(body.replace(b"pending", b"PENDING")), found),
            "a foreign body": (with_last(body.replace(key.encode(), b"another")), found),
            "no effect": (answers, []),
        }
        for name, (said, objects) in forged.items():
            proof.control(name, any(judge(key, wanted, said, objects)))
    server.stop()
    result = server.store.verify()
    assert result.returncode == 0, result.stdout
