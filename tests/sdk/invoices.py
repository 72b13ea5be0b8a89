"""What an invoice looks like, and what holds of every one of them (contract §2.4, §3)."""

import re
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

MINOR = {"GMD": Decimal("0.01"), "XOF": Decimal(1)}
STATUSES = {"draft", "pending", "paid", "partially_paid", "overdue", "cancelled"}
PAYMENT_STATUSES = {
    "draft": {"unpaid"},
    "pending": {"unpaid"},
    "overdue": {"unpaid"},
    "partially_paid": {"partial"},
    "paid": {"paid"},
    "cancelled": {"cancelled"},
}

FIELDS = {
    "id": "inv", "invoice_number": r"INV-\d{4}-(0[1-9]|1[0-2])-\d{4,}", "customer_id": "cus", "customer_email": str,
    "customer_name": str, "customer_address": str, "customer_phone": str, "amount": "money", "tax_rate": (int, float),
    "tax_amount": "money", "total_amount": "money", "paid_amount": "money", "remaining_amount": "money",
    "currency": r"[A-Z]{3}", "status": str, "payment_status": str, "due_date": "moment", "issued_date": "moment?",
    "paid_date": "moment?", "sent_at": "moment?", "sent_count": int, "notes": str, "items": list, "payment_url": "url?",
    "pdf_url": "url", "receipts": list, "metadata": dict, "subscription_id": "sub?", "mode": r"test|live",
    "livemode": bool, "version": int, "organization": dict, "organization_id": "org", "created_at": "moment",
    "updated_at": "moment",
}  # fmt: skip
ITEM = {
    "product_id": "prod?", "description": str, "quantity": int, "unit_price": "money", "total": "money", "amount": "money",
}  # fmt: skip
RECEIPT_SUMMARY = {
    "id": "rec", "receipt_number": r"RCT-\d{4}-\d{3,}", "receipt_url": "url", "amount": "money",
    "payment_date": "moment", "status": r"pending|completed|failed",
}  # fmt: skip
ORGANIZATION = {"id": "org", "name": str, "logo_url": str}
PAYMENT = {
    "id": "invpay", "invoice_id": "inv", "amount": "money", "currency": r"[A-Z]{3}", "payment_method": str,
    "transaction_id": "txn", "receipt_id": "rec", "notes": "text?", "payment_date": "second", "recorded_by": "text?",
    "created_at": "second",
}  # fmt: skip
RECEIPT = {
    "id": "rec", "receipt_number": r"RCT-\d{4}-\d{3,}", "invoice_id": "inv?", "invoice_payment_id": "invpay?",
    "organization_id": "org", "amount": "money", "currency": r"[A-Z]{3}", "payment_method": str, "payment_date": "second",
    "transaction_id": "txn?", "receipt_url": "url?", "validation_code": r"[0-9a-f]{32}", "customer_name": "text?",
    "customer_email": "text?", "customer_phone": "text?", "customer_address": "text?", "org_name": str,
    "org_address": "text?", "org_phone": "text?", "org_email": "text?", "org_logo_url": "url?", "org_tax_id": "text?",
    "metadata": dict, "status": r"pending|completed|failed", "error_message": "text?", "retry_count": int,
    "generated_at": "second?", "email_sent_at": "second?", "email_status": r"pending|sent|failed", "created_at": "second",
    "created_by": "text?", "updated_at": "second", "mode": r"test|live", "livemode": bool,
}  # fmt: skip

SHAPES = {
    "money": r"(0|[1-9]\d*)(\.\d\d)?",
    "moment": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "second": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "url": r"https?://\S+",
    "text": r"(?s).*",
    **{
        prefix: prefix + r"_[0-9a-hjkmnp-tv-z]{26}"
        for prefix in ("inv", "invpay", "cus", "sub", "prod", "org", "rec", "txn")
    },
}


