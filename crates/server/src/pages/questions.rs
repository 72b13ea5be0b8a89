//! What a payment link asks its payer before the choice of a method: the amount where it is open, who pays, and the
//! merchant's own questions. The page of a payment that was opened without, as by a program, asks for what is missing. Reads a
//! form and says what is wrong with it, by field; the command judges once more.

use domain::money::AmountFault;
use domain::payment::{Payer, PaymentSession, SessionStatus};
use domain::payment_link::{CustomField, FieldType, PaymentLink, Price};
use domain::{Metadata, Money, Msisdn};

use super::form::Form;
use super::note::{FieldFault, Note};
use super::text::Locale;
use super::typed::Typed;
use super::view::{Field, FieldError, FieldKind, Label};
use super::{amount, state};
use crate::app::hosted::{Hosted, Place, Standing};
use crate::app::paid_object::PaidObject;
use crate::app::payment_links;
use crate::card_number::has_card_number;
use crate::fault::{Fault, FaultCode};
use crate::names::composed;
use crate::plausible::{LONGEST_EMAIL, is_email};

pub(super) const AMOUNT: &str = "amount";
const NAME: &str = "name";
const EMAIL: &str = "email";
pub(super) const PHONE: &str = "phone";
const ANSWER: &str = "answer-";
const LONGEST_NAME: usize = 200;

/// What a payer has filled in, as a request takes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Filled {
    pub(super) amount: Option<Money>,
    pub(super) payer: Payer,
    pub(super) answers: Metadata,
}

/// The link where a payment of it begins. Of a payment that is open, nothing is asked that is known, and nothing at all where all
/// that has to be known is.
fn asking(hosted: &Hosted, place: Place) -> Option<&PaymentLink> {
    let PaidObject::PaymentLink(link) = &hosted.object else { return None };
    let asks = match (place.session, hosted.session()) {
        (None, _) => true,
        (Some(_), Some(session)) => may_begin(session) && lacks_something(link, session),
        (Some(_), None) => false,
    };
    (asks && hosted.standing() == Standing::Open).then_some(link)
}

/// Whether a choice of a method begins something: with this payment, or with one in its place.
fn may_begin(session: &PaymentSession) -> bool {
    match session.status() {
        SessionStatus::Pending => session.transaction.is_none(),
        SessionStatus::Failed | SessionStatus::Cancelled => true,
        SessionStatus::Processing | SessionStatus::Succeeded => false,
    }
}

/// Whether anything is missing without which nobody begins on a page.
fn lacks_something(link: &PaymentLink, session: &PaymentSession) -> bool {
    let is_missing = |name: &str| is_unknown(link, Some(session), name);
    let lacks_payer = link.terms().collect_customer_info && [NAME, PHONE].into_iter().any(is_missing);
    let mut required = questions(link).iter().enumerate().filter(|(_, question)| question.required);
    lacks_payer || required.any(|(index, _)| is_missing(&field_name(index)))
}

/// Whether what a field of that name asks for has still to be said. Where a payment is open its amount is.
fn is_unknown(link: &PaymentLink, session: Option<&PaymentSession>, name: &str) -> bool {
    let Some(session) = session else { return true };
    match name {
        AMOUNT => false,
        NAME => session.payer.name.is_none(),
        EMAIL => session.payer.email.is_none(),
        PHONE => session.payer.phone.is_none(),
        answer => {
            let question = index_of(answer).and_then(|index| questions(link).get(index));
            question.is_some_and(|question| session.metadata.text(&question.name).is_none())
        }
    }
}

/// Whether a payer who goes on here is asked for anything.
pub(super) fn asks(hosted: &Hosted, place: Place) -> bool {
    asking(hosted, place).is_some()
}

/// Whether all that a note says is wrong can be mended on this page.
pub(super) fn can_be_mended(hosted: &Hosted, place: Place, note: &Note) -> bool {
    let Note::Fields { wrong } = note else { return false };
    let is_asked = |link| wrong.iter().all(|(name, _)| is_unknown(link, hosted.session(), name));
    asking(hosted, place).is_some_and(is_asked)
}

