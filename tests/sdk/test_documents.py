"""The files of invoices and receipts: the very bytes, what another program reads in them, and who gets them."""

import re
import subprocess
from urllib.parse import urlsplit

import pytest

from checks import data, error, eventually, ok, refusal
from invoices import order
from server import Api

NOBODYS = "01h455vb4pex5vsknk084sn02q"
PDF = "application/pdf; charset=iso-8859-1"


def read(file):
    """The words of a PDF file, as poppler reads them; runs of blanks as one."""
    done = subprocess.run(["pdftotext", "-layout", "-", "-"], input=file, capture_output=True)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.decode().split())


def masked(text):
    """Those words as a reader without a key sees them."""
    assert "awa@example.gm" in text and "+2207123412" in text, text
    return text.replace("awa@example.gm", "a•••@e•••.gm").replace("+2207123412", "+220 7•• ••12")


def same(one, other):
    """Whatever room the words take."""
    return one.replace(" ", "") == other.replace(" ", "")


def download(sdk, invoice):
    """The file, by way of the SDK's text."""
    return ok(sdk.invoices.download_pdf(invoice["id"]))["raw"].encode("latin-1")


@pytest.fixture
def with_scope(api):
    def narrow(scope):
        token = data(api.post("/v1/auth/token", {"scope": scope}))["access_token"]
        return api.with_credential(token)

    return narrow


@pytest.fixture
def paid_invoice(sdk, bill):
    """An invoice that was paid online, with its receipt's file."""

    def pay(**fields):
        invoice = bill(**fields)
        start = {"payment_method": "afrimoney", "customer_phone": "+2207000000"}
        ok(sdk.payments.initialize(object_type="invoice", object_id=invoice["id"], **start))

        def with_file():
            found = ok(sdk.invoices.get(invoice["id"]))
            return found if [it["status"] for it in found["receipts"]] == ["completed"] else None

        return eventually(with_file)

    return pay


