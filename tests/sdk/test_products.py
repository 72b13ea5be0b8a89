"""products: create, get, list, update, delete through the SDK (contract §2.8), and the lines that name one (§2.1 rule 2)."""

import uuid

import pytest
from jokoor import Jokoor

from checks import data, error, eventually, faults, ok, refusal
from server import Api

FIELDS = {
    "id", "name", "description", "price", "currency", "active", "is_active", "images", "metadata", "livemode",
    "created_at", "updated_at",
}  # fmt: skip
ABSENT = "prod_01h455vb4pex5vsknk084sn02q"
PATH = "/v1/pay/products"
PICTURES = ["https://shop.example/front.jpg", "https://shop.example/back.jpg"]


@pytest.fixture
def live(server):
    with Jokoor(server.keys["live"]["secret"], base_url=server.url, max_retries=0) as client:
        yield client


@pytest.fixture
def product(sdk):
    return ok(
        sdk.products.create(
            name="Atlas", price="75.00", description="Maps", images=PICTURES, metadata={"shelf": "4"}
        )
    )


class TestCreate:
    def test_every_field_comes_back(self, sdk, product):
        assert set(product) == FIELDS
        assert product["id"].startswith("prod_")
        assert (product["name"], product["price"], product["currency"]) == ("Atlas", "75.00", "GMD")
        assert (product["description"], product["images"], product["metadata"]) == ("Maps", PICTURES, {"shelf": "4"})
        assert product["active"] is product["is_active"] is True
        assert product["livemode"] is False
        assert ok(sdk.products.get(product["id"])) == product

    def test_name_and_price_are_enough(self, api):
        product = data(api.post(PATH, {"name": "Pen", "price": "5"}), 201)
        assert (product["price"], product["currency"], product["active"]) == ("5.00", "GMD", True)
        assert (product["description"], product["images"], product["metadata"]) == (None, [], {})

    @pytest.mark.parametrize(
        "flags", [{"active": False}, {"is_active": False}, {"active": False, "is_active": False}]
    )
    def test_both_names_of_the_flag(self, api, flags):
        product = data(api.post(PATH, {"name": "Pen", "price": "5.00", **flags}), 201)
        assert product["active"] is product["is_active"] is False

    def test_a_currency_without_decimals(self, api):
        product = data(api.post(PATH, {"name": "Pen", "price": "500", "currency": "XOF"}), 201)
        assert (product["price"], product["currency"]) == ("500", "XOF")
        wrong = {"name": "Pen", "price": "500.5", "currency": "XOF"}
        assert faults(api.post(PATH, wrong)) == {"price": "too_many_decimals"}

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"name": None}, {"name": "required"}),
            ({"name": ""}, {"name": "too_short"}),
            ({"name": "x" * 201}, {"name": "too_long"}),
            ({"price": None}, {"price": "required"}),
            ({"price": 5}, {"price": "amount_must_be_string"}),
            ({"price": "0.00"}, {"price": "amount_not_positive"}),
            ({"price": "-1.00"}, {"price": "amount_not_positive"}),
            ({"price": "1.001"}, {"price": "too_many_decimals"}),
            ({"price": "1000000000000"}, {"price": "amount_too_large"}),
            ({"price": "1e3"}, {"price": "invalid_format"}),
            ({"currency": "gmd"}, {"currency": "invalid_enum"}),
            ({"currency": "ZWL"}, {"currency": "invalid_enum"}),
            ({"description": "x" * 2001}, {"description": "too_long"}),
            ({"active": "yes"}, {"active": "wrong_type"}),
            ({"active": True, "is_active": False}, {"is_active": "conflict"}),
            ({"active": False, "is_active": True}, {"is_active": "conflict"}),
            ({"images": "https://shop.example/a.jpg"}, {"images": "wrong_type"}),
            ({"images": ["javascript:alert(1)"]}, {"images[0]": "invalid_format"}),
            ({"images": PICTURES + ["/a.jpg", 5]}, {"images[2]": "invalid_format", "images[3]": "wrong_type"}),
            ({"images": ["https://shop.example/a.jpg"] * 21}, {"images": "too_long"}),
            ({"metadata": "x"}, {"metadata": "wrong_type"}),
            ({"colour": "red"}, {"colour": "unknown_field"}),
            (
                {"name": 1, "price": 1, "currency": 1, "active": 1, "images": 1, "metadata": 1},
                {
                    "name": "wrong_type", "price": "amount_must_be_string", "currency": "wrong_type",
                    "active": "wrong_type", "images": "wrong_type", "metadata": "wrong_type",
                },
            ),
        ],
    )  # fmt: skip
    def test_all_faults_are_named_and_nothing_is_made(self, api, change, expected):
        before = data(api.get(PATH))["total"]
        assert faults(api.post(PATH, {"name": "Pen", "price": "5.00"} | change)) == expected
        assert data(api.get(PATH))["total"] == before

    def test_the_sdk_says_so(self, sdk):
        assert error(sdk.products.create(name="Pen", price="0.00")).startswith("JokoorValidationError: ")

    def test_a_card_number_is_never_kept(self, server):
        live = Api(server.url, server.keys["live"]["secret"])
        body = {"name": "Pen", "price": "5.00", "description": "paid by 4242424242424242"}
        refusal(live.post(PATH, body), 400, "card_data_not_allowed")

    def test_a_repeated_request_gets_its_answer(self, api):
        headers, body = {"Idempotency-Key": uuid.uuid4().hex}, {"name": "Pen", "price": "5.00"}
        first, second = (api.post(PATH, body, headers=headers) for _ in range(2))
        data(first, 201)
        assert first.content == second.content
        assert second.headers["Idempotent-Replayed"] == "true"
        assert data(api.post(PATH, body), 201)["id"] != data(first, 201)["id"], "products may share a name"


