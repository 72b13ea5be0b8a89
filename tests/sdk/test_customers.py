"""customers: create or retrieve, get, list, update, delete through the SDK (contract §2.8), and what names one."""

from collections import Counter

import json
import uuid

import pytest
from jokoor import Jokoor

from checks import data, error, eventually, faults, ok, refusal
from server import Api
from races import at_once

FIELDS = {"id", "email", "phone", "name", "metadata", "livemode", "created_at", "updated_at"}
ABSENT = "cus_01h455vb4pex5vsknk084sn02q"
PATH = "/v1/pay/customers"


def address():
    return f"{uuid.uuid4().hex}@example.gm"


def number():
    """A phone that no other test has."""
    return f"+2203{uuid.uuid4().int % 10**6:06}"


@pytest.fixture
def live(server):
    with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as client:
        yield client


@pytest.fixture
def customer(sdk):
    return ok(sdk.customers.create(email=address(), phone=number(), name="Awa Ceesay", metadata={"tier": "gold"}))


class TestCreate:
    def test_a_new_one(self, api):
        email, phone = address(), number()
        body = {"email": email, "phone": phone, "name": "Awa Ceesay", "metadata": {"tier": "gold"}}
        customer = data(api.post(PATH, body), 201)
        assert set(customer) == FIELDS
        assert customer["id"].startswith("cus_")
        assert {field: customer[field] for field in body} == body
        assert customer["livemode"] is False
        assert customer["created_at"] == customer["updated_at"]
        assert data(api.get(f"{PATH}/{customer['id']}")) == customer

    @pytest.mark.parametrize("field", ["email", "phone"])
    def test_one_way_to_reach_them_is_enough(self, api, field):
        value = address() if field == "email" else number()
        customer = data(api.post(PATH, {field: value}), 201)
        assert customer[field] == value
        assert [customer[other] for other in ("email", "phone", "name") if other != field] == [None, None]
        assert customer["metadata"] == {}

    def test_the_sdk_retrieves_who_is_there(self, sdk, customer):
        again = ok(sdk.customers.create(email=customer["email"], name="Somebody Else", metadata={"tier": "tin"}))
        assert again == customer, "unchanged"

    def test_retrieved_is_200_and_created_201(self, api, customer):
        assert data(api.post(PATH, {"email": customer["email"]}), 200) == customer
        assert data(api.post(PATH, {"phone": customer["phone"]}), 200) == customer

    def test_addresses_are_compared_without_their_case(self, sdk, api):
        email = address()
        customer = data(api.post(PATH, {"email": email.title()}), 201)
        assert customer["email"] == email.title(), "kept as it was given"
        for spelling in (email, email.upper()):
            assert ok(sdk.customers.create(email=spelling)) == customer

    def test_a_name_is_written_in_one_way(self, sdk, customer):
        composed, apart = "Aminata Si\u00e9", "Aminata Sie\u0301"
        assert ok(sdk.customers.create(email=address(), name=apart))["name"] == composed
        assert ok(sdk.customers.update(customer["id"], name=apart))["name"] == composed
        for checkout in ({"amount": "1.00", "customer_name": apart}, {"amount": "1.00", "customer_name": composed}):
            assert ok(sdk.checkouts.create(**checkout))["customer_name"] == composed

    def test_phones_are_compared_as_the_network_knows_them(self, api):
        phone = number()
        customer = data(api.post(PATH, {"phone": phone}), 201)
        for spelling in (phone[4:], phone[1:], f"+220 {phone[4:7]}-{phone[7:]}"):
            assert data(api.post(PATH, {"phone": spelling}), 200) == customer

    def test_the_address_is_looked_for_before_the_phone(self, api, customer):
        other = data(api.post(PATH, {"email": address(), "phone": number()}), 201)
        both = {"email": other["email"], "phone": customer["phone"]}
        assert data(api.post(PATH, both), 200) == other
        assert data(api.post(PATH, {"email": address(), "phone": customer["phone"]}), 200) == customer

    def test_null_is_as_absent(self, api):
        email = address()
        customer = data(api.post(PATH, {"email": email, "phone": None, "name": None, "metadata": None}), 201)
        assert (customer["phone"], customer["name"], customer["metadata"]) == (None, None, {})

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, {"email": "required"}),
            ({"name": "Awa"}, {"email": "required"}),
            ({"email": None, "phone": None}, {"email": "required"}),
            ({"email": "nobody"}, {"email": "invalid_format"}),
            ({"email": ""}, {"email": "invalid_format"}),
            ({"email": "a@" + "b" * 260 + ".gm"}, {"email": "too_long"}),
            ({"email": 5}, {"email": "wrong_type"}),
            ({"phone": "12"}, {"phone": "invalid_format"}),
            ({"phone": 7000000}, {"phone": "wrong_type"}),
            ({"email": "a@b.gm", "name": ""}, {"name": "too_short"}),
            ({"email": "a@b.gm", "name": "x" * 201}, {"name": "too_long"}),
            ({"email": "a@b.gm", "name": "a\0b"}, {"name": "nul_character"}),
            ({"email": "a@b.gm", "metadata": []}, {"metadata": "wrong_type"}),
            ({"email": "a@b.gm", "metadata": {"x" * 41: "y"}}, {"metadata." + "x" * 41: "too_long"}),
            ({"email": "a@b.gm", "colour": "red"}, {"colour": "unknown_field"}),
            (
                {"email": "nobody", "phone": "12", "name": "", "metadata": 1, "colour": "red"},
                {
                    "email": "invalid_format", "phone": "invalid_format", "name": "too_short",
                    "metadata": "wrong_type", "colour": "unknown_field",
                },
            ),
        ],
    )  # fmt: skip
    def test_all_faults_are_named_and_nothing_is_made(self, api, body, expected):
        before = data(api.get(PATH))["total"]
        assert faults(api.post(PATH, body)) == expected
        assert data(api.get(PATH))["total"] == before

    def test_the_sdk_says_so(self, sdk):
        assert error(sdk.customers.create(email="nobody")).startswith("JokoorValidationError: ")

    def test_a_card_number_is_never_kept(self, server):
        live = Api(server.url, server.keys["live"]["secret"])
        body = {"email": address(), "name": "4242 4242 4242 4242"}
        refusal(live.post(PATH, body), 400, "card_data_not_allowed")
        data(live.post(PATH, {"phone": number()}), 201)

    def test_a_repeated_request_gets_its_answer(self, api, customer):
        for body, status in (({"email": address()}, 201), ({"email": customer["email"]}, 200)):
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            first, second = (api.post(PATH, body, headers=headers) for _ in range(2))
            assert first.status_code == second.status_code == status
            assert first.content == second.content
            assert second.headers["Idempotent-Replayed"] == "true"


