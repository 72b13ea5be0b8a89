"""checkouts: create, get, cancel through the SDK, and the list (contract §2.1, §3, §4.1)."""

import re
from datetime import datetime, timedelta

import pytest
from jokoor import Jokoor

from checks import data, error, faults, ok, refusal
from server import Api

FIELDS = {
    "id", "amount", "currency", "status", "payment_url", "available_payment_methods", "automatic_payment_methods",
    "customer_id", "customer_phone", "customer_email", "customer_name", "expires_at", "description", "reference",
    "items", "metadata", "livemode", "transaction", "created_at", "payment_session_id", "success_url", "failure_url",
    "cancel_url", "updated_at",
}  # fmt: skip


def instant(text):
    assert text.endswith("Z") and "." not in text, f"whole seconds, UTC: {text}"
    return datetime.fromisoformat(text.removesuffix("Z"))


class TestCreate:
    def test_an_amount_is_enough(self, sdk, server):
        checkout = ok(sdk.checkouts.create(amount="100.00"))
        assert set(checkout) == FIELDS | {"client_secret"}
        assert checkout["id"].startswith("cs_")
        assert re.fullmatch(r"csec_[0-9a-hjkmnp-tv-z]{51}[0g]", checkout["client_secret"])
        assert (checkout["amount"], checkout["currency"], checkout["status"]) == ("100.00", "GMD", "pending")
        assert checkout["payment_url"] == f"{server.url}/checkout/{checkout['id']}"
        assert checkout["automatic_payment_methods"] is True
        assert set(checkout["available_payment_methods"]) == {"wave", "afrimoney", "qmoney", "card"}
        assert checkout["livemode"] is False
        assert checkout["metadata"] == {}
        for field in ("items", "transaction", "customer_id", "description", "reference", "success_url", "cancel_url"):
            assert checkout[field] is None, field
        created, expires = instant(checkout["created_at"]), instant(checkout["expires_at"])
        assert expires - created == timedelta(seconds=86400)

    def test_every_field_comes_back(self, sdk):
        checkout = ok(
            sdk.checkouts.create(
                amount="99.5",
                currency="GMD",
                payment_method_types=["wave", "card"],
                automatic_payment_methods=False,
                customer_phone="+2203001234",
                customer_email="awa@example.com",
                customer_name="Awa Ceesay",
                expires_in=3600,
                metadata={"order": "1042"},
                description="Two books",
                reference="order-1042",
                success_url="https://shop.example/thanks?order=1042",
                failure_url="https://shop.example/sorry",
            )
        )
        assert checkout["amount"] == "99.50"
        assert sorted(checkout["available_payment_methods"]) == ["card", "wave"]
        assert checkout["automatic_payment_methods"] is False
        assert checkout["customer_phone"] == "+2203001234"
        assert checkout["customer_email"] == "awa@example.com"
        assert checkout["customer_name"] == "Awa Ceesay"
        assert checkout["metadata"] == {"order": "1042"}
        assert checkout["description"] == "Two books"
        assert checkout["reference"] == "order-1042"
        assert checkout["success_url"] == "https://shop.example/thanks?order=1042"
        assert checkout["failure_url"] == checkout["cancel_url"] == "https://shop.example/sorry"
        assert instant(checkout["expires_at"]) - instant(checkout["created_at"]) == timedelta(hours=1)
        assert ok(sdk.checkouts.get(checkout["id"])) == {
            name: value for name, value in checkout.items() if name != "client_secret"
        }

    @pytest.mark.parametrize("phone", ["3001234", "2203001234", "+2203001234"])
    def test_phones_are_written_in_one_way(self, sdk, phone):
        assert ok(sdk.checkouts.create(amount="1.00", customer_phone=phone))["customer_phone"] == "+2203001234"

    def test_items_decide_the_amount(self, sdk):
        checkout = ok(
            sdk.checkouts.create(
                amount="1.00",
                items=[
                    {"description": "Notebook", "quantity": 3, "unit_price": "12.50"},
                    {"description": "Pen", "quantity": 1, "unit_price": "0.05"},
                ],
            )
        )
        assert checkout["amount"] == "37.55"
        totals = [item["total"] for item in checkout["items"]]
        assert totals == ["37.50", "0.05"]
        assert checkout["items"][0]["quantity"] == 3
        assert checkout["items"][0]["unit_price"] == "12.50"

    def test_a_chosen_method_is_the_only_one(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="10.00", payment_method="wave"))
        assert checkout["available_payment_methods"] == ["wave"]
        assert checkout["payment_session_id"].startswith("ps_")
        assert checkout["transaction"] is None
        session = ok(sdk.payments.get_session(checkout["payment_session_id"]))
        assert (session["status"], session["payment_method"]) == ("pending", "wave")

    def test_without_a_method_no_session_exists(self, sdk):
        assert ok(sdk.checkouts.create(amount="10.00"))["payment_session_id"] is None

    @pytest.mark.parametrize("seconds", [60, 86400])
    def test_the_bounds_of_the_lifetime_are_inside(self, sdk, seconds):
        checkout = ok(sdk.checkouts.create(amount="1.00", expires_in=seconds))
        assert instant(checkout["expires_at"]) - instant(checkout["created_at"]) == timedelta(seconds=seconds)

    @pytest.mark.parametrize("seconds", [59, 86401, 0, -60])
    def test_the_lifetime_is_bounded(self, sdk, api, seconds):
        assert error(sdk.checkouts.create(amount="1.00", expires_in=seconds)).startswith("JokoorValidationError: ")
        assert faults(api.post("/v1/checkouts", {"amount": "1.00", "expires_in": seconds})) == {
            "expires_in": "out_of_range"
        }

    def test_nothing_to_pay_is_refused(self, sdk, api):
        assert error(sdk.checkouts.create()).startswith("JokoorValidationError: ")
        assert faults(api.post("/v1/checkouts", {})) == {"amount": "required"}
        assert faults(api.post("/v1/checkouts", {"items": []})) == {"amount": "required"}

    def test_an_item_needs_a_price(self, api):
        body = {"items": [{"quantity": 1, "description": "Pen"}]}
        assert faults(api.post("/v1/checkouts", body)) == {"items[0].unit_price": "required"}
        body = {"items": [{"quantity": 1}], "expires_in": 5}
        assert faults(api.post("/v1/checkouts", body)) == {
            "items[0].unit_price": "required", "expires_in": "out_of_range",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"amount": "1.00", "customer_id": "cus_01h455vb4pex5vsknk084sn02q"}, "customer_id"),
            (
                {"items": [{"product_id": "prod_01h455vb4pex5vsknk084sn02q", "quantity": 1}]},
                "items[0].product_id",
            ),
        ],
    )
    def test_a_reference_to_nothing_is_a_fault_of_the_body(self, api, body, field):
        assert faults(api.post("/v1/checkouts", body))[field] == "not_found"

    def test_an_unknown_method_is_refused(self, sdk, api):
        assert error(sdk.checkouts.create(amount="1.00", payment_method="cash")).startswith("JokoorValidationError: ")
        assert faults(api.post("/v1/checkouts", {"amount": "1.00", "payment_method": "cash"})) == {
            "payment_method": "invalid_enum"
        }

    def test_live_without_a_rail_never_simulates(self, sdk, server):
        with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as live:
            assert error(live.checkouts.create(amount="1.00")).startswith("JokoorValidationError: ")
        api = Api(server.url, server.keys["live"]["secret"])
        refused = refusal(api.post("/v1/checkouts", {"amount": "1.00"}), 400, "no_payment_method_available")
        assert refused["error"] == "Live mode has no payment provider in this version; use a test key."


