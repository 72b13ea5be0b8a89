"""transactions: get and list through the SDK, with every field and every move (contract §2.8, §3, §4.3)."""

from datetime import datetime, timedelta, timezone

import pytest

from checks import data, error, eventually, faults, ok, refusal

FIELDS = {
    "id", "payment_session_id", "object_type", "object_id", "organization_id", "customer_id", "amount", "fee",
    "net_amount", "currency", "status", "payment_method", "payment_method_transaction_id", "customer_email",
    "customer_phone", "customer_name", "payment_phone", "payment_details", "mode", "livemode", "initiated_at",
    "processing_at", "completed_at", "failed_at", "refunded_amount", "failure_reason", "state_transitions",
    "payment_method_response", "attempt_count", "metadata", "processing_type", "recording_source", "recorded_by",
    "created_at", "updated_at",
}  # fmt: skip
ABSENT = "txn_01h455vb4pex5vsknk084sn02q"
# Waits for a click on the simulator's page: these tests never click.
QUIET = "+2207654321"


def statuses(transaction):
    return [move["status"] for move in transaction["state_transitions"]]


def transaction_of(sdk, checkout):
    return ok(sdk.transactions.get(ok(sdk.checkouts.get(checkout["id"]))["transaction"]["id"]))


class TestGet:
    def test_a_payment_with_all_it_tells(self, sdk, server, paid):
        checkout = paid(amount="100.00")
        transaction = transaction_of(sdk, checkout)
        assert set(transaction) == FIELDS
        assert (transaction["object_type"], transaction["object_id"]) == ("checkout", checkout["id"])
        assert transaction["payment_session_id"] == checkout["payment_session_id"]
        assert transaction["organization_id"] == server.organization_id
        assert (transaction["amount"], transaction["fee"], transaction["net_amount"]) == ("100.00", "2.50", "97.50")
        assert (transaction["currency"], transaction["status"]) == ("GMD", "completed")
        assert (transaction["payment_method"], transaction["payment_phone"]) == ("afrimoney", "+2207000000")
        assert transaction["payment_method_transaction_id"].startswith("SIM-txn_")
        assert (transaction["mode"], transaction["livemode"]) == ("test", False)
        assert (transaction["refunded_amount"], transaction["failure_reason"]) == ("0.00", None)
        assert statuses(transaction) == ["pending", "processing", "completed"]
        first, _, last = transaction["state_transitions"]
        assert transaction["initiated_at"] == first["timestamp"]
        assert transaction["completed_at"] == last["timestamp"]
        assert transaction["failed_at"] is None
        assert (transaction["processing_type"], transaction["recording_source"]) == ("online", "provider")
        assert transaction["attempt_count"] == 1
        assert transaction["payment_details"] == {"duplicate": False, "late": False, "outcome_unknown": False}

    def test_attempts_are_counted_and_each_keeps_its_past(self, sdk, pay):
        checkout, _ = pay("+2207000001")
        eventually(lambda: transaction_of(sdk, checkout)["status"] == "failed")
        failed = transaction_of(sdk, checkout)
        assert (failed["failure_reason"], failed["completed_at"]) == ("insufficient_funds", None)
        assert failed["failed_at"] == failed["state_transitions"][-1]["timestamp"]
        ok(
            sdk.payments.initialize(
                client_secret=checkout["client_secret"], payment_method="wave", customer_phone="+2207000000"
            )
        )
        eventually(lambda: transaction_of(sdk, checkout)["status"] == "completed")
        again = transaction_of(sdk, checkout)
        assert (again["attempt_count"], failed["attempt_count"]) == (2, 1)
        assert ok(sdk.transactions.get(failed["id"]))["status"] == "failed", "the first one keeps its word"

    def test_a_lost_answer_is_told(self, sdk, pay):
        checkout, session = pay("+2207000004")
        assert session["outcome_unknown"] is True
        transaction = transaction_of(sdk, checkout)
        if transaction["status"] == "processing":
            assert transaction["payment_details"]["outcome_unknown"] is True
        eventually(lambda: transaction_of(sdk, checkout)["status"] == "completed", timeout=30)
        assert transaction_of(sdk, checkout)["payment_details"]["outcome_unknown"] is False

    def test_a_cancelled_attempt(self, sdk):
        checkout = ok(sdk.checkouts.create(amount="5.00"))
        ok(sdk.payments.initialize(client_secret=checkout["client_secret"], payment_method="card"))
        ok(sdk.checkouts.cancel(checkout["id"]))
        transaction = transaction_of(sdk, checkout)
        assert (transaction["status"], statuses(transaction)) == ("cancelled", ["pending", "cancelled"])
        assert transaction["payment_phone"] is None

    def test_what_is_not_there(self, sdk, api, server):
        assert error(sdk.transactions.get(ABSENT)).startswith("JokoorNotFoundError: ")
        for id in (ABSENT, "nonsense", "cs_01h455vb4pex5vsknk084sn02q"):
            refusal(api.get(f"/v1/pay/transactions/{id}"), 404, "transaction_not_found")

    def test_the_other_mode_and_other_keys(self, sdk, api, paid, server, publishable, anonymous):
        path = f"/v1/pay/transactions/{transaction_of(sdk, paid())['id']}"
        live = api.with_credential(server.keys["live"]["secret"])
        refusal(live.get(path), 404, "transaction_not_found")
        refusal(publishable.get(path), 403, "secret_key_required")
        refusal(anonymous.get(path), 401, "authentication_required")
        token = data(api.post("/v1/auth/token", {"scope": "read:refunds write:transactions"}))["access_token"]
        refusal(api.with_credential(token).get(path), 403, "insufficient_scope")
        token = data(api.post("/v1/auth/token", {"scope": "read:transactions"}))["access_token"]
        assert data(api.with_credential(token).get(path))["status"] == "completed"


