"""payments: initialize, status, session, methods, settings, dashboard; the code step by plain HTTP (contract §2.2)."""

import re

import pytest

from checks import data, error, eventually, faults, ok, refusal

SESSION = {
    "id", "session_id", "object_type", "object_id", "payment_method", "amount", "currency", "status",
    "customer_email", "customer_phone", "customer_name", "payment_url", "provider_session_id", "expires_at",
    "next_action", "failure_reason", "outcome_unknown", "livemode", "created_at", "updated_at",
}  # fmt: skip
STATUS = {
    "session_id", "status", "object_type", "object_id", "amount", "currency", "payment_method", "payment_url",
    "transaction_id", "transaction", "failure_reason", "livemode",
}  # fmt: skip
ABSENT = "ps_01h455vb4pex5vsknk084sn02q"
# Waits for a click on the simulator's page: these tests never click.
QUIET = "+2207654321"


class TestInitialize:
    def test_without_a_method_the_payer_chooses_on_the_page(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"]))
        assert set(session) == SESSION
        assert session["id"] == session["session_id"] and session["id"].startswith("ps_")
        assert (session["object_type"], session["object_id"]) == ("checkout", checkout["id"])
        assert (session["status"], session["payment_method"]) == ("pending", None)
        assert (session["amount"], session["currency"]) == ("25.00", "GMD")
        assert session["payment_url"].startswith(checkout["payment_url"])
        assert session["next_action"] is None
        assert session["outcome_unknown"] is False

    def test_by_object(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        session = ok(
            sdk.payments.initialize(
                object_type="checkout",
                object_id=checkout["id"],
                payment_method="wave",
                customer_email="awa@example.com",
                customer_name="Awa Ceesay",
            )
        )
        assert session["object_id"] == checkout["id"]
        assert session["customer_email"] == "awa@example.com"
        assert session["customer_name"] == "Awa Ceesay"
        assert ok(sdk.checkouts.get(checkout["id"]))["payment_session_id"] == session["id"]

    @pytest.mark.parametrize("method", ["wave", "card"])
    def test_redirect_methods_lead_to_the_rail(self, sdk, server, method):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method=method))
        assert (session["status"], session["payment_method"]) == ("pending", method)
        assert session["next_action"]["type"] == "redirect"
        assert session["next_action"]["url"] == session["payment_url"]
        assert session["payment_url"].startswith(f"{server.url}/simulator/")
        transaction = ok(sdk.checkouts.get(checkout["id"]))["transaction"]
        assert set(transaction) == {"id", "status", "amount", "fee", "net_amount"}
        assert transaction["id"].startswith("txn_")

    def test_push_asks_on_the_phone(self, sdk, pay):
        checkout, session = pay(QUIET, "afrimoney")
        assert session["status"] == "processing"
        assert session["next_action"]["type"] == "approve_on_phone"
        assert session["customer_phone"] == QUIET
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "pending"

    @pytest.mark.parametrize("method", ["afrimoney", "qmoney"])
    def test_a_wallet_needs_a_phone(self, sdk, api, method):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        assert error(
            sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method=method)
        ).startswith("JokoorValidationError: ")
        body = {"client_secret": checkout["client_secret"], "payment_method": method}
        assert faults(api.post("/v1/pay/initialize", body)) == {"customer_phone": "required"}

    def test_the_phone_of_the_checkout_is_used(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="25.00", customer_phone=QUIET))
        session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method="afrimoney"))
        assert session["customer_phone"] == QUIET

    def test_the_same_method_again_is_the_same_session(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        start = {"client_secret": checkout["client_secret"], "payment_method": "wave"}
        assert ok(sdk.payments.initialize(**start))["id"] == ok(sdk.payments.initialize(**start))["id"]

    def test_another_method_opens_another_session(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        secret = checkout["client_secret"]
        first = ok(sdk.payments.initialize(client_secret=secret, payment_method="wave"))
        second = ok(sdk.payments.initialize(client_secret=secret, payment_method="card"))
        assert first["id"] != second["id"]
        assert ok(sdk.payments.get_session(first["id"]))["status"] == "cancelled"
        body = {"session_id": first["id"], "payment_method": "wave"}
        refusal(api.post("/v1/pay/initialize", body), 400, "payment_session_closed")

    def test_a_fixed_method_stays(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="25.00", payment_method="wave"))
        body = {"client_secret": checkout["client_secret"], "payment_method": "card"}
        refusal(api.post("/v1/pay/initialize", body), 400, "payment_method_fixed")
        started = ok(sdk.payments.initialize(session_id=checkout["payment_session_id"], payment_method="wave"))
        assert started["id"] == checkout["payment_session_id"]
        assert started["next_action"]["type"] == "redirect"

    def test_a_method_that_is_not_offered_is_refused(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="25.00", payment_method_types=["wave"]))
        body = {"client_secret": checkout["client_secret"], "payment_method": "card"}
        assert "payment_method" in faults(api.post("/v1/pay/initialize", body))

    def test_one_attempt_at_a_time(self, sdk, api, pay):
        checkout, session = pay(QUIET, "afrimoney")
        for body in (
            {"client_secret": checkout["client_secret"], "payment_method": "wave"},
            {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": QUIET},
            {"session_id": session["id"], "customer_pin": "123456"},
        ):
            refusal(api.post("/v1/pay/initialize", body), 400, "payment_in_progress")

    def test_what_is_over_takes_no_payment(self, sdk, api, paid):
        done = paid()
        body = {"client_secret": done["client_secret"], "payment_method": "wave"}
        refusal(api.post("/v1/pay/initialize", body), 400, "checkout_already_completed")
        cancelled = ok(sdk.checkouts.create(amount="1.00"))
        ok(sdk.checkouts.cancel(cancelled["id"]))
        body = {"client_secret": cancelled["client_secret"], "payment_method": "wave"}
        refusal(api.post("/v1/pay/initialize", body), 400, "checkout_already_cancelled")
        assert error(
            sdk.payments.initialize(client_secret=cancelled["client_secret"], payment_method="wave")
        ).startswith("JokoorValidationError: ")

    def test_addresses_must_agree_and_exist(self, sdk, api):
        one, other = (ok(sdk.checkouts.create(amount="1.00")) for _ in range(2))
        body = {"client_secret": one["client_secret"], "object_type": "checkout", "object_id": other["id"]}
        assert "conflict" in faults(api.post("/v1/pay/initialize", body)).values()
        session = data(api.post("/v1/pay/initialize", {"client_secret": one["client_secret"], "object_type": "checkout"}))
        for name in ({"client_secret": one["client_secret"]}, {"session_id": session["id"]}):
            for kind in ("invoice", "payment_link", "donation", "topup"):
                answer = api.post("/v1/pay/initialize", name | {"object_type": kind, "payment_method": "wave"})
                assert faults(answer) == {"object_type": "conflict"}
            assert data(api.post("/v1/pay/initialize", name | {"object_type": "checkout"}))["id"] == session["id"]
        unknown = one["client_secret"][:-52] + "0" * 52
        assert faults(api.post("/v1/pay/initialize", {"client_secret": unknown})) == {"client_secret": "not_found"}
        assert faults(api.post("/v1/pay/initialize", {"session_id": ABSENT})) == {"session_id": "not_found"}
        body = {"object_type": "checkout", "object_id": "cs_01h455vb4pex5vsknk084sn02q"}
        assert faults(api.post("/v1/pay/initialize", body)) == {"object_id": "not_found"}
        assert faults(api.post("/v1/pay/initialize", {"object_type": "parcel", "object_id": "x"}))["object_type"] == (
            "invalid_enum"
        )
        faults(api.post("/v1/pay/initialize", {}))
        assert error(sdk.payments.initialize()).startswith("JokoorValidationError: ")

    def test_another_amount_than_the_checkout_s_is_refused(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="10.00"))
        body = {"client_secret": checkout["client_secret"], "amount": "1.00"}
        assert "amount" in faults(api.post("/v1/pay/initialize", body))
        for amount, code in (("1,00", "invalid_format"), ("0.00", "amount_not_positive"), ("-1", "amount_not_positive")):
            body |= {"amount": amount, "customer_email": "nobody"}
            assert faults(api.post("/v1/pay/initialize", body)) == {"amount": code, "customer_email": "invalid_format"}
        body = {"client_secret": "cs_nonsense", "object_type": "checkout", "object_id": "cs_none", "session_id": "ps_none"}
        unknown = dict.fromkeys(("client_secret", "object_id", "session_id"), "not_found")
        assert faults(api.post("/v1/pay/initialize", body)) == unknown


