"""One key, one effect, the same bytes (contract §1.8)."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from checks import data, faults, ok, refusal
from wire import Wire
from wire import request as request_bytes


def replayed(response):
    return response.headers.get("Idempotent-Replayed") == "true"


def key(request, suffix=""):
    return f"{request.node.name}{suffix}".replace("[", "-").replace("]", "")


class TestCreate:
    def test_the_sdk_repeats_without_harm(self, sdk, request):
        fields = {"amount": "10.00", "idempotency_key": key(request), "reference": key(request)}
        first, second = (ok(sdk.checkouts.create(**fields)) for _ in range(2))
        assert first == second
        assert first["client_secret"]

    @pytest.mark.parametrize("place", ["body", "header", "both"])
    def test_the_answer_is_the_same_bytes(self, api, request, place):
        body, headers = {"amount": "10.00"}, {}
        if place in ("body", "both"):
            body["idempotency_key"] = key(request)
        if place in ("header", "both"):
            headers["Idempotency-Key"] = key(request)
        first = api.post("/v1/checkouts", body, headers=headers)
        second = api.post("/v1/checkouts", body, headers=headers)
        assert first.status_code == second.status_code == 201
        assert first.content == second.content
        assert (replayed(first), replayed(second)) == (False, True)
        assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]

    def test_body_and_header_are_one_key(self, api, request):
        first = api.post("/v1/checkouts", {"amount": "10.00", "idempotency_key": key(request)})
        second = api.post("/v1/checkouts", {"amount": "10.00"}, headers={"Idempotency-Key": key(request)})
        assert first.content == second.content

    def test_the_order_of_fields_does_not_matter(self, api, request):
        headers = {"Idempotency-Key": key(request), "Content-Type": "application/json"}
        first = api.post("/v1/checkouts", data=b'{"amount":"1.00","reference":"r"}', headers=headers)
        second = api.post("/v1/checkouts", data=b' { "reference" : "r", "amount" : "1.00" } ', headers=headers)
        assert first.status_code == 201
        assert first.content == second.content

    def test_another_body_is_refused(self, api, request):
        headers = {"Idempotency-Key": key(request)}
        first = data(api.post("/v1/checkouts", {"amount": "10.00"}, headers=headers), 201)
        refusal(api.post("/v1/checkouts", {"amount": "11.00"}, headers=headers), 400, "idempotency_key_reused")
        path = f"/v1/checkouts/{first['id']}/cancel"
        refusal(api.post(path, headers=headers), 400, "idempotency_key_reused")
        assert data(api.get(f"/v1/checkouts/{first['id']}"))["status"] == "pending"

    def test_who_was_answered_is_told_that_beside_others_whatever_has_changed_since(self, api, request):
        """What comes together may be stored together, and is looked for one by one."""
        product = data(api.post("/v1/pay/products", {"name": "Tea", "price": "5.00"}), 201)
        body, headers = {"items": [{"product_id": product["id"], "quantity": 1}]}, {"Idempotency-Key": key(request)}
        first = api.post("/v1/checkouts", body, headers=headers)
        assert first.status_code == 201
        data(api.put(f"/v1/pay/products/{product['id']}", {"active": False}))
        asked = [(body, headers), (body | {"reference": "r"}, headers), ({"amount": "1.00"}, {})] * 40
        with ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(lambda it: api.post("/v1/checkouts", it[0], headers=it[1]), asked))
        again, other, new = (answers[place::3] for place in range(3))
        assert {(answer.status_code, answer.content) for answer in again} == {(201, first.content)}
        assert {answer.json()["code"] for answer in other} == {"idempotency_key_reused"}
        assert {answer.status_code for answer in new} == {201}

    def test_two_keys_are_a_conflict(self, api):
        body = {"amount": "1.00", "idempotency_key": "one"}
        answer = api.post("/v1/checkouts", body, headers={"Idempotency-Key": "another"})
        refusal(answer, 400, "idempotency_key_conflict")

    @pytest.mark.parametrize("bad", ["", "x" * 256, "mañana", "tab\there"])
    def test_a_key_is_printable_ascii(self, api, bad):
        refusal(api.post("/v1/checkouts", {"amount": "1.00", "idempotency_key": bad}), 400, "invalid_idempotency_key")

    @pytest.mark.parametrize("sent", [["one", "one"], ["mañana"]], ids=["twice", "no ASCII"])
    def test_a_header_counts_where_a_key_is_used(self, server, sent):
        secret, publishable = server.keys["test"]["secret"], server.keys["test"]["publishable"]
        headers = [("Idempotency-Key", key) for key in sent]

        def ask(method, path, credential=secret, body=b""):
            with Wire(server.url) as wire:
                (status, _, answer), _ = wire.ask(request_bytes(method, path, credential, body, headers))
                return status, json.loads(answer).get("code")

        assert ask("POST", "/v1/checkouts", body={"amount": "1.00"}) == (400, "invalid_idempotency_key")
        assert ask("PUT", "/v1/pay/settings", body={"locale": "en"}) == (400, "invalid_idempotency_key")
        assert ask("GET", "/v1/checkouts") == (200, None)
        assert ask("POST", "/v1/auth/token") == (200, None)
        assert ask("POST", "/v1/checkouts", publishable, {"amount": "1.00"}) == (403, "secret_key_required")

    def test_the_longest_key_is_taken(self, api):
        data(api.post("/v1/checkouts", {"amount": "1.00", "idempotency_key": "k" * 255}), 201)

    def test_a_validation_failure_leaves_the_key_free(self, api, request):
        headers = {"Idempotency-Key": key(request)}
        faults(api.post("/v1/checkouts", {"amount": "free"}, headers=headers))
        created = api.post("/v1/checkouts", {"amount": "1.00"}, headers=headers)
        data(created, 201)
        assert not replayed(created)


class TestOtherOperations:
    def test_a_cancellation_is_answered_again(self, api, request):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
        path, headers = f"/v1/checkouts/{checkout['id']}/cancel", {"Idempotency-Key": key(request)}
        first, second = api.post(path, headers=headers), api.post(path, headers=headers)
        assert data(first) == data(second)
        assert replayed(second)
        refusal(api.post(path, headers={"Idempotency-Key": key(request, "2")}), 400, "checkout_already_cancelled")

    def test_a_refusal_is_remembered(self, api, request):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
        path, headers = f"/v1/checkouts/{checkout['id']}/cancel", {"Idempotency-Key": key(request)}
        data(api.post(path))
        first, second = api.post(path, headers=headers), api.post(path, headers=headers)
        refusal(first, 400, "checkout_already_cancelled")
        assert (first.content, first.status_code) == (second.content, second.status_code)
        assert replayed(second)

    def test_nothing_found_is_remembered(self, api, request):
        headers = {"Idempotency-Key": key(request)}
        path = "/v1/checkouts/cs_01h455vb4pex5vsknk084sn02q/cancel"
        first, second = api.post(path, headers=headers), api.post(path, headers=headers)
        refusal(first, 404, "checkout_not_found")
        assert first.content == second.content and replayed(second)

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/v1/checkouts/{id}/cancel", None),
            ("PUT", "/v1/pay/customers/{id}", {"name": "Awa"}),
            ("DELETE", "/v1/pay/customers/{id}", None),
            ("PUT", "/v1/pay/products/{id}", {"price": "1.00"}),
            ("DELETE", "/v1/pay/products/{id}", None),
            ("POST", "/v1/events/{id}/retry", None),
            ("PUT", "/v1/pay/invoices/{id}", {"notes": "x"}),
            ("POST", "/v1/pay/invoices/{id}/finalize", None),
            ("POST", "/v1/pay/invoices/{id}/send", None),
            ("POST", "/v1/pay/invoices/{id}/cancel", None),
            ("POST", "/v1/pay/invoices/{id}/payments", {"amount": "1.00", "payment_method": "cash"}),
            ("POST", "/v1/pay/transactions/{id}/refund", {"amount": "1.00"}),
            ("PUT", "/v1/pay/payment-links/{id}", {"title": "Tea"}),
            ("DELETE", "/v1/pay/payment-links/{id}", None),
            ("POST", "/v1/webhook_endpoints/{id}", {"description": "x"}),
            ("DELETE", "/v1/webhook_endpoints/{id}", None),
            ("POST", "/v1/webhook_endpoints/{id}/rotate-secret", None),
        ],
    )
    def test_what_is_no_id_is_remembered_as_well(self, api, request, method, path, body):
        headers = {"Idempotency-Key": key(request)}
        first, second = (api.request(method, path.format(id="nonsense"), body, headers=headers) for _ in range(2))
        assert (first.status_code, replayed(first)) == (404, False), first.text
        assert first.content == second.content and replayed(second)

    @pytest.mark.parametrize("method", ["wave", "afrimoney", "qmoney", "card"])
    def test_a_payment_starts_once(self, api, request, method):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
        body = {
            "client_secret": checkout["client_secret"],
            "payment_method": method,
            "customer_phone": "+2207654321",
            "idempotency_key": key(request),
        }
        first, second = api.post("/v1/pay/initialize", body), api.post("/v1/pay/initialize", body)
        data(first)
        assert first.content == second.content and replayed(second)

    def test_a_code_is_tried_once(self, api, request):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00", "customer_phone": "+2207654321"}), 201)
        start = {"client_secret": checkout["client_secret"], "payment_method": "qmoney"}
        session = data(api.post("/v1/pay/initialize", start))
        body = {"session_id": session["id"], "customer_pin": "000000", "idempotency_key": key(request)}
        first, second = api.post("/v1/pay/initialize", body), api.post("/v1/pay/initialize", body)
        assert first.content == second.content
        assert data(second)["next_action"]["attempts_left"] == 2

    def test_an_endpoint_is_made_and_deleted_once(self, api, request, receiver):
        headers = {"Idempotency-Key": key(request)}
        body = {"url": receiver.url + "/idempotent", "enabled_events": ["*"]}
        first, second = (api.post("/v1/webhook_endpoints", body, headers=headers) for _ in range(2))
        assert first.content == second.content
        path = f"/v1/webhook_endpoints/{data(first, 201)['id']}"
        headers = {"Idempotency-Key": key(request, "-delete")}
        assert [api.delete(path, headers=headers).status_code for _ in range(2)] == [204, 204]
        refusal(api.delete(path), 404, "webhook_endpoint_not_found")

    def test_settings_by_put(self, api, request):
        headers = {"Idempotency-Key": key(request)}
        first, second = (api.put("/v1/pay/settings", {"locale": "en"}, headers=headers) for _ in range(2))
        data(first)
        assert first.content == second.content and replayed(second)


class TestScope:
    def test_a_page_s_visitor_can_t_occupy_a_merchant_s_keys(self, api, publishable, request):
        one, other = (data(api.post("/v1/checkouts", {"amount": "1.00"}), 201) for _ in range(2))
        answers = set()
        for client, checkout in ((publishable, one), (publishable, other), (api, one)):
            body = {
                "client_secret": checkout["client_secret"],
                "payment_method": "wave",
                "idempotency_key": key(request),
            }
            response = client.post("/v1/pay/initialize", body)
            data(response)
            assert not replayed(response)
            answers.add(response.content)
        assert len(answers) >= 2

    def test_a_page_s_keys_are_of_what_is_paid_however_it_is_named(self, api, publishable, request):
        checkout = data(api.post("/v1/checkouts", {"amount": "1.00"}), 201)
        body = {"client_secret": checkout["client_secret"], "idempotency_key": key(request)}
        session = data(publishable.post("/v1/pay/initialize", body))
        body = {"session_id": session["id"], "idempotency_key": key(request)}
        refusal(publishable.post("/v1/pay/initialize", body), 400, "idempotency_key_reused")

    def test_each_payer_of_a_link_has_keys_of_their_own(self, api, publishable, request):
        link = data(api.post("/v1/pay/payment-links", {"title": "Tea", "amount": "1.00"}), 201)
        named = {"object_type": "payment_link", "object_id": link["id"]}
        one, other = (data(api.post("/v1/pay/initialize", named)) for _ in range(2))
        for session in (one, other):
            answer = publishable.post("/v1/pay/initialize", {"session_id": session["id"], "idempotency_key": key(request)})
            assert data(answer)["id"] == session["id"]
