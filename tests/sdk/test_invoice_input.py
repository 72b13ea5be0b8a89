"""What an invoice can't be made of: every fault is named, all at once, and nothing is made (contract §1.4, §1.7)."""

import json

import pytest

from checks import data, faults, ok, refusal
from invoices import number, order

ITEM = {"description": "Pen", "quantity": 1, "unit_price": "1.00"}
NOBODY = {"customer_email": None, "customer_name": None}

# name: what is changed of a good order (None leaves it out), the faults
FIELDS = {
    "nothing": (
        dict.fromkeys(order()),
        {"customer_email": "required", "customer_name": "required", "due_date": "required", "items": "required"},
    ),
    "no customer": (NOBODY, {"customer_email": "required", "customer_name": "required"}),
    "no name": ({"customer_name": None}, {"customer_name": "required"}),
    "no e-mail": ({"customer_email": None}, {"customer_email": "required"}),
    "a customer of nobody": (NOBODY | {"customer_id": "cus_01h455vb4pex5vsknk084sn02q"}, {"customer_id": "not_found"}),
    "a customer that is no id": (NOBODY | {"customer_id": "Awa"}, {"customer_id": "not_found"}),
    "a customer as a number": (NOBODY | {"customer_id": 7}, {"customer_id": "wrong_type"}),
    "e-mail without a host": ({"customer_email": "awa@"}, {"customer_email": "invalid_format"}),
    "name empty": ({"customer_name": ""}, {"customer_name": "too_short"}),
    "name far too long": ({"customer_name": "x" * 201}, {"customer_name": "too_long"}),
    "address far too long": ({"customer_address": "x" * 2001}, {"customer_address": "too_long"}),
    "phone of elsewhere": ({"customer_phone": "12"}, {"customer_phone": "invalid_format"}),
    "phone as a number": ({"customer_phone": 2203001234}, {"customer_phone": "wrong_type"}),
    "currency of nowhere": ({"currency": "ZZZ"}, {"currency": "invalid_enum"}),
    "currency in lower case": ({"currency": "gmd"}, {"currency": "invalid_enum"}),
    "tax as a string": ({"tax_rate": "5"}, {"tax_rate": "wrong_type"}),
    "tax as a boolean": ({"tax_rate": True}, {"tax_rate": "wrong_type"}),
    "tax below 0": ({"tax_rate": -1}, {"tax_rate": "out_of_range"}),
    "tax just below 0": ({"tax_rate": -0.0001}, {"tax_rate": "out_of_range"}),
    "tax just above 100": ({"tax_rate": 100.0001}, {"tax_rate": "out_of_range"}),
    "tax beyond all": ({"tax_rate": 10**40}, {"tax_rate": "out_of_range"}),
    "tax with 5 decimals": ({"tax_rate": 7.25001}, {"tax_rate": "too_many_decimals"}),
    "due date missing": ({"due_date": None}, {"due_date": "required"}),
    "due date in words": ({"due_date": "tomorrow"}, {"due_date": "invalid_format"}),
    "due date of no calendar": ({"due_date": "2030-02-29"}, {"due_date": "invalid_format"}),
    "due date with an odd offset": ({"due_date": "2030-01-31T12:00:00+0200"}, {"due_date": "invalid_format"}),
    "due date as a number": ({"due_date": 1893456000}, {"due_date": "wrong_type"}),
    "due date empty": ({"due_date": ""}, {"due_date": "invalid_format"}),
    "notes far too long": ({"notes": "x" * 2001}, {"notes": "too_long"}),
    "notes as a list": ({"notes": ["x"]}, {"notes": "wrong_type"}),
    "draft as a string": ({"is_draft": "yes"}, {"is_draft": "wrong_type"}),
    "metadata as a list": ({"metadata": []}, {"metadata": "wrong_type"}),
    "metadata of other values": (
        {"metadata": {"a": 1, "b": None, "c": {"d": "e"}, "f": "good"}},
        {"metadata.a": "wrong_type", "metadata.b": "wrong_type", "metadata.c": "wrong_type"},
    ),
    "metadata of 51 keys": ({"metadata": {f"k{n}": "v" for n in range(51)}}, {"metadata": "too_long"}),
    "metadata with a long text": ({"metadata": {"a": "x" * 501}}, {"metadata.a": "too_long"}),
    "no items": ({"items": []}, {"items": "too_short"}),
    "items null": ({"items": None}, {"items": "required"}),
    "items as an object": ({"items": ITEM}, {"items": "wrong_type"}),
    "an item as a string": ({"items": ["Pen"]}, {"items[0]": "wrong_type"}),
    "201 items": ({"items": [ITEM] * 201}, {"items": "too_long"}),
    "an item of nothing": (
        {"items": [{}]},
        {"items[0].quantity": "required", "items[0].description": "required", "items[0].unit_price": "required"},
    ),
    "no description": ({"items": [{"quantity": 1, "unit_price": "1.00"}]}, {"items[0].description": "required"}),
    "no price": ({"items": [{"quantity": 1, "description": "Pen"}]}, {"items[0].unit_price": "required"}),
    "a product of nobody": (
        {"items": [{"quantity": 1, "product_id": "prod_01h455vb4pex5vsknk084sn02q"}]},
        {"items[0].product_id": "not_found"},
    ),
    "quantity 0": ({"items": [ITEM | {"quantity": 0}]}, {"items[0].quantity": "out_of_range"}),
    "quantity too large": ({"items": [ITEM | {"quantity": 1_000_001}]}, {"items[0].quantity": "out_of_range"}),
    "quantity as a fraction": ({"items": [ITEM | {"quantity": 1.5}]}, {"items[0].quantity": "wrong_type"}),
    "quantity as a string": ({"items": [ITEM | {"quantity": "1"}]}, {"items[0].quantity": "wrong_type"}),
    "price as a number": ({"items": [ITEM | {"unit_price": 1}]}, {"items[0].unit_price": "amount_must_be_string"}),
    "price as a fraction": ({"items": [ITEM | {"unit_price": 1.5}]}, {"items[0].unit_price": "amount_must_be_string"}),
    "price of nothing": ({"items": [ITEM | {"unit_price": "0.00"}]}, {"items[0].unit_price": "amount_not_positive"}),
    "price with three decimals": ({"items": [ITEM | {"unit_price": "1.001"}]}, {"items[0].unit_price": "too_many_decimals"}),
    "price above the maximum": (
        {"items": [ITEM | {"unit_price": "1000000000000.00"}]},
        {"items[0].unit_price": "amount_too_large"},
    ),
    "a sum in an item": ({"items": [ITEM | {"sum": "1.00"}]}, {"items[0].sum": "unknown_field"}),
    "a fault in the second item": ({"items": [ITEM, ITEM | {"quantity": -1}]}, {"items[1].quantity": "out_of_range"}),
    "an amount": ({"amount": "1.00"}, {"amount": "unknown_field"}),
    "a number": ({"invoice_number": "INV-2030-01-0001"}, {"invoice_number": "unknown_field"}),
    "an unknown field": ({"colour": "red"}, {"colour": "unknown_field"}),
    "NUL in a text": ({"notes": "a\0b"}, {"notes": "nul_character"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_the_faults_are_named_and_no_number_is_spent(api, bill, name):
    change, found = FIELDS[name]
    before = bill()
    total = data(api.get("/v1/pay/invoices"))["total"]
    assert faults(api.post("/v1/pay/invoices", order(**change))) == found
    assert data(api.get("/v1/pay/invoices"))["total"] == total
    assert number(bill()) == number(before) + 1


def test_all_faults_at_once(api):
    wrong = {
        "customer_email": "nobody",
        "customer_phone": "12",
        "currency": "gambia",
        "tax_rate": "16%",
        "due_date": "soon",
        "is_draft": 1,
        "metadata": {"a": 1},
        "colour": "red",
        "items": [{"quantity": 0, "unit_price": 5}, "pen"],
    }
    assert faults(api.post("/v1/pay/invoices", wrong)) == {
        "customer_email": "invalid_format", "customer_name": "required", "customer_phone": "invalid_format",
        "currency": "invalid_enum", "tax_rate": "wrong_type", "due_date": "invalid_format", "is_draft": "wrong_type",
        "metadata.a": "wrong_type", "colour": "unknown_field", "items[0].quantity": "out_of_range",
        "items[0].description": "required", "items[0].unit_price": "amount_must_be_string", "items[1]": "wrong_type",
    }  # fmt: skip


def test_what_only_the_books_can_tell_comes_at_once_too(api):
    items = [{"quantity": 1, "product_id": f"prod_01h455vb4pex5vsknk084sn02{end}"} for end in "qrs"]
    wrong = order(**NOBODY, items=items, customer_id="cus_01h455vb4pex5vsknk084sn02q")
    assert faults(api.post("/v1/pay/invoices", wrong)) == {
        "customer_id": "not_found", **{f"items[{index}].product_id": "not_found" for index in range(3)},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("1e1", "10"), ("5E-1", "0.5"), ("-0", "0"), ("0e9", "0"), ("7.25000", "7.25"), ("0.3000", "0.3"), ("null", "0"),
     ("100.00001", "too_many_decimals"), ("1E-5", "too_many_decimals"), ("0." + "3" * 500, "too_many_decimals"),
     ("1e3", "out_of_range"), ("1e400", "out_of_range"), ("-0.00001", "out_of_range")],
)  # fmt: skip
def test_the_rate_is_the_number_and_not_its_spelling(api, sent, kept):
    body = json.dumps(order() | {"tax_rate": "RATE"}).replace('"RATE"', sent)
    answer = api.post("/v1/pay/invoices", data=body.encode(), headers={"Content-Type": "application/json"})
    if answer.status_code == 201:
        assert f'"tax_rate":{kept},' in answer.text
    else:
        assert faults(answer) == {"tax_rate": kept}


@pytest.mark.parametrize("path", ["finalize", "cancel"])
def test_an_action_takes_no_body(api, bill, path):
    invoice = bill(is_draft=True)
    address = f"/v1/pay/invoices/{invoice['id']}"
    assert faults(api.post(f"{address}/{path}", {"reason": "none"})) == {"reason": "unknown_field"}
    assert data(api.get(address)) == invoice
    data(api.post(f"{address}/{path}", data=b"", headers={"Content-Type": "application/json"}))


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_broken_bodies(api, bill, method):
    path = "/v1/pay/invoices" if method == "POST" else f"/v1/pay/invoices/{bill()['id']}"
    for raw, status, code in [
        (b"{", 400, "invalid_json"),
        (b'{"notes":"a","notes":"b"}', 400, "validation_failed"),
        (b'{"notes":"' + b"x" * (2 << 20) + b'"}', 413, "body_too_large"),
    ]:
        answer = api.request(method, path, data=raw, headers={"Content-Type": "application/json"})
        refusal(answer, status, code)
        # What is left of a body that is too large is not read: the connection ends, and says so.
        assert (answer.headers.get("Connection") == "close") == (status == 413)
    answer = api.request(method, path, data=b'{"notes":"x"}', headers={"Content-Type": "text/plain"})
    refusal(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/pay/invoices", {"GET", "POST"}),
        ("PATCH", "/v1/pay/invoices/inv_x", {"GET", "PUT"}),
        ("GET", "/v1/pay/invoices/inv_x/finalize", {"POST"}),
        ("PUT", "/v1/pay/invoices/inv_x/payments", {"GET", "POST"}),
        ("POST", "/v1/pay/invoices/inv_x/receipts", {"GET"}),
    ],
)
def test_another_verb(api, method, path, allowed):
    answer = api.request(method, path)
    refusal(answer, 405, "method_not_allowed")
    offered = {verb.strip() for verb in answer.headers["Allow"].split(",")}
    assert offered - {"HEAD", "OPTIONS"} == allowed


class TestIdempotency:
    def twice(self, api, method, path, body, key):
        first, second = (api.request(method, path, body, headers={"Idempotency-Key": key}) for _ in range(2))
        assert (first.status_code, first.content) == (second.status_code, second.content)
        assert "Idempotent-Replayed" not in first.headers and second.headers["Idempotent-Replayed"] == "true"
        return first

    def test_one_key_makes_one_invoice_with_one_number(self, api, bill, request):
        before = bill()
        made = data(self.twice(api, "POST", "/v1/pay/invoices", order(), request.node.name), 201)
        assert number(made) == number(before) + 1
        assert number(bill()) == number(made) + 1
        answer = api.post("/v1/pay/invoices", order(notes="x"), headers={"Idempotency-Key": request.node.name})
        refusal(answer, 400, "idempotency_key_reused")

    def test_every_other_write_is_answered_again(self, sdk, api, bill, request):
        path = f"/v1/pay/invoices/{bill(is_draft=True)['id']}"
        for method, rest, body, status in [
            ("PUT", "", {"notes": "Once"}, 200),
            ("POST", "/finalize", None, 200),
            ("POST", "/payments", {"amount": "40.00", "payment_method": "cash"}, 201),
        ]:
            data(self.twice(api, method, path + rest, body, f"{request.node.name}{rest}"), status)
        invoice = ok(sdk.invoices.get(path.rsplit("/", 1)[1]))
        assert (invoice["version"], invoice["paid_amount"], len(invoice["receipts"])) == (4, "40.00", 1)
        other = f"/v1/pay/invoices/{bill()['id']}/cancel"
        data(self.twice(api, "POST", other, None, f"{request.node.name}/cancel"))

    def test_a_refusal_is_remembered(self, api, bill, request):
        path = f"/v1/pay/invoices/{bill()['id']}"
        more = {"amount": "100.01", "payment_method": "cash"}
        refusal(self.twice(api, "POST", f"{path}/payments", more, request.node.name), 400, "invoice_overpayment")
        refusal(self.twice(api, "POST", f"{path}/finalize", None, f"{request.node.name}/f"), 400, "invoice_not_draft")

    def test_a_validation_failure_leaves_the_key_free(self, api, request):
        headers = {"Idempotency-Key": request.node.name}
        faults(api.post("/v1/pay/invoices", order(items=[]), headers=headers))
        unknown = order(**NOBODY, customer_id="cus_01h455vb4pex5vsknk084sn02q")
        assert faults(api.post("/v1/pay/invoices", unknown, headers=headers)) == {"customer_id": "not_found"}
        data(api.post("/v1/pay/invoices", order(), headers=headers), 201)