class TestInvoices:
    def test_the_sdk_has_every_byte(self, sdk, api, bill):
        invoice = bill(customer_address="7 Sayerr Jobe Avenue\nBanjul", tax_rate=15, notes="Merci à vous – ça ira")
        answer = api.get(f"/v1/pay/invoices/{invoice['id']}/pdf")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == PDF
        name = f"{invoice['invoice_number']}.pdf"
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer.content.startswith(b"%PDF-1.7") and answer.content.endswith(b"%%EOF")
        assert download(sdk, invoice) == answer.content
        text = read(answer.content)
        for words in (
            "Invoice",
            invoice["invoice_number"],
            "Awa Ceesay",
            "7 Sayerr Jobe Avenue",
            "31 January 2030",
            "Rice, 50 kg 1 100.00 100.00",
            "Subtotal 100.00 GMD",
            "Tax (15%) 15.00 GMD",
            "Total 115.00 GMD",
            "Amount due 115.00 GMD",
            "Merci à vous – ça ira",
            "Test mode",
            "Page 1 of 1",
        ):
            assert words in text, f"{words!r} is missing: {text}"
        assert invoice["id"] in text
        assert f"/URI({invoice['payment_url']})".encode() in answer.content

    def test_it_is_the_invoice_as_it_stands(self, sdk, bill):
        invoice = bill(is_draft=True)
        draft = read(download(sdk, invoice))
        assert "DRAFT" in draft
        assert "Pay online" not in draft
        ok(sdk.invoices.update(invoice["id"], customer_name="Binta Touray"))
        changed = read(download(sdk, invoice))
        assert "Binta Touray" in changed and "Awa Ceesay" not in changed
        ok(sdk.invoices.finalize(invoice["id"]))
        issued = read(download(sdk, invoice))
        assert "DRAFT" not in issued and "Pay online" in issued
        ok(sdk.invoices.cancel(invoice["id"]))
        cancelled = read(download(sdk, invoice))
        assert "CANCELLED" in cancelled and "Pay online" not in cancelled

    def test_it_leads_only_to_a_page_that_takes_the_money(self, server, api):
        live = Api(server.url, server.keys["live"]["secret"])
        for client, currency, is_named in ((api, "GMD", True), (api, "NGN", False), (live, "GMD", False)):
            invoice = data(client.post("/v1/pay/invoices", order(currency=currency)), 201)
            assert invoice["payment_url"], "its page is there, and says whom to ask"
            text = read(client.get(f"/v1/pay/invoices/{invoice['id']}/pdf").content)
            assert (f"Total 100.00 {currency}" in text, "Pay online" in text) == (True, is_named), text

    def test_the_same_invoice_is_the_same_file(self, sdk, bill):
        invoice = bill()
        assert len({download(sdk, invoice) for _ in range(5)}) == 1

    def test_overdue_and_paid_are_said(self, sdk, bill, paid_invoice):
        paid = read(download(sdk, paid_invoice()))
        assert "PAID" in paid and "Amount due 0.00 GMD" in paid and "Pay online" not in paid
        open_invoice = read(download(sdk, bill()))
        assert "PAID" not in open_invoice and "OVERDUE" not in open_invoice

    @pytest.mark.parametrize(
        "hostile",
        [
            "<script>alert(1)</script>",
            "(x) Tj ET endstream endobj /JavaScript",
            "\u202e00.001 GMD",
            "x" * 200,
            "مؤسسة النور",
            "漢字 \U0001f600",
        ],
        ids=["markup", "pdf", "override", "long", "arabic", "no-glyph"],
    )
    def test_what_customers_are_called_is_text(self, sdk, bill, hostile):
        invoice = bill(customer_name=hostile, notes=hostile)
        file = download(sdk, invoice)
        about = subprocess.run(["pdfinfo", "-"], input=file, capture_output=True).stdout
        assert re.search(rb"JavaScript: +no\n", about), about
        text = read(file).replace(" ", "")
        if hostile.isascii():
            assert hostile.replace(" ", "") in text, text
        if "GMD" in hostile:
            assert "00.001GMD" in text, text

    def test_two_hundred_lines_take_their_pages(self, sdk, bill):
        items = [{"description": f"Article {n:03}", "quantity": n, "unit_price": "1.00"} for n in range(1, 201)]
        text = read(download(sdk, bill(items=items)))
        assert all(f"Article {n:03} {n} 1.00 {n}.00" in text for n in range(1, 201))
        pages = int(re.search(r"Page 1 of (\d+)", text)[1])
        assert pages > 5 and text.count("Unit price") >= pages - 1

    def test_nobody_else_gets_it(self, server, api, sdk, bill, anonymous, publishable, with_scope):
        path = f"/v1/pay/invoices/{bill()['id']}/pdf"
        refusal(anonymous.get(path), 401, "authentication_required")
        refusal(publishable.get(path), 403, "secret_key_required")
        refusal(api.with_credential(server.keys["live"]["secret"]).get(path), 404, "invoice_not_found")
        for unknown in (f"inv_{NOBODYS}", "inv_1", "nonsense", "%ff", "%00"):
            refusal(api.get(f"/v1/pay/invoices/{unknown}/pdf"), 404, "invoice_not_found")
        assert with_scope("read:invoices").get(path).status_code == 200
        for scope in ("write:invoices", "read:checkouts"):
            refusal(with_scope(scope).get(path), 403, "insufficient_scope")
        assert "not" in error(sdk.invoices.download_pdf(f"inv_{NOBODYS}")).lower()


