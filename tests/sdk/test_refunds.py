"""refunds through the SDK: parts and all of it, what the test amounts do, the balance that follows (contract §2.8, §4.5)."""

import json
import time

import pytest
from jokoor import Jokoor

from checks import data, error, eventually, faults, ok, refusal
from races import at_once
from server import Api

FIELDS = {"id", "transaction_id", "amount", "currency", "reason", "status", "created_at", "updated_at"}
ABSENT = "ref_01h455vb4pex5vsknk084sn02q"


@pytest.fixture
def bought(sdk, paid):
    """The transaction of a checkout that was paid."""

    def start(amount="100.00", **fields):
        return ok(sdk.transactions.get(paid(amount=amount, **fields)["transaction"]["id"]))

    return start


def until(sdk, refund, *statuses, timeout=15):
    """The refund once it has one of these statuses."""

    def reached():
        found = ok(sdk.refunds.get(refund["id"]))
        return found if found["status"] in statuses else None

    return eventually(reached, timeout=timeout)


def transaction(sdk, refund):
    return ok(sdk.transactions.get(refund["transaction_id"]))


def cents(text):
    whole, _, minor = text.lstrip("-").partition(".")
    assert len(minor) == 2, text
    return (int(whole) * 100 + int(minor)) * (-1 if text.startswith("-") else 1)


def available(sdk):
    return cents(ok(sdk.payouts.get_balance())["available_balance"])


class TestCreate:
    def test_all_of_it(self, sdk, bought, endpoint):
        paid = bought()
        refund = ok(sdk.refunds.create(paid["id"]))
        assert set(refund) == FIELDS
        assert refund["id"].startswith("ref_")
        assert (refund["amount"], refund["currency"], refund["status"]) == ("100.00", "GMD", "pending")
        assert (refund["transaction_id"], refund["reason"]) == (paid["id"], None)
        done = until(sdk, refund, "completed")
        assert done == refund | {"status": "completed", "updated_at": done["updated_at"]}
        after = transaction(sdk, refund)
        assert (after["status"], after["refunded_amount"]) == ("refunded", "100.00")
        assert (after["amount"], after["fee"], after["net_amount"]) == ("100.00", "2.50", "97.50"), "the fee stays"
        assert [move["status"] for move in after["state_transitions"]][-2:] == ["completed", "refunded"]
        checkout = ok(sdk.checkouts.get(paid["object_id"]))
        assert (checkout["status"], checkout["transaction"]["status"]) == ("completed", "refunded")
        [told] = endpoint.mailbox.wait_for(refund["id"], "refund.completed")
        assert told.event["data"] == done

    def test_parts_up_to_the_whole(self, sdk, api, bought):
        paid = bought()
        first = ok(sdk.refunds.create(paid["id"], amount="40.00", reason="One of two came back"))
        assert (first["amount"], first["reason"]) == ("40.00", "One of two came back")
        until(sdk, first, "completed")
        assert (transaction(sdk, first)["status"], transaction(sdk, first)["refunded_amount"]) == (
            "partially_refunded", "40.00",
        )  # fmt: skip
        path = f"/v1/pay/transactions/{paid['id']}/refund"
        problem = refusal(api.post(path, {"amount": "60.01"}), 400, "refund_exceeds_amount")
        assert "60.00 GMD" in problem["error"]
        second = ok(sdk.refunds.create(paid["id"], amount="20.00"))
        rest = ok(sdk.refunds.create(paid["id"]))
        assert rest["amount"] == "40.00", "what is on its way counts"
        for refund in (second, rest):
            until(sdk, refund, "completed")
        assert transaction(sdk, rest)["status"] == "refunded"
        refusal(api.post(path, {"amount": "0.01"}), 400, "transaction_already_refunded")
        assert error(sdk.refunds.create(paid["id"])).startswith("JokoorValidationError: ")

    def test_what_is_pending_counts(self, sdk, api, bought):
        paid = bought(amount="100.73")
        ok(sdk.refunds.create(paid["id"]))
        path = f"/v1/pay/transactions/{paid['id']}/refund"
        for body in ({}, {"amount": "0.01"}):
            refusal(api.post(path, body), 400, "refund_exceeds_amount")

    def test_only_what_was_paid(self, sdk, api, pay):
        for phone, amount in (("+2207000001", "3.00"), ("+2207654321", "4.00")):
            checkout, _ = pay(phone, amount=amount)
            attempt = ok(sdk.checkouts.get(checkout["id"]))["transaction"]
            path = f"/v1/pay/transactions/{attempt['id']}/refund"
            problem = refusal(api.post(path, {}), 400, "transaction_not_refundable")
            assert problem["error"].startswith("This transaction is ")

    def test_the_answer_is_kept_under_its_key(self, api, bought):
        path = f"/v1/pay/transactions/{bought()['id']}/refund"
        answers = [
            api.post(path, {"amount": "10.00"}, headers={"Idempotency-Key": f"refund-{path}"}) for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].content == answers[1].content
        assert answers[1].headers["Idempotent-Replayed"] == "true"
        other = api.post(path, {"amount": "11.00"}, headers={"Idempotency-Key": f"refund-{path}"})
        refusal(other, 400, "idempotency_key_reused")

    def test_bad_input_is_named_at_once(self, sdk, api, bought):
        path = f"/v1/pay/transactions/{bought()['id']}/refund"
        body = {"amount": 10, "reason": "x" * 2001, "colour": "red"}
        assert faults(api.post(path, body)) == {
            "amount": "amount_must_be_string", "reason": "too_long", "colour": "unknown_field",
        }  # fmt: skip
        for amount, code in (
            ("0", "amount_not_positive"), ("-1", "amount_not_positive"), ("1.001", "too_many_decimals"),
            ("1e2", "invalid_format"), ("1000000000000", "amount_too_large"),
        ):  # fmt: skip
            assert faults(api.post(path, {"amount": amount})) == {"amount": code}
        refusal(api.post(f"/v1/pay/transactions/{ABSENT}/refund", {}), 404, "transaction_not_found")
        refusal(
            api.post("/v1/pay/transactions/txn_01h455vb4pex5vsknk084sn02q/refund", {}), 404, "transaction_not_found"
        )
        assert error(sdk.refunds.create("txn_01h455vb4pex5vsknk084sn02q")).startswith("JokoorNotFoundError: ")

    def test_keys_without_the_right(self, api, server, publishable, bought):
        path = f"/v1/pay/transactions/{bought()['id']}/refund"
        refusal(publishable.post(path, {}), 403, "secret_key_required")
        refusal(api.with_credential(server.keys["live"]["secret"]).post(path, {}), 404, "transaction_not_found")
        token = data(api.post("/v1/auth/token", {"scope": "read:refunds write:transactions"}))["access_token"]
        refusal(api.with_credential(token).post(path, {}), 403, "insufficient_scope")


