"""Who may do what: keys, tokens, scopes, modes, limits (contract §1.2, §1.9)."""

import base64
import hashlib
import hmac
import json
import time

import pytest
import requests
from jokoor import Jokoor

from checks import data, error, eventually, faults, ok, refusal
from store import dalasi

CHECKOUT = {"amount": "1.00"}


class TestKeys:
    def test_no_credentials(self, anonymous):
        for method, path in [("GET", "/v1/checkouts"), ("POST", "/v1/pay/initialize"), ("GET", "/v1/events")]:
            refusal(anonymous.request(method, path), 401, "authentication_required")

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "sk_test_x", "Token x"])
    def test_a_header_without_a_bearer_credential(self, anonymous, header):
        response = anonymous.get("/v1/checkouts", headers={"Authorization": header})
        assert response.status_code == 401, response.text

    def test_an_unknown_key(self, server, anonymous):
        secret = server.keys["test"]["secret"]
        mistyped = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        for key in ("sk_test_nonsense", "sk_test_" + "0" * 58, mistyped, secret.upper(), secret + "x", secret + "."):
            body = refusal(anonymous.with_credential(key).get("/v1/checkouts"), 401, "invalid_api_key")
            assert body["error"] == "Invalid API key"

    def test_the_sdk_shows_the_fixed_sentence(self, server):
        with Jokoor("sk_test_nonsense", base_url=server.url, max_retries=0) as client:
            for result in (
                client.checkouts.create(amount="1.00"),
                client.checkouts.get("cs_x"),
                client.payments.list_methods(),
                client.webhooks.list(),
                client.webhook_events.list(),
            ):
                assert error(result) == "JokoorAuthenticationError: Invalid API key"

    def test_a_key_of_the_other_mode_sees_nothing(self, server, api):
        checkout = data(api.post("/v1/checkouts", CHECKOUT), 201)
        live = api.with_credential(server.keys["live"]["secret"])
        refusal(live.get(f"/v1/checkouts/{checkout['id']}"), 404, "checkout_not_found")
        assert data(live.get("/v1/checkouts"))["total"] == 0
        assert data(live.get("/v1/events"))["total"] == 0
        assert data(live.get("/v1/webhook_endpoints"))["total"] == 0