class TestGet:
    @pytest.mark.parametrize("absent", [ABSENT, "prod_short", "nonsense", "cus_01h455vb4pex5vsknk084sn02q"])
    def test_an_absent_one_is_not_found(self, sdk, api, absent):
        assert error(sdk.products.get(absent)).startswith("JokoorNotFoundError: ")
        refusal(api.get(f"{PATH}/{absent}"), 404, "product_not_found")

    def test_another_mode_sees_nothing(self, product, live, sdk):
        for attempt in (
            live.products.get(product["id"]),
            live.products.update(product["id"], name="X"),
            live.products.delete(product["id"]),
        ):
            assert error(attempt).startswith("JokoorNotFoundError: ")
        assert ok(sdk.products.get(product["id"])) == product

    def test_another_organization_sees_nothing(self, product, new_server):
        other = new_server()
        api = Api(other.url, other.keys["test"]["secret"])
        refusal(api.get(f"{PATH}/{product['id']}"), 404, "product_not_found")
        line = {"items": [{"product_id": product["id"], "quantity": 1}]}
        assert faults(api.post("/v1/checkouts", line)) == {"items[0].product_id": "not_found"}

    def test_scopes(self, api, server, product):
        def with_scope(scope):
            token = data(api.post("/v1/auth/token", {"scope": scope}))["access_token"]
            return Api(server.url, token)

        reading, writing = with_scope("read:products"), with_scope("write:products")
        path = f"{PATH}/{product['id']}"
        data(reading.get(path))
        data(reading.get(PATH))
        data(writing.put(path, {}))
        for answer in (
            reading.post(PATH, {"name": "Pen", "price": "5.00"}),
            reading.put(path, {"name": "X"}),
            reading.delete(path),
            writing.get(path),
            writing.get(PATH),
        ):
            refusal(answer, 403, "insufficient_scope")

    def test_a_page_may_nothing(self, publishable, product):
        refusal(publishable.get(f"{PATH}/{product['id']}"), 403, "secret_key_required")


class TestList:
    def test_newest_first(self, sdk, api):
        made = [ok(sdk.products.create(name=f"Book {count}", price="10.00")) for count in range(3)]
        page = ok(sdk.products.list(limit=2))
        assert set(page) == {"items", "count", "total", "offset", "limit", "has_more"}
        assert page["items"] == [made[2], made[1]]
        assert ok(sdk.products.list(offset=2, limit=1))["items"] == [made[0]]
        assert data(api.get(PATH, params={"after": made[1]["id"], "limit": 1}))["items"] == [made[0]]

    def test_by_activity(self, sdk, api):
        on = ok(sdk.products.create(name="On", price="1.00"))
        off = data(api.post(PATH, {"name": "Off", "price": "1.00", "active": False}), 201)
        assert ok(sdk.products.list(limit=1, active=True))["items"] == [on]
        assert ok(sdk.products.list(limit=1, active=False))["items"] == [off]
        whole, active, inactive = (
            ok(sdk.products.list(limit=1, active=active))["total"] for active in (None, True, False)
        )
        assert whole == active + inactive

    @pytest.mark.parametrize(("parameter", "value"), [("limit", "0"), ("active", "yes"), ("is_active", "true")])
    def test_a_bad_query_names_the_parameter(self, api, parameter, value):
        assert set(faults(api.get(PATH, params={parameter: value}))) == {parameter}

    def test_the_sdk_says_so(self, sdk):
        assert error(sdk.products.list(limit=0)).startswith("JokoorValidationError: ")


