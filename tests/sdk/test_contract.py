"""The check of every answer can fail: each kind of fault is planted once."""

import json

import pytest

import contract

GOOD = contract.DOCUMENT["paths"]["/v1/checkouts/{id}"]["get"]["responses"]["200"]["content"]["application/json"][
    "examples"
]["paid"]["value"]
HEADERS = {"X-Request-Id": "req_01h455vb4pex5vsknk084sn02q", "Content-Type": "application/json"}
URL = "http://127.0.0.1/v1/checkouts/cs_1"


def look(body, status=200, method="GET", url=URL, headers=HEADERS):
    return list(contract.faults(method, url, status, headers, json.dumps(body)))


def refused(code, **more):
    return {"error": "Why", "code": code, "request_id": HEADERS["X-Request-Id"], **more}


def test_a_good_answer_passes():
    assert look(GOOD) == []
    assert look(refused("checkout_not_found"), 404) == []
    assert look(refused("route_not_found"), 404, url="http://127.0.0.1/v1/nothing") == []


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ({"extra": 1}, "extra"),
        ({"client_secret": "csec_" + "0" * 52}, "client_secret"),
        ({"amount": 100}, "100"),
        ({"status": "paid"}, "paid"),
        ({"created_at": "yesterday"}, "yesterday"),
        ({"transaction": {**GOOD["data"]["transaction"], "rail": "wave"}}, "rail"),
    ],
    ids=lambda planted: next(iter(planted)) if isinstance(planted, dict) else "",
)
def test_a_wrong_field_is_found(planted, word):
    assert any(word in fault for fault in look({"data": {**GOOD["data"], **planted}}))


def test_a_missing_field_is_found():
    data = {name: value for name, value in GOOD["data"].items() if name != "livemode"}
    assert any("livemode" in fault for fault in look({"data": data}))


def test_a_sibling_of_data_is_found():
    assert any("meta" in fault for fault in look({**GOOD, "meta": {}}))


def test_statuses_and_codes_are_those_described():
    assert look(refused("conflict"), 409), "a status that no operation has"
    assert look(refused("payment_in_progress"), 404), "a code of another operation"
    assert look(refused("checkout_not_found", hint="none"), 404), "an undeclared field of an error"
    assert look(refused("checkout_not_found"), 404, url="http://127.0.0.1/v1/nothing"), "an unknown address"
    assert look(refused("rate_limited"), 429), "a 429 without Retry-After"
    assert look(GOOD, headers={"Content-Type": "application/json"}), "an answer without a request id"


def test_an_event_with_an_undeclared_field_is_found():
    described = contract.DOCUMENT["webhooks"]["checkout.completed"]["post"]["requestBody"]
    event = described["content"]["application/json"]["examples"]["delivery"]["value"]
    assert contract.event_faults(event) == []
    assert contract.event_faults({**event, "extra": 1})
    assert contract.event_faults({**event, "data": {**event["data"], "client_secret": "csec_" + "0" * 52}})
    assert contract.event_faults({**event, "type": "checkout.paid"})