class TestManyAtOnce:
    @pytest.mark.parametrize("field", ["email", "phone"])
    def test_64_creates_make_one_customer(self, server, api, field):
        value = address() if field == "email" else number()
        spellings = [value, value.upper() if field == "email" else value[4:]]
        answers = at_once(server, [(PATH, {field: spellings[turn % 2]}) for turn in range(64)])
        assert Counter(status for status, _, _ in answers) == {201: 1, 200: 63}, answers[0]
        assert len({json.loads(body)["data"]["id"] for _, _, body in answers}) == 1
        assert data(api.get(PATH, params={field: value}))["total"] == 1

    def test_of_32_who_want_an_address_one_gets_it(self, server, api, sdk):
        wanted, phone = address(), number()
        made = [ok(sdk.customers.create(email=address())) for _ in range(32)]
        bodies = [{"email": wanted}, {"phone": phone}]
        answers = at_once(
            server, [(f"{PATH}/{one['id']}", bodies[turn % 2]) for turn, one in enumerate(made)], method="PUT"
        )
        for turn, field in enumerate(("email", "phone")):
            mine = [json.loads(body) for _, _, body in answers[turn::2]]
            winners = [body["data"]["id"] for body in mine if "data" in body]
            assert len(winners) == 1, Counter(status for status, _, _ in answers)
            lost = [body["details"] for body in mine if "data" not in body]
            assert all([(fault["field"], fault["code"]) for fault in found] == [(field, "conflict")] for found in lost)
            found = data(api.get(PATH, params={field: wanted if field == "email" else phone}))["items"]
            assert [customer["id"] for customer in found] == winners

    def test_a_deletion_in_between_leaves_at_most_one(self, server, api):
        email = address()
        for _ in range(3):
            found = data(api.post(PATH, {"email": email}), 201)
            answers = at_once(server, [(PATH, {"email": email})] * 16)
            assert {status for status, _, _ in answers} == {200}
            assert api.delete(f"{PATH}/{found['id']}").status_code == 204
        assert data(api.get(PATH, params={"email": email}))["total"] == 0