class TestUpdate:
    def test_only_what_is_given_changes(self, sdk, product):
        changed = ok(sdk.products.update(product["id"], price="80.00"))
        assert changed == product | {"price": "80.00", "updated_at": changed["updated_at"]}
        changed = ok(
            sdk.products.update(
                product["id"], name="New Atlas", description="More maps", is_active=False, images=[], metadata={}
            )
        )
        assert (changed["name"], changed["description"], changed["images"]) == ("New Atlas", "More maps", [])
        assert changed["active"] is changed["is_active"] is False
        assert changed["metadata"] == {}
        assert ok(sdk.products.get(product["id"])) == changed

    def test_nothing_new_is_no_change(self, sdk, api, product):
        names = ("name", "description", "price", "is_active", "images", "metadata")
        eventually(lambda: ok(sdk.products.create(name="Pen", price="1.00"))["created_at"] > product["created_at"])
        assert ok(sdk.products.update(product["id"], **{name: product[name] for name in names})) == product
        assert data(api.put(f"{PATH}/{product['id']}", {"price": "75"})) == product

    def test_a_line_without_words_has_those_of_its_product(self, api, product):
        for line in ({}, {"description": None}, {"description": ""}):
            body = {"items": [{"product_id": product["id"], "quantity": 1, **line}]}
            assert data(api.post("/v1/checkouts", body), 201)["items"][0]["description"] == product["name"]

    def test_null_clears_the_description_only(self, api, product):
        path = f"{PATH}/{product['id']}"
        assert data(api.put(path, {"description": None}))["description"] is None
        for name in ("name", "price", "active", "is_active", "images", "metadata"):
            assert faults(api.put(path, {name: None})) == {name: "wrong_type"}

    def test_the_price_is_read_in_its_currency(self, api):
        product = data(api.post(PATH, {"name": "Pen", "price": "500", "currency": "XOF"}), 201)
        path = f"{PATH}/{product['id']}"
        assert faults(api.put(path, {"price": "500.50"})) == {"price": "too_many_decimals"}
        assert data(api.put(path, {"price": "600"}))["price"] == "600"
        assert faults(api.put(path, {"currency": "GMD"})) == {"currency": "unknown_field"}

    def test_all_faults_are_named(self, api, product):
        path = f"{PATH}/{product['id']}"
        wrong = {"name": "", "price": "0", "active": True, "is_active": False, "images": ["x"], "colour": "red"}
        assert faults(api.put(path, wrong)) == {
            "name": "too_short", "price": "amount_not_positive", "is_active": "conflict",
            "images[0]": "invalid_format", "colour": "unknown_field",
        }  # fmt: skip
        assert data(api.get(path)) == product

    def test_the_sdk_says_so(self, sdk, product):
        assert error(sdk.products.update(product["id"], price="free")).startswith("JokoorValidationError: ")
        assert error(sdk.products.update(ABSENT, price="1.00")).startswith("JokoorNotFoundError: ")

    def test_a_repeated_request_gets_its_answer_also_after_a_deletion(self, api):
        product = data(api.post(PATH, {"name": "Pen", "price": "1.000", "currency": "TND"}), 201)
        headers, path = {"Idempotency-Key": uuid.uuid4().hex}, f"{PATH}/{product['id']}"
        first = api.put(path, {"price": "1.001"}, headers=headers)
        assert data(first)["price"] == "1.001"
        assert api.delete(path).status_code == 204
        second = api.put(path, {"price": "1.001"}, headers=headers)
        assert (first.status_code, first.content) == (second.status_code, second.content)


