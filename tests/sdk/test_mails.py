"""Invoices and receipts reach the customer's mailbox: by the published SDK, the real binary and a real mail server."""

import asyncio
import re
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from jokoor import Jokoor

from checks import data, error, eventually, ok, refusal
from invoices import order, whole
from mailserver import Mail, MailServer
from server import PLAIN, Api


def somebody():
    """A mailbox that no other test writes to. Of letters: as many digits as chance draws may be a card's number, which live mode refuses."""
    letters = str.maketrans("0123456789", "ghijklmnop")
    return f"awa-{uuid.uuid4().hex.translate(letters)}@example.gm"


def made(api, **fields):
    return data(api.post("/v1/pay/invoices", order(**fields)), 201)


def send(api, invoice):
    return data(api.post(f"/v1/pay/invoices/{invoice['id']}/send"))


def pay(api, invoice, amount, method="cash"):
    payment = {"amount": amount, "payment_method": method}
    return data(api.post(f"/v1/pay/invoices/{invoice['id']}/payments", payment), 201)


def only_receipt(api, invoice):
    (receipt,) = data(api.get(f"/v1/pay/invoices/{invoice['id']}/receipts"))
    return receipt


def told_receipt(api, invoice):
    """The receipt, once it is known what became of its mail."""

    def told():
        receipt = only_receipt(api, invoice)
        return receipt if receipt["email_status"] != "pending" else None

    return eventually(told)


def one_mail(mail_server, address, timeout=15):
    """The only mail to somebody, and none comes after it."""
    eventually(lambda: mail_server.to(address), timeout=timeout)
    time.sleep(0.3)
    (mail,) = mail_server.to(address)
    return mail


def test_an_invoice_is_sent(sdk, api, mail_server, endpoint):
    address = somebody()
    invoice = made(api, customer_email=address, notes="See you soon")
    assert (invoice["sent_at"], invoice["sent_count"]) == (None, 0)
    sent = whole(ok(sdk.invoices.send(invoice["id"])))
    assert sent["sent_count"] == 1 and sent["sent_at"] == sent["updated_at"]
    assert sent["version"] == invoice["version"] + 1
    assert ok(sdk.invoices.get(invoice["id"])) == sent

    kinds = ("invoice.created", "invoice.finalized", "invoice.sent")
    event = endpoint.mailbox.wait_for(invoice["id"], *kinds)[-1]
    event.verify(endpoint.secret)
    assert event.event["data"] == sent

    mail = one_mail(mail_server, address)
    assert mail.sender == "bills@shop.example" and mail["From"] == "Bills <bills@shop.example>"
    assert mail["To"].addresses[0].addr_spec == address and mail["To"].addresses[0].display_name == "Awa Ceesay"
    assert mail["Subject"] == f"TEST: Invoice {invoice['invoice_number']} from Kairaba Books"
    assert mail["Auto-Submitted"] == "auto-generated" and mail["Content-Language"] == "en"
    assert mail["Date"] and mail["Message-ID"].endswith("@shop.example>")
    wanted = ["TEST.", "Awa Ceesay", invoice["invoice_number"], "100.00\xa0GMD", "31\xa0January\xa02030"]
    for said in (mail.text, mail.html):
        for words in [*wanted, "Rice, 50 kg", "See you soon", invoice["payment_url"]]:
            assert words in said, words
    ((name, file),) = mail.files.items()
    assert name == f"{invoice['invoice_number']}.pdf" and file.startswith(b"%PDF-") and len(file) > 1000


def test_a_payment_brings_a_receipt(api, mail_server):
    address = somebody()
    invoice = made(api, customer_email=address)
    number = pay(api, invoice, "40.00")["receipts"][0]["receipt_number"]
    mail = one_mail(mail_server, address)
    assert mail["Subject"] == f"TEST: Receipt {number} from Kairaba Books"
    assert list(mail.files) == [f"{number}.pdf"] and mail.files[f"{number}.pdf"].startswith(b"%PDF-")
    for said in (mail.text, mail.html):
        for words in ("40.00\xa0GMD", "Cash", "60.00\xa0GMD", invoice["invoice_number"], invoice["payment_url"]):
            assert words in said, words
    receipt = told_receipt(api, invoice)
    assert receipt["email_status"] == "sent" and receipt["email_sent_at"] >= receipt["created_at"]


