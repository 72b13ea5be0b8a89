"""webhooks: endpoints through the SDK, and what an endpoint receives (contract §2.11, §4.15, §6)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from jokoor import Jokoor
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from checks import data, error, eventually, faults, ok, refusal
from races import at_once, codes, replayed
from server import Api

FIELDS = {
    "id", "url", "description", "api_version", "enabled_events", "status", "metadata", "consecutive_failures",
    "last_success_at", "last_failure_at", "disabled_at", "disable_reason", "created", "created_at", "updated_at",
}  # fmt: skip
ABSENT = "we_01h455vb4pex5vsknk084sn02q"


@pytest.fixture
def create(sdk, receiver):
    """Creates endpoints that are deleted at the end."""
    ids = []

    def create(**fields):
        fields = {"url": receiver.mailbox().url, "enabled_events": ["*"]} | fields
        created = ok(sdk.webhooks.create(**fields))
        ids.append(created["id"])
        return created

    yield create
    for id in ids:
        sdk.webhooks.delete(id)


class TestCreate:
    def test_the_secret_is_shown_once(self, sdk, create):
        created = create(description="Orders", enabled_events=["checkout.completed", "payment.*"])
        assert set(created) == FIELDS | {"secret"}
        assert created["id"].startswith("we_")
        assert created["secret"].startswith("whsec_")
        assert created["enabled_events"] == ["checkout.completed", "payment.*"]
        assert (created["status"], created["api_version"], created["description"]) == ("active", "v1", "Orders")
        assert created["created"] == created["created_at"]
        assert created["consecutive_failures"] == 0
        found = ok(sdk.webhooks.get(created["id"]))
        assert found == {name: value for name, value in created.items() if name != "secret"}

    @pytest.mark.parametrize(
        "url",
        [
            "javascript:alert(1)", "ftp://shop.example/hook", "not a url", "", "https://", "//shop.example/hook",
            "https://user:password@shop.example/hook",
            "http://shop.example/hook",
            "https://10.0.0.1/hook", "https://192.168.1.1/hook", "https://172.16.0.1/hook",
            "https://169.254.169.254/latest/meta-data", "https://[fe80::1]/hook", "https://[fd00::1]/hook",
            "https://0.0.0.0/hook", "https://[::ffff:10.0.0.1]/hook", "https://2130706433/hook", "https://0x0a000001/hook",
            "https://100.64.0.1/hook", "https://224.0.0.1/hook",
            "https://93.184.215.14:22/hook",
        ],
    )  # fmt: skip
    def test_a_url_that_reaches_inside_is_refused(self, sdk, api, url):
        assert error(sdk.webhooks.create(url=url, enabled_events=["*"])).startswith("JokoorValidationError: ")
        assert set(faults(api.post("/v1/webhook_endpoints", {"url": url, "enabled_events": ["*"]}))) == {"url"}

    def test_live_mode_never_delivers_to_loopback_without_tls(self, server, receiver):
        with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as live:
            result = live.webhooks.create(url=receiver.url + "/live", enabled_events=["*"])
            assert error(result).startswith("JokoorValidationError: ")

    @pytest.mark.parametrize("events", [[], ["checkout.paid"], ["nothing.*"], ["**"], [7]])
    def test_events_must_exist(self, api, receiver, events):
        body = {"url": receiver.url + "/x", "enabled_events": events}
        assert any(field.startswith("enabled_events") for field in faults(api.post("/v1/webhook_endpoints", body)))

    def test_both_are_required(self, api):
        assert faults(api.post("/v1/webhook_endpoints", {})) == {"url": "required", "enabled_events": "required"}


class TestList:
    def test_newest_first(self, sdk, create):
        first, second = create(), create()
        page = ok(sdk.webhooks.list(limit=2))
        assert [item["id"] for item in page["items"]] == [second["id"], first["id"]]
        assert all(set(item) == FIELDS for item in page["items"]), "a list never shows a secret"
        assert page["total"] == page["count"] >= 2


class TestUpdate:
    def test_only_what_is_given_changes(self, sdk, create, receiver):
        created = create(description="Before")
        url = receiver.mailbox().url
        updated = ok(sdk.webhooks.update(created["id"], url=url, enabled_events=["refund.*"], description="After"))
        assert set(updated) == FIELDS
        assert (updated["url"], updated["enabled_events"], updated["description"]) == (url, ["refund.*"], "After")
        assert updated["status"] == "active"
        assert ok(sdk.webhooks.update(created["id"], status="inactive"))["status"] == "inactive"
        assert ok(sdk.webhooks.get(created["id"]))["description"] == "After"

    def test_three_verbs_mean_the_same(self, api, create):
        path = f"/v1/webhook_endpoints/{create()['id']}"
        for verb in (api.post, api.put, api.patch):
            assert data(verb(path, {"description": verb.__name__}))["description"] == verb.__name__

    def test_nonsense_is_refused(self, sdk, api, create):
        created = create()
        assert error(sdk.webhooks.update(created["id"], status="paused")).startswith("JokoorValidationError: ")
        path = f"/v1/webhook_endpoints/{created['id']}"
        assert set(faults(api.post(path, {"status": "paused", "url": "http://10.0.0.1/", "enabled_events": []}))) == {
            "status", "url", "enabled_events",
        }  # fmt: skip

    def test_an_inactive_endpoint_is_owed_nothing(self, sdk, endpoint, paid):
        ok(sdk.webhooks.update(endpoint.id, status="inactive"))
        missed = paid()
        ok(sdk.webhooks.update(endpoint.id, status="active"))
        seen = paid()
        endpoint.mailbox.wait_for(seen["id"], "payment.succeeded", "checkout.completed")
        assert endpoint.mailbox.of(missed["id"]) == []


class TestDelete:
    def test_it_is_gone(self, sdk, api, create):
        created = create()
        assert ok(sdk.webhooks.delete(created["id"])) == {"success": True}
        assert error(sdk.webhooks.get(created["id"])).startswith("JokoorNotFoundError: ")
        assert error(sdk.webhooks.delete(created["id"])).startswith("JokoorNotFoundError: ")
        refusal(api.get(f"/v1/webhook_endpoints/{created['id']}"), 404, "webhook_endpoint_not_found")

    def test_an_absent_one_is_not_found(self, sdk):
        for result in (
            sdk.webhooks.get(ABSENT),
            sdk.webhooks.update(ABSENT, description="x"),
            sdk.webhooks.delete(ABSENT),
            sdk.webhooks.test(ABSENT),
        ):
            assert error(result).startswith("JokoorNotFoundError: ")


class TestTest:
    def test_a_test_event_arrives(self, sdk, endpoint):
        result = ok(sdk.webhooks.test(endpoint.id))
        assert set(result) == {"success", "status_code", "event_id", "error"}
        assert (result["success"], result["status_code"], result["error"]) == (True, 200, None)
        [delivery] = [one for one in endpoint.mailbox.deliveries if one.id == result["event_id"]]
        assert delivery.type == "webhook.test"
        delivery.verify(endpoint.secret)

    def test_one_key_sends_once(self, api, endpoint):
        path = f"/v1/webhook_endpoints/{endpoint.id}/test"
        first, again = (api.post(path, headers={"Idempotency-Key": f"test-{endpoint.id}"}) for _ in range(2))
        assert (first.status_code, again.content) == (200, first.content)
        assert ("Idempotent-Replayed" in first.headers, again.headers["Idempotent-Replayed"]) == (False, "true")
        assert len([one for one in endpoint.mailbox.deliveries if one.type == "webhook.test"]) == 1

    def test_one_key_at_once_sends_once(self, server, api, endpoint):
        path = f"/v1/webhook_endpoints/{endpoint.id}/test"
        endpoint.mailbox.delay = 1
        headers = {"Idempotency-Key": f"at-once-{endpoint.id}"}
        answers = at_once(server, [(path, {}, headers)] * 12)
        # The others are told to come again, so that they take nobody's place.
        assert codes(answers) == {"ok": 9, "idempotency_key_in_use": 3}
        tested = [answer for answer in answers if answer[0] == 200]
        assert len({body for _, _, body in tested}) == 1
        assert sorted(map(replayed, tested)) == [False] + [True] * 8
        assert len([one for one in endpoint.mailbox.deliveries if one.type == "webhook.test"]) == 1

    @pytest.mark.parametrize("absent", ["nonsense", "we_01h455vb4pex5vsknk084sn02q"])
    def test_nothing_to_test_is_remembered(self, api, absent):
        headers = {"Idempotency-Key": f"test-{absent}"}
        first, again = (api.post(f"/v1/webhook_endpoints/{absent}/test", headers=headers) for _ in range(2))
        refusal(first, 404, "webhook_endpoint_not_found")
        assert first.content == again.content and again.headers["Idempotent-Replayed"] == "true"

    def test_a_refused_rate_leaves_the_key_free(self, new_server, receiver):
        server = new_server()
        api = Api(server.url, server.keys["test"]["secret"])
        mailbox = receiver.mailbox()
        mailbox.delay = 4
        endpoint = data(api.post("/v1/webhook_endpoints", {"url": mailbox.url, "enabled_events": ["*"]}), 201)
        path = f"/v1/webhook_endpoints/{endpoint['id']}/test"
        keys = [{"Idempotency-Key": f"rate-{number}"} for number in range(9)]
        answers = at_once(server, [(path, {}, headers) for headers in keys])
        assert codes(answers) == {"ok": 8, "rate_limited": 1}
        mailbox.delay = 0
        [left] = [key for key, (status, _, _) in zip(keys, answers) if status == 429]
        again = api.post(path, headers=left)
        assert data(again)["success"] and "Idempotent-Replayed" not in again.headers

    def test_a_failure_is_told(self, sdk, endpoint):
        endpoint.mailbox.answer(500)
        result = ok(sdk.webhooks.test(endpoint.id))
        assert (result["success"], result["status_code"]) == (False, 500)

    def test_only_so_many_wait_for_a_receiver_that_hangs(self, new_server, receiver):
        """Each is a request that is worked on until the receiver answers."""
        server = new_server()
        api = Api(server.url, server.keys["test"]["secret"])
        mailbox = receiver.mailbox()
        mailbox.delay = 60
        endpoint = data(api.post("/v1/webhook_endpoints", {"url": mailbox.url, "enabled_events": ["*"]}), 201)
        path = f"/v1/webhook_endpoints/{endpoint['id']}/test"

        def ask(_):
            start = time.monotonic()
            response = Api(server.url, api.credential).post(path)
            return response, time.monotonic() - start

        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(ask, range(12)))
        waited = [response for response, _ in answers if response.status_code == 200]
        turned_away = [(response, seconds) for response, seconds in answers if response.status_code != 200]
        assert (len(waited), len(turned_away)) == (8, 4)
        for response, seconds in turned_away:
            refusal(response, 429, "rate_limited")
            assert response.headers["Retry-After"] == "5" and seconds < 5
        mailbox.delay = 0
        assert data(api.post(path))["success"], "those that ended gave their places back"

    def test_a_redirect_is_not_followed(self, sdk, endpoint, receiver):
        elsewhere = receiver.mailbox()
        endpoint.mailbox.headers = {"Location": elsewhere.url}
        endpoint.mailbox.answer(302)
        result = ok(sdk.webhooks.test(endpoint.id))
        assert (result["success"], result["status_code"]) == (False, 302)
        assert elsewhere.deliveries == []

    def test_nobody_listening_is_told(self, sdk, create):
        result = ok(sdk.webhooks.test(create(url="http://127.0.0.1:9/closed")["id"]))
        assert (result["success"], result["status_code"]) == (False, None)
        assert result["error"]


class TestRotateSecret:
    def test_both_secrets_sign_for_a_day(self, sdk, api, endpoint):
        rotated = data(api.post(f"/v1/webhook_endpoints/{endpoint.id}/rotate-secret"))
        assert rotated["secret"].startswith("whsec_") and rotated["secret"] != endpoint.secret
        event = ok(sdk.webhooks.test(endpoint.id))["event_id"]
        [delivery] = [one for one in endpoint.mailbox.deliveries if one.id == event]
        assert len(delivery.headers["webhook-signature"].split(" ")) == 2
        Webhook(rotated["secret"]).verify(delivery.body, delivery.headers)
        Webhook(endpoint.secret).verify(delivery.body, delivery.headers)
        delivery.verify_jokoor(endpoint.secret)

    def test_a_second_rotation_silences_nobody(self, sdk, api, endpoint):
        """The first answer was lost, and the client asked again: the receiver still has the first secret."""
        rotated = [data(api.post(f"/v1/webhook_endpoints/{endpoint.id}/rotate-secret"))["secret"] for _ in range(2)]
        event = ok(sdk.webhooks.test(endpoint.id))["event_id"]
        [delivery] = [one for one in endpoint.mailbox.deliveries if one.id == event]
        assert len(delivery.headers["webhook-signature"].split(" ")) == 3
        delivery.verify(endpoint.secret)
        for secret in rotated:
            Webhook(secret).verify(delivery.body, delivery.headers)

    def test_of_many_rotations_the_oldest_and_the_newest_sign(self, sdk, api, endpoint):
        rotated = [data(api.post(f"/v1/webhook_endpoints/{endpoint.id}/rotate-secret"))["secret"] for _ in range(6)]
        event = ok(sdk.webhooks.test(endpoint.id))["event_id"]
        [delivery] = [one for one in endpoint.mailbox.deliveries if one.id == event]
        assert len(delivery.headers["webhook-signature"].split(" ")) == 5
        delivery.verify(endpoint.secret)
        for secret in rotated[2:]:
            Webhook(secret).verify(delivery.body, delivery.headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(rotated[1]).verify(delivery.body, delivery.headers)


class TestDelivery:
    def test_a_paid_checkout_arrives_signed_and_in_order(self, sdk, endpoint, paid):
        checkout = paid(amount="100.00", reference="order-7", metadata={"order": "7"})
        deliveries = endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")
        for delivery in deliveries:
            delivery.verify(endpoint.secret)
            assert delivery.event["livemode"] is False
            record = delivery.event["data"]
            assert record["id"] == checkout["id"]
            assert record["status"] == "completed"
            assert (record["reference"], record["metadata"]) == ("order-7", {"order": "7"})
            assert record["amount"] == "100.00"
            assert record["transaction"]["id"] == checkout["transaction"]["id"]
        assert [delivery.sequence for delivery in deliveries] == [1, 2]
        payment = deliveries[0].event["data"]
        assert payment["checkout_id"] == checkout["id"]
        assert payment["transaction_id"] == checkout["transaction"]["id"]
        assert (payment["object_type"], payment["object_id"]) == ("checkout", checkout["id"])
        assert payment["payment_session_id"] == checkout["payment_session_id"]
        assert payment["payment_method"] == "afrimoney"

    def test_a_changed_byte_is_seen(self, endpoint, paid):
        """The receiver's own checks can fail."""
        checkout = paid()
        delivery = endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed")[0]
        delivery.body = delivery.body.replace(b"completed", b"cOmpleted", 1)
        with pytest.raises(WebhookVerificationError):
            delivery.verify(endpoint.secret)

    def test_a_failed_attempt_and_a_cancellation(self, sdk, endpoint, pay):
        checkout, _ = pay("+2207000001")
        [failed] = endpoint.mailbox.wait_for(checkout["id"], "payment.failed")
        assert failed.event["data"]["status"] == "pending"
        ok(sdk.checkouts.cancel(checkout["id"]))
        both = endpoint.mailbox.wait_for(checkout["id"], "payment.failed", "checkout.cancelled")
        assert [delivery.sequence for delivery in both] == [1, 2]

    def test_only_enabled_events_arrive(self, sdk, create, receiver, paid):
        mailbox = receiver.mailbox()
        create(url=mailbox.url, enabled_events=["checkout.completed"])
        checkout = paid()
        [completed] = mailbox.wait_for(checkout["id"], "checkout.completed")
        assert completed.sequence == 2, "the sequence counts the object's events, not the endpoint's"

    def test_an_endpoint_that_hangs_holds_up_nobody(self, sdk, create, receiver):
        """An attempt may last 15 s; what others are owed comes meanwhile."""
        hanging, healthy = receiver.mailbox(), receiver.mailbox()
        hanging.delay = 60
        for mailbox in (hanging, healthy):
            create(url=mailbox.url, enabled_events=["checkout.cancelled"])
        cancelled = {ok(sdk.checkouts.create(amount="1.00"))["id"] for _ in range(200)}
        for checkout in cancelled:
            ok(sdk.checkouts.cancel(checkout))
        healthy.wait(lambda came: {one.object_id for one in came} >= cancelled, timeout=14)
        assert hanging.deliveries == [], "nothing of its own has come to an end yet"

    def test_a_failed_delivery_is_repeated_and_holds_the_next(self, sdk, endpoint, paid):
        endpoint.mailbox.answer(500)
        checkout = paid()
        endpoint.mailbox.wait_for(checkout["id"], "payment.succeeded", "checkout.completed", timeout=30)
        deliveries = endpoint.mailbox.of(checkout["id"])
        assert [one.type for one in deliveries] == ["payment.succeeded", "payment.succeeded", "checkout.completed"]
        first, second = deliveries[:2]
        assert first.id == second.id and first.body == second.body
        assert 4 <= second.at - first.at <= 15, "the second attempt comes after five seconds"
        assert int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
        for delivery in deliveries:
            delivery.verify(endpoint.secret)

    def test_what_waited_comes_when_the_first_is_sent_by_hand(self, sdk, api, endpoint, pay):
        endpoint.mailbox.status = 500
        checkout, _ = pay("+2207000001")
        eventually(lambda: ok(sdk.checkouts.get(checkout["id"]))["transaction"]["status"] == "failed")
        secret = checkout["client_secret"]
        again = {"client_secret": secret, "payment_method": "wave", "customer_phone": "+2207000001"}
        ok(sdk.payments.initialize(**again))
        mailbox = endpoint.mailbox
        # After the second attempt nothing is tried for five minutes.
        mailbox.wait(lambda deliveries: len([one for one in deliveries if one.object_id == checkout["id"]]) >= 2)
        ok(sdk.checkouts.cancel(checkout["id"]))
        first = mailbox.of(checkout["id"])[0]
        path = f"/v1/events/{first.id}"
        eventually(lambda: data(api.get(path))["deliveries"][0]["attempts"] == 2)
        mailbox.status = 200
        data(api.post(f"{path}/retry"))
        types = ["payment.failed", "payment.failed", "checkout.cancelled"]
        came = mailbox.wait_for(checkout["id"], *types, timeout=15)
        assert [one.sequence for one in came] == [1, 2, 3]

    def test_gone_switches_the_endpoint_off(self, sdk, endpoint, paid):
        endpoint.mailbox.answer(410)
        paid()
        endpoint.mailbox.wait(lambda deliveries: len(deliveries) >= 1)

        found = eventually(lambda: (one := ok(sdk.webhooks.get(endpoint.id)))["status"] == "inactive" and one)
        assert found["disable_reason"] == "gone"
        assert found["disabled_at"] and found["last_failure_at"]
        again = ok(sdk.webhooks.update(endpoint.id, status="active"))
        assert (again["consecutive_failures"], again["disabled_at"], again["disable_reason"]) == (0, None, None)


def test_active_endpoints_have_a_number(new_server):
    """Each event is told to all of them in one transaction, so that there can't be any number."""
    server = new_server()
    api = Api(server.url, server.keys["test"]["secret"])
    endpoint = {"url": "https://hooks.shop.example/", "enabled_events": ["invoice.created"]}
    ids = [data(api.post("/v1/webhook_endpoints", endpoint), 201)["id"] for _ in range(200)]
    refusal(api.post("/v1/webhook_endpoints", endpoint), 400, "too_many_active_endpoints")
    live = Api(server.url, server.keys["live"]["secret"])
    data(live.post("/v1/webhook_endpoints", endpoint), 201)

    data(api.patch(f"/v1/webhook_endpoints/{ids[0]}", {"status": "inactive"}))
    data(api.post("/v1/webhook_endpoints", endpoint), 201)
    refusal(api.patch(f"/v1/webhook_endpoints/{ids[0]}", {"status": "active"}), 400, "too_many_active_endpoints")
    assert api.delete(f"/v1/webhook_endpoints/{ids[1]}").status_code == 204
    data(api.patch(f"/v1/webhook_endpoints/{ids[0]}", {"status": "active"}))
