//! What the letters say of an invoice, a receipt and an endpoint that are stored.

use domain::invoice::{Invoice, Status};
use domain::method::{Method, OfflineMethod, PaymentMethod};
use domain::organization::{self, Profile};
use domain::receipt::Receipt;
use domain::webhook::{WebhookEndpoint, longest_life};
use domain::{Money, Timestamp};
use url::Url;

use super::{EndpointLetter, InvoiceLetter, Line, Merchant, PaidWith, ReceiptLetter, Rest, Standing};
use crate::mail::is_answerable;
use crate::pages::text::Locale;
use crate::pages::view::Amount;

impl InvoiceLetter {
    /// `refunded` is what went back of its payments.
    pub fn of(
        invoice: &Invoice,
        merchant: &Profile,
        refunded: Option<Money>,
        pay_url: Option<String>,
        now: Timestamp,
    ) -> Self {
        let bill = invoice.bill();
        let line = |item: &domain::checkout::Item| Line {
            description: item.description.clone().unwrap_or_default(),
            quantity: item.quantity,
            total: amount(item.total),
        };
        let standing = match invoice.remaining().minor {
            0 => Standing::Settled,
            _ if invoice.due_date <= now => Standing::Overdue,
            _ => Standing::Open,
        };
        Self {
            merchant: of_merchant(merchant),
            locale: locale(merchant.locale),
            test_mode: !invoice.scope.mode.is_live(),
            customer: Some(invoice.customer.name.clone()),
            number: invoice.number.clone(),
            lines: bill.items().iter().map(line).collect(),
            before_tax: amount(bill.amount()),
            tax: (bill.tax().minor > 0).then(|| (bill.tax_rate().to_string(), amount(bill.tax()))),
            total: amount(invoice.total()),
            paid: amount(invoice.paid()),
            refunded: amount(refunded.unwrap_or(Money::new(0, invoice.paid().currency))),
            left: amount(invoice.remaining()),
            standing,
            due_at: invoice.due_date.seconds(),
            notes: invoice.notes.clone(),
            pay_url,
        }
    }
}

impl ReceiptLetter {
    /// The merchant as the receipt has kept it; the rest as the invoice stands, and `refunded` as the payment does.
    pub fn of(receipt: &Receipt, invoice: &Invoice, refunded: Money, pay_url: Option<String>, now: Timestamp) -> Self {
        let rest = match invoice.status(now) {
            // Nobody is told that nothing is left to pay of what they have back.
            Status::Paid if refunded.minor > 0 => Rest::Closed,
            Status::Pending | Status::PartiallyPaid | Status::Overdue => {
                Rest::Left { left: amount(invoice.remaining()), pay_url }
            }
            Status::Paid => Rest::Nothing,
            Status::Draft | Status::Cancelled => Rest::Closed,
        };
        Self {
            merchant: of_merchant(&receipt.merchant),
            locale: locale(receipt.merchant.locale),
            test_mode: !receipt.scope.mode.is_live(),
            number: receipt.number.clone(),
            amount: amount(receipt.amount),
            refunded: amount(refunded),
            invoice_number: receipt.invoice_number.clone(),
            paid_with: paid_with(receipt.method),
            paid_at: receipt.payment_date.seconds(),
            rest,
        }
    }
}

impl EndpointLetter {
    /// `None`: nobody but its merchant made it inactive.
    pub fn of(endpoint: &WebhookEndpoint, merchant: &Profile, api_url: &str) -> Option<Self> {
        let (reason, disabled_at) = (endpoint.disable_reason?, endpoint.disabled_at?);
        // What failed then may have happened long before; what arrived is not sent again.
        let oldest = endpoint.failing_since.unwrap_or(disabled_at).minus(longest_life());
        let url = Url::parse(&endpoint.url).ok();
        let host = url.as_ref().and_then(Url::host_str).map_or_else(|| endpoint.id.to_string(), str::to_owned);
        let Profile { name, accent_color, locale: language, .. } = merchant;
        Some(Self {
            // They know where they are.
            merchant: Merchant { name: name.clone(), accent_color: accent_color.clone(), ..Merchant::default() },
            locale: locale(*language),
            test_mode: !endpoint.scope.mode.is_live(),
            id: endpoint.id.to_string(),
            description: endpoint.description.clone(),
            host,
            reason,
            missing_since: oldest.max(endpoint.created_at).floor_to_second().to_text(),
            disabled_at: disabled_at.seconds(),
            api_url: api_url.to_owned(),
        })
    }
}

fn of_merchant(profile: &Profile) -> Merchant {
    Merchant {
        name: profile.name.clone(),
        address: profile.address.clone(),
        phone: profile.phone.clone(),
        email: profile.email.clone(),
        accent_color: profile.accent_color.clone(),
        can_reply: profile.email.as_deref().is_some_and(is_answerable),
    }
}

fn locale(locale: organization::Locale) -> Locale {
    match locale {
        organization::Locale::En => Locale::English,
        organization::Locale::Fr => Locale::French,
    }
}

fn amount(money: Money) -> Amount {
    Amount {
        minor: money.minor,
        exponent: u8::try_from(money.currency.exponent()).unwrap_or(0),
        currency: money.currency.code().to_owned(),
    }
}

fn paid_with(method: PaymentMethod) -> PaidWith {
    match method {
        PaymentMethod::Online(Method::Wave) => PaidWith::Wave,
        PaymentMethod::Online(Method::Afrimoney) => PaidWith::Afrimoney,
        PaymentMethod::Online(Method::Qmoney) => PaidWith::Qmoney,
        PaymentMethod::Online(Method::Card) => PaidWith::Card,
        PaymentMethod::Offline(OfflineMethod::Cash) => PaidWith::Cash,
        PaymentMethod::Offline(OfflineMethod::BankTransfer) => PaidWith::BankTransfer,
        PaymentMethod::Offline(OfflineMethod::Check) => PaidWith::Check,
        PaymentMethod::Offline(OfflineMethod::WesternUnion) => PaidWith::WesternUnion,
        PaymentMethod::Offline(OfflineMethod::Other) => PaidWith::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail can't name every address for its answers.
    #[test]
    fn who_is_told_to_reply_reaches_the_merchant() {
        for (email, can_reply) in [
            (Some("hello@kairaba.example"), true),
            (Some("info@bücher.example"), true),
            (Some("äwa@kairaba.example"), false),
            (None, false),
        ] {
            let profile = serde_json::json!({ "name": "Kairaba Books", "email": email });
            let profile: Profile = serde_json::from_value(profile).unwrap();
            assert_eq!(of_merchant(&profile).can_reply, can_reply, "{email:?}");
        }
    }
}
