"""webhook_events: get, list, retry through the SDK; the log in its own order (contract §2.11, §4.16)."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from checks import data, error, eventually, faults, ok, refusal
from server import Api

FIELDS = {
    "id", "type", "data", "webhook_endpoint_id", "status", "attempts", "next_retry_at", "livemode", "object_id",
    "sequence", "created_at", "updated_at", "deliveries",
}  # fmt: skip
ABSENT = "evt_01h455vb4pex5vsknk084sn02q"


def events_of(sdk, object_id, count):
    """The object's events once there are `count` of them, oldest first."""

    def found():
        items = ok(sdk.webhook_events.list(limit=100))["items"]
        mine = [event for event in items if event["object_id"] == object_id]
        return mine if len(mine) >= count else None

    return sorted(eventually(found), key=lambda event: event["sequence"])


def test_an_event_tells_of_its_deliveries(sdk, endpoint, paid):
    checkout = paid()
    first, second = endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")
    event = eventually(lambda: (one := ok(sdk.webhook_events.get(first.id)))["status"] == "delivered" and one)
    assert set(event) == FIELDS
    assert (event["type"], event["object_id"], event["sequence"]) == ("payment.succeeded", checkout["id"], 1)
    assert event["data"] == first.event["data"]
    assert event["attempts"] == 1
    assert event["next_retry_at"] is None
    [delivery] = [one for one in event["deliveries"] if one["webhook_endpoint_id"] == endpoint.id]
    assert set(delivery) == {
        "webhook_endpoint_id", "status", "attempts", "next_retry_at", "last_status_code", "last_error",
    }  # fmt: skip
    assert (delivery["status"], delivery["last_status_code"], delivery["last_error"]) == ("delivered", 200, None)
    assert ok(sdk.webhook_events.get(second.id))["sequence"] == 2


def test_an_event_that_nobody_asked_for_is_done(sdk, paid):
    checkout = paid()
    event = events_of(sdk, checkout["id"], 2)[0]
    assert (event["status"], event["attempts"], event["webhook_endpoint_id"]) == ("delivered", 0, None)
    assert event["updated_at"] == event["created_at"]


def test_lists_filter_by_type_and_time(sdk, api, paid):
    checkout = paid()
    events_of(sdk, checkout["id"], 2)
    now = datetime.now(timezone.utc)
    recent = ok(
        sdk.webhook_events.list(
            type="checkout.completed", start_date=now - timedelta(minutes=5), end_date=now + timedelta(minutes=5)
        )
    )
    assert recent["items"][0]["object_id"] == checkout["id"]
    assert {event["type"] for event in recent["items"]} == {"checkout.completed"}
    naive = ok(sdk.webhook_events.list(end_date=datetime(2020, 1, 1)))
    assert (naive["items"], naive["total"], naive["has_more"]) == ([], 0, False)
    assert error(sdk.webhook_events.list(type="checkout.paid")).startswith("JokoorValidationError: ")
    assert set(faults(api.get("/v1/events", params={"type": "checkout.paid"}))) == {"type"}


def test_the_log_is_followed_without_a_gap(sdk, api, paid):
    start = ok(sdk.webhook_events.list(limit=1))["items"]
    cursor = start[0]["id"] if start else None
    checkouts = [paid()["id"] for _ in range(3)]
    for checkout in checkouts:
        events_of(sdk, checkout, 2)

    def follow():
        seen, after = [], cursor
        while True:
            query = {"order": "asc", "limit": 2} | ({"after": after} if after else {})
            page = data(api.get("/v1/events", params=query))
            seen += page["items"]
            if not page["has_more"]:
                return seen
            after = page["items"][-1]["id"]

    def complete():
        seen = follow()
        return seen if {event["object_id"] for event in seen} >= set(checkouts) and len(seen) >= 6 else None

    seen = eventually(complete)
    assert len({event["id"] for event in seen}) == len(seen)
    for checkout in checkouts:
        assert [event["sequence"] for event in seen if event["object_id"] == checkout] == [1, 2]