class TestGetAndList:
    def test_newest_first(self, sdk, api, bought):
        paid = bought()
        made = [ok(sdk.refunds.create(paid["id"], amount="1.00"))["id"] for _ in range(3)]
        page = ok(sdk.refunds.list(limit=2))
        assert [item["id"] for item in page["items"]] == made[:0:-1]
        assert page["has_more"] and page["total"] >= 3
        assert set(page["items"][0]) == FIELDS
        assert data(api.get("/v1/pay/refunds", params={"after": made[1], "limit": 1}))["items"][0]["id"] == made[0]

    def test_by_status(self, sdk, api, bought):
        until(sdk, ok(sdk.refunds.create(bought()["id"])), "completed")
        page = data(api.get("/v1/pay/refunds", params={"status": "completed", "limit": 100}))
        assert {item["status"] for item in page["items"]} == {"completed"}
        query = {"status": "done", "limit": "x", "colour": "red"}
        assert set(faults(api.get("/v1/pay/refunds", params=query))) == set(query)

    def test_what_is_not_there(self, sdk, api, server, bought):
        assert error(sdk.refunds.get(ABSENT)).startswith("JokoorNotFoundError: ")
        for id in (ABSENT, "nonsense"):
            refusal(api.get(f"/v1/pay/refunds/{id}"), 404, "refund_not_found")
        refund = ok(sdk.refunds.create(bought()["id"]))
        live = api.with_credential(server.keys["live"]["secret"])
        refusal(live.get(f"/v1/pay/refunds/{refund['id']}"), 404, "refund_not_found")