class TestCode:
    """QMoney's one-time code; the SDK has no field for it."""

    def submit(self, api, session, code):
        return api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": code})

    def test_the_right_code_pays(self, sdk, api, pay):
        checkout, session = pay("+2207000000", "qmoney")
        assert session["status"] == "pending"
        assert session["next_action"]["type"] == "otp"
        assert session["next_action"]["length"] == 6
        assert data(self.submit(api, session, "123456"))["status"] in ("processing", "succeeded")
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "completed"

    def test_three_wrong_codes_end_it(self, sdk, api, pay):
        checkout, session = pay("+2207000000", "qmoney")
        for left in (2, 1):
            answer = data(self.submit(api, session, "000000"))
            assert (answer["status"], answer["failure_reason"]) == ("pending", "wrong_code")
            assert answer["next_action"]["attempts_left"] == left
        answer = data(self.submit(api, session, "000000"))
        assert (answer["status"], answer["failure_reason"]) == ("failed", "wrong_code")
        refusal(self.submit(api, session, "123456"), 400, "payment_session_closed")
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "pending", "the payer may try again"

    def test_a_code_after_a_wrong_one_still_pays(self, sdk, api, pay):
        _, session = pay("+2207000000", "qmoney")
        data(self.submit(api, session, "654321"))
        data(self.submit(api, session, "123456"))
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")

    def test_nobody_asked_for_a_code(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="1.00", payment_method="wave"))
        session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method="wave"))
        refusal(self.submit(api, session, "123456"), 400, "code_not_expected")

    def test_a_used_session_says_so(self, sdk, api, pay):
        _, session = pay("+2207000000", "qmoney")
        data(self.submit(api, session, "123456"))
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        refusal(self.submit(api, session, "123456"), 400, "payment_already_succeeded")

    @pytest.mark.parametrize("code", ["", "12345", "1234567", "12345a", "１２３４５６"])
    def test_what_is_no_code_costs_no_try(self, api, pay, code):
        _, session = pay("+2207000000", "qmoney")
        assert "customer_pin" in faults(self.submit(api, session, code))
        assert data(self.submit(api, session, "000000"))["next_action"]["attempts_left"] == 2
        document = api.get("/openapi.json").json()
        described = document["components"]["schemas"]["InitializePayment"]["properties"]["customer_pin"]
        assert not re.fullmatch(described["pattern"], code, re.ASCII)