def fits(record, fields, what):
    """The record has exactly these fields, each of its type."""
    assert set(record) == set(fields), f"{what}: {set(record) ^ set(fields)}"
    for name, kind in fields.items():
        value = record[name]
        if isinstance(kind, str):
            if value is None and kind.endswith("?"):
                continue
            shape = SHAPES.get(kind.removesuffix("?"), kind)
            assert isinstance(value, str) and re.fullmatch(shape, value), f"{what}.{name}: {value!r}"
        else:
            assert isinstance(value, kind), f"{what}.{name}: {value!r}"
            assert kind in (bool, dict, list, str) or not isinstance(value, bool), f"{what}.{name}: {value!r}"
    return record


def lasting(invoice):
    """That invoice without what goes on by itself: whether its receipts' documents have been made yet."""
    receipts = [{name: value for name, value in receipt.items() if name != "status"} for receipt in invoice["receipts"]]
    return invoice | {"receipts": receipts}


def whole(invoice):
    """That invoice, once everything that holds of each of them was looked at."""
    fits(invoice, FIELDS, "invoice")
    fits(invoice["organization"], ORGANIZATION, "organization")
    for item in invoice["items"]:
        fits(item, ITEM, "item")
        assert Decimal(item["total"]) == item["quantity"] * Decimal(item["unit_price"])
        assert item["amount"] == item["total"]
    for receipt in invoice["receipts"]:
        fits(receipt, RECEIPT_SUMMARY, "receipt")
    money = {name: Decimal(invoice[name]) for name, kind in FIELDS.items() if kind == "money"}
    assert money["amount"] == sum(Decimal(item["total"]) for item in invoice["items"])
    assert all(-value.as_tuple().exponent == (2 if invoice["currency"] == "GMD" else 0) for value in money.values())
    assert money["tax_amount"] == tax(money["amount"], invoice["tax_rate"], invoice["currency"])
    assert money["total_amount"] == money["amount"] + money["tax_amount"]
    assert money["remaining_amount"] == money["total_amount"] - money["paid_amount"]
    assert money["paid_amount"] == sum(Decimal(receipt["amount"]) for receipt in invoice["receipts"])

    status = invoice["status"]
    assert status in STATUSES
    assert invoice["payment_status"] in PAYMENT_STATUSES[status]
    open_to_payers = status in ("pending", "partially_paid", "overdue")
    assert (invoice["payment_url"] is not None) == open_to_payers, status
    if invoice["payment_url"]:
        assert invoice["payment_url"].endswith(f"/invoice/{invoice['id']}")
    assert (invoice["paid_date"] is not None) == (status == "paid")
    if status != "cancelled":
        assert (invoice["issued_date"] is not None) == (status != "draft")
    assert (money["remaining_amount"] == 0) == (status == "paid")
    assert invoice["pdf_url"].endswith(f"/v1/pay/invoices/{invoice['id']}/pdf")
    assert invoice["organization"]["id"] == invoice["organization_id"]
    assert invoice["mode"] == ("live" if invoice["livemode"] else "test")
    assert invoice["version"] >= 1
    assert all(isinstance(value, str) for value in invoice["metadata"].values())
    assert when(invoice["created_at"]) <= when(invoice["updated_at"])
    return invoice


def tax(amount, rate, currency="GMD"):
    """By Python's own decimals: half up, once, on the sum."""
    return (amount * Decimal(str(rate)) / 100).quantize(MINOR[currency], ROUND_HALF_UP)


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def order(price="100.00", **fields):
    """What an invoice is made of: a sack of rice for Awa Ceesay, unless told otherwise. None leaves a field out."""
    whole_order = {
        "customer_email": "awa@example.gm",
        "customer_name": "Awa Ceesay",
        "currency": "GMD",
        "due_date": "2030-01-31",
        "items": [{"description": "Rice, 50 kg", "quantity": 1, "unit_price": price}],
    } | fields
    return {name: value for name, value in whole_order.items() if value is not None}


def number(invoice):
    """What counts in its number."""
    return int(invoice["invoice_number"].rsplit("-", 1)[1])
