"""payment_links: create, get, list, update, delete; and what many payers do with one link (contract §2.3, §4.7, §6)."""

import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from checks import data, error, eventually, faults, ok, refusal
from races import at_once, codes

LINK = {
    "id", "organization_id", "title", "description", "amount", "currency", "is_variable_amount", "min_amount",
    "max_amount", "status", "payment_url", "collect_customer_info", "custom_fields", "success_url", "failure_url",
    "expiration_date", "max_usage_count", "usage_count", "mode", "livemode", "metadata", "organization", "products",
    "created_at", "updated_at",
}  # fmt: skip
ABSENT = "pl_01h455vb4pex5vsknk084sn02q"
APPROVES, POOR, QUIET = "+2207000000", "+2207000001", "+2207654321"


@pytest.fixture
def link(sdk):
    def create(**fields):
        return ok(sdk.payment_links.create(**{"title": "Concert", "amount": "250.00", **fields}))

    return create


@pytest.fixture
def start(api):
    """Begins a payment of a link, as its page would."""

    def start(link, phone=APPROVES, method="afrimoney", **fields):
        body = {"object_type": "payment_link", "object_id": link["id"], "payment_method": method}
        return data(api.post("/v1/pay/initialize", {**body, "customer_phone": phone, **fields}))

    return start


@pytest.fixture
def succeeds(sdk):
    def wait(session):
        return eventually(lambda: status(sdk, session, "succeeded"))

    return wait


def status(sdk, session, wanted):
    found = ok(sdk.payments.get_status(session["id"]))
    return found if found["status"] == wanted else None


def events(sdk, object_id, limit=100):
    found = ok(sdk.webhook_events.list(limit=limit))["items"]
    return [event for event in reversed(found) if event["object_id"] == object_id]