def test_a_receipt_that_is_refused_says_so(api, mail_server):
    address = somebody()
    mail_server.refused.add(address)
    invoice = made(api, customer_email=address)
    pay(api, invoice, "100.00", "bank_transfer")
    receipt = told_receipt(api, invoice)
    assert (receipt["email_status"], receipt["email_sent_at"]) == ("failed", None)
    assert not mail_server.to(address)


def test_one_key_is_one_mail(api, mail_server):
    address = somebody()
    invoice = made(api, customer_email=address)
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = api.post(f"/v1/pay/invoices/{invoice['id']}/send", headers=key)
    second = api.post(f"/v1/pay/invoices/{invoice['id']}/send", headers=key)
    assert first.status_code == second.status_code == 200 and first.content == second.content
    assert second.headers["Idempotent-Replayed"] == "true"
    one_mail(mail_server, address)
    assert data(api.get(f"/v1/pay/invoices/{invoice['id']}"))["sent_count"] == 1


def test_ten_mails_about_one_invoice_are_enough(api, server, mail_server):
    address = somebody()
    invoice = made(api, customer_email=address)
    path = f"/v1/pay/invoices/{invoice['id']}/send"
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = api.post(path, headers=key)
    for count in range(2, 11):
        assert api.post(path, headers=key).content == first.content, "a repetition is no mail"
        assert send(api, invoice)["sent_count"] == count
    late = {"Idempotency-Key": uuid.uuid4().hex}
    for headers in [{}, late, late]:
        refused = api.post(path, headers=headers)
        sentence = refusal(refused, 400, "invoice_already_sent")["error"]
        assert "Retry-After" not in refused.headers, "the SDK would send it again"
    assert refused.headers["Idempotent-Replayed"] == "true"
    again_at = datetime.fromisoformat(re.search(r"Send it again from (\S+Z) on", sentence)[1])
    assert timedelta(0) < again_at - datetime.now(timezone.utc) <= timedelta(seconds=601)
    with Jokoor(server.keys["test"]["secret"], base_url=server.url) as retrying:
        assert "Send it again from" in error(retrying.invoices.send(invoice["id"])), "its user reads what to do"
    assert api.post(path, headers=key).content == first.content, "what was answered once is answered again"
    now = data(api.get(f"/v1/pay/invoices/{invoice['id']}"))
    assert (now["sent_count"], now["version"]) == (10, invoice["version"] + 10), "nothing is half-written"
    eventually(lambda: len(mail_server.to(address)) == 10, timeout=60)
    assert send(api, made(api, customer_email=address))["sent_count"] == 1, "another invoice"


def test_what_is_not_open_is_not_sent(api):
    draft, cancelled, paid = made(api, is_draft=True), made(api), made(api)
    data(api.post(f"/v1/pay/invoices/{cancelled['id']}/cancel"))
    pay(api, paid, "100.00")
    refusals = [
        (draft, "invoice_is_draft"),
        (cancelled, "invoice_already_cancelled"),
        (paid, "invoice_already_paid"),
    ]
    for invoice, code in refusals:
        refusal(api.post(f"/v1/pay/invoices/{invoice['id']}/send"), 400, code)
        assert data(api.get(f"/v1/pay/invoices/{invoice['id']}"))["sent_count"] == 0
    refusal(api.post("/v1/pay/invoices/inv_01h455vb4pex5vsknk084sn02q/send"), 404, "invoice_not_found")


def test_without_an_address_there_is_nobody_to_write_to(api):
    phone = f"+2203{uuid.uuid4().int % 10**6:06}"
    customer = data(api.post("/v1/pay/customers", {"phone": phone, "name": "Awa"}), 201)
    invoice = made(api, customer_id=customer["id"], customer_email=None, customer_name=None)
    assert invoice["customer_email"] == ""
    refusal(api.post(f"/v1/pay/invoices/{invoice['id']}/send"), 400, "customer_email_missing")


@pytest.fixture
def mine(new_server):
    """A server and its mail server, which is not up yet, of this test's own."""
    mail_server = MailServer()
    server = new_server(options=PLAIN + mail_server.options)
    yield server, mail_server, Api(server.url, server.keys["test"]["secret"])
    mail_server.stop()


