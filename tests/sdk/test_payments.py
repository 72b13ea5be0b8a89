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
# Of ids and client secrets.
BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"
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

    def test_no_client_secret_is_made_of_others(self, sdk, api, publishable):
        one, other = (ok(sdk.checkouts.create(amount="1.00")) for _ in range(2))
        # The second half of a secret is the id under a mask that belongs to the first half. Who knows both ids turns one into
        # the other under the same mask, so both texts name a checkout that is there.
        change = number(one["id"].removeprefix("cs_")) ^ number(other["id"].removeprefix("cs_"))
        forged = []
        for checkout in (one, other):
            body = checkout["client_secret"].removeprefix("csec_")
            assert letters(number(body), 52) == body
            forged.append("csec_" + letters(number(body) ^ (change << 4), 52))  # 52 letters have 4 bits more than 32 bytes.
        for caller in (publishable, api):
            told = []
            for secret in ("csec_" + "0" * 52, *forged):
                body = {"client_secret": secret}
                refused = refusal(caller.post("/v1/pay/initialize", body), 400, "validation_failed")
                told.append({name: value for name, value in refused.items() if name != "request_id"})
            assert [(fault["field"], fault["code"]) for fault in told[0]["details"]] == [("client_secret", "not_found")]
            assert told == [told[0]] * 3
        for checkout in (one, other):
            session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"]))
            assert session["object_id"] == checkout["id"]

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

    def test_all_that_is_wrong_is_told_at_once(self, sdk, api):
        checkout = ok(sdk.checkouts.create(amount="10.00"))
        wrong = {"customer_email": "x"}
        nobody = {"customer_id": "cus_01h455vb4pex5vsknk084sn02q"}
        unknown = {"object_type": "checkout", "object_id": "cs_01h455vb4pex5vsknk084sn02q"}
        told = {"customer_email": "invalid_format", "object_id": "not_found"}
        assert faults(api.post("/v1/pay/initialize", unknown | wrong)) == told
        assert faults(api.post("/v1/pay/initialize", unknown | wrong | nobody)) == told | {"customer_id": "not_found"}
        body = {"client_secret": checkout["client_secret"], "amount": "10.001"} | nobody | wrong
        assert faults(api.post("/v1/pay/initialize", body)) == {
            "amount": "too_many_decimals", "customer_id": "not_found", "customer_email": "invalid_format",
        }  # fmt: skip
        body = {"client_secret": checkout["client_secret"], "payment_method": "qmoney", "amount": "9.00"} | wrong
        assert faults(api.post("/v1/pay/initialize", body)) == {
            "amount": "conflict", "customer_phone": "required", "customer_email": "invalid_format",
        }  # fmt: skip
        assert ok(sdk.checkouts.get(checkout["id"]))["payment_session_id"] is None

    def test_the_reference_tells_of_the_parts_of_an_invoice(self, api):
        schemas = api.get("/openapi.json").json()["components"]["schemas"]
        described = schemas["InitializePayment"]["properties"]["amount"]["description"]
        assert "allow_partial_payments" in described
        assert "allow_partial_payments" in schemas["UpdateSettings"]["properties"]


