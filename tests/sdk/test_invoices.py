"""invoices: every call of the SDK, with what it answers and what it refuses (contract §2.4, §3)."""

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from jokoor import Jokoor

from checks import data, error, faults, ok, refusal
from invoices import PAYMENT, RECEIPT, fits, order, tax, when, whole
from server import Api

ABSENT = "inv_01h455vb4pex5vsknk084sn02q"


def other_mode(server):
    return Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0)


class TestCreate:
    def test_what_is_needed_is_enough(self, bill, server):
        invoice = whole(bill())
        assert (invoice["status"], invoice["payment_status"], invoice["version"]) == ("pending", "unpaid", 1)
        assert (invoice["amount"], invoice["tax_amount"], invoice["total_amount"]) == ("100.00", "0.00", "100.00")
        assert (invoice["paid_amount"], invoice["remaining_amount"]) == ("0.00", "100.00")
        assert (invoice["currency"], invoice["tax_rate"]) == ("GMD", 0)
        assert (invoice["customer_email"], invoice["customer_name"]) == ("awa@example.gm", "Awa Ceesay")
        for field in ("customer_address", "customer_phone", "notes"):
            assert invoice[field] == "", field
        assert (invoice["receipts"], invoice["metadata"], invoice["sent_count"]) == ([], {}, 0)
        for field in ("paid_date", "sent_at", "subscription_id"):
            assert invoice[field] is None, field
        assert (invoice["mode"], invoice["livemode"]) == ("test", False)
        assert invoice["organization"] == {
            "id": server.organization_id, "name": "Kairaba Books", "logo_url": "",
        }  # fmt: skip
        assert invoice["payment_url"] == f"{server.url}/invoice/{invoice['id']}"
        assert invoice["pdf_url"] == f"{server.url}/v1/pay/invoices/{invoice['id']}/pdf"
        assert invoice["due_date"] == "2030-01-31T23:59:59.000000Z"
        assert abs(when(invoice["issued_date"]) - datetime.now(UTC)) < timedelta(minutes=1)
        assert invoice["items"] == [
            {"product_id": None, "description": "Rice, 50 kg", "quantity": 1, "unit_price": "100.00", "total": "100.00",
             "amount": "100.00"}
        ]  # fmt: skip
        year, month = invoice["created_at"][:4], invoice["created_at"][5:7]
        assert invoice["invoice_number"].startswith(f"INV-{year}-{month}-")

    def test_every_field_comes_back(self, sdk):
        items = [
            {"description": "Rice, 50 kg", "quantity": 3, "unit_price": "1450.50", "amount": "0.01"},
            {"description": "Oil", "quantity": 12, "unit_price": "85"},
        ]
        fields = {
            "customer_address": "12 Kairaba Avenue\nSerekunda",
            "customer_phone": "3001234",
            "tax_rate": 7.25,
            "notes": "Thank you – àbaraka",
            "metadata": {"z": "last", "order": "1042"},
        }
        invoice = whole(ok(sdk.invoices.create(**order(items=items, due_date=datetime(2030, 1, 31, 12), **fields))))
        assert invoice["customer_phone"] == "+2203001234"
        assert invoice["due_date"] == "2030-01-31T12:00:00.000000Z"
        for field in ("customer_address", "tax_rate", "notes", "metadata"):
            assert invoice[field] == fields[field], field
        assert list(invoice["metadata"]) == ["z", "order"]
        assert [item["total"] for item in invoice["items"]] == ["4351.50", "1020.00"]
        assert (invoice["amount"], invoice["tax_amount"], invoice["total_amount"]) == ("5371.50", "389.43", "5760.93")
        assert whole(ok(sdk.invoices.get(invoice["id"]))) == invoice

    def test_a_draft_is_not_issued_and_not_payable(self, bill):
        draft = whole(bill(is_draft=True))
        assert draft["status"] == "draft"
        assert (draft["issued_date"], draft["payment_url"]) == (None, None)

    def test_name_and_address_find_their_customer_again(self, sdk, bill):
        one, other = bill(customer_email="fatou@example.gm"), bill(customer_email="fatou@example.gm")
        assert one["customer_id"] == other["customer_id"]
        assert bill(customer_email="lamin@example.gm")["customer_id"] != one["customer_id"]

    def test_an_address_makes_a_customer_whoever_has_the_phone(self, sdk, bill):
        phone = "+2203007711"
        first = bill(customer_email="sainey@example.gm", customer_name="Sainey Bah", customer_phone=phone)
        assert ok(sdk.customers.get(first["customer_id"]))["phone"] == phone
        invoice = whole(bill(customer_email="kumba@example.gm", customer_name="Kumba Bah", customer_phone=phone))
        assert (invoice["customer_email"], invoice["customer_name"]) == ("kumba@example.gm", "Kumba Bah")
        assert invoice["customer_phone"] == phone, "as it was given"
        made = ok(sdk.customers.get(invoice["customer_id"]))
        assert (made["email"], made["name"], made["phone"]) == ("kumba@example.gm", "Kumba Bah", None)
        assert ok(sdk.customers.get(first["customer_id"]))["email"] == "sainey@example.gm"
        again = bill(customer_email="KUMBA@example.gm", customer_phone="+2203007712")
        assert (again["customer_id"], again["customer_phone"]) == (made["id"], "+2203007712")

    def test_a_customer_fills_in_and_what_is_given_wins(self, sdk, bill):
        customer = ok(sdk.customers.create(email="isatou@example.gm", name="Isatou Jallow", phone="3005555"))
        known = {"customer_id": customer["id"], "customer_email": None, "customer_name": None}
        invoice = whole(bill(**known))
        assert invoice["customer_id"] == customer["id"]
        assert (invoice["customer_email"], invoice["customer_name"], invoice["customer_phone"]) == (
            "isatou@example.gm", "Isatou Jallow", "+2203005555",
        )  # fmt: skip
        invoice = whole(bill(**(known | {"customer_name": "Jallow & Sons"})))
        assert (invoice["customer_email"], invoice["customer_name"]) == ("isatou@example.gm", "Jallow & Sons")
        assert ok(sdk.customers.get(customer["id"]))["name"] == "Isatou Jallow"

    def test_a_product_fills_in(self, sdk, bill):
        product = ok(sdk.products.create(name="Atlas", price="75.00", currency="GMD"))
        items = [
            {"product_id": product["id"], "quantity": 2},
            {"product_id": product["id"], "quantity": 1, "description": "Atlas, signed", "unit_price": "90.00"},
        ]
        plain, signed = whole(bill(items=items))["items"]
        assert (plain["product_id"], plain["description"], plain["unit_price"], plain["total"]) == (
            product["id"], "Atlas", "75.00", "150.00",
        )  # fmt: skip
        assert (signed["product_id"], signed["description"], signed["total"]) == (
            product["id"], "Atlas, signed", "90.00",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            ("2030-01-31", "2030-01-31T23:59:59.000000Z"),
            ("2030-01-31T12:00:00", "2030-01-31T12:00:00.000000Z"),
            ("2030-01-31T12:00:00.123456", "2030-01-31T12:00:00.123456Z"),
            ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00.000000Z"),
            ("2030-01-31T12:00:00+02:00", "2030-01-31T10:00:00.000000Z"),
            ("2030-01-31T22:30:00.5-05:30", "2030-02-01T04:00:00.500000Z"),
            (datetime(2030, 1, 31, 12, tzinfo=timezone(timedelta(hours=1))), "2030-01-31T11:00:00.000000Z"),
            ("2020-02-29", "2020-02-29T23:59:59.000000Z"),
        ],
    )
    def test_a_due_date_in_all_its_forms(self, bill, sent, kept):
        invoice = whole(bill(due_date=sent))
        assert invoice["due_date"] == kept
        assert invoice["status"] == "pending", "one that is past already becomes overdue a day after it was issued"

    def test_a_failure_reads_as_one_sentence(self, sdk):
        assert error(sdk.invoices.create(**order(items=[]))).startswith("JokoorValidationError: `items` ")