class TestRefunded:
    """An invoice stays `paid` whatever goes back of it, and its file says what its page says."""

    @pytest.fixture
    def gives_back(self, sdk):
        """Of an invoice's payment by hand; done at once."""

        def give(payment, amount=None):
            refund = ok(sdk.refunds.create(payment["transaction_id"], **({"amount": amount} if amount else {})))
            assert refund["status"] == "completed"

        return give

    def test_parts_are_said_and_the_whole_is_marked(self, sdk, bill, anonymous, gives_back):
        invoice = bill()
        for amount in ("60.00", "40.00"):
            ok(sdk.invoices.record_payment(invoice["id"], amount=amount, payment_method="cash"))
        first, second = sorted(ok(sdk.invoices.list_payments(invoice["id"])), key=lambda it: it["amount"], reverse=True)

        def files():
            public = anonymous.get(f"/invoice/{invoice['id']}/pdf").content
            return [read(file) for file in (download(sdk, invoice), public)]

        for text in files():
            assert "PAID" in text and "efunded" not in text and "REFUNDED" not in text, text
        told = (("15.00", first, "15.00"), (None, first, "60.00"), (None, second, "100.00"))
        for amount, payment, sum_of_all in told:
            gives_back(payment, amount)
            is_whole = sum_of_all == "100.00"
            page = anonymous.get(f"/invoice/{invoice['id']}").text
            assert ("<title>Paid back" in page) == is_whole
            for text in files():
                assert f"Refunded {sum_of_all} GMD" in text, text
                assert "Paid 100.00 GMD" in text and "Amount due 0.00 GMD" in text, text
                assert ("REFUNDED" in text, "PAID" in text) == (is_whole, not is_whole), text
        assert ok(sdk.invoices.get(invoice["id"]))["status"] == "paid"

    def test_a_part_of_what_is_not_paid_yet(self, sdk, bill, gives_back):
        invoice = bill()
        ok(sdk.invoices.record_payment(invoice["id"], amount="30.00", payment_method="cash"))
        [payment] = ok(sdk.invoices.list_payments(invoice["id"]))
        gives_back(payment)
        text = read(download(sdk, invoice))
        assert "Refunded 30.00 GMD" in text and "Amount due 70.00 GMD" in text and "REFUNDED" not in text, text

    def test_what_was_paid_online(self, sdk, paid_invoice):
        invoice = paid_invoice()
        [payment] = ok(sdk.invoices.list_payments(invoice["id"]))
        before = read(download(sdk, invoice))
        refund = ok(sdk.refunds.create(payment["transaction_id"]))
        eventually(lambda: ok(sdk.refunds.get(refund["id"]))["status"] == "completed")
        text = read(download(sdk, invoice))
        assert "PAID" in before and "PAID" not in text, text
        assert "REFUNDED" in text and "Refunded 100.00 GMD" in text, text


class TestHostedInvoices:
    """Beside the invoice's page, for whoever was given its address."""

    def test_it_says_the_same_and_masks_what_its_page_masks(self, sdk, bill, anonymous):
        invoice = bill(customer_phone="+2207123412", customer_address="Serrekunda")
        answer = anonymous.get(f"/invoice/{invoice['id']}/pdf")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/pdf"
        assert answer.headers["Content-Disposition"] == f'inline; filename="{invoice["invoice_number"]}.pdf"'
        assert "no-store" in answer.headers["Cache-Control"]
        text, page = read(answer.content), anonymous.get(f"/invoice/{invoice['id']}").text
        for whole, shown in (("awa@example.gm", "a•••@e•••.gm"), ("2207123412", "+220 7•• ••12")):
            assert whole not in page and shown in page
            assert whole not in text.replace(" ", ""), text
        assert same(text, masked(read(download(sdk, invoice)))), text

    def test_neither_file_is_taken_for_the_other(self, sdk, bill, anonymous):
        invoice = bill(customer_phone="+2207123412")
        files = [
            file
            for _ in range(3)
            for file in (anonymous.get(f"/invoice/{invoice['id']}/pdf").content, download(sdk, invoice))
        ]
        assert len(set(files[::2])) == len(set(files[1::2])) == 1
        assert "awa@example.gm" not in read(files[0]) and "awa@example.gm" in read(files[1])

    def test_what_was_not_given_is_not_masked(self, api, anonymous):
        customer = data(api.post("/v1/pay/customers", {"phone": "+2203004477"}), 201)
        nameless = order(customer_id=customer["id"], customer_email=None, customer_name=None)
        invoice = data(api.post("/v1/pay/invoices", nameless), 201)
        text = read(anonymous.get(f"/invoice/{invoice['id']}/pdf").content)
        assert "+220 3•• ••77" in text and text.count("•") == 4, text

    def test_a_draft_is_nobodys_business(self, sdk, bill, anonymous):
        draft = bill(is_draft=True)
        absent = (f"/invoice/{draft['id']}/pdf", f"/invoice/inv_{NOBODYS}/pdf", "/invoice/1/pdf")
        for path in absent:
            answer = anonymous.get(path)
            assert answer.status_code == 404, path
            assert answer.headers["Content-Type"].startswith("text/html"), path
            assert draft["invoice_number"] not in answer.text
        ok(sdk.invoices.finalize(draft["id"]))
        assert anonymous.get(absent[0]).status_code == 200


