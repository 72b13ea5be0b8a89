//! What a document shows of an invoice and of a receipt.

use domain::invoice::{BillTo, Invoice, Status};
use domain::method::{Method, OfflineMethod, PaymentMethod};
use domain::organization::{Locale, Profile};
use domain::receipt::Receipt;
use domain::{Currency, Money, Timestamp};

use super::Reader;
use crate::mask;
use crate::wire::Addresses;

/// `refunded` is what went back of its payments, and when.
pub(super) fn of_invoice(
    reader: Reader,
    invoice: &Invoice,
    merchant: &Profile,
    refunded: Option<(Money, Timestamp)>,
    pay_address: Option<String>,
    now: Timestamp,
) -> pdf::Invoice {
    let bill = invoice.bill();
    let is_refunded = refunded.is_some_and(|(amount, _)| amount == invoice.paid());
    let lines = bill.items().iter().map(|item| pdf::Line {
        description: item.description.clone().unwrap_or_default(),
        quantity: item.quantity,
        unit_price: item.unit_price.minor,
        total: item.total.minor,
    });
    pdf::Invoice {
        locale: locale(merchant.locale),
        merchant: of_merchant(merchant),
        state: state(invoice.status(now), is_refunded),
        test: !invoice.scope.mode.is_live(),
        number: invoice.number.clone(),
        issued: invoice.issued_date().map(|at| moment(at).date),
        due: Some(moment(invoice.due_date).date),
        paid_on: invoice.paid_date().map(|at| moment(at).date),
        bill_to: of_customer(reader, &invoice.customer),
        currency: currency(bill.currency()),
        lines: lines.collect(),
        subtotal: bill.amount().minor,
        tax_rate: bill.tax_rate().to_string(),
        tax: bill.tax().minor,
        total: invoice.total().minor,
        paid: invoice.paid().minor,
        refunded: refunded.map_or(0, |(amount, _)| amount.minor),
        remaining: invoice.remaining().minor,
        notes: invoice.notes.clone(),
        pay_address,
        as_of: moment(refunded.map_or(invoice.updated_at, |(_, at)| at.max(invoice.updated_at))),
    }
}

/// `statement` is the address with the signed statement about the payment.
pub(super) fn of_receipt(reader: Reader, receipt: &Receipt, statement: String, addresses: &Addresses) -> pdf::Receipt {
    pdf::Receipt {
        locale: locale(receipt.merchant.locale),
        merchant: of_merchant(&receipt.merchant),
        test: !receipt.scope.mode.is_live(),
        number: receipt.number.clone(),
        payer: of_customer(reader, &receipt.customer),
        currency: currency(receipt.amount.currency),
        amount: receipt.amount.minor,
        method: method(receipt.method),
        paid_at: moment(receipt.payment_date),
        invoice_number: receipt.invoice_number.clone(),
        reference: receipt.transaction.to_string(),
        validation_code: receipt.validation_code.as_str().to_owned(),
        verify_code: statement,
        verify_address: format!("{}/verify", addresses.pay_url),
    }
}

/// An invoice stays `paid` whatever goes back of it; that it is paid is not all there is to say then.
fn state(status: Status, is_refunded: bool) -> pdf::State {
    match status {
        Status::Draft => pdf::State::Draft,
        Status::Pending | Status::PartiallyPaid => pdf::State::Open,
        Status::Overdue => pdf::State::Overdue,
        Status::Paid if is_refunded => pdf::State::Refunded,
        Status::Paid => pdf::State::Paid,
        Status::Cancelled => pdf::State::Cancelled,
    }
}

fn of_merchant(profile: &Profile) -> pdf::Merchant {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    pdf::Merchant {
        name: profile.name.clone(),
        address: text(&profile.address),
        phone: text(&profile.phone),
        email: text(&profile.email),
        tax_id: text(&profile.tax_id),
        // Read only where there is no file yet.
        logo: None,
        accent: profile.accent_color.clone(),
    }
}

fn of_customer(reader: Reader, customer: &BillTo) -> pdf::Party {
    let phone = customer.phone.as_ref().map(|phone| phone.as_str());
    let email = Some(customer.email.as_str()).filter(|email| !email.is_empty());
    let (phone, email) = match reader {
        Reader::Party => (phone.map(str::to_owned), email.map(str::to_owned)),
        Reader::Anybody => (phone.map(mask::phone), email.map(mask::email)),
    };
    pdf::Party {
        name: customer.name.clone(),
        address: customer.address.clone(),
        phone: phone.unwrap_or_default(),
        email: email.unwrap_or_default(),
    }
}

fn currency(currency: Currency) -> pdf::Currency {
    pdf::Currency { code: currency.code().to_owned(), exponent: u8::try_from(currency.exponent()).unwrap_or(0) }
}

fn locale(locale: Locale) -> pdf::Locale {
    match locale {
        Locale::En => pdf::Locale::English,
        Locale::Fr => pdf::Locale::French,
    }
}

fn method(method: PaymentMethod) -> pdf::Method {
    match method {
        PaymentMethod::Online(Method::Wave) => pdf::Method::Wave,
        PaymentMethod::Online(Method::Afrimoney) => pdf::Method::Afrimoney,
        PaymentMethod::Online(Method::Qmoney) => pdf::Method::Qmoney,
        PaymentMethod::Online(Method::Card) => pdf::Method::Card,
        PaymentMethod::Offline(OfflineMethod::Cash) => pdf::Method::Cash,
        PaymentMethod::Offline(OfflineMethod::BankTransfer) => pdf::Method::BankTransfer,
        PaymentMethod::Offline(OfflineMethod::Check) => pdf::Method::Check,
        PaymentMethod::Offline(OfflineMethod::WesternUnion) => pdf::Method::WesternUnion,
        PaymentMethod::Offline(OfflineMethod::Other) => pdf::Method::Other,
    }
}

/// In Banjul's time, which is UTC all year.
fn moment(at: Timestamp) -> pdf::Moment {
    let at = jiff::Timestamp::from_microsecond(at.micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let part = |number: i8| number.unsigned_abs();
    pdf::Moment {
        date: pdf::Date { year: at.year(), month: part(at.month()), day: part(at.day()) },
        hour: part(at.hour()),
        minute: part(at.minute()),
        second: part(at.second()),
    }
}
