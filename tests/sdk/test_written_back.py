"""What is read of an invoice or a checkout can be given back as it was read (contract §1.7, §2.4 rule 6, §7)."""

import uuid

import pytest

from checks import data, faults, ok, refusal
from invoices import order, whole

OIL = {"description": "Oil", "quantity": 3, "unit_price": "85.00"}
CUSTOMER = ("customer_email", "customer_name", "customer_address", "customer_phone", "notes")
NOBODY = {"customer_email": "", "customer_name": ""}


class TestItems:
    def test_those_of_an_invoice_are_no_change_and_take_one_more(self, sdk, bill):
        product = ok(sdk.products.create(name="Atlas", price="75.00", currency="GMD"))
        before = whole(bill(items=[{"product_id": product["id"], "quantity": 2}, *order()["items"]], tax_rate=7.25))
        assert ok(sdk.invoices.update(before["id"], items=before["items"])) == before, "its version, too"
        after = whole(ok(sdk.invoices.update(before["id"], items=before["items"] + [OIL])))
        assert after["items"][:2] == before["items"]
        assert (after["items"][2]["total"], after["amount"], after["version"]) == ("255.00", "505.00", 2)

    @pytest.mark.parametrize("how", ["deactivated", "deleted"])
    def test_those_of_an_invoice_stay_when_their_product_is_no_longer_sold(self, sdk, api, bill, how):
        product = ok(sdk.products.create(name="Atlas", price="75.00", currency="GMD"))
        before = whole(bill(items=[{"product_id": product["id"], "quantity": 2}], tax_rate=7.25))
        if how == "deleted":
            ok(sdk.products.delete(product["id"]))
        else:
            data(api.put(f"/v1/pay/products/{product['id']}", {"is_active": False}))
        assert ok(sdk.invoices.update(before["id"], items=before["items"])) == before, "its version, too"
        after = whole(ok(sdk.invoices.update(before["id"], items=before["items"] + [OIL])))
        assert after["items"][0] == before["items"][0]
        path, why = f"/v1/pay/invoices/{before['id']}", "not_found" if how == "deleted" else "inactive"
        other = [before["items"][0] | {"unit_price": "70.00"}]
        assert faults(api.put(path, {"items": other})) == {"items[0].product_id": why}
        assert faults(api.put(path, {"items": before["items"], "notes": 1})) == {"notes": "wrong_type"}
        assert faults(api.post("/v1/pay/invoices", order(items=before["items"]))) == {"items[0].product_id": why}

    def test_those_of_one_object_make_another(self, sdk, bill):
        product = ok(sdk.products.create(name="Atlas", price="75.00", currency="GMD"))
        checkout = ok(sdk.checkouts.create(items=[{"product_id": product["id"], "quantity": 2}, OIL]))
        again = ok(sdk.checkouts.create(items=checkout["items"]))
        assert (again["items"], again["amount"]) == (checkout["items"], "405.00")
        invoice = whole(bill(items=checkout["items"]))
        assert whole(bill(items=invoice["items"]))["items"] == invoice["items"]
        assert (invoice["amount"], ok(sdk.checkouts.create(items=invoice["items"]))["amount"]) == ("405.00", "405.00")

    @pytest.mark.parametrize("said", ["1.00", "much", 1, None])
    def test_what_is_said_of_their_value_is_not_read(self, api, bill, said):
        items = [OIL | {"total": said, "amount": said}]
        made = [
            data(api.post("/v1/pay/invoices", order(items=items)), 201),
            data(api.put(f"/v1/pay/invoices/{bill()['id']}", {"items": items})),
            data(api.post("/v1/checkouts", {"items": items}), 201),
        ]
        assert [(one["items"][0]["total"], one["amount"]) for one in made] == [("255.00", "255.00")] * 3


class TestCustomer:
    def test_without_an_address_and_a_name_nothing_changes(self, sdk, api, bill):
        phone = f"+2203{uuid.uuid4().int % 10**6:06}"
        customer = data(api.post("/v1/pay/customers", {"phone": phone}), 201)
        before = whole(bill(customer_id=customer["id"], customer_email=None, customer_name=None))
        as_read = {name: before[name] for name in CUSTOMER}
        assert as_read == {**NOBODY, "customer_address": "", "customer_phone": phone, "notes": ""}
        assert ok(sdk.invoices.update(before["id"], **as_read)) == before, "its version, too"

    def test_an_address_and_a_name_can_be_cleared(self, sdk, bill):
        before = whole(bill(customer_phone="3001234", notes="Note"))
        assert ok(sdk.invoices.update(before["id"], **{name: before[name] for name in CUSTOMER})) == before
        after = whole(ok(sdk.invoices.update(before["id"], **NOBODY)))
        assert {name for name in after if after[name] != before[name]} == {*NOBODY, "version", "updated_at"}
        assert (after["customer_email"], after["customer_name"], after["version"]) == ("", "", 2)
        assert whole(ok(sdk.invoices.get(before["id"]))) == after
        again = whole(ok(sdk.invoices.update(before["id"], customer_name="Awa")))
        assert (again["customer_email"], again["customer_name"]) == ("", "Awa")

    def test_nothing_takes_for_granted_that_they_are_there(self, sdk, api, bill):
        invoice = bill()
        path = f"/v1/pay/invoices/{invoice['id']}"
        ok(sdk.invoices.update(invoice["id"], **NOBODY))
        refusal(api.post(f"{path}/send"), 400, "customer_email_missing")
        assert api.get(f"{path}/pdf").content.startswith(b"%PDF-")
        page = api.get(f"/invoice/{invoice['id']}")
        assert page.status_code == 200 and invoice["customer_name"] not in page.text
        session = ok(sdk.payments.initialize(object_type="invoice", object_id=invoice["id"]))
        assert (session["customer_email"], session["customer_name"]) == (None, None)
        ok(sdk.invoices.record_payment(invoice["id"], amount="100.00", payment_method="cash"))
        [receipt] = ok(sdk.invoices.get_receipts(invoice["id"]))
        assert (receipt["customer_email"], receipt["customer_name"], receipt["email_status"]) == (None, None, "pending")
        assert api.get(f"/v1/pay/receipts/{receipt['id']}/download").content.startswith(b"%PDF-")

    def test_of_a_known_customer_an_empty_text_is_none_from_the_start(self, sdk, api):
        customer = ok(sdk.customers.create(email=f"{uuid.uuid4().hex}@example.gm", name="Binta"))
        made = whole(data(api.post("/v1/pay/invoices", order(customer_id=customer["id"], **NOBODY)), 201))
        assert (made["customer_id"], made["customer_email"], made["customer_name"]) == (customer["id"], "", "")
        assert faults(api.post("/v1/pay/invoices", order(**NOBODY))) == {
            "customer_email": "invalid_format", "customer_name": "too_short",
        }  # fmt: skip
