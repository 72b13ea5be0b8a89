"""A checkout's end, exact to the second that it was given (contract §4.1)."""

import time
from datetime import datetime, timezone

import pytest

from checks import eventually, ok, refusal


@pytest.mark.last
def test_a_checkout_expires_when_it_said(sdk, api, slow):
    checkout = slow.expiring
    expires = datetime.fromisoformat(checkout["expires_at"].replace("Z", "+00:00"))
    left = (expires - datetime.now(timezone.utc)).total_seconds()
    if left > 1:
        assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "pending"
        time.sleep(left)
    assert ok(sdk.checkouts.get(checkout["id"]))["status"] == "expired", "a read decides, not the sweeper"
    body = {"client_secret": checkout["client_secret"], "payment_method": "wave"}
    refusal(api.post("/v1/pay/initialize", body), 400, "checkout_expired")
    refusal(api.post(f"/v1/checkouts/{checkout['id']}/cancel"), 400, "checkout_expired")

    def events():
        found = ok(sdk.webhook_events.list(limit=100, type="checkout.expired"))["items"]
        return [event for event in found if event["object_id"] == checkout["id"]]

    eventually(events, timeout=10)
    assert len(events()) == 1