def test_without_a_mail_server_sending_is_refused(new_server):
    server = new_server(options=PLAIN)
    api = Api(server.url, server.keys["test"]["secret"])
    invoice = made(api)
    body = refusal(api.post(f"/v1/pay/invoices/{invoice['id']}/send"), 400, "email_not_configured")
    assert "DALASI_SMTP_URL" in body["error"]
    pay(api, invoice, "1.00")
    receipt = only_receipt(api, invoice)
    assert (receipt["email_status"], receipt["email_sent_at"]) == ("pending", None)


def test_a_mail_server_that_is_down_delays_the_mail(mine):
    server, mail_server, api = mine
    address = somebody()
    assert send(api, made(api, customer_email=address))["sent_count"] == 1
    eventually(lambda: "can't be reached" in server.log.read_text(errors="replace"))

    def last(what):
        pattern = rf"^dalasi_mail_server_{what}_timestamp_seconds (\S+)$"
        return float(re.search(pattern, api.get("/metrics").text, re.MULTILINE)[1])

    assert last("failed") > last("worked") == 0
    mail_server.start()
    one_mail(mail_server, address, timeout=30)
    eventually(lambda: last("worked") >= last("failed"))
    assert address not in server.log.read_text(errors="replace"), "no log line tells who gets mail"


def test_a_mail_speaks_french_where_the_merchant_does(mine):
    server, mail_server, api = mine
    mail_server.start()
    shop = "Librairie <b>Élan</b>"
    data(api.put("/v1/pay/settings", {"locale": "fr", "name": shop, "email": "bonjour@elan.example"}))
    address, hostile = somebody(), 'Awa "<script>alert(1)</script>" Ceesay'
    invoice = made(api, price="1450.00", customer_email=address, customer_name=hostile, tax_rate=12.5)
    send(api, invoice)
    mail = one_mail(mail_server, address)
    assert mail["Subject"] == f"TEST : Facture {invoice['invoice_number']} de {shop}"
    assert mail["Content-Language"] == "fr"
    assert mail["Reply-To"].addresses[0].addr_spec == "bonjour@elan.example"
    assert mail["To"].addresses[0].addr_spec == address and mail["To"].addresses[0].display_name == hostile
    assert "Payer cette facture" in mail.text and "1\u202f631,25\xa0GMD" in mail.text and hostile in mail.text
    assert "<script>" not in mail.html and "<b>Élan" not in mail.html and "Bonjour Awa" in mail.html


def test_a_lost_answer_is_repeated_under_the_same_name(mine):
    server, mail_server, api = mine
    lost = []
    mail_server.on_data = lambda mail: "250 taken" if lost else lost.append(mail)
    mail_server.start()
    address = somebody()
    send(api, made(api, customer_email=address))
    mail = one_mail(mail_server, address, timeout=30)
    assert len(lost) == 1 and mail["Message-ID"] == lost[0]["Message-ID"] and mail.bytes == lost[0].bytes


def test_a_killed_server_sends_when_it_is_back(mine):
    server, mail_server, api = mine
    heard = []

    def strike(mail):
        heard.append(mail)
        server.kill()

    mail_server.on_data = strike
    mail_server.start()
    address = somebody()
    send(api, made(api, customer_email=address))
    assert mail_server.heard.wait(timeout=15), "the mail was on its way when the server died"
    mail_server.on_data = lambda mail: "250 taken"
    server.start()
    # The dead server's hold on it runs out first.
    mail = one_mail(mail_server, address, timeout=60)
    assert mail["Message-ID"] == heard[0]["Message-ID"]


class SlowForTests(MailServer):
    """Takes the mails of test mode without a word."""

    async def handle_DATA(self, server, session, envelope):
        if Mail(envelope)["Subject"].startswith("TEST:"):
            await asyncio.sleep(60)
        return await super().handle_DATA(server, session, envelope)


def test_live_mail_does_not_wait_for_test_mail(new_server):
    mail_server = SlowForTests().start()
    server = new_server(options=PLAIN + mail_server.options)
    test, live = (Api(server.url, server.keys[mode]["secret"]) for mode in ("test", "live"))
    for _ in range(8):
        send(test, made(test, customer_email=somebody()))
    time.sleep(1)
    for _ in range(3):
        address = somebody()
        send(live, made(live, customer_email=address))
        one_mail(mail_server, address)
    assert len(mail_server.mails) == 3
    server.kill()
    mail_server.stop()
