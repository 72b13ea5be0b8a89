//! Readers of values that several resources take: the domain's parsers behind the field readers' words.

use domain::customer::Customer;
use domain::product::Product;
use domain::tax_rate::TaxRateFault;
use domain::{Currency, Id, Method, Money, Msisdn, Object, TaxRate, Timestamp};
use store::queries::PageRequest;

use super::answer::Problem;
use super::fault::FaultCode;
use super::fields::{Change, Fields};
use super::query::Query;

type Read<T> = Result<T, (FaultCode, String)>;

/// A positive amount. `field` is only for the sentence.
pub(super) fn amount(field: &'static str, currency: Currency) -> impl Fn(&str) -> Read<Money> {
    move |text| {
        use domain::money::AmountFault;
        Money::parse_positive(text, currency).map_err(|fault| {
            let code = match fault {
                AmountFault::Malformed => FaultCode::InvalidFormat,
                AmountFault::NotPositive => FaultCode::AmountNotPositive,
                AmountFault::TooManyDecimals { .. } => FaultCode::TooManyDecimals,
                AmountFault::TooLarge { .. } => FaultCode::AmountTooLarge,
            };
            (code, format!("`{field}` {}", fault.sentence()))
        })
    }
}

/// In a currency that is not known where what was sent for it is none: then nothing, unless it is an amount in no currency.
pub(super) fn amount_in(field: &'static str, currency: Option<Currency>) -> impl Fn(&str) -> Read<Option<Money>> {
    move |text| match currency {
        Some(currency) => amount(field, currency)(text).map(Some),
        None => amount_of_any(field)(text).map(|_| None),
    }
}

/// The text of what is an amount in some currency: they differ in their decimals.
pub(super) fn amount_of_any(field: &'static str) -> impl Fn(&str) -> Read<String> {
    move |text| amount(field, Currency::of_most_decimals())(text).map(|_| text.to_owned())
}

/// The body's currency, and GMD where it has none; nothing where what was sent is no currency.
pub(super) fn currency_of(fields: &mut Fields<'_>) -> Option<Currency> {
    let sent = fields.text("currency").parse(currency).optional();
    if fields.has("currency") { sent } else { Some(Currency::gmd()) }
}

/// One that is withdrawn is known, because of what is stored, and nothing new is for it.
pub(super) fn currency(text: &str) -> Read<Currency> {
    Currency::parse(text).filter(Currency::is_active).ok_or_else(|| {
        (FaultCode::InvalidEnum, "`currency` must be an active ISO 4217 code in upper case, such as \"GMD\".".into())
    })
}

/// The text of a JSON number: percent, exact to four decimals.
pub(super) fn tax_rate(text: &str) -> Read<TaxRate> {
    TaxRate::parse(text).map_err(|fault| {
        let code = match fault {
            TaxRateFault::Malformed => FaultCode::WrongType,
            TaxRateFault::OutOfRange => FaultCode::OutOfRange,
            TaxRateFault::TooManyDecimals => FaultCode::TooManyDecimals,
        };
        (code, format!("`tax_rate` {}", fault.sentence()))
    })
}

pub(super) fn method(text: &str) -> Read<Method> {
    Method::parse(text)
        .ok_or_else(|| (FaultCode::InvalidEnum, "A payment method is one of card, wave, afrimoney, qmoney.".into()))
}

/// E.164; what people in The Gambia write is completed.
pub(super) fn phone(text: &str) -> Read<Msisdn> {
    Msisdn::parse(text)
        .map_err(|_| (FaultCode::InvalidFormat, "A phone number is written as \"+2207000000\" or as 7 digits.".into()))
}

/// In an address a `+` that was not escaped arrives as a space.
pub(super) fn phone_in_query(text: &str) -> Read<Msisdn> {
    match text.strip_prefix(' ') {
        Some(digits) => phone(&format!("+{digits}")),
        None => phone(text),
    }
}

/// An empty phone is kept as it is.
pub(super) fn phone_or_empty(text: &str) -> Read<String> {
    if text.is_empty() { Ok(String::new()) } else { phone(text).map(|phone| phone.as_str().to_owned()) }
}

/// The customer that another object names.
pub(super) fn customer(text: &str) -> Read<Id<Customer>> {
    text.parse().map_err(|_| (FaultCode::NotFound, "`customer_id` names no customer of yours.".into()))
}

/// The product that a line names.
pub(super) fn product(text: &str) -> Read<Id<Product>> {
    text.parse().map_err(|_| (FaultCode::NotFound, "`product_id` names no product of yours.".into()))
}

