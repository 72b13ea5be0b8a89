"""receipts: list, get, by number, and the check that anybody may make (contract §2.5, §3)."""

import pytest
from jokoor import Jokoor

from checks import data, error, eventually, faults, ok, refusal
from invoices import RECEIPT, fits

ABSENT = "rec_01h455vb4pex5vsknk084sn02q"


@pytest.fixture
def receipt(sdk, bill):
    """The receipt of an invoice that was paid by hand, once its file is made and its mail is out."""

    def issue(amount="100.00", **fields):
        paid = ok(sdk.invoices.record_payment(bill(**fields)["id"], amount=amount, payment_method="cash"))

        def with_file():
            found = ok(sdk.receipts.get(paid["receipts"][0]["id"]))
            is_mailed = found["email_status"] != "pending" or not found["customer_email"]
            return found if found["status"] == "completed" and is_mailed else None

        return eventually(with_file)

    return issue


class TestGet:
    def test_every_field(self, receipt, server):
        found = receipt(amount="40.00", customer_phone="3001234", customer_address="Banjul")
        fits(found, RECEIPT, "receipt")
        assert (found["amount"], found["currency"], found["payment_method"]) == ("40.00", "GMD", "cash")
        assert (found["customer_name"], found["customer_email"]) == ("Awa Ceesay", "awa@example.gm")
        assert (found["customer_phone"], found["customer_address"]) == ("+2203001234", "Banjul")
        assert (found["organization_id"], found["org_name"]) == (server.organization_id, "Kairaba Books")
        assert (found["mode"], found["livemode"]) == ("test", False)
        assert found["receipt_url"] == f"{server.url}/receipts/{found['validation_code']}.pdf"
        assert (found["email_sent_at"] is not None) == (found["email_status"] == "sent"), "it may be on its way by now"
        assert (found["error_message"], found["retry_count"]) == (None, 0)
        assert found["generated_at"] >= found["created_at"]
        year = found["created_at"][:4]
        assert found["receipt_number"].startswith(f"RCT-{year}-")
        assert found["id"].removeprefix("rec_") not in found["validation_code"]

    def test_what_payers_see_of_the_merchant(self, api, receipt):
        before = data(api.put("/v1/pay/settings", {}))
        looks = {
            "address": "12 Kairaba Avenue", "phone": "+2203999999", "email": "books@example.gm", "tax_id": "GM-77",
            "logo_url": "https://shop.example/logo.png",
        }  # fmt: skip
        data(api.put("/v1/pay/settings", looks))
        try:
            found = receipt()
        finally:
            data(api.put("/v1/pay/settings", {field: before[field] for field in looks}))
        assert {field: found[f"org_{field}"] for field in looks} == looks
        later = data(api.get(f"/v1/pay/receipts/{found['id']}"))
        assert later == found, "a receipt says what was true when it was issued"

    def test_by_number(self, sdk, receipt):
        found = receipt()
        assert ok(sdk.receipts.get_by_number(found["receipt_number"])) == found

    def test_an_absent_one_is_not_found(self, sdk, api):
        for absent in (ABSENT, "rec_short", "nonsense", "inv_01h455vb4pex5vsknk084sn02q", "%ff", "validate", "number"):
            refusal(api.get(f"/v1/pay/receipts/{absent}"), 404, "receipt_not_found")
        assert error(sdk.receipts.get(ABSENT)).startswith("JokoorNotFoundError: ")
        for absent in ("RCT-1999-001", "RCT-2026-1", "nonsense", "x" * 300, "%00"):
            refusal(api.get(f"/v1/pay/receipts/number/{absent}"), 404, "receipt_not_found")
        assert error(sdk.receipts.get_by_number("RCT-1999-001")).startswith("JokoorNotFoundError: ")
        assert error(sdk.receipts.get("")) == "Receipt ID is required"
        assert error(sdk.receipts.get_by_number("")) == "Receipt number is required"

    def test_another_mode_sees_the_same_as_an_absent_one(self, receipt, server):
        found = receipt()
        with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as live:
            assert error(live.receipts.get(found["id"])) == error(live.receipts.get(ABSENT))
            absent = error(live.receipts.get_by_number("RCT-1999-001"))
            assert error(live.receipts.get_by_number(found["receipt_number"])) == absent
            assert found["id"] not in [item["id"] for item in ok(live.receipts.list(limit=100))["items"]]

    @pytest.mark.parametrize("path", ["", f"/{ABSENT}", "/number/RCT-1999-001"])
    def test_who_may_read_them(self, api, anonymous, publishable, path):
        path = "/v1/pay/receipts" + path
        refusal(anonymous.get(path), 401, "authentication_required")
        refusal(publishable.get(path), 403, "secret_key_required")
        token = data(api.post("/v1/auth/token", {"scope": "write:invoices read:checkouts"}))["access_token"]
        refusal(api.with_credential(token).get(path), 403, "insufficient_scope")
        token = data(api.post("/v1/auth/token", {"scope": "read:invoices"}))["access_token"]
        assert api.with_credential(token).get(path).status_code in (200, 404)