class TestDelete:
    def test_nobody_finds_it(self, sdk, api, product):
        assert ok(sdk.products.delete(product["id"])) == {"success": True}
        path = f"{PATH}/{product['id']}"
        refusal(api.get(path), 404, "product_not_found")
        refusal(api.put(path, {"name": "X"}), 404, "product_not_found")
        refusal(api.delete(path), 404, "product_not_found")
        assert error(sdk.products.delete(product["id"])).startswith("JokoorNotFoundError: ")
        listed = ok(sdk.products.list(limit=100))["items"]
        assert product["id"] not in {item["id"] for item in listed}

    def test_it_has_no_body(self, api, product):
        path = f"{PATH}/{product['id']}"
        assert faults(api.delete(path, json={"reason": "x"})) == {"reason": "unknown_field"}
        answer = api.delete(path)
        assert (answer.status_code, answer.content) == (204, b"")

    def test_a_repeated_request_gets_its_answer(self, api, product):
        headers, path = {"Idempotency-Key": uuid.uuid4().hex}, f"{PATH}/{product['id']}"
        assert [api.delete(path, headers=headers).status_code for _ in range(2)] == [204, 204]


class TestNamedByALine:
    def test_the_product_gives_name_and_price(self, sdk, product):
        checkout = ok(sdk.checkouts.create(items=[{"product_id": product["id"], "quantity": 2}]))
        assert checkout["amount"] == "150.00"
        assert checkout["items"] == [
            {
                "product_id": product["id"], "description": "Atlas", "quantity": 2, "unit_price": "75.00",
                "total": "150.00",
            }
        ]  # fmt: skip

    def test_what_is_sent_wins(self, sdk, product):
        line = {"product_id": product["id"], "quantity": 3, "unit_price": "70.00", "description": "Atlas, old"}
        checkout = ok(sdk.checkouts.create(items=[line, {"quantity": 1, "unit_price": "1.00"}]))
        assert checkout["amount"] == "211.00"
        assert checkout["items"][0] == line | {"total": "210.00"}
        assert checkout["items"][1]["product_id"] is None

    def test_one_product_in_many_lines(self, sdk, product):
        lines = [{"product_id": product["id"], "quantity": count} for count in (1, 2, 3)]
        assert ok(sdk.checkouts.create(items=lines))["amount"] == "450.00"

    def test_history_stays(self, sdk, product):
        checkout = ok(sdk.checkouts.create(items=[{"product_id": product["id"], "quantity": 1}]))
        del checkout["client_secret"]
        ok(sdk.products.update(product["id"], name="New", price="99.00", is_active=False))
        assert ok(sdk.checkouts.get(checkout["id"])) == checkout
        ok(sdk.products.delete(product["id"]))
        assert ok(sdk.checkouts.get(checkout["id"])) == checkout

    def test_all_faults_at_once(self, sdk, api, product, live):
        gone = ok(sdk.products.create(name="Gone", price="1.00"))
        ok(sdk.products.delete(gone["id"]))
        foreign = ok(live.products.create(name="Live", price="1.00"))
        off = ok(sdk.products.create(name="Off", price="1.00"))
        ok(sdk.products.update(off["id"], is_active=False))
        francs = ok(sdk.products.create(name="Francs", price="100", currency="XOF"))
        boat = ok(sdk.products.create(name="Boat", price="999999999999.99"))
        lines = [
            {"product_id": ABSENT, "quantity": 1, "unit_price": "1.00"},
            {"product_id": gone["id"], "quantity": 1},
            {"product_id": foreign["id"], "quantity": 1},
            {"product_id": off["id"], "quantity": 1},
            {"product_id": francs["id"], "quantity": 1, "unit_price": "1.00"},
            {"product_id": product["id"], "quantity": 1},
            {"product_id": boat["id"], "quantity": 2},
            {"quantity": 1, "description": "Pen"},
        ]
        assert faults(api.post("/v1/checkouts", {"items": lines})) == {
            "items[0].product_id": "not_found",
            "items[1].product_id": "not_found",
            "items[2].product_id": "not_found",
            "items[3].product_id": "inactive",
            "items[4].product_id": "currency_mismatch",
            "items[6].unit_price": "amount_too_large",
            "items[7].unit_price": "required",
        }
        malformed = {"items": [{"product_id": "pen", "quantity": 0}]}
        assert faults(api.post("/v1/checkouts", malformed)) == {
            "items[0].product_id": "not_found", "items[0].quantity": "out_of_range",
        }  # fmt: skip
        assert error(sdk.checkouts.create(items=lines[:1])).startswith("JokoorValidationError: ")

    def test_a_sum_too_large_is_named(self, sdk, api):
        boat = ok(sdk.products.create(name="Boat", price="999999999999.99"))
        lines = [{"product_id": boat["id"], "quantity": 1}] * 2
        assert faults(api.post("/v1/checkouts", {"items": lines})) == {"items": "amount_too_large"}