class TestStatusAndSession:
    def test_a_payment_from_start_to_end(self, sdk, pay):
        checkout, session = pay("+2207000000", "afrimoney", amount="100.00")
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        status = ok(sdk.payments.get_status(session["id"]))
        assert set(status) == STATUS
        assert (status["object_type"], status["object_id"]) == ("checkout", checkout["id"])
        assert (status["amount"], status["payment_method"]) == ("100.00", "afrimoney")
        assert status["transaction_id"] == status["transaction"]["id"]
        assert status["transaction"] == {
            "id": status["transaction_id"],
            "status": "completed",
            "amount": "100.00",
            "fee": "2.50",
            "net_amount": "97.50",
        }
        assert status["failure_reason"] is None

        after = ok(sdk.checkouts.get(checkout["id"]))
        assert after["status"] == "completed"
        assert after["transaction"] == status["transaction"]
        assert after["payment_session_id"] == session["id"]

        whole = ok(sdk.payments.get_session(session["id"]))
        assert set(whole) == SESSION
        assert (whole["status"], whole["next_action"]) == ("succeeded", None)

    @pytest.mark.parametrize(("amount", "fee", "net"), [("0.01", "0.00", "0.01"), ("0.20", "0.01", "0.19"),
                                                        ("33.33", "0.83", "32.50"), ("99999.99", "2500.00", "97499.99")])  # fmt: skip
    def test_the_fee_is_rounded_half_up(self, paid, amount, fee, net):
        transaction = paid(amount=amount)["transaction"]
        assert (transaction["amount"], transaction["fee"], transaction["net_amount"]) == (amount, fee, net)

    def test_an_absent_one_is_not_found(self, sdk, api):
        assert error(sdk.payments.get_status(ABSENT)).startswith("JokoorNotFoundError: ")
        assert error(sdk.payments.get_session(ABSENT)).startswith("JokoorNotFoundError: ")
        refusal(api.get(f"/v1/pay/status/{ABSENT}"), 404, "payment_session_not_found")
        refusal(api.get("/v1/pay/session/nonsense"), 404, "payment_session_not_found")