def test_nobody_follows_what_is_not_there(server, api, paid):
    event = eventually(lambda: data(api.get("/v1/events", params={"limit": 1}))["items"] or paid() and None)[0]["id"]
    foreign = Api(server.url, server.keys["live"]["secret"])
    for reader, after in ((api, ABSENT), (foreign, event), (api, "nonsense"), (api, f"cs_{ABSENT[4:]}")):
        answer = reader.get("/v1/events", params={"order": "asc", "after": after})
        assert faults(answer) == {"after": "not_found"}, after
    data(api.get("/v1/events", params={"order": "asc", "after": event}))


@pytest.mark.parametrize("is_back", [False, True], ids=["inactive", "active again"])
@pytest.mark.parametrize(("answer", "status"), [(500, "failed"), (200, "delivered")])
def test_what_is_given_up_under_way_is_over(sdk, api, endpoint, answer, status, is_back):
    """The endpoint is made inactive during an attempt, whose answer is still taken."""
    endpoint.mailbox.status, endpoint.mailbox.delay = answer, 4
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    assert endpoint.mailbox.begun.wait(15)
    ok(sdk.webhooks.update(endpoint.id, status="inactive"))
    if is_back:
        ok(sdk.webhooks.update(endpoint.id, status="active"))
    [event] = events_of(sdk, link, 1)
    assert (event["status"], event["attempts"], event["next_retry_at"]) == ("failed", 0, None)
    event = eventually(lambda: (one := ok(sdk.webhook_events.get(event["id"])))["attempts"] == 1 and one)
    [delivery] = [one for one in event["deliveries"] if one["webhook_endpoint_id"] == endpoint.id]
    assert (delivery["status"], delivery["last_status_code"]) == (status, answer)
    assert (event["status"], event["next_retry_at"]) == (status, None)


def test_a_retry_sends_the_same_event_again(sdk, endpoint, paid):
    checkout = paid()
    first, _ = endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")
    eventually(lambda: ok(sdk.webhook_events.get(first.id))["status"] == "delivered")
    assert ok(sdk.webhook_events.retry(first.id))["status"] == "pending"
    endpoint.mailbox.wait(lambda deliveries: len([one for one in deliveries if one.id == first.id]) == 2)
    again = [one for one in endpoint.mailbox.deliveries if one.id == first.id]
    assert again[0].body == again[1].body
    again[1].verify(endpoint.secret)


def test_what_a_delivery_comes_to_moves_its_event(sdk, api, endpoint):
    endpoint.mailbox.delay = 1.5
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    [owed] = events_of(sdk, link, 1)
    assert (owed["status"], owed["updated_at"]) == ("pending", owed["created_at"])
    delivered = eventually(lambda: (one := ok(sdk.webhook_events.get(owed["id"])))["status"] == "delivered" and one)
    assert delivered["updated_at"] > owed["updated_at"] == delivered["created_at"]
    assert events_of(sdk, link, 1) == [delivered]
    time.sleep(1.1)
    retried = ok(sdk.webhook_events.retry(owed["id"]))
    assert retried["updated_at"] > delivered["updated_at"]
    # Given up before the attempt ends, which moves it as well.
    time.sleep(1.1)
    ok(sdk.webhooks.update(endpoint.id, status="inactive"))
    assert ok(sdk.webhook_events.get(owed["id"]))["updated_at"] > retried["updated_at"]


def test_a_retry_during_an_attempt_is_not_lost_to_it(sdk, api, endpoint):
    endpoint.mailbox.delay = 4
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    assert endpoint.mailbox.begun.wait(15)
    endpoint.mailbox.delay = 0
    # The retry is answered well, and behind it the first attempt badly.
    endpoint.mailbox.answer(200, 500)
    [event] = events_of(sdk, link, 1)
    ok(sdk.webhook_events.retry(event["id"]))
    eventually(lambda: ok(sdk.webhook_events.get(event["id"]))["status"] == "delivered", 3)
    endpoint.mailbox.wait(lambda deliveries: len([one for one in deliveries if one.id == event["id"]]) == 2)
    time.sleep(0.5)
    assert ok(sdk.webhook_events.get(event["id"]))["status"] == "delivered"