class TestGet:
    def test_an_absent_one_is_not_found(self, sdk, api):
        for absent in ("cs_01h455vb4pex5vsknk084sn02q", "cs_short", "nonsense", "inv_01h455vb4pex5vsknk084sn02q"):
            assert error(sdk.checkouts.get(absent)).startswith("JokoorNotFoundError: ")
            refusal(api.get(f"/v1/checkouts/{absent}"), 404, "checkout_not_found")

    def test_another_mode_sees_the_same_as_an_absent_one(self, sdk, server):
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as live:
            foreign = error(live.checkouts.get(checkout["id"]))
            absent = error(live.checkouts.get("cs_01h455vb4pex5vsknk084sn02q"))
            assert foreign.replace(checkout["id"], "ID") == absent.replace("cs_01h455vb4pex5vsknk084sn02q", "ID")
            assert error(live.checkouts.cancel(checkout["id"])).startswith("JokoorNotFoundError: ")
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "pending"


class TestCancel:
    def test_a_pending_one_is_cancelled_once(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        cancelled = ok(sdk.checkouts.cancel(checkout["id"]))
        assert set(cancelled) == {"id", "status", "cancelled_at"}
        assert (cancelled["id"], cancelled["status"]) == (checkout["id"], "cancelled")
        instant(cancelled["cancelled_at"])
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "cancelled"
        assert error(sdk.checkouts.cancel(checkout["id"])).startswith("JokoorValidationError: ")
        refusal(api.post(f"/v1/checkouts/{checkout['id']}/cancel"), 400, "checkout_already_cancelled")

    def test_its_open_session_goes_with_it(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="1.00", payment_method="wave"))
        ok(sdk.checkouts.cancel(checkout["id"]))
        assert ok(sdk.payments.get_session(checkout["payment_session_id"]))["status"] == "cancelled"

    def test_a_paid_one_stays_paid(self, sdk, api, paid):
        checkout = paid()
        assert error(sdk.checkouts.cancel(checkout["id"])).startswith("JokoorValidationError: ")
        refusal(api.post(f"/v1/checkouts/{checkout['id']}/cancel"), 400, "checkout_already_completed")

    def test_an_absent_one_is_not_found(self, sdk):
        assert error(sdk.checkouts.cancel("cs_01h455vb4pex5vsknk084sn02q")).startswith("JokoorNotFoundError: ")