class TestArithmetic:
    @pytest.mark.parametrize(
        ("rate", "price", "expected"),
        [
            (7.25, "100.00", "7.25"),
            (0.1, "5.00", "0.01"),
            (0.1, "4.99", "0.00"),
            (0.0001, "5000.00", "0.01"),
            (0.0001, "4999.99", "0.00"),
            (12.5, "0.12", "0.02"),
            (50, "0.01", "0.01"),
            (49.9999, "0.01", "0.00"),
            (33.3333, "999999999.99", "333333000.00"),
            (100, "0.01", "0.01"),
            (16, "1.00", "0.16"),
        ],
    )
    def test_the_tax_is_rounded_half_up(self, bill, rate, price, expected):
        invoice = whole(bill(price=price, tax_rate=rate))
        assert invoice["tax_amount"] == expected
        assert Decimal(invoice["total_amount"]) == Decimal(price) + Decimal(expected)

    def test_a_currency_without_minor_digits(self, sdk, api, bill):
        invoice = whole(bill(price="100", currency="XOF", tax_rate=12.5))
        assert (invoice["amount"], invoice["tax_amount"], invoice["total_amount"]) == ("100", "13", "113")
        body = order(price="100.00", currency="XOF")
        assert faults(api.post("/v1/pay/invoices", body)) == {"items[0].unit_price": "too_many_decimals"}
        path = f"/v1/pay/invoices/{invoice['id']}"
        items = order(price="99.50")["items"]
        assert faults(api.put(path, {"items": items})) == {"items[0].unit_price": "too_many_decimals"}
        pay = {"amount": "1.5", "payment_method": "cash"}
        assert faults(api.post(f"{path}/payments", pay)) == {"amount": "too_many_decimals"}
        assert whole(ok(sdk.invoices.update(invoice["id"], items=order(price="99")["items"])))["total_amount"] == "111"
        paid = whole(ok(sdk.invoices.record_payment(invoice["id"], amount="111", payment_method="cash")))
        assert (paid["status"], paid["paid_amount"]) == ("paid", "111")

    def test_once_on_the_sum_and_not_on_each_line(self, bill):
        items = [{"description": "Sweet", "quantity": 1, "unit_price": "0.05"}] * 3
        assert whole(bill(items=items, tax_rate=10))["tax_amount"] == "0.02", "0.015, not three times 0.01"

    def test_as_python_s_decimals_have_it(self, bill):
        dice = random.Random(20260131)
        for _ in range(60):
            items = [
                {
                    "description": "Thing",
                    "quantity": dice.choice([1, 2, 3, 7, 1000, dice.randint(1, 1_000_000)]),
                    "unit_price": str(Decimal(dice.randint(1, 10 ** dice.randint(1, 7))) / 100),
                }
                for _ in range(dice.randint(1, 5))
            ]
            rate = Decimal(dice.randint(0, 1_000_000)) / 10_000
            amount = sum(item["quantity"] * Decimal(item["unit_price"]) for item in items)
            invoice = whole(bill(items=items, tax_rate=float(rate)))
            assert Decimal(invoice["amount"]) == amount
            assert Decimal(invoice["tax_amount"]) == tax(amount, rate), (rate, items)

    @pytest.mark.parametrize(
        ("sent", "printed"),
        [("7.25", "7.25"), ("0.1", "0.1"), ("16", "16"), ("16.0", "16"), ("0", "0"), ("0.0", "0"), ("99.9999", "99.9999"),
         ("100", "100"), ("100.0000", "100"), ("7.10", "7.1"), ("0.3", "0.3"), ("1.005", "1.005")],
    )  # fmt: skip
    def test_the_rate_is_printed_as_the_number_that_it_is(self, api, sent, printed):
        body = json.dumps(order() | {"tax_rate": "RATE"}).replace('"RATE"', sent)
        answer = api.post("/v1/pay/invoices", data=body.encode(), headers={"Content-Type": "application/json"})
        whole(data(answer, 201))
        assert f'"tax_rate":{printed},' in answer.text
        assert f'"tax_rate":{printed},' in api.get(f"/v1/pay/invoices/{data(answer, 201)['id']}").text

    def test_the_largest_amount_is_taken_and_no_larger_one(self, api, bill):
        assert whole(bill(price="999999999999.99"))["total_amount"] == "999999999999.99"
        for more in ({"tax_rate": 0.0001}, {"items": order()["items"] + order(price="999999999999.99")["items"]}):
            body = order(price="999999999999.99") | more
            assert "amount_too_large" in faults(api.post("/v1/pay/invoices", body)).values()
        boats = [{"description": "Boat", "quantity": 1_000_000, "unit_price": "999999999999.99"}] * 200
        found = faults(api.post("/v1/pay/invoices", order(items=boats)))
        assert set(found.values()) == {"amount_too_large"}