class TestList:
    def test_newest_first_with_totals(self, sdk, paid):
        ids = [transaction_of(sdk, paid(amount="1.00"))["id"] for _ in range(3)]
        page = ok(sdk.transactions.list(limit=2))
        assert set(page) == {"items", "count", "total", "offset", "limit", "has_more"}
        assert [item["id"] for item in page["items"]] == ids[:0:-1]
        assert page["total"] >= 3 and page["has_more"]
        assert set(page["items"][0]) == FIELDS
        assert ok(sdk.transactions.list(limit=1, offset=2))["items"][0]["id"] == ids[0]

    def test_after_continues(self, sdk, api, paid):
        first, second = (transaction_of(sdk, paid(amount="1.00"))["id"] for _ in range(2))
        page = data(api.get("/v1/pay/transactions", params={"after": second, "limit": 1}))
        assert page["items"][0]["id"] == first

    @pytest.mark.parametrize("status", ["completed", "failed", "processing", "refunded"])
    def test_by_status(self, sdk, paid, pay, status):
        paid(amount="1.00")
        pay("+2207000001", amount="1.00")
        pay("+2207000003", amount="1.00")
        items = ok(sdk.transactions.list(status=status, limit=100))["items"]
        assert {item["status"] for item in items} <= {status}
        assert items or status in ("failed", "refunded"), "an outcome takes a moment"

    def test_by_time(self, sdk, paid):
        paid(amount="1.00")
        now = datetime.now(timezone.utc)
        hour = timedelta(hours=1)
        assert ok(sdk.transactions.list(start_date=now - hour, end_date=now + hour))["items"]
        assert ok(sdk.transactions.list(end_date=datetime(2020, 1, 1)))["total"] == 0
        assert ok(sdk.transactions.list(start_date=now + hour))["total"] == 0

    def test_wrong_filters_are_all_named(self, sdk, api):
        query = {"status": "paid", "limit": "0", "offset": "-1", "start_date": "soon", "colour": "red"}
        assert set(faults(api.get("/v1/pay/transactions", params=query))) == set(query)
        assert error(sdk.transactions.list(status="paid")).startswith("JokoorValidationError: ")
