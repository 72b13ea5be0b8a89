"""Bad input: the right 4xx with all faults named, never a 5xx, nothing stored (contract §1.4, §1.7)."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from checks import data, faults, refusal

ITEM = {"quantity": 1, "unit_price": "1.00", "description": "Pen"}

# name: body, field, its code (or any of several, where the contract leaves the choice)
FIELDS = {
    "amount as a number": ({"amount": 100}, "amount", "amount_must_be_string"),
    "amount as a fraction": ({"amount": 100.5}, "amount", "amount_must_be_string"),
    "amount as a boolean": ({"amount": True}, "amount", {"wrong_type", "amount_must_be_string"}),
    "amount as an object": ({"amount": {"value": "1.00"}}, "amount", {"wrong_type", "amount_must_be_string"}),
    "amount zero": ({"amount": "0.00"}, "amount", "amount_not_positive"),
    "amount negative": ({"amount": "-1.00"}, "amount", {"amount_not_positive", "invalid_format"}),
    "amount with three decimals": ({"amount": "1.000"}, "amount", "too_many_decimals"),
    "amount above the maximum": ({"amount": "1000000000000.00"}, "amount", "amount_too_large"),
    "amount huge": ({"amount": "9" * 400}, "amount", {"amount_too_large", "invalid_format", "too_long"}),
    "amount with an exponent": ({"amount": "1e3"}, "amount", "invalid_format"),
    "amount with a plus": ({"amount": "+1.00"}, "amount", "invalid_format"),
    "amount with a space": ({"amount": " 1.00"}, "amount", "invalid_format"),
    "amount with a leading zero": ({"amount": "01.00"}, "amount", "invalid_format"),
    "amount with a bare point": ({"amount": "1."}, "amount", "invalid_format"),
    "amount with a comma": ({"amount": "1,000.00"}, "amount", "invalid_format"),
    "amount in other digits": ({"amount": "١.٠٠"}, "amount", "invalid_format"),
    "amount in hexadecimal": ({"amount": "0x10"}, "amount", "invalid_format"),
    "amount not a number": ({"amount": "NaN"}, "amount", "invalid_format"),
    "amount empty": ({"amount": ""}, "amount", {"invalid_format", "required"}),
    "currency of nowhere": ({"currency": "ZZZ"}, "currency", {"invalid_enum", "invalid_format"}),
    "currency in lower case": ({"currency": "gmd"}, "currency", {"invalid_enum", "invalid_format"}),
    "currency withdrawn": ({"currency": "HRK"}, "currency", "invalid_enum"),
    "currency as a number": ({"currency": 270}, "currency", "wrong_type"),
    "currency without a method": ({"currency": "JPY", "amount": "100"}, "currency", {"invalid_enum", "not_allowed", "inactive"}),
    "items as a string": ({"items": "pens"}, "items", "wrong_type"),
    "an item as a string": ({"items": ["pen"]}, "items[0]", "wrong_type"),
    "201 items": ({"items": [ITEM] * 201}, "items", {"too_long", "out_of_range"}),
    "quantity 0": ({"items": [ITEM | {"quantity": 0}]}, "items[0].quantity", "out_of_range"),
    "quantity negative": ({"items": [ITEM | {"quantity": -1}]}, "items[0].quantity", "out_of_range"),
    "quantity too large": ({"items": [ITEM | {"quantity": 1_000_001}]}, "items[0].quantity", "out_of_range"),
    "quantity beyond any integer": ({"items": [ITEM | {"quantity": 10**40}]}, "items[0].quantity", "out_of_range"),
    "quantity as a fraction": ({"items": [ITEM | {"quantity": 1.5}]}, "items[0].quantity", "wrong_type"),
    "quantity as a string": ({"items": [ITEM | {"quantity": "1"}]}, "items[0].quantity", "wrong_type"),
    "quantity missing": ({"items": [{"unit_price": "1.00"}]}, "items[0].quantity", "required"),
    "price as a number": ({"items": [ITEM | {"unit_price": 1}]}, "items[0].unit_price", "amount_must_be_string"),
    "price with three decimals": ({"items": [ITEM | {"unit_price": "1.001"}]}, "items[0].unit_price", "too_many_decimals"),
    "a fault in the second item": ({"items": [ITEM, ITEM | {"quantity": 0}]}, "items[1].quantity", "out_of_range"),
    "an unknown field in an item": ({"items": [ITEM | {"colour": "red"}]}, "items[0].colour", "unknown_field"),
    "an unknown field": ({"colour": "red"}, "colour", "unknown_field"),
    "expires_in 59": ({"expires_in": 59}, "expires_in", "out_of_range"),
    "expires_in 86401": ({"expires_in": 86401}, "expires_in", "out_of_range"),
    "expires_in as a string": ({"expires_in": "3600"}, "expires_in", "wrong_type"),
    "expires_in as a fraction": ({"expires_in": 60.5}, "expires_in", "wrong_type"),
    "method unknown": ({"payment_method": "cash"}, "payment_method", "invalid_enum"),
    "method as a number": ({"payment_method": 1}, "payment_method", "wrong_type"),
    "methods as a string": ({"payment_method_types": "wave"}, "payment_method_types", "wrong_type"),
    "methods unknown": ({"payment_method_types": ["wave", "cash"]}, "payment_method_types[1]", "invalid_enum"),
    "automatic as a string": ({"automatic_payment_methods": "yes"}, "automatic_payment_methods", "wrong_type"),
    "metadata as a list": ({"metadata": []}, "metadata", "wrong_type"),
    "phone of elsewhere": ({"customer_phone": "12"}, "customer_phone", "invalid_format"),
    "phone as a number": ({"customer_phone": 2203001234}, "customer_phone", "wrong_type"),
    "e-mail without a host": ({"customer_email": "awa@"}, "customer_email", "invalid_format"),
    "name far too long": ({"customer_name": "x" * 10_000}, "customer_name", "too_long"),
    "description far too long": ({"description": "x" * 100_000}, "description", "too_long"),
    "reference far too long": ({"reference": "x" * 10_000}, "reference", "too_long"),
    "success_url with a script": ({"success_url": "javascript:alert(1)"}, "success_url", "invalid_format"),
    "success_url with data": ({"success_url": "data:text/html,x"}, "success_url", "invalid_format"),
    "success_url relative": ({"success_url": "/thanks"}, "success_url", "invalid_format"),
    "failure_url with a script": ({"failure_url": "JavaScript:alert(1)"}, "failure_url", "invalid_format"),
    "failure_url with a line break": ({"failure_url": "https://shop.example/\r\nX: y"}, "failure_url", "invalid_format"),
    "NUL in a text": ({"description": "a\0b"}, "description", "nul_character"),
    "NUL in metadata": ({"metadata": {"note": "a\0b"}}, "metadata.note", "nul_character"),
}  # fmt: skip

# name: raw body, status, code (or any of several)
BODIES = {
    "broken": (b'{"amount":', 400, "invalid_json"),
    "not JSON": (b"amount=1.00", 400, "invalid_json"),
    "a trailing comma": (b'{"amount":"1.00",}', 400, "invalid_json"),
    "something behind it": (b'{"amount":"1.00"} {}', 400, "invalid_json"),
    "not UTF-8": (b'{"description":"\xff\xfe"}', 400, "invalid_json"),
    "a lone surrogate": (b'{"amount":"1.00","description":"\\ud800"}', 400, {"invalid_json", "validation_failed"}),
    "a list": (b'["1.00"]', 400, {"invalid_json", "validation_failed"}),
    "a string": (b'"1.00"', 400, {"invalid_json", "validation_failed"}),
    "null": (b"null", 400, {"invalid_json", "validation_failed"}),
    "deep": (b'{"metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", 400, {"invalid_json", "validation_failed"}),
    "deep lists": (b'{"items":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, {"invalid_json", "validation_failed"}),
    "a number beyond all": (b'{"expires_in":1e999999}', 400, {"invalid_json", "validation_failed"}),
    "two megabytes": (b'{"description":"' + b"x" * (2 << 20) + b'"}', 413, "body_too_large"),
}  # fmt: skip


@pytest.fixture
def count(api):
    return lambda: data(api.get("/v1/checkouts"))["total"]


def send(api, body, **headers):
    return api.post("/v1/checkouts", data=body, headers={"Content-Type": "application/json"} | headers)


class TestFields:
    @pytest.mark.parametrize("name", FIELDS)
    def test_the_fault_is_named(self, api, count, name):
        body, field, code = FIELDS[name]
        before = count()
        found = faults(api.post("/v1/checkouts", {"amount": "1.00"} | body))
        assert field in found, found
        assert found[field] in (code if isinstance(code, set) else {code})
        assert set(found) == {field}, "nothing else is wrong with it"
        assert count() == before

    def test_all_faults_at_once(self, api, count):
        before = count()
        wrong = {
            "amount": 5,
            "currency": "gambia",
            "expires_in": 10,
            "payment_method": "cash",
            "success_url": "javascript:1",
            "customer_email": "nobody",
            "colour": "red",
            "items": [{"quantity": 0, "unit_price": "1.00001"}, "pen"],
        }
        assert set(faults(api.post("/v1/checkouts", wrong))) == {
            "amount", "currency", "expires_in", "payment_method", "success_url", "customer_email", "colour",
            "items[0].quantity", "items[0].unit_price", "items[1]",
        }  # fmt: skip
        assert count() == before

    def test_duplicate_keys(self, api, count):
        before = count()
        assert faults(send(api, b'{"amount":"1.00","amount":"2.00"}')) == {"amount": "duplicate_key"}
        body = b'{"items":[{"quantity":1,"quantity":2,"unit_price":"1.00"}]}'
        assert faults(send(api, body)) == {"items[0].quantity": "duplicate_key"}
        assert faults(send(api, b'{"amount":"1.00","metadata":{"a":"1","a":"2"}}')) == {"metadata.a": "duplicate_key"}
        assert count() == before

    def test_a_total_above_the_maximum(self, api):
        items = [{"quantity": 1_000_000, "unit_price": "999999999999.99", "description": "Boat"}] * 200
        assert "amount_too_large" in faults(api.post("/v1/checkouts", {"items": items})).values()

    def test_the_sentence_shows_how(self, api):
        body = refusal(api.post("/v1/checkouts", {"amount": 100}), 400, "validation_failed")
        [fault] = body["details"]
        assert '"100.00"' in fault["message"] or '"100"' in fault["message"]

    @pytest.mark.parametrize("path", ["/v1/pay/initialize", "/v1/pay/customers", "/v1/pay/products", "/v1/webhook_endpoints", "/v1/auth/token"])
    def test_other_bodies_are_read_as_strictly(self, api, path):
        assert faults(api.post(path, {"colour": "red"}))["colour"] == "unknown_field"
        refusal(api.post(path, data=b"{", headers={"Content-Type": "application/json"}), 400, "invalid_json")

    def test_settings_too(self, api):
        assert faults(api.put("/v1/pay/settings", {"colour": "red"})) == {"colour": "unknown_field"}


class TestBodies:
    @pytest.mark.parametrize("name", BODIES)
    def test_it_is_refused(self, api, count, name):
        body, status, code = BODIES[name]
        before = count()
        response = send(api, body)
        assert response.status_code == status, response.text
        assert response.json()["code"] in (code if isinstance(code, set) else {code})
        assert count() == before

    def test_an_empty_body_is_an_empty_object(self, api):
        assert faults(send(api, b"")) == {"amount": "required"}
        assert faults(send(api, b"  \n")) == {"amount": "required"}

    @pytest.mark.parametrize(
        "media_type",
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/xml",
            "nonsense",
        ],
    )
    def test_another_media_type(self, api, media_type):
        refusal(send(api, b'{"amount":"1.00"}', **{"Content-Type": media_type}), 415, "unsupported_media_type")

    def test_json_by_any_spelling(self, api):
        data(send(api, b'{"amount":"1.00"}', **{"Content-Type": "Application/JSON; charset=utf-8"}), 201)


class TestRouting:
    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/v1/checkouts", {"GET", "POST"}),
            ("DELETE", "/v1/checkouts/cs_01h455vb4pex5vsknk084sn02q", {"GET"}),
            ("GET", "/v1/checkouts/cs_01h455vb4pex5vsknk084sn02q/cancel", {"POST"}),
            ("GET", "/v1/pay/initialize", {"POST"}),
            ("POST", "/v1/pay/settings", {"PUT"}),
        ],
    )
    def test_another_verb(self, api, method, path, allowed):
        response = api.request(method, path)
        refusal(response, 405, "method_not_allowed")
        offered = {verb.strip() for verb in response.headers["Allow"].split(",")}
        assert offered - {"HEAD", "OPTIONS"} == allowed

    @pytest.mark.parametrize(
        "path",
        ["/v1/checkout_sessions", "/v1/payments/ps_x", "/v1/payments/links", "/v1/checkouts/", "/v1/nothing", "/v2/checkouts",
         "/v1/checkouts/cs_x/pay", "/v1//checkouts"],
    )  # fmt: skip
    def test_no_such_path(self, api, path):
        refusal(api.get(path), 404, "route_not_found")

    @pytest.mark.parametrize(
        "id", ["%00", "..%2f..", "cs_" + "z" * 26, "cs_" + "0" * 4000, "%ff", "CS_01H455VB4PEX5VSKNK084SN02Q"]
    )
    def test_a_malformed_id_is_not_found(self, api, id):
        assert api.get(f"/v1/checkouts/{id}").status_code in (400, 404, 414)


class TestRawRequests:
    """What no HTTP client would send. The server answers or hangs up, and goes on."""

    HEAD = "POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"

    @pytest.mark.parametrize(
        ("name", "request_text"),
        [
            ("length too large", "{head}Content-Length: 99999999999\r\n\r\n{{"),
            ("length negative", "{head}Content-Length: -1\r\n\r\n"),
            ("length a word", "{head}Content-Length: ten\r\n\r\n"),
            ("two lengths", "{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
            ("length and chunks", "{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            ("broken chunks", "{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
            ("no host", "GET /v1/checkouts HTTP/1.1\r\n\r\n"),
            ("a bad version", "GET /v1/checkouts HTTP/9.9\r\n\r\n"),
            ("not HTTP", "hello\r\n\r\n"),
            ("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
            ("NUL in a header", "{head}X-Note: a\0b\r\nContent-Length: 2\r\n\r\n{{}}"),
            ("a huge header", "{head}X-Note: " + "x" * 300_000 + "\r\nContent-Length: 2\r\n\r\n{{}}"),
            ("many headers", "{head}" + "X-Note: x\r\n" * 2_000 + "Content-Length: 2\r\n\r\n{{}}"),
            ("a long address", "GET /v1/checkouts?limit=" + "1" * 100_000 + " HTTP/1.1\r\nHost: x\r\n\r\n"),
        ],
    )
    def test_the_server_stays_up(self, server, api, count, name, request_text):
        before = count()
        head = self.HEAD.format(key=server.keys["test"]["secret"])
        answer = raw(server, request_text.format(head=head).encode("latin-1"))
        if answer:
            status = int(answer.split(b" ", 2)[1])
            assert 400 <= status < 500 or (status == 505 and name == "a bad version"), answer[:200]
        assert count() == before

    def test_chunks_beyond_the_limit(self, server, count):
        before = count()
        head = self.HEAD.format(key=server.keys["test"]["secret"])
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        answer = raw(server, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 40 + b"0\r\n\r\n")
        assert not answer or answer.startswith(b"HTTP/1.1 413"), answer[:200]
        assert count() == before


def raw(server, request):
    """Sends the bytes; the first bytes of an answer, or nothing when the server hung up."""
    host = urlsplit(server.url)
    with socket.create_connection((host.hostname, host.port), timeout=15) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except TimeoutError:
            raise
        except OSError:
            pass  # it hung up before the end; what it said may still be there
        try:
            return connection.recv(65536)
        except ConnectionResetError:
            return b""


# Each list with the prefix of what it holds.
LISTS = {
    "/v1/checkouts": "cs",
    "/v1/events": "evt",
    "/v1/ledger/entries": "entry",
    "/v1/pay/customers": "cus",
    "/v1/pay/invoices": "inv",
    "/v1/pay/payment-links": "pl",
    "/v1/pay/products": "prod",
    "/v1/pay/receipts": "rec",
    "/v1/pay/refunds": "ref",
    "/v1/pay/transactions": "txn",
    "/v1/webhook_endpoints": "we",
}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_goes_on_behind_a_record_of_its_own(api, path):
    record = "01h455vb4pex5vsknk084sn02q"
    own = f"{LISTS[path]}_{record}"
    others = [f"{prefix}_{record}" for prefix in LISTS.values() if prefix != LISTS[path]]
    for after in ("", "nonsense", own[:-1], own.upper(), f" {own}", *others):
        assert faults(api.get(path, params={"after": after})) == {"after": "not_found"}, after
    # Older than all there are. It may have been deleted since.
    page = data(api.get(path, params={"after": own, "offset": 0}))
    assert (page["items"], page["has_more"]) == ([], False)
    assert faults(api.get(path, params={"after": own, "offset": 1})) == {"offset": "conflict"}


def test_a_get_ignores_unknown_parameters_but_a_list_does_not(api):
    checkout = data(api.post("/v1/checkouts", json.loads('{"amount":"1.00"}')), 201)
    data(api.get(f"/v1/checkouts/{checkout['id']}", params={"expand": "items"}))
    assert faults(api.get("/v1/checkouts", params={"expand": "items"})) == {"expand": "unknown_field"}