class TestLinks:
    def test_a_link_as_it_was_asked_for(self, sdk, server):
        link = ok(
            sdk.payment_links.create(
                title="School fees",
                amount="1000.00",
                description="Third term",
                is_variable_amount=True,
                min_amount="100.00",
                max_amount="5000.00",
                expiration_date="2099-02-14",
                max_usage_count=3,
                success_url="https://school.example/thanks",
                failure_url="https://school.example/sorry",
                collect_customer_info=True,
                custom_fields=[
                    {"name": "pupil", "label": "Name of the pupil", "type": "text", "required": True},
                    {"name": "form", "label": "Form", "type": "select", "options": ["1", "2"]},
                ],
                metadata={"term": 3},
            )
        )
        assert set(link) == LINK
        assert link["id"].startswith("pl_") and link["payment_url"] == f"{server.url}/pay/{link['id']}"
        assert (link["amount"], link["is_variable_amount"]) == ("1000.00", True)
        assert (link["min_amount"], link["max_amount"]) == ("100.00", "5000.00")
        assert link["expiration_date"] == "2099-02-14T23:59:59Z"
        assert (link["status"], link["usage_count"], link["max_usage_count"]) == ("active", 0, 3)
        assert link["custom_fields"][1] == {
            "name": "form", "label": "Form", "type": "select", "required": False, "options": ["1", "2"],
        }  # fmt: skip
        assert link["metadata"] == {"term": 3}
        assert (link["mode"], link["livemode"], link["products"]) == ("test", False, None)
        assert link["organization"]["id"] == link["organization_id"]
        assert ok(sdk.payment_links.get(link["id"])) == link

    def test_nothing_is_the_payers_choice(self, link):
        free = link(amount="0.00")
        assert (free["amount"], free["is_variable_amount"]) == ("0.00", True)
        whole = link(amount="0.00", currency="XOF")
        assert (whole["amount"], whole["is_variable_amount"]) == ("0", True)

    def test_bad_input_all_at_once(self, api):
        body = {
            "title": "",
            "amount": 12,
            "currency": "dalasi",
            "min_amount": "-1",
            "expiration_date": "2020-01-01",
            "max_usage_count": 0,
            "success_url": "javascript:alert(1)",
            "custom_fields": [{"name": "a", "label": "A", "type": "colour"}, {"name": "b", "type": "select"}],
            "name": "old",
            "cancel_url": "https://old.example",
        }
        found = faults(api.post("/v1/pay/payment-links", body))
        assert found == {
            "title": "too_short",
            "amount": "amount_must_be_string",
            "currency": "invalid_enum",
            "min_amount": "amount_not_positive",
            "expiration_date": "out_of_range",
            "max_usage_count": "out_of_range",
            "success_url": "invalid_format",
            "custom_fields[0].type": "invalid_enum",
            "custom_fields[1].label": "required",
            "custom_fields[1].options": "required",
            "name": "unknown_field",
            "cancel_url": "unknown_field",
        }

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"min_amount": "1.00"}, {"min_amount": "not_allowed"}),
            ({"amount": "0.00", "min_amount": "5.00", "max_amount": "4.99"}, {"min_amount": "out_of_range"}),
            ({"is_variable_amount": True, "max_amount": "4.99"}, {"amount": "out_of_range"}),
            ({"amount": "0.001"}, {"amount": "too_many_decimals"}),
            ({"amount": "-0.00"}, {"amount": "amount_not_positive"}),
            ({"expiration_date": "2020-01-01"}, {"expiration_date": "out_of_range"}),
            ({"currency": "JPY", "amount": "5"}, {"currency": "not_allowed"}),
            ({"custom_fields": [{"name": "a", "label": "A", "type": "text"}] * 2}, {"custom_fields": "conflict"}),
            (
                {"custom_fields": [{"name": "a", "label": "A", "type": "text", "options": ["x"]}]},
                {"custom_fields[0].options": "not_allowed"},
            ),
            (
                {"custom_fields": [{"name": "a", "label": "A", "type": "select", "options": ["L", " "]}]},
                {"custom_fields[0].options[1]": "too_short"},
            ),
            (
                {"custom_fields": [{"name": "a", "label": "A", "type": "select", "options": ["L", "L "]}]},
                {"custom_fields[0].options": "conflict"},
            ),
        ],
    )
    def test_what_makes_no_link(self, api, fields, expected):
        assert faults(api.post("/v1/pay/payment-links", {"title": "T", "amount": "5.00", **fields})) == expected

    def test_lists_are_filtered_by_what_is_true_now(self, sdk, link):
        active, inactive = link(), link()
        ok(sdk.payment_links.update(inactive["id"], status="inactive"))
        deleted = link()
        ok(sdk.payment_links.delete(deleted["id"]))

        def listed(**filters):
            return {one["id"] for one in ok(sdk.payment_links.list(limit=100, **filters))["items"]}

        assert {active["id"], inactive["id"]} <= listed() and deleted["id"] not in listed()
        assert active["id"] in listed(status="active") and inactive["id"] not in listed(status="active")
        assert inactive["id"] in listed(status="inactive") and active["id"] not in listed(status="inactive")
        assert error(sdk.payment_links.list(status="deleted")).startswith("JokoorValidationError: ")

    def test_an_update_changes_what_it_names(self, sdk, api, link):
        before = link(description="Hall A", max_usage_count=5)
        after = data(api.put(f"/v1/pay/payment-links/{before['id']}", {"title": "Seats", "description": None}))
        assert (after["title"], after["description"], after["max_usage_count"]) == ("Seats", None, 5)
        assert ok(sdk.payment_links.update(before["id"], title="Seats"))["updated_at"] == after["updated_at"]
        told = [event["type"] for event in eventually(lambda: told_at_least(sdk, before["id"], 2))]
        assert told == ["payment_link.created", "payment_link.updated"], "an update that changes nothing tells nothing"
        found = faults(api.put(f"/v1/pay/payment-links/{before['id']}", {"amount": "1.00", "currency": "USD"}))
        assert found == {"amount": "not_allowed", "currency": "not_allowed"}
        past = {"expiration_date": "2020-01-01"}
        assert faults(api.put(f"/v1/pay/payment-links/{before['id']}", past)) == {"expiration_date": "out_of_range"}

    def test_a_deleted_link_is_gone(self, sdk, api, link, start):
        gone = link()
        session = start(gone, QUIET)
        assert ok(sdk.payment_links.delete(gone["id"])) == {"success": True}
        for answer in (
            api.get(f"/v1/pay/payment-links/{gone['id']}"),
            api.put(f"/v1/pay/payment-links/{gone['id']}", {"title": "Back"}),
            api.delete(f"/v1/pay/payment-links/{gone['id']}"),
            api.post("/v1/pay/initialize", {"object_type": "payment_link", "object_id": gone["id"]}),
            api.post("/v1/pay/initialize", {"session_id": session["id"], "payment_method": "wave"}),
        ):
            refusal(answer, 404, "payment_link_not_found")
        refusal(api.get(f"/v1/pay/payment-links/{ABSENT}"), 404, "payment_link_not_found")
        told = eventually(lambda: told_at_least(sdk, gone["id"], 2))
        assert [(event["type"], event["data"]["status"]) for event in told] == [
            ("payment_link.created", "active"), ("payment_link.deleted", "inactive"),
        ]  # fmt: skip