def test_a_retry_that_fails_holds_up_nothing(sdk, api, endpoint, receiver):
    """An old event that was delivered, and one that the endpoint was never owed: the next ones come meanwhile."""
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    [created] = endpoint.mailbox.wait_for(link, "payment_link.created")
    eventually(lambda: ok(sdk.webhook_events.get(created.id))["status"] == "delivered")
    late = receiver.mailbox()
    added = ok(sdk.webhooks.create(url=late.url, enabled_events=["payment_link.*"]))
    mailboxes = (endpoint.mailbox, late)
    for mailbox in mailboxes:
        mailbox.status = 500
    ok(sdk.webhook_events.retry(created.id))

    def failed():
        deliveries = ok(sdk.webhook_events.get(created.id))["deliveries"]
        return {one["webhook_endpoint_id"] for one in deliveries if one["last_status_code"] == 500}

    eventually(lambda: failed() >= {endpoint.id, added["id"]})
    data(api.put(f"/v1/pay/payment-links/{link}", {"title": "Coffee"}))
    for mailbox in mailboxes:
        mailbox.wait_for(link, "payment_link.created", "payment_link.updated")
    sdk.webhooks.delete(added["id"])


def test_a_retry_of_what_is_still_owed_keeps_the_order(sdk, api, endpoint):
    endpoint.mailbox.status = 500
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    [created] = endpoint.mailbox.wait_for(link, "payment_link.created")
    data(api.put(f"/v1/pay/payment-links/{link}", {"title": "Coffee"}))
    for tries in (2, 3):
        eventually(lambda: ok(sdk.webhook_events.get(created.id))["attempts"] >= tries - 1)
        ok(sdk.webhook_events.retry(created.id))
        endpoint.mailbox.wait(lambda came: len(came) >= tries)
    assert {one.type for one in endpoint.mailbox.of(link)} == {"payment_link.created"}, "it was never delivered"
    eventually(lambda: ok(sdk.webhook_events.get(created.id))["attempts"] >= 3)
    endpoint.mailbox.status = 200
    ok(sdk.webhook_events.retry(created.id))
    endpoint.mailbox.wait_for(link, "payment_link.created", "payment_link.updated")


@pytest.mark.parametrize("how", ["deleted", "inactive"])
@pytest.mark.parametrize("is_named", [False, True], ids=["to all", "to one"])
def test_a_retry_is_over_when_all_who_are_left_have_it(sdk, api, endpoint, receiver, how, is_named):
    endpoint.mailbox.status = 500
    link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)["id"]
    [created] = endpoint.mailbox.wait_for(link, "payment_link.created")
    if how == "deleted":
        sdk.webhooks.delete(endpoint.id)
    else:
        ok(sdk.webhooks.update(endpoint.id, status="inactive"))
    assert eventually(lambda: (one := ok(sdk.webhook_events.get(created.id)))["status"] == "failed" and one)
    refusal(api.post(f"/v1/events/{created.id}/retry"), 400, "no_active_endpoint")
    assert ok(sdk.webhook_events.get(created.id))["status"] == "failed", "nothing has taken its place"
    mailbox = receiver.mailbox()
    other = ok(sdk.webhooks.create(url=mailbox.url, enabled_events=["payment_link.*"]))
    try:
        named = {"webhook_endpoint_id": other["id"]} if is_named else {}
        data(api.post(f"/v1/events/{created.id}/retry", named))
        mailbox.wait_for(link, "payment_link.created")
        told = eventually(lambda: (one := ok(sdk.webhook_events.get(created.id)))["status"] == "delivered" and one)
        assert told["webhook_endpoint_id"] == other["id"]
    finally:
        sdk.webhooks.delete(other["id"])


def test_a_retry_needs_someone_to_send_to(sdk, api, paid):
    checkout = paid()
    event = events_of(sdk, checkout["id"], 2)[0]
    assert error(sdk.webhook_events.retry(event["id"])).startswith("JokoorValidationError: ")
    refusal(api.post(f"/v1/events/{event['id']}/retry"), 400, "no_active_endpoint")


def test_an_absent_one_is_not_found(sdk, api):
    assert error(sdk.webhook_events.get(ABSENT)).startswith("JokoorNotFoundError: ")
    assert error(sdk.webhook_events.retry(ABSENT)).startswith("JokoorNotFoundError: ")
    refusal(api.get(f"/v1/events/{ABSENT}"), 404, "event_not_found")