class TestGet:
    @pytest.mark.parametrize("absent", [ABSENT, "cus_short", "nonsense", "prod_01h455vb4pex5vsknk084sn02q"])
    def test_an_absent_one_is_not_found(self, sdk, api, absent):
        assert error(sdk.customers.get(absent)).startswith("JokoorNotFoundError: ")
        refusal(api.get(f"{PATH}/{absent}"), 404, "customer_not_found")

    def test_another_mode_sees_nothing(self, customer, live, sdk):
        for attempt in (
            live.customers.get(customer["id"]),
            live.customers.update(customer["id"], name="X"),
            live.customers.delete(customer["id"]),
        ):
            assert error(attempt).startswith("JokoorNotFoundError: ")
        assert ok(live.customers.create(email=customer["email"]))["id"] != customer["id"]
        assert ok(sdk.customers.get(customer["id"])) == customer

    def test_another_organization_sees_nothing(self, customer, new_server):
        other = new_server()
        api = Api(other.url, other.keys["test"]["secret"])
        refusal(api.get(f"{PATH}/{customer['id']}"), 404, "customer_not_found")

    def test_scopes(self, api, server, customer):
        def with_scope(scope):
            token = data(api.post("/v1/auth/token", {"scope": scope}))["access_token"]
            return Api(server.url, token)

        reading, writing = with_scope("read:customers"), with_scope("write:customers")
        path = f"{PATH}/{customer['id']}"
        data(reading.get(path))
        data(reading.get(PATH))
        data(writing.put(path, {}))
        for answer in (
            reading.post(PATH, {"email": address()}),
            reading.put(path, {"name": "X"}),
            reading.delete(path),
            writing.get(path),
            writing.get(PATH),
        ):
            refusal(answer, 403, "insufficient_scope")

    def test_a_page_may_nothing(self, publishable, customer):
        refusal(publishable.get(f"{PATH}/{customer['id']}"), 403, "secret_key_required")
        refusal(publishable.post(PATH, {"email": address()}), 403, "secret_key_required")


class TestList:
    def test_newest_first(self, sdk, api):
        made = [ok(sdk.customers.create(email=address())) for _ in range(3)]
        page = ok(sdk.customers.list(limit=2))
        assert set(page) == {"items", "count", "total", "offset", "limit", "has_more"}
        assert page["items"] == [made[2], made[1]]
        assert page["has_more"] is True
        assert ok(sdk.customers.list(offset=2, limit=1))["items"] == [made[0]]
        assert data(api.get(PATH, params={"after": made[1]["id"], "limit": 1}))["items"] == [made[0]]

    def test_by_address_and_phone(self, api, customer):
        email, phone = customer["email"], customer["phone"]
        for query in (
            {"email": email},
            {"email": email.upper()},
            {"phone": phone},
            {"phone": phone[4:]},
            {"email": email, "phone": phone},
        ):
            assert data(api.get(PATH, params=query))["items"] == [customer], query
        # As people write it into an address by hand.
        assert data(api.get(f"{PATH}?phone={phone}"))["items"] == [customer]
        assert data(api.get(PATH, params={"email": email, "phone": number()}))["items"] == []
        assert data(api.get(PATH, params={"email": address()}))["total"] == 0

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [("limit", "0"), ("offset", "-1"), ("email", "nobody"), ("phone", "12"), ("name", "Awa"), ("phone", "")],
    )
    def test_a_bad_query_names_the_parameter(self, api, parameter, value):
        assert set(faults(api.get(PATH, params={parameter: value}))) == {parameter}

    def test_the_sdk_says_so(self, sdk):
        assert error(sdk.customers.list(limit=0)).startswith("JokoorValidationError: ")


