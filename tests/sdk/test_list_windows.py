"""Lists by time: windows that adjoin hold each object once, and each is found by the time that it prints (contract §1.5)."""

from checks import data, ok

SECOND = len("2026-01-31T12:00:00")


def totals(api, path, query, moment):
    """How many are up to the second of a moment, and how many from a microsecond after it on."""
    second = moment[:SECOND]
    windows = [{"end_date": f"{second}Z"}, {"start_date": f"{second}.000001Z"}]
    return [data(api.get(path, params=query | window))["total"] for window in windows]


def test_an_invoice_is_in_one_of_two_windows(api, bill):
    invoice = bill()
    found = totals(api, "/v1/pay/invoices", {"number": invoice["invoice_number"]}, invoice["created_at"])
    assert found == ([1, 0] if invoice["created_at"].endswith(".000000Z") else [0, 1])


def test_an_entry_of_the_ledger_is_in_one_of_two_windows(api, paid):
    query = {"transaction_id": paid(amount="1.00")["transaction"]["id"]}
    [entry] = data(api.get("/v1/ledger/entries", params=query))["items"]
    found = totals(api, "/v1/ledger/entries", query, entry["created_at"])
    assert found == ([1, 0] if entry["created_at"].endswith(".000000Z") else [0, 1])


def test_what_prints_microseconds_is_found_by_them(api, bill):
    invoice = bill()
    exactly = {"start_date": invoice["created_at"], "end_date": invoice["created_at"]}
    assert invoice["id"] in [one["id"] for one in data(api.get("/v1/pay/invoices", params=exactly))["items"]]


def test_what_prints_whole_seconds_is_found_by_the_one_that_it_prints(sdk, api, paid):
    checkout = paid(amount="1.00")
    transaction = ok(sdk.transactions.get(checkout["transaction"]["id"]))
    newest = ok(sdk.webhook_events.list(limit=100))["items"]
    event = next(event for event in newest if event["object_id"] == checkout["id"])
    for path, one in [("/v1/checkouts", checkout), ("/v1/pay/transactions", transaction), ("/v1/events", event)]:
        printed = {"start_date": one["created_at"], "end_date": one["created_at"], "limit": 100}
        assert one["id"] in [found["id"] for found in data(api.get(path, params=printed))["items"]], path