def told_at_least(sdk, object_id, number):
    found = events(sdk, object_id)
    return found if len(found) >= number else None


class TestPaying:
    @pytest.mark.parametrize("method", ["wave", "afrimoney", "qmoney"])
    def test_from_the_first_call_to_the_last_event(self, sdk, api, endpoint, link, start, succeeds, method):
        paid = link()
        session = start(paid, method=method, customer_email="awa@example.com", metadata={"seat": "12"})
        assert (session["object_type"], session["object_id"]) == ("payment_link", paid["id"])
        assert (session["amount"], session["customer_email"]) == ("250.00", "awa@example.com")
        if method == "qmoney":
            data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": "123456"}))
        found = succeeds(session)
        assert found["transaction"]["net_amount"] == "243.75"
        assert ok(sdk.payment_links.get(paid["id"]))["usage_count"] == 1

        [delivery] = endpoint.mailbox.wait_for(session["id"], "payment.succeeded")
        assert (delivery.object_id, delivery.sequence) == (session["id"], 1), "a payment counts on its session"
        told = delivery.event["data"]
        assert set(told) - LINK == {
            "transaction", "transaction_id", "object_type", "object_id", "payment_session_id", "payment_method",
            "failure_reason",
        }  # fmt: skip
        assert (told["id"], told["object_id"], told["object_type"]) == (paid["id"], paid["id"], "payment_link")
        assert (told["usage_count"], told["payment_session_id"]) == (1, session["id"])
        assert told["transaction"] == found["transaction"] and told["transaction_id"] == found["transaction_id"]

    def test_every_payer_has_a_session(self, sdk, link, start, succeeds):
        popular = link()
        sessions = [start(popular) for _ in range(3)]
        assert len({session["id"] for session in sessions}) == 3
        for session in sessions:
            succeeds(session)
        after = ok(sdk.payment_links.get(popular["id"]))
        assert (after["usage_count"], after["status"]) == (3, "active")

    def test_a_session_goes_on_by_its_id(self, sdk, api, link):
        chosen = link()
        by_object = {"object_type": "payment_link", "object_id": chosen["id"], "customer_email": "awa@example.com"}
        opened = data(api.post("/v1/pay/initialize", by_object))
        assert (opened["status"], opened["payment_method"], opened["next_action"]) == ("pending", None, None)
        assert opened["payment_url"].startswith(chosen["payment_url"])
        by_session = {"session_id": opened["id"], "payment_method": "wave"}
        wave = data(api.post("/v1/pay/initialize", by_session))
        assert (wave["id"], wave["customer_email"]) == (opened["id"], "awa@example.com")
        assert data(api.post("/v1/pay/initialize", by_session))["id"] == opened["id"], "the same again is the same"
        card = data(api.post("/v1/pay/initialize", {**by_session, "payment_method": "card"}))
        assert (card["id"] != opened["id"], card["customer_email"]) == (True, "awa@example.com")
        assert ok(sdk.payments.get_session(opened["id"]))["status"] == "cancelled"
        refusal(api.post("/v1/pay/initialize", by_session), 400, "payment_session_closed")

    def test_a_payment_that_fails(self, sdk, endpoint, link, start):
        unpaid = link()
        session = start(unpaid, POOR)
        eventually(lambda: status(sdk, session, "failed"))
        [delivery] = endpoint.mailbox.wait_for(session["id"], "payment.failed")
        told = delivery.event["data"]
        assert (delivery.sequence, told["failure_reason"]) == (1, "insufficient_funds")
        assert (told["status"], told["usage_count"]) == ("active", 0)

    @pytest.mark.parametrize(
        ("fields", "amount", "expected"),
        [
            ({}, "250.01", "conflict"),
            ({"amount": "0.00"}, None, "required"),
            ({"amount": "0.00", "min_amount": "10.00"}, "9.99", "out_of_range"),
            ({"amount": "0.00", "max_amount": "10.00"}, "10.01", "out_of_range"),
            ({"amount": "0.00"}, "0.00", "amount_not_positive"),
        ],
    )
    def test_amounts_that_are_refused(self, api, link, fields, amount, expected):
        body = {"object_type": "payment_link", "object_id": link(**fields)["id"]}
        if amount is not None:
            body["amount"] = amount
        assert faults(api.post("/v1/pay/initialize", body)) == {"amount": expected}

    @pytest.mark.parametrize("amount", ["10.00", "20.00", "30.00"])
    def test_the_payer_chooses_within_the_bounds(self, link, start, succeeds, amount):
        free = link(amount="20.00", is_variable_amount=True, min_amount="10.00", max_amount="30.00")
        session = start(free, amount=amount)
        assert session["amount"] == amount
        assert succeeds(session)["transaction"]["amount"] == amount

    def test_a_method_that_is_off_is_refused(self, sdk, api, link):
        before = ok(sdk.payments.list_methods())["enabled_methods"]
        chosen = link()
        try:
            ok(sdk.payments.update_settings(["wave"]))
            body = {"object_type": "payment_link", "object_id": chosen["id"], "payment_method": "card"}
            assert faults(api.post("/v1/pay/initialize", body)) == {"payment_method": "not_allowed"}
        finally:
            ok(sdk.payments.update_settings(before))


