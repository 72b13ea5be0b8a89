"""A merchant, a customer and a payer who fill in everything there is, and every output that shows something of it."""

import itertools
import re

from checks import data, eventually
from hosted import Payer
from hostile import put_back
from server import Api
from store import at_a_terminal, dalasi

APPROVES, NO_MONEY, QUIET = "+2207000000", "+2207000001", "+2207654321"
NUMBERS = itertools.count(1)


class Places:
    """One text in every place. `outputs`: the name of each output, and the output."""

    def __init__(self, server, mail_server, words, benign, locale):
        self.server, self.mail_server, self.words, self.benign = server, mail_server, words, benign
        self.locale = locale
        self.api = Api(server.url, server.keys["test"]["secret"])
        self.payer = Payer(server.url)
        self.address = f"to{next(NUMBERS):08}@pay.example"
        self.outputs = {}
        self.refused = []
        self.faults = []
        self.heard = len(mail_server.mails)

    def visit(self):
        self.settings()
        paid, not_paid = self.begin("paid", APPROVES), self.begin("not paid", NO_MONEY)
        invoice, cancelled = self.invoices()
        self.checkouts()
        self.links()
        self.wrong_addresses()
        self.commands()
        self.end("not paid", not_paid, "failed")
        transaction = self.end("paid", paid, "completed")
        self.send(
            "refund",
            "POST",
            f"/v1/pay/transactions/{transaction}/refund",
            lambda words: {"amount": "1.00", "reason": words.cut()},
        )
        self.files(invoice, cancelled)
        self.mails()
        return self

    def send(self, name, method, path, make, status=201):
        """Makes something of the text; a field that refuses it, by its name, gets the harmless one."""
        body, safe = make(self.words), make(self.benign)
        for _ in range(20):
            answer = self.api.request(method, path, body)
            if answer.status_code != 400:
                break
            for fault in answer.json()["details"]:
                self.refused.append(f"{name} {fault['field']}")
                put_back(body, safe, fault["field"])
        if answer.status_code != status:
            self.faults.append(f"{name} is answered {answer.status_code}: {answer.text[:200]}")
            answer = self.api.request(method, path, safe)
        self.outputs[name] = answer
        return data(answer, status)

    def page(self, name, answer):
        """A page that a payer was led to, asked for once more, to have its headers."""
        self.outputs[name] = self.get(answer.path)
        return answer

    def get(self, path, **options):
        url = self.server.url + path
        return self.payer.session.get(url, timeout=20, allow_redirects=False, **options)

    def settings(self):
        self.send("settings", "PUT", "/v1/pay/settings", lambda words: {
            "name": words.cut(200), "address": words.cut(), "tax_id": words.cut(200), "email": words.email(),
            "phone": words.instead("+2203334455"), "accent_color": words.instead("#0b6e4f"), "locale": self.locale,
            "logo_url": None, "allow_partial_payments": True,
        }, 200)  # fmt: skip

    def invoices(self):
        customer = self.send("customer", "POST", "/v1/pay/customers", lambda words: {
            "name": words.cut(200), "phone": f"+2203{next(NUMBERS):06}", "metadata": {words.cut(40): words.cut(500)},
        })  # fmt: skip
        self.send("customer by mail", "POST", "/v1/pay/customers", lambda words: {
            "name": words.cut(200), "email": words.email(is_raw=True).replace("zq.raw", f"zq.raw.{next(NUMBERS)}"),
        })  # fmt: skip
        product = self.send("product", "POST", "/v1/pay/products", lambda words: {
            "name": words.cut(200), "price": "5.00", "description": words.cut(), "images": [words.url()],
            "metadata": {words.cut(40): words.cut(500)},
        })  # fmt: skip

        def bill(words):
            return {
                "customer_id": customer["id"], "customer_email": self.address, "customer_name": words.cut(200),
                "customer_address": words.cut(), "customer_phone": words.instead("+2207123412"), "notes": words.cut(),
                "due_date": words.instead("2030-01-31"), "currency": words.instead("GMD"), "tax_rate": 15,
                "items": [
                    {"description": words.cut(), "quantity": 2, "unit_price": "50.00"},
                    {"product_id": product["id"], "quantity": 1},
                ],
                "metadata": {words.cut(40): words.cut(500)},
            }  # fmt: skip

        invoice = self.send("invoice", "POST", "/v1/pay/invoices", bill)
        self.send(
            "invoice with a mail address",
            "POST",
            "/v1/pay/invoices",
            lambda words: bill(words) | {"customer_email": words.email(is_raw=True)},
        )
        draft = self.send("draft", "POST", "/v1/pay/invoices", lambda words: bill(words) | {"is_draft": True})
        cancelled = self.send("another invoice", "POST", "/v1/pay/invoices", bill)
        data(self.api.post(f"/v1/pay/invoices/{cancelled['id']}/cancel"))
        self.page("page of an invoice", self.payer.look(f"/invoice/{invoice['id']}"))
        self.send("cash", "POST", f"/v1/pay/invoices/{invoice['id']}/payments", lambda words: {
            "amount": "40.00", "payment_method": "cash", "notes": words.cut(), "transaction_id": words.cut(200),
        })  # fmt: skip
        # An event tells whether they are.
        self.drawn_receipts(invoice)
        data(self.api.post(f"/v1/pay/invoices/{invoice['id']}/send"))
        page = self.page("page of a part-paid invoice", self.payer.look(f"/invoice/{invoice['id']}"))
        page = self.payer.press(page, "/method", method="afrimoney", amount=self.words.cut(24))
        self.page("page of a wrong part", page)
        self.page("page of a draft", self.payer.look(f"/invoice/{draft['id']}"))
        self.page("page of a cancelled invoice", self.payer.look(f"/invoice/{cancelled['id']}"))
        return invoice, cancelled

    def checkout(self, name):
        made = self.send(name, "POST", "/v1/checkouts", lambda words: {
            "items": [
                {"description": words.cut(), "quantity": 1, "unit_price": "10.00"},
                {"description": words.cut(50), "quantity": 3, "unit_price": "1.00"},
            ],
            "description": words.cut(), "reference": words.cut(255), "customer_name": words.cut(200),
            "customer_email": words.email(), "customer_phone": words.instead("+2207123412"),
            "metadata": {words.cut(40): words.cut(500)},
            "success_url": words.url(), "failure_url": words.url(is_raw=True),
        })  # fmt: skip
        return made, self.payer.look(f"/checkout/{made['id']}")

    def checkouts(self):
        made, page = self.checkout("checkout")
        self.page("page of a choice", page)
        other = "fr" if self.locale == "en" else "en"
        self.page("page in another language", self.payer.look(f"/checkout/{made['id']}?lang={other}"))
        page = self.page("page that asks for a phone", self.payer.press(page, "/method", method="afrimoney"))
        self.page(
            "page of a wrong phone", self.payer.press(page, "/phone", method="afrimoney", phone=self.words.cut(24))
        )
        self.page("page that waits", self.payer.press(page, "/phone", method="afrimoney", phone=QUIET))
        _, page = self.checkout("checkout by code")
        page = self.payer.press(page, "/method", method="qmoney")
        page = self.page("page that asks for a code", self.payer.press(page, "/phone", method="qmoney", phone=APPROVES))
        self.page("page of a wrong code", self.payer.press(page, "/code", code=self.words.cut(500)))

        _, page = self.checkout("checkout by wallet")
        page = self.page("page to a wallet", self.payer.press(page, "/method", method="wave"))
        simulator = next(lead for lead in page.leads if "/simulator/" in lead).removeprefix(self.server.url)
        page = self.page("page of the wallet", self.payer.look(simulator))
        _, page = self.checkout("checkout by card")
        page = self.payer.press(page, "/method", method="card")
        simulator = next(lead for lead in page.leads if "/simulator/" in lead).removeprefix(self.server.url)
        page = self.page("page of the card", self.payer.look(simulator))
        action, hidden = page.forms[0]
        self.outputs["a wrong card"] = self.payer.session.post(
            self.server.url + action,
            data=hidden | {"number": self.words.cut(100)},
            headers={"Origin": self.server.url},
            allow_redirects=False,
        )
        self.outputs["page of a problem"] = self.get(simulator.split("?")[0], params={"problem": self.words.cut(500)})

        made, page = self.checkout("checkout that is left")
        self.page("page that is left", self.payer.press(page, "/leave"))
        self.page("page that is cancelled", self.payer.look(f"/checkout/{made['id']}"))

    def begin(self, name, phone):
        """A payment that takes its time, as its page."""
        made, page = self.checkout(f"checkout that is {name}")
        page = self.payer.press(page, "/method", method="afrimoney")
        self.payer.press(page, "/phone", method="afrimoney", phone=phone)
        return made

    def end(self, name, checkout, status):
        def settled():
            found = data(self.api.get(f"/v1/checkouts/{checkout['id']}"))["transaction"] or {}
            return found if found.get("status") == status else None

        transaction = eventually(settled, pause=0.05)["id"]
        self.page(f"page that is {name}", self.payer.look(f"/checkout/{checkout['id']}"))
        self.outputs[f"transaction that is {name}"] = self.api.get(f"/v1/pay/transactions/{transaction}")
        return transaction

    def links(self):
        kinds = [("text", {}), ("number", {}), ("email", {}), ("phone", {}), ("checkbox", {}), ("select", 1)]
        made = self.send("link", "POST", "/v1/pay/payment-links", lambda words: {
            "title": words.cut(200), "description": words.cut(), "amount": "5.00", "collect_customer_info": True,
            "metadata": {words.cut(40): words.cut(500)},
            "success_url": words.url(), "failure_url": words.url(is_raw=True),
            "custom_fields": [
                {"name": f"{kind[0]}{at}" + words.cut(30), "label": words.cut(200), "type": kind}
                | ({"options": [words.cut(200), "other"]} if more else {})
                for at, (kind, more) in enumerate(kinds)
            ],
        })  # fmt: skip
        page = self.page("page of a link", self.payer.look(f"/pay/{made['id']}"))
        names = ["name", "email", "phone"] + [f"answer-{at}" for at in range(len(kinds))]
        wrong = dict.fromkeys(names, self.words.cut(40)) | {"answer-4": "true", "answer-5": "x" + self.words.cut(40)}
        page = self.page("page of wrong answers", self.payer.press(page, "/method", method="afrimoney", **wrong))
        right = {
            "name": self.words.cut(40),
            "phone": QUIET,
            "email": self.words.email(),
            "answer-0": self.words.cut(500),
            "answer-5": "",
        }
        right |= {"answer-1": "7", "answer-2": "", "answer-3": "", "method": "card"}
        page = self.page("page of right answers", self.payer.press(page, "/method", **right))
        found = data(self.api.get("/v1/pay/transactions", params={"limit": 1}))["items"]
        self.outputs["transaction of a link"] = self.api.get(f"/v1/pay/transactions/{found[0]['id']}")
        self.outputs["link"] = self.api.get(f"/v1/pay/payment-links/{made['id']}")

    def wrong_addresses(self):
        """Where what is asked for might be repeated."""
        text, short, written = self.words.cut(200), self.words.cut(50), self.words.header()
        for path in ("/checkout/", "/pay/", "/invoice/", "/receipts/", "/simulator/", "/", "/assets/", "/verify/"):
            self.outputs[f"no page {path}"] = self.get(path + self.words.segment())
        for path in ("/v1/checkouts/", "/v1/pay/receipts/number/", "/v1/pay/receipts/validate/", "/v1/pay/status/"):
            self.outputs[f"no object {path}"] = self.api.get(path + self.words.segment())
        names = ("lang", "note", "problem", "reads", "method", "amount", "code", "session_id", short)
        self.outputs["queries of verify"] = self.get("/verify", params=dict.fromkeys(names, text))
        self.outputs["queries of a checkout"] = self.get(
            self.outputs["page of a link"].url.removeprefix(self.server.url), params=dict.fromkeys(names, text)
        )
        self.outputs["queries of a list"] = self.api.get(
            "/v1/checkouts", params={"status": text, "limit": text, "cursor": text, short: text}
        )
        headers = (
            "Accept-Language",
            "User-Agent",
            "Referer",
            "X-Forwarded-Host",
            "X-Forwarded-Prefix",
            "X-Request-Id",
            "Cookie",
        )
        self.outputs["headers of a page"] = self.get("/verify", headers=dict.fromkeys(headers, written))
        form = {"form_token": text, "method": text, short: text}
        address = self.outputs["page of a link"].url + "/method"
        ours = {"Origin": self.server.url}
        self.outputs["a wrong form"] = self.payer.session.post(address, data=form, headers=ours, allow_redirects=False)
        self.outputs["a foreign form"] = self.payer.session.post(
            address, data=form, headers={"Origin": written}, allow_redirects=False
        )
        self.outputs["an unknown field"] = self.api.post("/v1/checkouts", {short: text})
        self.outputs["an unknown type"] = self.api.post("/v1/checkouts", headers={"Content-Type": written})

    def drawn_receipts(self, invoice):
        def complete():
            found = data(self.api.get(f"/v1/pay/invoices/{invoice['id']}/receipts"))
            return found if all(it["status"] == "completed" for it in found) else None

        return eventually(complete, pause=0.05)

    def files(self, invoice, cancelled):
        (receipt,) = self.drawn_receipts(invoice)
        self.outputs["receipt"] = self.api.get(f"/v1/pay/receipts/{receipt['id']}")
        self.outputs["receipt by code"] = self.api.get(f"/v1/pay/receipts/validate/{receipt['validation_code']}")
        self.outputs["file of a receipt"] = self.api.get(f"/v1/pay/receipts/{receipt['id']}/download")
        self.outputs["file of an invoice"] = self.get(f"/invoice/{invoice['id']}/pdf")
        self.outputs["file of a cancelled invoice"] = self.api.get(f"/v1/pay/invoices/{cancelled['id']}/pdf")
        events = data(self.api.get("/v1/events", params={"limit": 100}))["items"]
        for event in events:
            if event["object_id"] in (invoice["id"], cancelled["id"]):
                which = "an" if event["object_id"] == invoice["id"] else "a cancelled"
                self.outputs[f"event {event['type']} of {which} invoice"] = self.api.get(f"/v1/events/{event['id']}")

    def commands(self):
        """What the operator reads, by a pipe and at a terminal."""
        location = self.server.store.location
        self.outputs["organization for a program"] = dalasi("organization", "show", *location).stdout
        self.outputs["organization at a terminal"] = at_a_terminal("organization", "show", *location)
        printed = [self.outputs[f"organization {to}"].count("\n") for to in ("for a program", "at a terminal")]
        if printed[1] != printed[0] + 1:
            self.faults.append(f"at a terminal {printed[0]} rows and a heading are {printed[1]} lines")

    def mails(self):
        def both():
            mine = [mail for mail in self.mail_server.mails[self.heard :] if mail.recipients == [self.address]]
            return mine if len(mine) >= 2 else None

        for mail in eventually(both, pause=0.05):
            self.outputs[f"mail with {re.sub('[0-9-]', '', next(iter(mail.files)))}"] = mail
        told = [mail.recipients for mail in self.mail_server.mails[self.heard :]]
        strangers = [recipients for recipients in told if recipients != [self.address]]
        if strangers:
            self.faults.append(f"a mail goes to {strangers}")