class TestList:
    def test_newest_first_by_page_and_by_cursor(self, sdk, api):
        reference = "list-" + ok(sdk.checkouts.create(amount="1.00"))["id"]
        created = [ok(sdk.checkouts.create(amount="1.00", reference=reference))["id"] for _ in range(5)]
        expected = list(reversed(created))

        page = data(api.get("/v1/checkouts", params={"reference": reference, "limit": 2}))
        assert set(page) == {"items", "count", "total", "offset", "limit", "has_more"}
        assert [item["id"] for item in page["items"]] == expected[:2]
        assert (page["count"], page["total"], page["offset"], page["limit"]) == (5, 5, 0, 2)
        assert page["has_more"] is True
        assert all(set(item) == FIELDS for item in page["items"]), "a list never shows a client_secret"

        last = data(api.get("/v1/checkouts", params={"reference": reference, "limit": 2, "offset": 4}))
        assert [item["id"] for item in last["items"]] == expected[4:]
        assert last["has_more"] is False

        after = data(api.get("/v1/checkouts", params={"reference": reference, "limit": 2, "after": expected[1]}))
        assert [item["id"] for item in after["items"]] == expected[2:4]

    def test_filters(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="1.00", reference="filter-by-status"))
        ok(sdk.checkouts.cancel(checkout["id"]))
        query = {"reference": "filter-by-status"}
        assert data(api.get("/v1/checkouts", params=query | {"status": "pending"}))["items"] == []
        found = data(api.get("/v1/checkouts", params=query | {"status": "cancelled"}))["items"]
        assert [item["id"] for item in found] == [checkout["id"]]
        day = checkout["created_at"][:10]
        assert data(api.get("/v1/checkouts", params=query | {"start_date": day, "end_date": day}))["total"] == 1
        assert data(api.get("/v1/checkouts", params=query | {"end_date": "2020-01-01"}))["total"] == 0

    def test_a_large_limit_is_clamped(self, api):
        assert data(api.get("/v1/checkouts", params={"limit": 1000}))["limit"] == 100

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [("limit", "0"), ("limit", "-1"), ("limit", "ten"), ("offset", "-1"), ("offset", "1.5"),
         ("status", "paid"), ("colour", "red"), ("start_date", "yesterday")],
    )  # fmt: skip
    def test_a_bad_query_names_the_parameter(self, api, parameter, value):
        assert set(faults(api.get("/v1/checkouts", params={parameter: value}))) == {parameter}