class TestGet:
    def test_an_absent_one_is_not_found(self, sdk, api):
        for absent in (ABSENT, "inv_short", "nonsense", "cs_01h455vb4pex5vsknk084sn02q"):
            assert error(sdk.invoices.get(absent)).startswith("JokoorNotFoundError: ")
            refusal(api.get(f"/v1/pay/invoices/{absent}"), 404, "invoice_not_found")

    def test_another_mode_sees_the_same_as_an_absent_one(self, sdk, bill, server):
        invoice = bill(is_draft=True)
        with other_mode(server) as live:
            foreign, absent = error(live.invoices.get(invoice["id"])), error(live.invoices.get(ABSENT))
            assert foreign.replace(invoice["id"], "ID") == absent.replace(ABSENT, "ID")
            for result in (
                live.invoices.update(invoice["id"], notes="Mine"),
                live.invoices.finalize(invoice["id"]),
                live.invoices.cancel(invoice["id"]),
                live.invoices.record_payment(invoice["id"], amount="1.00", payment_method="cash"),
                live.invoices.list_payments(invoice["id"]),
                live.invoices.get_receipts(invoice["id"]),
            ):
                assert error(result).startswith("JokoorNotFoundError: ")
        assert ok(sdk.invoices.get(invoice["id"])) == invoice