class TestMethodsAndSettings:
    @pytest.fixture
    def settings(self, sdk):
        before = ok(sdk.payments.list_methods())["enabled_methods"]
        yield
        ok(sdk.payments.update_settings(before))

    def test_methods(self, sdk):
        methods = ok(sdk.payments.list_methods())
        assert set(methods) == {"methods", "enabled_methods"}
        flows = {method["id"]: method["flow"] for method in methods["methods"]}
        assert flows == {"wave": "redirect", "card": "redirect", "afrimoney": "push", "qmoney": "otp"}
        for method in methods["methods"]:
            assert set(method) == {"id", "name", "enabled", "flow", "currencies"}
            assert "GMD" in method["currencies"]
            assert method["enabled"] is (method["id"] in methods["enabled_methods"])

    def test_disabled_methods_are_not_offered(self, sdk, api, settings):
        changed = ok(sdk.payments.update_settings(["wave", "qmoney"]))
        assert sorted(changed["enabled_methods"]) == ["qmoney", "wave"]
        assert sorted(ok(sdk.payments.list_methods())["enabled_methods"]) == ["qmoney", "wave"]
        checkout = ok(sdk.checkouts.create(amount="1.00"))
        assert sorted(checkout["available_payment_methods"]) == ["qmoney", "wave"]
        assert "payment_method" in faults(api.post("/v1/checkouts", {"amount": "1.00", "payment_method": "card"}))
        body = {"amount": "1.00", "payment_method_types": ["card"]}
        assert "payment_method_types" in faults(api.post("/v1/checkouts", body))

    @pytest.mark.parametrize("methods", [[], ["cash"], ["wave", "wave"], "wave", [7]])
    def test_nonsense_is_refused(self, sdk, methods):
        assert error(sdk.payments.update_settings(methods)).startswith("JokoorValidationError: ")

    def test_only_what_is_given_changes(self, api, settings):
        before = data(api.put("/v1/pay/settings", {}))
        after = data(api.put("/v1/pay/settings", {"phone": "+2203999999", "locale": "fr"}))
        assert (after["phone"], after["locale"]) == ("+2203999999", "fr")
        assert {name for name in after if after[name] != before[name]} <= {"phone", "locale", "updated_at"}
        data(api.put("/v1/pay/settings", {"locale": before["locale"] or "en"}))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("logo_url", "javascript:alert(1)"), ("accent_color", "reddish"), ("email", "nobody"), ("locale", "de"),
         ("name", ""), ("name", " "), ("allow_partial_payments", "no")],
    )  # fmt: skip
    def test_a_bad_setting_names_its_field(self, api, field, value):
        assert set(faults(api.put("/v1/pay/settings", {field: value}))) == {field}


class TestDashboard:
    def test_a_payment_counts(self, sdk, paid):
        before = ok(sdk.payments.get_dashboard())
        assert set(before) == {
            "currency", "total_amount", "total_fees", "total_net", "refunded_amount", "transaction_count",
            "completed_count", "failed_count", "pending_count", "by_method", "recent_transactions", "period",
        }  # fmt: skip
        checkout = paid(amount="40.00")
        after = ok(sdk.payments.get_dashboard())
        assert cents(after["total_amount"]) - cents(before["total_amount"]) == 4000
        assert cents(after["total_fees"]) - cents(before["total_fees"]) == 100
        assert cents(after["total_net"]) - cents(before["total_net"]) == 3900
        assert after["completed_count"] == before["completed_count"] + 1
        assert checkout["transaction"]["id"] in [entry["id"] for entry in after["recent_transactions"]]
        assert len(after["recent_transactions"]) <= 10
        by_method = {entry["payment_method"]: entry for entry in after["by_method"]}
        assert by_method["afrimoney"]["count"] >= 1

    def test_the_methods_add_up_to_the_whole(self, sdk, bill, paid):
        paid(amount="40.00")
        for method in ("cash", "bank_transfer"):
            ok(sdk.invoices.record_payment(bill()["id"], amount="7.50", payment_method=method))
        shown = ok(sdk.payments.get_dashboard())
        assert {"afrimoney", "cash", "bank_transfer"} <= {entry["payment_method"] for entry in shown["by_method"]}
        assert sum(cents(entry["amount"]) for entry in shown["by_method"]) == cents(shown["total_amount"])
        assert sum(entry["count"] for entry in shown["by_method"]) == shown["completed_count"]


def cents(text):
    whole, _, minor = text.partition(".")
    assert len(minor) == 2, text
    return int(whole) * 100 + int(minor)