class TestList:
    def test_newest_first_under_both_names(self, sdk, api, receipt):
        issued = [receipt() for _ in range(5)]
        expected = list(reversed(issued))
        page = ok(sdk.receipts.list(limit=3))
        assert set(page) == {"items", "receipts", "count", "total", "offset", "limit", "has_more"}
        assert page["items"] == page["receipts"] == expected[:3]
        assert page["count"] == page["total"] >= 5
        assert (page["offset"], page["limit"], page["has_more"]) == (0, 3, True)
        assert ok(sdk.receipts.list(offset=3, limit=2))["receipts"] == expected[3:]
        after = data(api.get("/v1/pay/receipts", params={"limit": 2, "after": expected[1]["id"]}))
        assert after["items"] == after["receipts"] == expected[2:4]
        for item in page["items"]:
            fits(item, RECEIPT, "receipt")

    @pytest.mark.parametrize(
        ("parameter", "value", "code"),
        [("limit", "0", "out_of_range"), ("offset", "-1", "out_of_range"), ("limit", "ten", "invalid_format"),
         ("status", "completed", "unknown_field")],
    )  # fmt: skip
    def test_a_bad_query_names_the_parameter(self, api, parameter, value, code):
        assert faults(api.get("/v1/pay/receipts", params={parameter: value})) == {parameter: code}


class TestValidate:
    def test_anybody_may_ask(self, anonymous, receipt):
        found = receipt(amount="40.00")
        said = data(anonymous.get(f"/v1/pay/receipts/validate/{found['validation_code']}"))
        assert said == {
            "valid": True,
            "livemode": False,
            "receipt_number": found["receipt_number"],
            "amount": "40.00",
            "refunded_amount": "0.00",
            "currency": "GMD",
            "payment_date": found["payment_date"],
            "org_name": "Kairaba Books",
        }

    def test_a_code_is_taken_as_a_person_copies_it(self, anonymous, receipt):
        found = receipt()
        code = found["validation_code"]
        groups = [code[at : at + 8].upper() for at in range(0, 32, 8)]
        for typed in (code.upper(), "-".join(groups), "%20".join(groups)):
            said = data(anonymous.get(f"/v1/pay/receipts/validate/{typed}"))
            assert said["receipt_number"] == found["receipt_number"]

    def test_a_key_does_no_harm(self, api, publishable, receipt):
        path = f"/v1/pay/receipts/validate/{receipt()['validation_code']}"
        assert data(api.get(path)) == data(publishable.get(path))
        assert data(api.with_credential("sk_test_nonsense").get(path))["valid"] is True

    @pytest.mark.parametrize("code", ["0" * 32, "f" * 31, "g" * 32, "RCT-2026-001", ABSENT, "%ff", "%00", "x" * 2000])
    def test_what_is_unknown_is_not_valid(self, anonymous, code):
        assert data(anonymous.get(f"/v1/pay/receipts/validate/{code}")) == {"valid": False}

    def test_every_receipt_has_a_code_of_its_own(self, sdk, receipt):
        for _ in range(3):
            receipt()
        found = ok(sdk.receipts.list(limit=100))["items"]
        assert len({item["validation_code"] for item in found}) == len(found)


@pytest.mark.parametrize(
    "path", ["/v1/pay/receipts/number", "/v1/pay/receipts/validate", "/v1/pay/receipts/validate/x/y", "/v1/pay/receipts/"]
)
def test_words_of_an_address_are_no_ids(api, path):
    answer = api.get(path)
    assert answer.status_code == 404, answer.text
    assert answer.json()["code"] in ("receipt_not_found", "route_not_found")