pub(super) fn fields(hosted: &Hosted, place: Place, note: Option<&Note>, typed: &Typed, locale: Locale) -> Vec<Field> {
    let Some(link) = asking(hosted, place) else { return Vec::new() };
    let wrong = match note {
        Some(Note::Fields { wrong }) => wrong.as_slice(),
        Some(_) | None => &[],
    };
    let mut fields = Vec::new();
    let mut ask = |name: String, label, kind, required, suggested: Option<String>| {
        if !is_unknown(link, hosted.session(), &name) {
            return;
        }
        let error = wrong.iter().find(|(it, _)| *it == name).map(|(_, fault)| shown(*fault));
        let typed = typed.get(&name).map(str::to_owned).or(suggested);
        fields.push(Field { typed, name, label, kind, required, error });
    };
    if let Price::Variable { currency, min, max, suggested } = link.price() {
        let (least, most) = (min.map(state::amount), max.map(state::amount));
        let exponent = state::exponent(*currency);
        let kind = FieldKind::Amount { currency: currency.code().to_owned(), exponent, least, most };
        let suggested = suggested.filter(|amount| amount.minor > 0).map(|it| amount::to_type(&it.to_string(), locale));
        ask(AMOUNT.into(), Label::Amount, kind, true, suggested);
    }
    if link.terms().collect_customer_info {
        ask(NAME.into(), Label::Name, FieldKind::Name, true, None);
        ask(EMAIL.into(), Label::Email, FieldKind::Email, false, None);
        ask(PHONE.into(), Label::Phone, FieldKind::Phone, true, None);
    }
    for (index, question) in questions(link).iter().enumerate() {
        let kind = match question.kind {
            FieldType::Text => FieldKind::Text,
            FieldType::Number => FieldKind::Number,
            FieldType::Email => FieldKind::Email,
            FieldType::Phone => FieldKind::Phone,
            FieldType::Select => FieldKind::Select { options: question.options.clone() },
            FieldType::Checkbox => FieldKind::Checkbox,
        };
        ask(field_name(index), Label::Own(question.label.clone()), kind, question.required, None);
    }
    fields
}

fn shown(fault: FieldFault) -> FieldError {
    match fault {
        FieldFault::Missing => FieldError::Missing,
        FieldFault::Format => FieldError::Format,
        FieldFault::TooLong => FieldError::TooLong,
        FieldFault::TooLittle => FieldError::TooLittle,
        FieldFault::TooMuch => FieldError::TooMuch,
        FieldFault::CardNumber => FieldError::CardNumber,
    }
}

/// What the merchant asks of a payer who begins here.
pub(super) fn asked(hosted: &Hosted, place: Place) -> &[CustomField] {
    asking(hosted, place).map(questions).unwrap_or_default()
}

fn questions(link: &PaymentLink) -> &[CustomField] {
    link.terms().custom_fields.as_deref().unwrap_or_default()
}

/// Names of fields in a form are ours: a merchant's could be any.
fn field_name(index: usize) -> String {
    format!("{ANSWER}{index}")
}

/// Which question a field of that name answers.
pub(super) fn index_of(name: &str) -> Option<usize> {
    name.strip_prefix(ANSWER)?.parse().ok()
}

/// Whether a payer types into a field of that name: what is asked here, and the phone of a wallet.
pub(super) fn is_field(name: &str) -> bool {
    matches!(name, AMOUNT | NAME | EMAIL | PHONE) || index_of(name).is_some()
}