class TestMoreIsTold:
    """What is sent to go on with a session whose attempt has begun (contract §2.2 rule 1)."""

    AWA = {"customer_email": "awa@example.gm", "customer_name": "Awa"}

    def transaction(self, sdk, session):
        return ok(sdk.transactions.get(ok(sdk.payments.get_status(session["id"]))["transaction_id"]))

    def test_session_and_transaction_know_who_pays(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="25.00"))
        session = ok(sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method="wave"))
        assert (session["customer_email"], session["customer_name"]) == (None, None)
        again = ok(sdk.payments.initialize(session_id=session["id"], **self.AWA))
        assert again == session | self.AWA | {"updated_at": again["updated_at"]}
        assert ok(sdk.payments.get_session(session["id"])) == again
        transaction = self.transaction(sdk, session)
        assert (transaction["customer_email"], transaction["customer_name"]) == ("awa@example.gm", "Awa")
        assert transaction["status"] == "pending"
        later = ok(sdk.payments.initialize(session_id=session["id"], customer_name="Awa Ceesay"))
        assert later == again | {"customer_name": "Awa Ceesay", "updated_at": later["updated_at"]}
        assert ok(sdk.payments.initialize(session_id=session["id"], customer_name="Awa Ceesay")) == later

    def test_metadata_is_replaced_and_lands_in_the_transaction(self, sdk, api, pay):
        _, session = pay(QUIET, "wave")
        go_on = {"session_id": session["id"]}
        data(api.post("/v1/pay/initialize", go_on | {"metadata": {"basket": "77", "desk": "3"}}))
        assert self.transaction(sdk, session)["metadata"] == {"basket": "77", "desk": "3"}
        data(api.post("/v1/pay/initialize", go_on | self.AWA))
        assert self.transaction(sdk, session)["metadata"] == {"basket": "77", "desk": "3"}, "nothing was said of it"
        data(api.post("/v1/pay/initialize", go_on | {"metadata": {"desk": "4"}}))
        transaction = self.transaction(sdk, session)
        assert (transaction["metadata"], transaction["customer_name"]) == ({"desk": "4"}, "Awa")

    def test_another_phone_begins_another_attempt(self, sdk, pay):
        _, session = pay(QUIET, "wave")
        other = ok(sdk.payments.initialize(session_id=session["id"], customer_phone="+2207654322", **self.AWA))
        assert (other["id"] != session["id"], other["customer_name"]) == (True, "Awa")
        closed = ok(sdk.payments.get_session(session["id"]))
        assert (closed["status"], closed["customer_name"]) == ("cancelled", None)

    def test_it_may_come_with_the_code(self, sdk, api, pay):
        _, session = pay("+2207000000", "qmoney")
        body = {"session_id": session["id"], "customer_pin": "123456", "metadata": {"desk": "3"}} | self.AWA
        assert data(api.post("/v1/pay/initialize", body))["customer_name"] == "Awa"
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        transaction = self.transaction(sdk, session)
        assert (transaction["customer_email"], transaction["metadata"]) == ("awa@example.gm", {"desk": "3"})

    def test_what_the_provider_has_and_what_is_paid_is_told_no_more(self, sdk, api, pay):
        _, session = pay(QUIET, "afrimoney")
        refusal(api.post("/v1/pay/initialize", {"session_id": session["id"]} | self.AWA), 400, "payment_in_progress")
        assert ok(sdk.payments.get_session(session["id"]))["customer_name"] is None

        checkout, session = pay("+2207000000", "afrimoney")
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        before = ok(sdk.payments.get_session(session["id"])), self.transaction(sdk, session)
        assert [shown["customer_name"] for shown in before] == [None, None]
        for named, code in (
            ({"session_id": session["id"]}, "payment_already_succeeded"),
            ({"client_secret": checkout["client_secret"]}, "checkout_already_completed"),
        ):
            refusal(api.post("/v1/pay/initialize", named | self.AWA | {"metadata": {"desk": "3"}}), 400, code)
        assert (ok(sdk.payments.get_session(session["id"])), self.transaction(sdk, session)) == before


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


    def test_what_contradicts_the_attempt_costs_no_try(self, sdk, api, pay):
        _, session = pay("+2207000000", "qmoney")
        code = {"session_id": session["id"], "customer_pin": "123456"}
        others = {"amount": "1.00", "payment_method": "wave", "customer_phone": QUIET}
        for field, other in others.items():
            assert faults(api.post("/v1/pay/initialize", code | {field: other})) == {field: "conflict"}
        every = dict.fromkeys(others, "conflict")
        assert faults(api.post("/v1/pay/initialize", code | others)) == every
        beside = code | others | {"customer_pin": "12345"}
        assert faults(api.post("/v1/pay/initialize", beside)) == every | {"customer_pin": "invalid_format"}
        after = ok(sdk.payments.get_session(session["id"]))
        assert (after["status"], after["failure_reason"], after["next_action"]["attempts_left"]) == ("pending", None, 3)
        assert data(self.submit(api, session, "123456"))["status"] in ("processing", "succeeded")
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")
        assert ok(sdk.payments.get_status(session["id"]))["transaction"]["amount"] == "100.00"

    def test_what_agrees_with_the_attempt_may_come_with_the_code(self, sdk, api, pay):
        _, session = pay("+2207000000", "qmoney")
        same = {"amount": "100", "payment_method": "qmoney", "customer_phone": "700-0000"}
        wrong = data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": "000000"} | same))
        assert (wrong["id"], wrong["next_action"]["attempts_left"]) == (session["id"], 2)
        data(api.post("/v1/pay/initialize", {"session_id": session["id"], "customer_pin": "123456"} | same))
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")

    def test_a_page_can_t_find_out_the_phone_beside_a_code(self, sdk, publishable, pay):
        _, session = pay("+2207000000", "qmoney")
        code = {"session_id": session["id"], "customer_pin": "123456"}
        for phone in ("+2207000000", QUIET):
            answer = publishable.post("/v1/pay/initialize", code | {"customer_phone": phone})
            assert faults(answer) == {"customer_phone": "not_allowed"}
        assert faults(publishable.post("/v1/pay/initialize", code | {"amount": "1.00"})) == {"amount": "conflict"}
        data(publishable.post("/v1/pay/initialize", code))
        eventually(lambda: ok(sdk.payments.get_status(session["id"]))["status"] == "succeeded")


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
         ("name", ""), ("name", " "), ("name", "\u200b"), ("name", "\u3164\u115f"), ("allow_partial_payments", "no")],
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

    def test_another_currency_is_not_told_as_ours(self, sdk, bill):
        ok(sdk.invoices.record_payment(bill(currency="USD")["id"], amount="7.50", payment_method="cash"))
        newest = ok(sdk.transactions.list(limit=1))["items"][0]
        assert (newest["amount"], newest["currency"]) == ("7.50", "USD")
        assert newest["id"] not in [entry["id"] for entry in ok(sdk.payments.get_dashboard())["recent_transactions"]]

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


def number(text):
    """What base32 says, as one number."""
    whole = 0
    for letter in text:
        whole = whole << 5 | BASE32.index(letter)
    return whole


def letters(whole, count):
    return "".join(BASE32[whole >> 5 * place & 31] for place in reversed(range(count)))