class TestAmounts:
    """What the simulator does by the last two digits (the README's table)."""

    @pytest.mark.parametrize("digits", ["71", "72"])
    def test_71_and_72_fail_and_give_the_money_free(self, sdk, bought, endpoint, digits):
        paid = bought()
        before = available(sdk)
        refund = ok(sdk.refunds.create(paid["id"], amount=f"30.{digits}"))
        failed = until(sdk, refund, "failed")
        after = transaction(sdk, refund)
        assert (after["status"], after["refunded_amount"]) == ("completed", "0.00")
        assert available(sdk) == before
        [told] = endpoint.mailbox.wait_for(refund["id"], "refund.failed")
        assert told.event["data"] == failed
        until(sdk, ok(sdk.refunds.create(paid["id"])), "completed")

    def test_73_never_answers(self, sdk, bought):
        refund = ok(sdk.refunds.create(bought()["id"], amount="30.73"))
        until(sdk, refund, "processing")
        after = transaction(sdk, refund)
        assert (after["status"], after["refunded_amount"]) == ("completed", "0.00")

    def test_74_is_unknown_until_the_rail_is_asked(self, sdk, bought, endpoint):
        refund = ok(sdk.refunds.create(bought()["id"], amount="30.74"))
        until(sdk, refund, "processing")
        until(sdk, refund, "completed", timeout=30)
        assert transaction(sdk, refund)["refunded_amount"] == "30.74"
        endpoint.mailbox.wait_for(refund["id"], "refund.completed")

    def test_76_reports_twice_and_is_paid_back_once(self, sdk, bought, endpoint):
        refund = ok(sdk.refunds.create(bought()["id"], amount="30.76"))
        until(sdk, refund, "completed")
        marker = ok(sdk.refunds.create(bought()["id"]))
        until(sdk, marker, "completed")
        endpoint.mailbox.wait_for(marker["id"], "refund.completed")
        endpoint.mailbox.wait_for(refund["id"], "refund.completed")
        assert transaction(sdk, refund)["refunded_amount"] == "30.76"

    def test_77_is_corrected(self, sdk, bought, endpoint):
        before = available(sdk)
        refund = ok(sdk.refunds.create(bought(amount="100.00")["id"], amount="30.77"))
        until(sdk, refund, "failed")
        until(sdk, refund, "completed")
        assert transaction(sdk, refund)["status"] == "partially_refunded"
        assert available(sdk) == before + 9750 - 3077
        endpoint.mailbox.wait_for(refund["id"], "refund.failed", "refund.completed")

    def test_77_is_parked_when_something_else_took_its_place(self, sdk, bought):
        paid = bought(amount="50.77")
        refund = ok(sdk.refunds.create(paid["id"]))
        until(sdk, refund, "failed")
        other = ok(sdk.refunds.create(paid["id"], amount="20.73"))
        until(sdk, other, "processing")
        time.sleep(3)
        assert ok(sdk.refunds.get(refund["id"]))["status"] == "failed", "there is no room for the correction"
        after = transaction(sdk, refund)
        assert (after["status"], after["refunded_amount"]) == ("completed", "0.00")