class TestUpdate:
    def test_only_what_is_given_changes(self, sdk, customer):
        changed = ok(sdk.customers.update(customer["id"], name="Awa Jallow"))
        assert changed == customer | {"name": "Awa Jallow", "updated_at": changed["updated_at"]}
        email, phone = address(), number()
        changed = ok(sdk.customers.update(customer["id"], email=email, phone=phone, metadata={"a": "b"}))
        assert (changed["email"], changed["phone"], changed["metadata"]) == (email, phone, {"a": "b"})
        assert ok(sdk.customers.get(customer["id"])) == changed
        assert ok(sdk.customers.create(email=email)) == changed, "found by the new address"
        assert ok(sdk.customers.create(email=customer["email"]))["id"] != customer["id"], "the old one is free"

    def test_nothing_new_is_no_change(self, sdk, api, customer):
        same = {field: customer[field] for field in ("email", "phone", "name", "metadata")}
        eventually(lambda: data(api.post(PATH, {"email": address()}), 201)["created_at"] > customer["created_at"])
        assert ok(sdk.customers.update(customer["id"], **same)) == customer
        assert data(api.put(f"{PATH}/{customer['id']}", {})) == customer

    def test_the_case_of_an_address_may_change(self, sdk, customer):
        changed = ok(sdk.customers.update(customer["id"], email=customer["email"].upper()))
        assert changed["email"] == customer["email"].upper()

    def test_null_clears_what_is_not_needed(self, api, customer):
        path = f"{PATH}/{customer['id']}"
        assert data(api.put(path, {"name": None}))["name"] is None
        assert data(api.put(path, {"phone": None}))["phone"] is None
        assert faults(api.put(path, {"email": None})) == {"email": "required"}
        assert faults(api.put(path, {"email": None, "phone": None})) == {"email": "required"}
        phone = number()
        changed = data(api.put(path, {"email": None, "phone": phone}))
        assert (changed["email"], changed["phone"]) == (None, phone)
        assert faults(api.put(path, {"phone": None})) == {"phone": "required"}
        assert data(api.get(path)) == changed

    def test_what_another_has_is_a_conflict(self, sdk, api, customer):
        other = ok(sdk.customers.create(email=address(), phone=number()))
        path = f"{PATH}/{customer['id']}"
        wrong = {"email": other["email"].upper(), "phone": other["phone"]}
        assert faults(api.put(path, wrong)) == {"email": "conflict", "phone": "conflict"}
        every = {"email": "conflict", "phone": "conflict", "name": "too_short"}
        assert faults(api.put(path, wrong | {"name": ""})) == every, "whatever else is wrong"
        assert error(sdk.customers.update(customer["id"], phone=other["phone"])).startswith("JokoorValidationError: ")
        assert data(api.get(path)) == customer
        ok(sdk.customers.delete(other["id"]))
        assert data(api.put(path, {"email": other["email"]}))["email"] == other["email"], "a deleted one has nothing"

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"email": "nobody"}, {"email": "invalid_format"}),
            ({"phone": ""}, {"phone": "invalid_format"}),
            ({"name": ""}, {"name": "too_short"}),
            ({"metadata": None}, {"metadata": "wrong_type"}),
            ({"id": ABSENT}, {"id": "unknown_field"}),
            ({"email": 1, "phone": 2, "name": 3}, {"email": "wrong_type", "phone": "wrong_type", "name": "wrong_type"}),
            ({"email": None, "phone": None, "name": ""}, {"email": "required", "name": "too_short"}),
            ({"email": None, "phone": "12"}, {"phone": "invalid_format"}),
        ],
    )
    def test_all_faults_are_named(self, api, customer, body, expected):
        path = f"{PATH}/{customer['id']}"
        assert faults(api.put(path, body)) == expected
        assert data(api.get(path)) == customer

    def test_an_absent_one_is_not_found(self, sdk, api):
        assert error(sdk.customers.update(ABSENT, name="X")).startswith("JokoorNotFoundError: ")
        refusal(api.put(f"{PATH}/{ABSENT}", {"name": "X"}), 404, "customer_not_found")

    def test_a_repeated_request_gets_its_answer(self, api, customer):
        headers, path = {"Idempotency-Key": uuid.uuid4().hex}, f"{PATH}/{customer['id']}"
        first = api.put(path, {"name": "One"}, headers=headers)
        data(api.put(path, {"name": "Two"}))
        second = api.put(path, {"name": "One"}, headers=headers)
        assert first.content == second.content
        assert data(api.get(path))["name"] == "Two", "it was not done again"