class TestEveryOperation:
    OPERATIONS = [
        ("POST", "", order()),
        ("GET", "", None),
        ("GET", f"/{ABSENT}", None),
        ("PUT", f"/{ABSENT}", {"notes": "x"}),
        ("POST", f"/{ABSENT}/finalize", None),
        ("POST", f"/{ABSENT}/cancel", None),
        ("POST", f"/{ABSENT}/payments", {"amount": "1.00", "payment_method": "cash"}),
        ("GET", f"/{ABSENT}/payments", None),
        ("GET", f"/{ABSENT}/receipts", None),
    ]

    @pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
    def test_who_may_call_it(self, api, anonymous, publishable, method, path, body):
        path = "/v1/pay/invoices" + path
        refusal(anonymous.request(method, path, body), 401, "authentication_required")
        refusal(anonymous.with_credential("sk_test_nonsense").request(method, path, body), 401, "invalid_api_key")
        refusal(publishable.request(method, path, body), 403, "secret_key_required")
        needed, other = ("read", "write") if method == "GET" else ("write", "read")
        token = data(api.post("/v1/auth/token", {"scope": f"{other}:invoices {needed}:checkouts"}))["access_token"]
        refusal(api.with_credential(token).request(method, path, body), 403, "insufficient_scope")
        token = data(api.post("/v1/auth/token", {"scope": f"{needed}:invoices"}))["access_token"]
        assert api.with_credential(token).request(method, path, body).status_code in (200, 201, 404)
        if ABSENT in path:
            refusal(api.request(method, path, body), 404, "invoice_not_found")
            refusal(api.request(method, path.replace(ABSENT, "%ff"), body), 404, "invoice_not_found")

    def test_the_sdk_calls_it_what_it_is(self, server):
        with Jokoor("sk_test_nonsense", base_url=server.url, max_retries=0) as client:
            for result in (
                client.invoices.create(**order()),
                client.invoices.get(ABSENT),
                client.invoices.list(),
                client.invoices.update(ABSENT, notes="x"),
                client.invoices.finalize(ABSENT),
                client.invoices.cancel(ABSENT),
                client.invoices.record_payment(ABSENT, amount="1.00", payment_method="cash"),
                client.invoices.list_payments(ABSENT),
                client.invoices.get_receipts(ABSENT),
            ):
                assert error(result) == "JokoorAuthenticationError: Invalid API key"