class TestQuestions:
    FIELDS = (
        {"name": "pupil", "label": "Pupil", "type": "text", "required": True},
        {"name": "age", "label": "Age", "type": "number"},
        {"name": "mail", "label": "Mail", "type": "email"},
        {"name": "phone", "label": "Phone", "type": "phone"},
        {"name": "form", "label": "Form", "type": "select", "options": ["1", "2"]},
        {"name": "agreed", "label": "Agreed", "type": "checkbox", "required": True},
    )

    def begin(self, api, link, answers, **fields):
        body = {"object_type": "payment_link", "object_id": link["id"], "custom_field_values": answers}
        return api.post("/v1/pay/initialize", {**body, **fields})

    def test_answers_are_checked(self, api, link):
        asked = link(custom_fields=list(self.FIELDS))
        wrong = {
            "pupil": 7, "age": "many", "mail": "nobody", "phone": "12", "form": "3", "agreed": "yes", "size": "L",
        }  # fmt: skip
        assert faults(self.begin(api, asked, wrong)) == {
            "custom_field_values.pupil": "wrong_type",
            "custom_field_values.age": "invalid_format",
            "custom_field_values.mail": "invalid_format",
            "custom_field_values.phone": "invalid_format",
            "custom_field_values.form": "invalid_enum",
            "custom_field_values.agreed": "wrong_type",
            "custom_field_values.size": "unknown_field",
        }
        missing = self.begin(api, asked, {"agreed": False, "pupil": " "}, payment_method="wave")
        assert faults(missing) == {"custom_field_values.pupil": "required", "custom_field_values.agreed": "required"}
        clash = self.begin(api, asked, {}, metadata={"pupil": "Awa"})
        assert faults(clash) == {"metadata.pupil": "conflict"}

    def test_blanks_make_no_other_option(self, api, link):
        sizes = {"name": "size", "label": "Size", "type": "select", "required": True, "options": ["Small ", "Very\n large"]}
        asked = link(custom_fields=[sizes])
        assert asked["custom_fields"][0]["options"] == ["Small", "Very large"]
        for answer in ["Small ", "Small", "Very\r\n large"]:
            data(self.begin(api, asked, {"size": answer}, payment_method="wave"))
        assert faults(self.begin(api, asked, {"size": "Verylarge"})) == {"custom_field_values.size": "invalid_enum"}

    def test_answers_may_come_in_steps(self, api, link):
        asked = link(custom_fields=list(self.FIELDS))
        answers = {"pupil": "Awa", "age": 7, "mail": "awa@example.com", "phone": "7000000", "form": "2"}
        session = data(self.begin(api, asked, answers))
        go_on = {"session_id": session["id"], "payment_method": "wave"}
        refused = faults(api.post("/v1/pay/initialize", go_on))
        assert refused == {"custom_field_values.agreed": "required"}, "what was answered stays answered"
        data(api.post("/v1/pay/initialize", {**go_on, "custom_field_values": {"agreed": True}}))

    def test_an_answer_can_be_taken_back(self, sdk, api, link, succeeds):
        asked = link(custom_fields=list(self.FIELDS))
        session = data(self.begin(api, asked, {"pupil": "Awa", "age": 7, "agreed": True}))
        go_on = {"session_id": session["id"]}
        data(api.post("/v1/pay/initialize", {**go_on, "custom_field_values": {"agreed": False, "age": None}}))
        go_on["payment_method"] = "wave"
        assert faults(api.post("/v1/pay/initialize", go_on)) == {"custom_field_values.agreed": "required"}
        go_on["customer_phone"] = "7000000"
        started = data(api.post("/v1/pay/initialize", {**go_on, "custom_field_values": {"agreed": True}}))
        metadata = ok(sdk.transactions.get(succeeds(started)["transaction_id"]))["metadata"]
        assert (metadata["pupil"], metadata["agreed"]) == ("Awa", "true")
        assert "age" not in metadata

    def test_a_checkout_asks_nothing(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        body = {"client_secret": checkout["client_secret"], "custom_field_values": {"pupil": "Awa"}}
        assert faults(api.post("/v1/pay/initialize", body)) == {"custom_field_values": "not_allowed"}


class TestEnds:
    def test_an_inactive_link_takes_nothing(self, sdk, api, link):
        off = link()
        assert ok(sdk.payment_links.update(off["id"], status="inactive"))["status"] == "inactive"
        body = {"object_type": "payment_link", "object_id": off["id"]}
        refusal(api.post("/v1/pay/initialize", body), 400, "payment_link_inactive")
        assert ok(sdk.payment_links.update(off["id"], status="active"))["status"] == "active"
        data(api.post("/v1/pay/initialize", body))
        told = [event["type"] for event in eventually(lambda: told_at_least(sdk, off["id"], 3))]
        assert told == ["payment_link.created", "payment_link.deactivated", "payment_link.updated"]

    def test_the_clock_ends_it(self, sdk, api, link):
        ends_at = datetime.now(timezone.utc) + timedelta(seconds=2)
        short = link(expiration_date=ends_at.isoformat())
        assert short["status"] == "active"
        time.sleep(max(0, (ends_at - datetime.now(timezone.utc)).total_seconds()) + 0.01)
        assert ok(sdk.payment_links.get(short["id"]))["status"] == "inactive", "a read decides, not the timer"
        body = {"object_type": "payment_link", "object_id": short["id"]}
        refusal(api.post("/v1/pay/initialize", body), 400, "payment_link_inactive")
        path = f"/v1/pay/payment-links/{short['id']}"
        refusal(api.put(path, {"status": "active"}), 400, "payment_link_expired")
        eventually(lambda: told_at_least(sdk, short["id"], 2))
        later = {"status": "active", "expiration_date": "2099-01-01"}
        assert data(api.put(path, later))["status"] == "active"
        assert [event["type"] for event in eventually(lambda: told_at_least(sdk, short["id"], 3))] == [
            "payment_link.created", "payment_link.deactivated", "payment_link.updated",
        ]  # fmt: skip

    def test_a_failed_payment_gives_its_use_back(self, sdk, api, link, start, succeeds):
        single = link(max_usage_count=1)
        body = {"object_type": "payment_link", "object_id": single["id"], "payment_method": "wave"}
        quiet = start(single, QUIET, method="wave")
        refused = refusal(api.post("/v1/pay/initialize", body), 400, "payment_in_progress")
        assert "hold all that is left of this payment link" in refused["error"], "whoever asks has begun nothing"
        # The payer chooses another method: the attempt before gives its use back.
        poor = data(
            api.post(
                "/v1/pay/initialize",
                {"session_id": quiet["id"], "payment_method": "afrimoney", "customer_phone": POOR},
            )
        )
        eventually(lambda: status(sdk, poor, "failed"))
        succeeds(start(single))
        after = ok(sdk.payment_links.get(single["id"]))
        assert (after["usage_count"], after["status"]) == (1, "inactive")
        path = f"/v1/pay/payment-links/{single['id']}"
        refusal(api.put(path, {"status": "active"}), 400, "payment_link_used_up")
        assert data(api.put(path, {"status": "active", "max_usage_count": 2}))["status"] == "active"

    def test_of_48_payers_at_once_five_pay_for_five(self, server, sdk, link):
        wanted = link(max_usage_count=5)
        start = {
            "object_type": "payment_link",
            "object_id": wanted["id"],
            "payment_method": "afrimoney",
            "customer_phone": APPROVES,
        }
        answers = at_once(server, [("/v1/pay/initialize", start)] * 48)
        found = codes(answers)
        assert found["ok"] == 5, found
        assert set(found) <= {"ok", "payment_in_progress", "payment_link_inactive"}, found
        after = eventually(lambda: used(sdk, wanted, 5))
        assert after["status"] == "inactive"
        told = Counter(event["type"] for event in eventually(lambda: told_at_least(sdk, wanted["id"], 2)))
        assert told == {"payment_link.created": 1, "payment_link.deactivated": 1}

    def test_a_hundred_payers_at_once_are_all_counted(self, server, sdk, link):
        popular = link(amount="1.00")
        start = {
            "object_type": "payment_link",
            "object_id": popular["id"],
            "payment_method": "afrimoney",
            "customer_phone": APPROVES,
        }
        answers = at_once(server, [("/v1/pay/initialize", start)] * 100)
        assert codes(answers) == {"ok": 100}
        assert eventually(lambda: used(sdk, popular, 100), timeout=30)["status"] == "active"


def used(sdk, link, count):
    found = ok(sdk.payment_links.get(link["id"]))
    assert found["usage_count"] <= count, "never more than were let in"
    return found if found["usage_count"] == count else None


class TestCredentials:
    def test_a_page_goes_on_with_its_session_only(self, publishable, api, link):
        chosen = link()
        by_object = {"object_type": "payment_link", "object_id": chosen["id"]}
        refusal(publishable.post("/v1/pay/initialize", by_object), 403, "secret_key_required")
        session = data(api.post("/v1/pay/initialize", by_object))
        started = data(
            publishable.post("/v1/pay/initialize", {"session_id": session["id"], "payment_method": "wave"})
        )
        assert started["id"] == session["id"]
        refusal(publishable.get(f"/v1/pay/payment-links/{chosen['id']}"), 403, "secret_key_required")