class TestDelete:
    def test_nobody_finds_it_and_its_address_is_free(self, sdk, api, customer):
        assert ok(sdk.customers.delete(customer["id"])) == {"success": True}
        path = f"{PATH}/{customer['id']}"
        refusal(api.get(path), 404, "customer_not_found")
        refusal(api.put(path, {"name": "X"}), 404, "customer_not_found")
        refusal(api.delete(path), 404, "customer_not_found")
        assert error(sdk.customers.delete(customer["id"])).startswith("JokoorNotFoundError: ")
        assert data(api.get(PATH, params={"email": customer["email"]}))["total"] == 0
        new = data(api.post(PATH, {"email": customer["email"], "phone": customer["phone"]}), 201)
        assert new["id"] != customer["id"]
        assert new["name"] is None

    def test_it_has_no_body(self, api, customer):
        path = f"{PATH}/{customer['id']}"
        assert faults(api.delete(path, json={"reason": "x"})) == {"reason": "unknown_field"}
        answer = api.delete(path)
        assert (answer.status_code, answer.content) == (204, b"")

    def test_a_repeated_request_gets_its_answer(self, api, customer):
        headers, path = {"Idempotency-Key": uuid.uuid4().hex}, f"{PATH}/{customer['id']}"
        assert [api.delete(path, headers=headers).status_code for _ in range(2)] == [204, 204]


class TestNamedByACheckout:
    def test_what_is_not_sent_comes_from_the_customer(self, sdk, customer):
        checkout = ok(sdk.checkouts.create(amount="1.00", customer_id=customer["id"]))
        for field in ("id", "email", "phone", "name"):
            assert checkout[f"customer_{field}"] == customer[field]

    def test_what_is_sent_wins(self, sdk, api, customer):
        given = {"customer_email": address(), "customer_phone": number(), "customer_name": "Her Brother"}
        checkout = ok(sdk.checkouts.create(amount="1.00", customer_id=customer["id"], **given))
        assert {field: checkout[field] for field in given} == given
        assert checkout["customer_id"] == customer["id"]
        empty = data(api.post("/v1/checkouts", {"amount": "1.00", "customer_id": customer["id"], "customer_phone": ""}), 201)
        assert (empty["customer_phone"], empty["customer_name"]) == ("", customer["name"])

    def test_history_stays(self, sdk, api, customer):
        checkout = ok(sdk.checkouts.create(amount="1.00", customer_id=customer["id"]))
        del checkout["client_secret"]
        ok(sdk.customers.update(customer["id"], email=address(), name="Another Name"))
        assert ok(sdk.checkouts.get(checkout["id"])) == checkout
        ok(sdk.customers.delete(customer["id"]))
        assert ok(sdk.checkouts.get(checkout["id"])) == checkout
        listed = data(api.get("/v1/checkouts", params={"customer_id": customer["id"]}))["items"]
        assert listed == [checkout]

    def test_who_is_not_there_is_a_fault_of_the_body(self, sdk, api, customer, live):
        gone = ok(sdk.customers.create(email=address()))
        ok(sdk.customers.delete(gone["id"]))
        foreign = ok(live.customers.create(email=address()))
        for absent in (ABSENT, "nonsense", "", gone["id"], foreign["id"], "prod_01h455vb4pex5vsknk084sn02q"):
            body = {"amount": "1.00", "customer_id": absent}
            assert faults(api.post("/v1/checkouts", body)) == {"customer_id": "not_found"}, absent
        assert error(sdk.checkouts.create(amount="1.00", customer_id=ABSENT)).startswith("JokoorValidationError: ")

    def test_all_faults_at_once(self, api):
        items = [{"product_id": "prod_01h455vb4pex5vsknk084sn02q", "quantity": 1}, {"quantity": 1}]
        body = {"customer_id": ABSENT, "items": items}
        assert faults(api.post("/v1/checkouts", body)) == {
            "customer_id": "not_found", "items[0].product_id": "not_found", "items[1].unit_price": "required",
        }  # fmt: skip