class TestList:
    def test_newest_first_by_page_and_by_cursor(self, sdk, api, bill):
        customer = bill()["customer_id"]
        created = [bill(customer_id=customer, customer_email=None)["id"] for _ in range(5)]
        expected = list(reversed(created))
        query = {"customer_id": customer}
        total = data(api.get("/v1/pay/invoices", params=query))["total"]

        page = data(api.get("/v1/pay/invoices", params=query | {"limit": 2}))
        assert set(page) == {"items", "count", "total", "offset", "limit", "has_more"}
        assert [whole(item)["id"] for item in page["items"]] == expected[:2]
        assert (page["count"], page["offset"], page["limit"], page["has_more"]) == (total, 0, 2, True)
        after = data(api.get("/v1/pay/invoices", params=query | {"limit": 3, "after": expected[1]}))
        assert [item["id"] for item in after["items"]] == expected[2:]
        last = data(api.get("/v1/pay/invoices", params=query | {"offset": total - 1, "limit": 2}))
        assert (len(last["items"]), last["has_more"]) == (1, False)

        by_sdk = ok(sdk.invoices.list(limit=3))
        assert [item["id"] for item in by_sdk["items"]] == expected[:3]

    def test_by_status(self, sdk, api, bill):
        customer = bill(customer_email="filters@example.gm")["customer_id"]
        fields = {"customer_id": customer, "customer_email": None}
        made = {"pending": [bill(**fields)["id"]]}
        made["pending"].insert(0, ok(sdk.invoices.list(limit=2))["items"][1]["id"])
        made["draft"] = [bill(is_draft=True, **fields)["id"]]
        cancelled, part, paid = (bill(**fields)["id"] for _ in range(3))
        ok(sdk.invoices.cancel(cancelled))
        ok(sdk.invoices.record_payment(part, amount="40.00", payment_method="cash"))
        ok(sdk.invoices.record_payment(paid, amount="100.00", payment_method="cash"))
        made |= {"cancelled": [cancelled], "partially_paid": [part], "paid": [paid], "overdue": [], "uncollectible": []}
        made["open"] = [*made["pending"], part]
        for status, ids in made.items():
            found = data(api.get("/v1/pay/invoices", params={"customer_id": customer, "status": status}))
            assert {whole(item)["id"] for item in found["items"]} == set(ids), status
            assert found["total"] == len(ids)
        assert all(item["status"] == "draft" for item in ok(sdk.invoices.list(status="draft"))["items"])
        assert ok(sdk.invoices.list(status="uncollectible"))["items"] == []

    def test_by_number_and_by_day(self, api, bill):
        invoice = bill()
        found = data(api.get("/v1/pay/invoices", params={"number": invoice["invoice_number"]}))["items"]
        assert [item["id"] for item in found] == [invoice["id"]]
        assert data(api.get("/v1/pay/invoices", params={"number": "INV-1999-01-0001"}))["total"] == 0
        query, day = {"number": invoice["invoice_number"]}, invoice["created_at"][:10]
        for times, expected in [
            ({"start_date": day, "end_date": day}, 1),
            ({"start_date": invoice["created_at"], "end_date": invoice["created_at"]}, 1),
            ({"start_date": "2020-01-01T00:00:00+00:00"}, 1),
            ({"end_date": "2020-01-01"}, 0),
            ({"start_date": "2100-01-01"}, 0),
        ]:
            assert data(api.get("/v1/pay/invoices", params=query | times))["total"] == expected, times

    @pytest.mark.parametrize(
        "time",
        ["2020-01-01 00:00:00", "2020-01-01 00:00:00Z", "2020-01-01 00:00:00+00:00", "2020-01-01 00:00:00.5-01:00",
         "2020-01-01 00:00:00.5", "2020-01-01T00:00:00 00:00", "2020-01-01 00:00:00 00:00", "2020-01-01T00:00:00.5 00:00"],
    )  # fmt: skip
    def test_a_space_parts_date_and_time_or_was_a_plus(self, api, bill, time):
        query = {"number": bill()["invoice_number"]}
        assert data(api.get("/v1/pay/invoices", params=query | {"start_date": time}))["total"] == 1
        assert data(api.get("/v1/pay/invoices", params=query | {"end_date": time}))["total"] == 0

    def test_a_large_limit_is_clamped(self, api):
        assert data(api.get("/v1/pay/invoices", params={"limit": 1000}))["limit"] == 100

    def test_a_page_of_large_ones_is_shorter_and_says_so(self, api, bill):
        lines = [{"description": f"{number} " + "x" * 1900, "quantity": 1, "unit_price": "1.00"} for number in range(200)]
        customer = bill(customer_email="large@example.gm", items=lines)["customer_id"]
        for _ in range(14):
            bill(customer_id=customer, customer_email=None, items=lines)
        query, walked, limits = {"customer_id": customer, "limit": 20}, [], []
        while not limits or page["has_more"]:
            page = data(api.get("/v1/pay/invoices", params=query | {"offset": len(walked)}))
            walked += [item["id"] for item in page["items"]]
            limits.append(page["limit"])
            assert page["total"] == 15
            assert page["limit"] == (len(page["items"]) if page["has_more"] else 20)
        assert len(set(walked)) == len(walked) == 15
        assert (len(limits), 5 < limits[0] < 15) == (2, True)

    @pytest.mark.parametrize(
        ("parameter", "value", "code"),
        [("limit", "0", "out_of_range"), ("limit", "ten", "invalid_format"), ("offset", "-1", "out_of_range"),
         ("status", "unpaid", "invalid_enum"), ("status", "", "invalid_enum"), ("colour", "red", "unknown_field"),
         ("start_date", "yesterday", "invalid_format"), ("end_date", "2026-02-30", "invalid_format"),
         ("start_date", "2026-01-01  00:00:00Z", "invalid_format"), ("end_date", "2026-01-01T00:00:00  00:00", "invalid_format"),
         ("number", "x" * 300, "too_long"), ("customer_id", "x" * 300, "too_long")],
    )  # fmt: skip
    def test_a_bad_query_names_the_parameter(self, api, parameter, value, code):
        assert faults(api.get("/v1/pay/invoices", params={parameter: value})) == {parameter: code}

    def test_the_other_mode_has_its_own(self, sdk, bill, server):
        invoice = bill()
        with other_mode(server) as live:
            assert invoice["id"] not in [item["id"] for item in ok(live.invoices.list(limit=100))["items"]]