/// Everything that is wrong at once, as the page shows it again.
pub(super) fn read(hosted: &Hosted, place: Place, form: &Form, locale: Locale) -> Result<Filled, Note> {
    let Some(link) = asking(hosted, place) else { return Ok(Filled::default()) };
    let mut wrong = Vec::new();
    let typed = |name: &str| form.get(name).map(str::trim).filter(|text| !text.is_empty());
    let is_live = hosted.scope().mode.is_live();
    let holds_card = |text: &str| is_live && has_card_number(text);
    let mut filled = Filled::default();
    let mut take = |name: &str, result: Result<(), FieldFault>| {
        if let Err(fault) = result {
            wrong.push((name.to_owned(), fault));
        }
    };
    let is_asked = |name: &str| is_unknown(link, hosted.session(), name);
    if let Price::Variable { currency, min, max, .. } = link.price()
        && is_asked(AMOUNT)
    {
        let read = money(typed(AMOUNT), *currency, locale).and_then(|money| match (min, max) {
            (Some(min), _) if money.minor < min.minor => Err(FieldFault::TooLittle),
            (_, Some(max)) if money.minor > max.minor => Err(FieldFault::TooMuch),
            (Some(_) | None, Some(_) | None) => Ok(money),
        });
        take(AMOUNT, read.map(|money| filled.amount = Some(money)));
    }
    let asks_who_pays = link.terms().collect_customer_info;
    if asks_who_pays && is_asked(NAME) {
        let name = typed(NAME).map(composed).ok_or(FieldFault::Missing).and_then(|name| match name.chars().count() {
            _ if holds_card(&name) => Err(FieldFault::CardNumber),
            0..=LONGEST_NAME => Ok(name),
            _ => Err(FieldFault::TooLong),
        });
        take(NAME, name.map(|name| filled.payer.name = Some(name)));
    }
    if asks_who_pays && is_asked(EMAIL) {
        let email = typed(EMAIL).map(|email| match is_email(email) {
            _ if holds_card(email) => Err(FieldFault::CardNumber),
            _ if email.chars().count() > LONGEST_EMAIL => Err(FieldFault::TooLong),
            true => Ok(email.to_owned()),
            false => Err(FieldFault::Format),
        });
        take(EMAIL, email.transpose().map(|email| filled.payer.email = email));
    }
    if asks_who_pays && is_asked(PHONE) {
        let phone = typed(PHONE).ok_or(FieldFault::Missing);
        let phone = phone.and_then(|phone| Msisdn::parse(phone).map_err(|_| FieldFault::Format));
        take(PHONE, phone.map(|phone| filled.payer.phone = Some(phone)));
    }
    let mut answers = Vec::new();
    for (index, question) in questions(link).iter().enumerate() {
        let name = field_name(index);
        if !is_asked(&name) {
            continue;
        }
        let given = typed(&name);
        if given.is_none() && question.required {
            take(&name, Err(FieldFault::Missing));
            continue;
        }
        if given.is_some_and(holds_card) {
            take(&name, Err(FieldFault::CardNumber));
            continue;
        }
        let Some(answer) = answer(question, given, locale) else { continue };
        if let Some(code) = payment_links::refused_answer(question, &answer) {
            take(&name, Err(fault(code)));
            continue;
        }
        answers.push((question.name.clone(), answer));
    }
    filled.answers = Metadata::of_members(answers);
    if wrong.is_empty() { Ok(filled) } else { Err(Note::Fields { wrong }) }
}

/// As the command takes it, in JSON.
fn answer(question: &CustomField, given: Option<&str>, locale: Locale) -> Option<String> {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match question.kind {
        FieldType::Checkbox => Some(given.is_some().to_string()),
        // What its language leaves open is no number.
        FieldType::Number => given.map(|given| text(&amount::typed(given, locale).unwrap_or_else(|| given.to_owned()))),
        FieldType::Text | FieldType::Email | FieldType::Phone | FieldType::Select => given.map(text),
    }
}

/// An amount as it was typed.
pub(super) fn money(typed: Option<&str>, currency: domain::Currency, locale: Locale) -> Result<Money, FieldFault> {
    let text = amount::typed(typed.ok_or(FieldFault::Missing)?, locale).ok_or(FieldFault::Format)?;
    Money::parse_positive(&text, currency).map_err(|fault| match fault {
        AmountFault::TooLarge { .. } => FieldFault::TooMuch,
        AmountFault::NotPositive => FieldFault::TooLittle,
        AmountFault::Malformed | AmountFault::TooManyDecimals { .. } => FieldFault::Format,
    })
}