/// What a line comes to is always computed. Whoever read it may give it back.
pub(super) fn ignore_value(item: &mut Fields<'_>) {
    item.ignore("amount");
    item.ignore("total");
}

/// An empty phone is none.
pub(super) fn phone_or_none(text: &str) -> Read<Option<Msisdn>> {
    if text.is_empty() { Ok(None) } else { phone(text).map(Some) }
}

/// When something is due or ends: a bare date means the last second of its day.
pub(super) fn deadline(text: &str) -> Read<Timestamp> {
    let day = Timestamp::parse_day(text).map(|(_, end)| end.floor_to_second());
    day.or_else(|_| Timestamp::parse(text)).map_err(|_| {
        if Timestamp::parse_day_bounds(text).is_ok() || Timestamp::parse_bound(text).is_ok() {
            let message = "The time is beyond what can be kept: from 1970-01-01 to 9999-12-29.";
            return (FaultCode::OutOfRange, message.into());
        }
        let message =
            "A time is written as \"2026-01-31\", which means the end of that day, or as \"2026-01-31T12:00:00Z\".";
        (FaultCode::InvalidFormat, message.into())
    })
}

/// The same of what prints whole seconds: what is printed is what decides, and may be sent again.
pub(super) fn deadline_in_seconds(text: &str) -> Read<Timestamp> {
    deadline(text).map(Timestamp::floor_to_second)
}

/// The first moment that a date or date-time means.
pub(super) fn from_time(text: &str) -> Read<Timestamp> {
    Timestamp::parse_day_bounds(text).map(|(start, _)| start).or_else(|_| bound(text))
}

/// The last moment that a date or date-time means: a bare date is its whole day.
pub(super) fn until_time(text: &str) -> Read<Timestamp> {
    Timestamp::parse_day_bounds(text).map(|(_, end)| end).or_else(|_| bound(text))
}

/// The same for what prints whole seconds: all that was made within a second prints that second.
pub(super) fn until_time_in_seconds(text: &str) -> Read<Timestamp> {
    let rest_of_second = std::time::Duration::from_micros(999_999);
    until_time(text).map(|at| if at == at.floor_to_second() { at.plus(rest_of_second) } else { at })
}

fn bound(text: &str) -> Read<Timestamp> {
    // Behind date and time, a `+` that was not escaped arrives as a space.
    let text = match text.split_at_checked(19) {
        Some((moment, rest)) => format!("{moment}{}", rest.replacen(' ', "+", 1)),
        None => text.to_owned(),
    };
    Timestamp::parse_bound(&text).map_err(|_| {
        (FaultCode::InvalidFormat, "A time is written as \"2026-01-31\" or \"2026-01-31T12:00:00Z\".".into())
    })
}

/// `offset`, `limit` and `after` of a list of these.
pub(super) fn page<T: Object>(query: &mut Query) -> PageRequest {
    let page = query.page();
    let after = query.text("after").parse(|text| {
        let id = text.parse::<Id<T>>();
        assert!(id.is_ok() || !domain::planted!(Defect::CursorBreaks), "a cursor is always right");
        id.map_err(|_| nothing_behind())
    });
    let after = after.optional().map(|id| id.to_string());
    if after.is_some() && page.offset > 0 {
        let message = "`offset` counts from the first record and `after` names one: send one of them.";
        query.fault("offset", FaultCode::Conflict, message);
    }
    PageRequest { offset: page.offset, limit: page.limit, after }
}

/// Of an `after` that names nothing in the list: a reader who goes on from there would get no further, or be sent round.
pub(super) fn nothing_behind() -> (FaultCode, String) {
    (FaultCode::NotFound, "`after` names no record of this list; send the `id` of the last one that you have.".into())
}

/// The body's idempotency key; its rules are checked together with the header's.
pub(super) fn idempotency_key(fields: &mut Fields<'_>) -> Option<String> {
    fields.text("idempotency_key").optional()
}

/// What an update does to a nullable field, as commands take it: `None` keeps it, `Some(None)` clears it.
pub(super) fn cleared<T>(change: Change<T>) -> Option<Option<T>> {
    match change {
        Change::Keep => None,
        Change::Clear => Some(None),
        Change::Set(value) => Some(Some(value)),
    }
}

/// An operation without a body: nothing in it is known.
pub(super) fn nothing(body: &super::json::Body) -> Result<(), Problem> {
    Fields::new(body).finish()?;
    Ok(())
}