class TestUpdate:
    def test_only_what_is_given_changes(self, sdk, bill):
        before = bill(is_draft=True, notes="Before", tax_rate=10, metadata={"a": "1"})
        after = whole(ok(sdk.invoices.update(before["id"], notes="After")))
        assert {name for name in after if after[name] != before[name]} == {"notes", "version", "updated_at"}
        assert after["version"] == 2

    def test_every_field(self, sdk, bill):
        before = bill(tax_rate=10)
        items = [{"description": "Oil", "quantity": 2, "unit_price": "85.00", "amount": "1.00"}]
        fields = {
            "customer_email": "accounts@example.gm",
            "customer_name": "Ceesay & Daughters",
            "customer_address": "Banjul",
            "customer_phone": "+2203009999",
            "tax_rate": 7.25,
            "notes": "Changed",
            "metadata": {"b": "2"},
        }
        after = whole(ok(sdk.invoices.update(before["id"], items=items, due_date=datetime(2031, 5, 1), **fields)))
        for field, value in fields.items():
            assert after[field] == value, field
        assert after["due_date"] == "2031-05-01T00:00:00.000000Z"
        assert (after["amount"], after["tax_amount"], after["total_amount"]) == ("170.00", "12.33", "182.33")
        assert (after["version"], after["status"]) == (2, "pending")
        assert after["customer_id"] == before["customer_id"], "the customer's own record is another matter"
        assert whole(ok(sdk.invoices.get(before["id"]))) == after

    def test_an_empty_text_clears(self, sdk, bill):
        before = bill(notes="Note", customer_address="Banjul", customer_phone="3001234", metadata={"a": "1"})
        after = whole(
            ok(sdk.invoices.update(before["id"], notes="", customer_address="", customer_phone="", metadata={}))
        )
        assert (after["notes"], after["customer_address"], after["customer_phone"], after["metadata"]) == ("", "", "", {})

    def test_without_a_change_nothing_happens(self, sdk, api, bill):
        before = bill(notes="Same", tax_rate=16)
        assert ok(sdk.invoices.update(before["id"])) == before
        assert ok(sdk.invoices.update(before["id"], notes="Same", tax_rate=16.0)) == before
        assert data(api.put(f"/v1/pay/invoices/{before['id']}", {"version": 1})) == before
        kinds = [event["type"] for event in ok(sdk.webhook_events.list(limit=20))["items"] if event["object_id"] == before["id"]]
        assert "invoice.updated" not in kinds

    @pytest.mark.parametrize("place", ["body", "header", "both"])
    def test_a_version_guards_it(self, api, bill, place):
        path = f"/v1/pay/invoices/{bill()['id']}"

        def put(version, notes):
            body, headers = {"notes": notes}, {}
            if place in ("body", "both"):
                body["version"] = version
            if place in ("header", "both"):
                headers["If-Match"] = f'"{version}"'
            return api.put(path, body, headers=headers)

        assert data(put(1, "First"))["version"] == 2
        refusal(put(1, "Second"), 400, "invoice_version_conflict")
        refusal(put(1, "First"), 400, "invoice_version_conflict")
        refusal(put(3, "Third"), 400, "invoice_version_conflict")
        assert data(put(2, "Fourth"))["version"] == 3
        assert data(api.put(path, {"notes": "Without"}))["version"] == 4, "the last write wins"

    def test_two_versions_that_differ_are_a_conflict(self, api, bill):
        path = f"/v1/pay/invoices/{bill()['id']}"
        answer = api.put(path, {"notes": "x", "version": 1}, headers={"If-Match": '"2"'})
        assert faults(answer) == {"version": "conflict"}
        assert data(api.get(path))["version"] == 1

    @pytest.mark.parametrize("tag", ["1", '"one"', '""', '"1', "*", '"-1"', '"0"', '"1", "2"', '"99999999999999999999"'])
    def test_a_tag_is_a_version_in_quotes(self, api, bill, tag):
        path = f"/v1/pay/invoices/{bill()['id']}"
        found = faults(api.put(path, {"notes": "x"}, headers={"If-Match": tag}))
        assert set(found) == {"If-Match"}
        assert data(api.get(path))["notes"] == ""

    @pytest.mark.parametrize(
        ("body", "found"),
        [
            ({"items": []}, {"items": "too_short"}),
            ({"items": None}, {"items": "wrong_type"}),
            ({"items": [{"description": "x", "quantity": 0, "unit_price": "1.00"}]}, {"items[0].quantity": "out_of_range"}),
            ({"notes": None}, {"notes": "wrong_type"}),
            ({"customer_email": None}, {"customer_email": "wrong_type"}),
            ({"customer_email": "nobody"}, {"customer_email": "invalid_format"}),
            ({"customer_name": "x" * 201}, {"customer_name": "too_long"}),
            ({"customer_phone": "12"}, {"customer_phone": "invalid_format"}),
            ({"tax_rate": "5"}, {"tax_rate": "wrong_type"}),
            ({"tax_rate": None}, {"tax_rate": "wrong_type"}),
            ({"due_date": None}, {"due_date": "wrong_type"}),
            ({"due_date": "soon"}, {"due_date": "invalid_format"}),
            ({"due_date": "9999-12-31"}, {"due_date": "out_of_range"}),
            ({"metadata": None}, {"metadata": "wrong_type"}),
            ({"metadata": {"a": 1}}, {"metadata.a": "wrong_type"}),
            ({"version": "1"}, {"version": "wrong_type"}),
            ({"version": 0}, {"version": "out_of_range"}),
            ({"currency": "GMD"}, {"currency": "unknown_field"}),
            ({"customer_id": "cus_1"}, {"customer_id": "unknown_field"}),
            ({"status": "paid"}, {"status": "unknown_field"}),
            ({"is_draft": True, "tax_rate": -1, "notes": 5}, {"is_draft": "unknown_field", "tax_rate": "out_of_range", "notes": "wrong_type"}),
        ],
        ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else None,
    )  # fmt: skip
    def test_bad_input_changes_nothing(self, api, bill, body, found):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}"
        assert faults(api.put(path, body)) == found
        assert data(api.get(path)) == invoice

    def test_a_product_of_nobody(self, api, bill):
        body = {"items": [{"product_id": "prod_01h455vb4pex5vsknk084sn02q", "quantity": 1}]}
        found = faults(api.put(f"/v1/pay/invoices/{bill()['id']}", body))
        assert found == {"items[0].product_id": "not_found"}