class TestReceipts:
    def test_the_sdk_has_every_byte(self, sdk, api, paid_invoice):
        invoice = paid_invoice(customer_address="Serrekunda")
        [receipt] = invoice["receipts"]
        answer = api.get(f"/v1/pay/receipts/{receipt['id']}/download")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == PDF
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{receipt["receipt_number"]}.pdf"'
        assert ok(sdk.receipts.download(receipt["id"]))["raw"].encode("latin-1") == answer.content
        code = re.search(r"/receipts/([0-9a-f]{32})\.pdf$", receipt["receipt_url"])[1]
        text = read(answer.content)
        for words in (
            "Receipt",
            "Amount received 100.00 GMD",
            receipt["receipt_number"],
            invoice["invoice_number"],
            "Afrimoney",
            "Awa Ceesay",
            "Serrekunda",
            "/verify",
            code,
            "Test mode",
        ):
            assert words in text, f"{words!r} is missing: {text}"

    def test_its_code_opens_it(self, anonymous, api, paid_invoice):
        [receipt] = paid_invoice(customer_phone="+2207123412")["receipts"]
        path = urlsplit(receipt["receipt_url"]).path
        whole = api.get(f"/v1/pay/receipts/{receipt['id']}/download").content
        answer = anonymous.get(path)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/pdf"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert same(read(answer.content), masked(read(whole)))
        assert api.get(f"/v1/pay/receipts/{receipt['id']}/download").content == whole, "the one took the other's place"
        code = path.removeprefix("/receipts/").removesuffix(".pdf")
        assert anonymous.get(f"/receipts/{code[:8]}-{code[8:].upper()}.pdf").content == answer.content
        other = code[:-1] + ("0" if code[-1] != "0" else "1")
        for wrong in (f"{other}.pdf", code, f"{code[1:]}.pdf", f"{receipt['receipt_number']}.pdf", f"{receipt['id']}.pdf"):
            answer = anonymous.get(f"/receipts/{wrong}")
            assert answer.status_code == 404, wrong
            assert answer.headers["Content-Type"].startswith("text/html"), wrong

    def test_it_stays_as_it_was(self, sdk, api, paid_invoice):
        [receipt] = paid_invoice()["receipts"]
        path = f"/v1/pay/receipts/{receipt['id']}/download"
        assert len({api.get(path).content for _ in range(5)}) == 1

    def test_nobody_else_gets_it(self, server, api, anonymous, publishable, with_scope, paid_invoice):
        path = f"/v1/pay/receipts/{paid_invoice()['receipts'][0]['id']}/download"
        refusal(anonymous.get(path), 401, "authentication_required")
        refusal(publishable.get(path), 403, "secret_key_required")
        refusal(Api(server.url, server.keys["live"]["secret"]).get(path), 404, "receipt_not_found")
        for unknown in (f"rec_{NOBODYS}", "rec_1"):
            refusal(api.get(f"/v1/pay/receipts/{unknown}/download"), 404, "receipt_not_found")
        assert with_scope("read:invoices").get(path).status_code == 200
        for scope in ("write:invoices", "read:transactions"):
            refusal(with_scope(scope).get(path), 403, "insufficient_scope")