class TestNamedByAPayment:
    @pytest.fixture
    def payer(self, sdk):
        return ok(sdk.customers.create(email=address(), phone=number(), name="Binta Touray"))

    @pytest.fixture
    def start(self, api, sdk):
        def start(payer=None, **fields):
            checkout = ok(sdk.checkouts.create(amount="1.00", **fields.pop("checkout", {})))
            body = {"object_type": "checkout", "object_id": checkout["id"], **fields}
            return api.post("/v1/pay/initialize", body | ({"customer_id": payer["id"]} if payer else {}))

        return start

    def test_what_is_not_sent_comes_from_the_customer(self, start, payer):
        session = data(start(payer, payment_method="afrimoney"))
        assert session["customer_phone"] == payer["phone"]
        assert (session["customer_email"], session["customer_name"]) == (payer["email"], payer["name"])

    def test_what_is_sent_wins(self, start, payer):
        session = data(start(payer, payment_method="afrimoney", customer_phone="+2207654321"))
        assert (session["customer_phone"], session["customer_name"]) == ("+2207654321", payer["name"])

    def test_the_checkout_s_own_customer_is_not_mixed_in(self, sdk, start, payer, customer):
        phone_only = ok(sdk.customers.create(email=None, phone=number()))
        session = data(start(phone_only, checkout={"customer_id": customer["id"]}))
        shown = [session[f"customer_{field}"] for field in ("phone", "email", "name")]
        assert shown == [phone_only["phone"], None, None]
        session = data(start(checkout={"customer_id": customer["id"]}))
        assert session["customer_email"] == customer["email"]

    def test_a_customer_named_later_replaces_no_attempt(self, api, start, payer):
        session = data(start(payment_method="wave", customer_phone="+2207654321"))
        again = data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_id": payer["id"]}))
        known = {"customer_email": payer["email"], "customer_name": payer["name"], "updated_at": again["updated_at"]}
        assert again == session | known, "the phone was handed over"
        attempt = data(api.get(f"/v1/pay/status/{session['id']}"))["transaction_id"]
        attempt = data(api.get(f"/v1/pay/transactions/{attempt}"))
        assert (attempt["customer_id"], attempt["customer_phone"]) == (payer["id"], "+2207654321")

    def test_who_is_not_there_is_a_fault_of_the_body(self, api, sdk, start):
        gone = ok(sdk.customers.create(email=address()))
        ok(sdk.customers.delete(gone["id"]))
        for absent in (ABSENT, "nonsense", gone["id"]):
            assert faults(start({"id": absent})) == {"customer_id": "not_found"}
        wrong = start({"id": ABSENT}, amount="2.00")
        assert faults(wrong) == {"customer_id": "not_found", "amount": "conflict"}

    def test_a_page_can_t_ask_who_somebody_is(self, sdk, publishable, payer):
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        body = {"client_secret": checkout["client_secret"], "customer_id": payer["id"]}
        assert faults(publishable.post("/v1/pay/initialize", body)) == {"customer_id": "not_allowed"}