class TestBalance:
    @pytest.fixture(autouse=True)
    def late_payment_is_in(self, sdk, slow):
        """It would come in the middle of a comparison, where these tests run in the first half minute."""
        eventually(lambda: ok(sdk.checkouts.get(slow.late["id"]))["status"] == "completed", timeout=60)

    def test_it_follows_the_ledger(self, sdk, bought):
        before = ok(sdk.payouts.get_balance())
        assert set(before) == {"available_balance", "pending_balance", "currency"}
        assert (before["pending_balance"], before["currency"]) == ("0.00", "GMD")
        paid = bought()
        assert available(sdk) == cents(before["available_balance"]) + 9750
        refund = ok(sdk.refunds.create(paid["id"], amount="40.00"))
        assert available(sdk) == cents(before["available_balance"]) + 5750, "from the moment that it is asked for"
        until(sdk, refund, "completed")
        assert available(sdk) == cents(before["available_balance"]) + 5750
        until(sdk, ok(sdk.refunds.create(paid["id"])), "completed")
        assert available(sdk) == cents(before["available_balance"]) - 250, "the fee stays"

    def test_the_dashboard_shows_what_was_refunded(self, sdk, bought):
        before = ok(sdk.payments.get_dashboard())
        refund = ok(sdk.refunds.create(bought()["id"], amount="25.00"))
        until(sdk, refund, "completed")
        after = ok(sdk.payments.get_dashboard())
        assert cents(after["refunded_amount"]) - cents(before["refunded_amount"]) == 2500
        assert cents(after["total_amount"]) - cents(before["total_amount"]) == 10000
        assert after["completed_count"] == before["completed_count"] + 1

    def test_settings_and_limits_of_a_merchant(self, new_server):
        """A store of its own: settings would reach into the other tests."""
        server = new_server()
        with Jokoor(server.keys["test"]["secret"], base_url=server.url, max_retries=0) as sdk:
            api = Api(server.url, server.keys["test"]["secret"])
            assert ok(sdk.payouts.get_balance()) == {
                "available_balance": "0.00", "pending_balance": "0.00", "currency": "GMD",
            }  # fmt: skip
            data(api.put("/v1/pay/settings", {"allow_negative_balance": False}))
            one, other = buy(sdk), buy(sdk)
            path = f"/v1/pay/transactions/{one}/refund"
            until(sdk, ok(sdk.refunds.create(other, amount="97.51")), "completed")
            problem = refusal(api.post(path, {"amount": "97.50"}), 400, "insufficient_balance")
            assert "97.49" in problem["error"] and "97.50" in problem["error"]
            until(sdk, ok(sdk.refunds.create(one, amount="97.49")), "completed")
            assert ok(sdk.payouts.get_balance())["available_balance"] == "0.00"
            refusal(api.post(path, {"amount": "0.01"}), 400, "insufficient_balance")
            data(api.put("/v1/pay/settings", {"allow_negative_balance": True}))
            until(sdk, ok(sdk.refunds.create(one)), "completed")
            assert ok(sdk.payouts.get_balance())["available_balance"] == "-2.51"

            data(api.put("/v1/pay/settings", {"settlement_delay": 3600, "allow_negative_balance": False}))
            third = buy(sdk)
            assert ok(sdk.payouts.get_balance()) == {
                "available_balance": "-197.51", "pending_balance": "292.50", "currency": "GMD",
            }, "all three payments wait, and all refunds are gone"  # fmt: skip
            refusal(
                api.post(f"/v1/pay/transactions/{third}/refund", {"amount": "1.00"}), 400, "insufficient_balance"
            )
        server.stop()
        assert server.store.verify().returncode == 0


def buy(sdk):
    """A paid transaction of 100.00."""
    checkout = ok(sdk.checkouts.create(amount="100.00"))
    start = {"client_secret": checkout["client_secret"], "payment_method": "wave", "customer_phone": "+2207000000"}
    ok(sdk.payments.initialize(**start))
    eventually(lambda: ok(sdk.checkouts.get(checkout["id"]))["status"] == "completed")
    return ok(sdk.checkouts.get(checkout["id"]))["transaction"]["id"]


class TestRaces:
    @pytest.mark.parametrize("contenders", [2, 16, 64])
    def test_parts_of_one_transaction_never_exceed_it(self, server, sdk, bought, contenders):
        paid = bought()
        # Seven of 15.00 are more than 100.00: six fit.
        answers = at_once(server, [(f"/v1/pay/transactions/{paid['id']}/refund", {"amount": "15.00"})] * contenders)
        codes = [json.loads(body).get("code", "ok") for _, _, body in answers]
        assert codes.count("ok") == min(contenders, 6), codes
        assert set(codes) <= {"ok", "refund_exceeds_amount"}
        refunds = [json.loads(body)["data"] for status, _, body in answers if status == 201]
        for refund in refunds:
            until(sdk, refund, "completed")
        assert transaction(sdk, refunds[0])["refunded_amount"] == f"{15 * len(refunds)}.00"

    def test_of_32_full_refunds_one_wins(self, server, sdk, bought):
        paid = bought()
        answers = at_once(server, [(f"/v1/pay/transactions/{paid['id']}/refund", {})] * 32)
        codes = [json.loads(body).get("code", "ok") for _, _, body in answers]
        assert codes.count("ok") == 1, codes
        assert set(codes) <= {"ok", "refund_exceeds_amount", "transaction_already_refunded"}