class TestPayments:
    def test_a_payment_by_hand(self, sdk, bill, server):
        invoice = bill()
        part = whole(
            ok(
                sdk.invoices.record_payment(
                    invoice["id"], amount="40.00", payment_method="bank_transfer", transaction_id="TXN-77", notes="By GTBank"
                )
            )
        )
        assert (part["status"], part["payment_status"]) == ("partially_paid", "partial")
        assert (part["paid_amount"], part["remaining_amount"]) == ("40.00", "60.00")
        assert part["payment_url"] and part["version"] == 2
        paid = whole(ok(sdk.invoices.record_payment(invoice["id"], amount="60", payment_method="cash")))
        assert (paid["status"], paid["payment_status"], paid["remaining_amount"]) == ("paid", "paid", "0.00")
        assert when(paid["paid_date"]) >= when(paid["issued_date"])

        payments = ok(sdk.invoices.list_payments(invoice["id"]))
        assert isinstance(payments, list) and len(payments) == 2
        for payment in payments:
            fits(payment, PAYMENT, "payment")
            assert (payment["invoice_id"], payment["currency"]) == (invoice["id"], "GMD")
        by_method = {payment["payment_method"]: payment for payment in payments}
        assert {method: payment["amount"] for method, payment in by_method.items()} == {
            "bank_transfer": "40.00", "cash": "60.00",
        }  # fmt: skip
        assert by_method["bank_transfer"]["notes"] == "By GTBank"
        assert by_method["cash"]["notes"] is None

        receipts = ok(sdk.invoices.get_receipts(invoice["id"]))
        assert isinstance(receipts, list) and len(receipts) == 2
        summaries = {receipt["id"]: receipt for receipt in paid["receipts"]}
        payments = {payment["receipt_id"]: payment for payment in payments}
        for receipt in receipts:
            fits(receipt, RECEIPT, "receipt")
            payment, summary = payments[receipt["id"]], summaries[receipt["id"]]
            assert receipt["invoice_payment_id"] == payment["id"] and receipt["invoice_id"] == invoice["id"]
            assert receipt["transaction_id"] == payment["transaction_id"]
            for field in ("amount", "currency", "payment_method", "payment_date"):
                assert receipt[field] == payment[field], field
            assert receipt["receipt_url"] == f"{server.url}/receipts/{receipt['validation_code']}.pdf"
            for field in ("receipt_number", "receipt_url", "amount"):
                assert summary[field] == receipt[field], field

    @pytest.mark.parametrize("method", ["cash", "bank_transfer", "check", "western_union", "other"])
    def test_every_way_of_the_world_outside(self, sdk, bill, method):
        paid = ok(sdk.invoices.record_payment(bill()["id"], amount="100.00", payment_method=method))
        assert [payment["payment_method"] for payment in ok(sdk.invoices.list_payments(paid["id"]))] == [method]

    def test_the_answer_is_201(self, api, bill):
        path = f"/v1/pay/invoices/{bill()['id']}/payments"
        whole(data(api.post(path, {"amount": "100.00", "payment_method": "cash"}), 201))

    def test_no_more_than_what_remains(self, sdk, api, bill):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}/payments"
        refusal(api.post(path, {"amount": "100.01", "payment_method": "cash"}), 400, "invoice_overpayment")
        data(api.post(path, {"amount": "99.99", "payment_method": "cash"}), 201)
        refusal(api.post(path, {"amount": "0.02", "payment_method": "cash"}), 400, "invoice_overpayment")
        assert whole(ok(sdk.invoices.get(invoice["id"])))["remaining_amount"] == "0.01"
        assert len(ok(sdk.invoices.list_payments(invoice["id"]))) == 1

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            ({"amount": 40}, {"amount": "amount_must_be_string"}),
            ({"amount": "0.00"}, {"amount": "amount_not_positive"}),
            ({"amount": "1.001"}, {"amount": "too_many_decimals"}),
            ({"amount": None}, {"amount": "required"}),
            ({"payment_method": None}, {"payment_method": "required"}),
            ({"payment_method": "barter"}, {"payment_method": "invalid_enum"}),
            *(({"payment_method": method}, {"payment_method": "not_allowed"}) for method in ("wave", "afrimoney", "qmoney", "card")),
            ({"transaction_id": 7}, {"transaction_id": "wrong_type"}),
            ({"transaction_id": "x" * 256}, {"transaction_id": "too_long"}),
            ({"notes": "x" * 2001}, {"notes": "too_long"}),
            ({"amount": 1, "payment_method": "wave", "colour": "red"}, {"amount": "amount_must_be_string", "payment_method": "not_allowed", "colour": "unknown_field"}),
        ],
        ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
    )  # fmt: skip
    def test_bad_input(self, api, bill, change, found):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}"
        assert faults(api.post(f"{path}/payments", {"amount": "40.00", "payment_method": "cash"} | change)) == found
        assert data(api.get(path)) == invoice

    def test_the_sdk_asks_for_what_is_missing_itself(self, sdk, bill):
        assert error(sdk.invoices.record_payment("", amount="1.00", payment_method="cash")) == "Invoice ID is required"

    def test_an_invoice_without_payments_has_none(self, sdk, bill):
        invoice = bill()
        assert ok(sdk.invoices.list_payments(invoice["id"])) == []
        assert ok(sdk.invoices.get_receipts(invoice["id"])) == []


class TestLive:
    def test_live_invoices_are_live(self, server):
        with other_mode(server) as live:
            invoice = whole(ok(live.invoices.create(**order(is_draft=True))))
            assert (invoice["mode"], invoice["livemode"]) == ("live", True)
            assert whole(ok(live.invoices.cancel(invoice["id"])))["status"] == "cancelled"

    def test_a_card_number_is_refused(self, server):
        api = Api(server.url, server.keys["live"]["secret"])
        body = order(notes="Card 4111 1111 1111 1111")
        refusal(api.post("/v1/pay/invoices", body), 400, "card_data_not_allowed")