class TestPublishableKeys:
    def test_they_start_and_follow_a_payment(self, api, publishable):
        checkout = data(api.post("/v1/checkouts", CHECKOUT), 201)
        body = {"client_secret": checkout["client_secret"], "payment_method": "wave"}
        session = data(publishable.post("/v1/pay/initialize", body))
        data(publishable.post("/v1/pay/initialize", {"session_id": session["id"], "payment_method": "wave"}))
        assert data(publishable.get(f"/v1/pay/status/{session['id']}"))["status"] == "pending"
        assert data(publishable.get(f"/v1/pay/session/{session['id']}"))["id"] == session["id"]
        assert data(publishable.get("/v1/pay/methods"))["enabled_methods"]

    def test_they_open_nothing_else(self, api, publishable):
        checkout = data(api.post("/v1/checkouts", CHECKOUT), 201)
        for method, path, body in [
            ("POST", "/v1/checkouts", CHECKOUT),
            ("GET", "/v1/checkouts", None),
            ("GET", f"/v1/checkouts/{checkout['id']}", None),
            ("POST", f"/v1/checkouts/{checkout['id']}/cancel", None),
            ("GET", "/v1/pay/dashboard", None),
            ("PUT", "/v1/pay/settings", {"enabled_methods": ["wave"]}),
            ("GET", "/v1/webhook_endpoints", None),
            ("GET", "/v1/events", None),
            ("POST", "/v1/auth/token", {}),
            ("POST", "/v1/pay/initialize", {"object_type": "checkout", "object_id": checkout["id"]}),
            # Whatever else is wrong with it.
            ("POST", "/v1/pay/initialize", {"object_type": "checkout", "object_id": checkout["id"], "amount": 1}),
            ("POST", "/v1/pay/initialize", {"object_id": "nonsense", "colour": "red"}),
            ("POST", "/v1/pay/initialize", {}),
        ]:
            refusal(publishable.request(method, path, body), 403, "secret_key_required")
        assert data(api.get(f"/v1/checkouts/{checkout['id']}"))["status"] == "pending"

    def test_they_neither_steer_nor_learn_who_pays(self, api, publishable):
        """Whoever has a page's address could open a session, and pass the page on to its next payer."""
        checkout = data(api.post("/v1/checkouts", CHECKOUT), 201)
        body = {"client_secret": checkout["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207654321"}
        steered = {"metadata": {"order": "1"}, "success_url": "https://x.example/", "failure_url": "https://x.example/"}
        refused = faults(publishable.post("/v1/pay/initialize", body | steered))
        assert refused == dict.fromkeys(steered, "not_allowed")
        key = {"Idempotency-Key": "who-pays"}
        answers = [data(publishable.post("/v1/pay/initialize", body, headers=key)) for _ in range(2)]
        answers.append(data(publishable.get(f"/v1/pay/session/{answers[0]['id']}")))
        assert [answer["customer_phone"] for answer in answers] == [None, None, None]
        whole = data(api.get(f"/v1/pay/session/{answers[0]['id']}"))
        assert whole["customer_phone"] == "+2207654321"

    def test_the_sdk_calls_it_a_permission(self, server):
        with Jokoor(server.keys["test"]["publishable"], base_url=server.url, max_retries=0) as client:
            assert error(client.checkouts.create(amount="1.00")).startswith("JokoorPermissionError: ")

    def test_a_browser_may_call_the_four(self, anonymous):
        ask = {
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
        }
        allowed = anonymous.request("OPTIONS", "/v1/pay/initialize", headers=ask)
        assert allowed.status_code in (200, 204)
        assert allowed.headers["Access-Control-Allow-Origin"] in ("*", "https://shop.example")
        assert "authorization" in allowed.headers["Access-Control-Allow-Headers"].lower()
        closed = anonymous.request("OPTIONS", "/v1/checkouts", headers=ask)
        assert "Access-Control-Allow-Origin" not in closed.headers


class TestTokens:
    def token(self, api, **body):
        return data(api.post("/v1/auth/token", body))

    def test_a_token_works_everywhere_a_key_does(self, server, api):
        token = self.token(api)
        assert set(token) == {"access_token", "token_type", "expires_in", "scope"}
        assert (token["token_type"], token["expires_in"]) == ("Bearer", 3600)
        with Jokoor(token["access_token"], base_url=server.url, max_retries=0) as client:
            checkout = ok(client.checkouts.create(amount="1.00"))
            assert ok(client.checkouts.get(checkout["id"]))["id"] == checkout["id"]
            ok(client.payments.list_methods())
            ok(client.webhooks.list())
            ok(client.checkouts.cancel(checkout["id"]))

    def test_it_says_what_the_contract_says(self, server, api, anonymous):
        header, claims, _ = parts(self.token(api, expires_in=60)["access_token"])
        assert set(header) == {"alg", "typ", "kid"}
        assert header["alg"] == "EdDSA"
        assert set(claims) == {"iss", "aud", "sub", "org", "mode", "scope", "exp", "iat", "jti"}
        assert claims["iss"] == claims["aud"] == server.url
        assert (claims["org"], claims["mode"]) == (server.organization_id, "test")
        assert claims["sub"].startswith("key_")
        assert claims["exp"] - claims["iat"] == 60
        answer = anonymous.get("/.well-known/jwks.json")
        assert answer.status_code == 200
        keys = {key["kid"]: key for key in answer.json()["keys"]}
        key = keys[header["kid"]]
        assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
        assert "d" not in key, "a private key is never published"

    @pytest.mark.parametrize("seconds", [59, 86401, 0, -1])
    def test_its_lifetime_is_bounded(self, api, seconds):
        assert faults(api.post("/v1/auth/token", {"expires_in": seconds})) == {"expires_in": "out_of_range"}

    def test_a_scope_narrows_it(self, api):
        reader = api.with_credential(self.token(api, scope="read:checkouts")["access_token"])
        data(reader.get("/v1/checkouts"))
        refusal(reader.post("/v1/checkouts", CHECKOUT), 403, "insufficient_scope")
        refusal(reader.get("/v1/events"), 403, "insufficient_scope")
        writer = api.with_credential(self.token(api, scope="write:checkouts")["access_token"])
        checkout = data(writer.post("/v1/checkouts", CHECKOUT), 201)
        refusal(writer.get(f"/v1/checkouts/{checkout['id']}"), 403, "insufficient_scope")
        assert "scope" in faults(api.post("/v1/auth/token", {"scope": "read:everything"}))

    def test_only_a_secret_key_mints_one(self, api, publishable):
        token = api.with_credential(self.token(api)["access_token"])
        refusal(token.post("/v1/auth/token", {}), 403, "secret_key_required")
        refusal(publishable.post("/v1/auth/token", {}), 403, "secret_key_required")

    def test_tokens_are_never_replayed(self, api):
        headers = {"Idempotency-Key": "one-token"}
        first, second = (api.post("/v1/auth/token", {}, headers=headers) for _ in range(2))
        assert data(first)["access_token"] != data(second)["access_token"]
        assert "Idempotent-Replayed" not in second.headers

    def test_a_forged_one_is_refused(self, server, api, anonymous):
        token = self.token(api)["access_token"]
        header, claims, signature = parts(token)
        public = anonymous.get("/.well-known/jwks.json").json()["keys"][0]
        key = base64.urlsafe_b64decode(public["x"] + "==")
        stronger = claims | {"mode": "live"}
        symmetric = encoded({**header, "alg": "HS256"}) + "." + encoded(claims)
        mac = base64.urlsafe_b64encode(hmac.new(key, symmetric.encode(), hashlib.sha256).digest()).rstrip(b"=")
        for forged in (
            f"{encoded(header)}.{encoded(stronger)}.{signature}",
            f"{encoded({**header, 'alg': 'none'})}.{encoded(claims)}.",
            f"{symmetric}.{mac.decode()}",
            f"{encoded({**header, 'kid': 'other'})}.{encoded(claims)}.{signature}",
            token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"),
            "eyJ.eyJ.eyJ",
            "a.b.c",
        ):
            body = refusal(anonymous.with_credential(forged).get("/v1/checkouts"), 401, "invalid_token")
            assert forged not in body["error"]


class TestCommandLine:
    """Keys made and revoked beside the running server."""

    def test_a_narrow_key_and_its_end(self, server, api):
        location = server.store.location
        made = json.loads(
            dalasi("keys", "create", *location, "--kind", "secret", "--scopes", "read:checkouts", "--json").stdout
        )
        key = made["secret"]
        assert key.startswith("sk_test_")

        def last_used():
            listed = json.loads(dalasi("keys", "list", *location, "--json").stdout)
            return next(one["last_used_at"] for one in listed if one["id"] == made["id"])

        assert (made["last_used_at"], last_used()) == (None, None)
        narrow = api.with_credential(key)
        data(narrow.get("/v1/checkouts"))
        assert made["created_at"] <= eventually(last_used, timeout=20, pause=1)
        refusal(narrow.post("/v1/checkouts", CHECKOUT), 403, "insufficient_scope")
        token = data(narrow.post("/v1/auth/token", {}))
        assert token["scope"] == "read:checkouts"
        bearer = api.with_credential(token["access_token"])
        data(bearer.get("/v1/checkouts"))

        listed = dalasi("keys", "list", *location, "--json").stdout
        assert made["id"] in listed and key not in listed
        revoked = json.loads(dalasi("keys", "revoke", *location, made["id"], "--yes", "--json").stdout)
        assert revoked["last_used_at"] == last_used()
        deadline = time.monotonic() + 5
        while narrow.get("/v1/checkouts").status_code != 401:
            assert time.monotonic() < deadline, "a revoked key stops working within a second or two"
            time.sleep(0.1)
        refusal(narrow.get("/v1/checkouts"), 401, "invalid_api_key")
        # A key and its tokens are remembered apart, each for a second.
        eventually(lambda: bearer.get("/v1/checkouts").status_code == 401, timeout=5)

    def test_an_initialised_store_is_left_alone(self, server):
        again = dalasi("init", *server.store.location, "--organization", "Another", "--json", check=False)
        assert again.returncode == 5


def test_too_many_requests_are_told_when_to_come_back(new_server):
    server = new_server(options=("--rate-limit", "5"))
    headers = {"Authorization": f"Bearer {server.keys['test']['secret']}"}
    with requests.Session() as session:
        for _ in range(200):
            response = session.get(f"{server.url}/v1/pay/methods", headers=headers, timeout=10)
            if response.status_code != 200:
                break
    refusal(response, 429, "rate_limited")
    assert 1 <= int(response.headers["Retry-After"]) <= 5
    assert any(name.lower().startswith("ratelimit-") for name in response.headers)
    # The SDK's own retry takes it from here.
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as client:
        ok(client.payments.list_methods())


def parts(token):
    header, claims, signature = token.split(".")
    return decoded(header), decoded(claims), signature


def decoded(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encoded(record):
    return base64.urlsafe_b64encode(json.dumps(record).encode()).rstrip(b"=").decode()
