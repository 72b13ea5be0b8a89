"""What holds of every answer, and what a test says about one."""

import re
import time


def data(response, status=200):
    """The record of a success: the one key of the body is `data`."""
    assert response.status_code == status, f"{response.status_code} {response.text}"
    body = response.json()
    assert list(body) == ["data"], f"a success has `data` and nothing else: {list(body)}"
    return body["data"]


def refusal(response, status, code):
    """The body of an error: the one envelope, with the expected code."""
    assert response.status_code == status, f"{status} {code} expected: {response.status_code} {response.text}"
    body = response.json()
    assert set(body) in ({"error", "code", "request_id"}, {"error", "code", "request_id", "details"}), body
    assert isinstance(body["error"], str) and body["error"], body
    assert body["code"] == code, body
    assert re.fullmatch(r"req_[0-9a-z]{26}", body["request_id"]), body
    if response.headers.get("Idempotent-Replayed") != "true":
        assert body["request_id"] == response.headers["X-Request-Id"]
    for fault in body.get("details", []):
        assert set(fault) == {"field", "code", "message"}, fault
    return body


def faults(response):
    """The faults of a 400 `validation_failed` as {field: code}."""
    body = refusal(response, 400, "validation_failed")
    assert body.get("details"), f"a validation error names its faults: {body}"
    return {fault["field"]: fault["code"] for fault in body["details"]}


def ok(result):
    """The data of an SDK call that must succeed."""
    value, error = result
    assert error is None, error
    return value


def error(result):
    """The error of an SDK call that must fail."""
    value, message = result
    assert value is None and message, f"an error was expected: {value}"
    return message


def eventually(condition, timeout=15, pause=0.1):
    """Asks again until the answer is true; that answer."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout} s"
        time.sleep(pause)
    return value