/// What the command has against the form, where it is a field of it.
pub(super) fn refused(hosted: &Hosted, faults: &[Fault]) -> Option<Note> {
    let PaidObject::PaymentLink(link) = &hosted.object else { return None };
    let of = |fault: &Fault| {
        let name = match fault.field.as_str() {
            "amount" => AMOUNT.to_owned(),
            "customer_name" => NAME.to_owned(),
            "customer_email" => EMAIL.to_owned(),
            "customer_phone" => PHONE.to_owned(),
            field => {
                let asked = field.strip_prefix("custom_field_values.")?;
                field_name(questions(link).iter().position(|question| question.name == asked)?)
            }
        };
        Some((name, self::fault(fault.code)))
    };
    let wrong: Vec<_> = faults.iter().filter_map(of).collect();
    (!wrong.is_empty()).then_some(Note::Fields { wrong })
}

fn fault(code: FaultCode) -> FieldFault {
    match code {
        FaultCode::Required => FieldFault::Missing,
        FaultCode::TooLong => FieldFault::TooLong,
        _ => FieldFault::Format,
    }
}

#[cfg(test)]
mod tests {
    use domain::organization::Organization;
    use domain::payment_link::Terms;
    use domain::{Entropy, Mode, Scope, Timestamp};

    use super::*;

    const CARD: &str = "4242 4242 4242 4242";

    /// A link that asks who pays, and one thing more.
    fn link_in(mode: Mode) -> (Hosted, Place) {
        let (now, mut entropy) = (Timestamp::from_micros(1_790_000_000_000_000), Entropy::from_seed([1; 32]));
        let organization = Organization::new(entropy.id(now), mode, "Kairaba Books".into(), now);
        let question = CustomField {
            name: "table".into(),
            label: "Your table".into(),
            kind: FieldType::Text,
            required: false,
            options: Vec::new(),
        };
        let terms = Terms {
            title: "Tea".into(),
            description: None,
            expiration_date: None,
            max_usage_count: None,
            success_url: None,
            failure_url: None,
            collect_customer_info: true,
            custom_fields: Some(vec![question]),
            metadata: None,
        };
        let price = Price::Fixed { amount: Money::new(100, domain::Currency::gmd()) };
        let scope = Scope { organization: organization.id, mode };
        let link = PaymentLink::create(entropy.id(now), scope, price, terms, now);
        let place = Place { payable: domain::payment::Payable::PaymentLink(link.id), session: None };
        let hosted = Hosted {
            object: PaidObject::PaymentLink(link),
            organization: organization.into(),
            methods: Vec::new(),
            payment: None,
            attempts: Vec::new(),
            recorded: Vec::new(),
            received: Vec::new(),
            simulated: None,
            now,
        };
        (hosted, place)
    }

    fn wrong_with(mode: Mode, field: &str) -> Vec<(String, FieldFault)> {
        let (hosted, place) = link_in(mode);
        let mut fields = vec![("name", "Awa"), ("phone", "+2207654321"), ("answer-0", "7")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, CARD));
        let form = Form::of(fields.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect());
        match read(&hosted, place, &form, Locale::English) {
            Ok(_) => Vec::new(),
            Err(Note::Fields { wrong }) => {
                assert_eq!(Typed::in_form(&form).get(field), None, "it is not repeated");
                wrong
            }
            Err(_) => panic!("another note"),
        }
    }

    #[test]
    fn a_card_number_is_taken_nowhere_in_live_mode() {
        for field in ["name", "answer-0"] {
            assert_eq!(wrong_with(Mode::Live, field), [(field.to_owned(), FieldFault::CardNumber)]);
            assert_eq!(wrong_with(Mode::Test, field), []);
        }
    }
}
