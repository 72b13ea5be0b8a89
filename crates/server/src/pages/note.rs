//! What one showing of a page says beyond the state of the payment: the error of a form that did nothing, or that the
//! payer has just been told to go on; and what the payer had filled in. It travels in the address of the page, since a POST
//! always ends in a redirect and there is no cookie.
//!
//! It is sealed: nobody can make a page of ours say what we did not say, nor read the phone number that was mistyped.
//! What the payment's state says wins over it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use domain::{Method, Timestamp};
use serde::{Deserialize, Serialize};

use super::typed::Typed;
use crate::secrets::{MasterKey, Subkey};

/// An error stays on the page so long, and so does the way out of who has left.
const LIFETIME_S: i64 = 600;
/// What leads on by itself does so only at once: who comes back by the back button stays.
const FRESH_S: i64 = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub(super) enum Note {
    /// A method was chosen just now: the page may lead outward by itself.
    Go {},
    /// Left: the page leads to the shop, by itself only at once.
    Leaving {},
    /// The payer says that it is approved.
    Approved {},
    NotStarted {
        method: Method,
    },
    InProgress {},
    TooOften {},
    StaleForm {},
    /// The page showed another amount than is due now.
    AmountChanged {},
    /// The payment link takes no other payment than the one that was begun.
    NoNewPayment {},
    /// Payments that others have begun hold all that is left of the payment link.
    LastPlaceHeld {},
    Phone {
        method: Method,
        fault: PhoneFault,
    },
    /// An amount that can't be paid.
    Part {
        fault: FieldFault,
    },
    /// What is wrong with the fields of a payment link, by their names.
    Fields {
        wrong: Vec<(String, FieldFault)>,
    },
    Code {
        fault: CodeFault,
    },
}

impl Note {
    /// Whether it is still worth saying when the payer switches the language: nothing leads to a rail then.
    pub(super) fn outlives_language(&self) -> bool {
        !matches!(self, Self::Go {})
    }

    /// Whether it leads back to the form that did nothing.
    pub(super) fn is_of_form(&self) -> bool {
        match self {
            Self::NotStarted { .. }
            | Self::InProgress {}
            | Self::TooOften {}
            | Self::StaleForm {}
            | Self::AmountChanged {}
            | Self::NoNewPayment {}
            | Self::LastPlaceHeld {}
            | Self::Phone { .. }
            | Self::Part { .. }
            | Self::Fields { .. } => true,
            Self::Go {} | Self::Leaving {} | Self::Approved {} | Self::Code { .. } => false,
        }
    }

    /// Whether a form that asks for a phone is shown again. What changed or is gone leads back to the choice before it.
    pub(super) fn asks_for_phone_again(&self) -> bool {
        match self {
            Self::Phone { .. }
            | Self::StaleForm {}
            | Self::TooOften {}
            | Self::InProgress {}
            | Self::LastPlaceHeld {} => true,
            Self::Go {}
            | Self::Leaving {}
            | Self::Approved {}
            | Self::NotStarted { .. }
            | Self::AmountChanged {}
            | Self::NoNewPayment {}
            | Self::Part { .. }
            | Self::Fields { .. }
            | Self::Code { .. } => false,
        }
    }
}

/// A note, and the form to which it leads back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    at_s: i64,
    #[serde(flatten)]
    pub(super) note: Note,
    #[serde(rename = "form", default, skip_serializing_if = "Typed::is_empty")]
    pub(super) typed: Typed,
}

impl Noted {
    pub(super) fn new(note: Note, typed: &Typed, now: Timestamp) -> Self {
        let typed = if note.is_of_form() { typed.clone() } else { Typed::default() };
        Self { at_s: now.seconds(), note, typed }
    }

    /// Whether what it says may lead on by itself. Later its page says it and waits: a slow network can take that long.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now.seconds() < self.at_s.saturating_add(FRESH_S)
    }

    /// The same, said at the same time, of a form with this in it.
    pub(super) fn with(self, typed: Typed) -> Self {
        Self { typed, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PhoneFault {
    Missing,
    Format,
    NotStarted,
    TooOften,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodeFault {
    Missing,
    Format,
    TooOften,
    /// Its merchant takes no more of that method.
    NotSentAgain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FieldFault {
    Missing,
    Format,
    TooLong,
    TooLittle,
    TooMuch,
    /// In live mode none is taken but on the rail's own page.
    CardNumber,
}

/// Seals and opens notes. Its key is not the one under stored secrets: anybody can make us seal a note.
pub(super) struct Notes(MasterKey);

impl Notes {
    pub(super) fn new(key: &Subkey) -> Self {
        Self(MasterKey::from_bytes(key.derive("page notes v1")))
    }

    pub(super) fn seal(&self, object_id: &str, noted: &Noted) -> String {
        let text = serde_json::to_vec(&former::written(noted)).expect("a note has nothing that JSON can't say");
        let blob = self.0.wrap(&text, &bound_to(object_id));
        let body = blob.rsplit(':').next().unwrap_or_default();
        let bytes = STANDARD_NO_PAD.decode(body).expect("a wrapped secret is base64");
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Nothing where it is not ours, of another page or too old: then the page shows its state alone.
    pub(super) fn open(&self, object_id: &str, text: &str, now: Timestamp) -> Option<Noted> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let blob = format!("v1:{}:{}", self.0.id(), STANDARD_NO_PAD.encode(bytes));
        let opened = self.0.unwrap(&blob, &bound_to(object_id)).ok()?;
        let noted = former::read(serde_json::from_slice(opened.expose()).ok()?)?;
        let lifetime_s = match noted.note {
            Note::Go {} => FRESH_S,
            Note::Leaving {}
            | Note::Approved {}
            | Note::NotStarted { .. }
            | Note::InProgress {}
            | Note::TooOften {}
            | Note::StaleForm {}
            | Note::AmountChanged {}
            | Note::NoNewPayment {}
            | Note::LastPlaceHeld {}
            | Note::Phone { .. }
            | Note::Part { .. }
            | Note::Fields { .. }
            | Note::Code { .. } => LIFETIME_S,
        };
        (now.seconds() < noted.at_s.saturating_add(lifetime_s)).then_some(noted)
    }
}

fn bound_to(object_id: &str) -> String {
    format!("page note:{object_id}")
}

/// Notes as the version before this one has them, which may run beside it during an upgrade: it kept what was typed with a
/// wrong phone, part or field alone, and in members of those. A part must not become all.
mod former {
    use serde_json::{Map, Value, json};

    use super::{Note, Noted};
    use crate::pages::questions::{AMOUNT, PHONE};

    pub(super) fn written(noted: &Noted) -> Value {
        let mut value = serde_json::to_value(noted).expect("a note has nothing that JSON can't say");
        let typed = &noted.typed;
        match (&noted.note, &mut value) {
            (Note::Phone { .. }, Value::Object(members)) => {
                members.insert("typed".into(), json!(typed.get(PHONE)));
                members.insert("part".into(), json!(typed.get(AMOUNT)));
            }
            (Note::Part { .. }, Value::Object(members)) => {
                members.insert("typed".into(), json!(typed.get(AMOUNT).unwrap_or_default()));
            }
            (Note::Fields { .. }, Value::Object(members)) => {
                let form = members.remove("form").unwrap_or_else(|| json!([]));
                members.insert("typed".into(), form);
            }
            _ => {}
        }
        value
    }

    pub(super) fn read(mut value: Value) -> Option<Noted> {
        if let Value::Object(members) = &mut value
            && !members.contains_key("form")
            && let Some(form) = form(members)
        {
            members.insert("form".into(), form);
        }
        serde_json::from_value(value).ok()
    }

    fn form(members: &Map<String, Value>) -> Option<Value> {
        let field = |name: &str, member: &str| Some(json!([name, members.get(member)?.as_str()?]));
        match members.get("note")?.as_str()? {
            "phone" => Some([field(PHONE, "typed"), field(AMOUNT, "part")].into_iter().flatten().collect()),
            "part" => Some([field(AMOUNT, "typed")].into_iter().flatten().collect()),
            "fields" => members.get("typed").cloned(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::Form;
    use super::*;
    use crate::secrets::Purpose;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// As the version before sealed them, and as it reads what this one seals.
    #[test]
    fn the_version_before_is_understood_and_understands() {
        let (phone, part) = ([("phone", "+22071"), ("amount", "40.00")], [("amount", "x")]);
        let fields = [("name", "Awa"), ("answer-0", "7")];
        let table = [
            (
                r#"{"at_s":7,"note":"phone","method":"qmoney","fault":"format","typed":"+22071","part":"40.00"}"#,
                &phone[..],
            ),
            (r#"{"at_s":7,"note":"phone","method":"qmoney","fault":"format","typed":null,"part":null}"#, &[]),
            (r#"{"at_s":7,"note":"part","fault":"format","typed":"x"}"#, &part),
            (
                r#"{"at_s":7,"note":"fields","typed":[["name","Awa"],["answer-0","7"]],"wrong":[["amount","missing"]]}"#,
                &fields,
            ),
            (r#"{"at_s":7,"note":"stale_form"}"#, &[]),
        ];
        for (text, typed) in table {
            let former: serde_json::Value = serde_json::from_str(text).unwrap();
            let read = former::read(former.clone()).unwrap_or_else(|| panic!("{text}"));
            let form = typed.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
            assert_eq!(read.typed, Typed::in_form(&Form::of(form)), "{text}");
            let mut written = former::written(&read);
            written.as_object_mut().unwrap().remove("form");
            assert_eq!(written, former);
        }
    }

    #[test]
    fn a_note_opens_on_its_own_page_for_a_while() {
        let notes = |byte| Notes::new(&MasterKey::from_bytes([byte; 32]).subkey(Purpose::FormToken));
        let form = Form::of(vec![("phone".into(), "12".into())]);
        let wrong = Note::Phone { method: Method::Qmoney, fault: PhoneFault::Format };
        for (note, lifetime_s, phone) in
            [(wrong, LIFETIME_S, Some("12")), (Note::Leaving {}, LIFETIME_S, None), (Note::Go {}, FRESH_S, None)]
        {
            let noted = Noted::new(note, &Typed::in_form(&form), at(100));
            assert_eq!(noted.typed.get("phone"), phone, "what began something is not shown again");
            let sealed = notes(1).seal("cs_1", &noted);
            assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{sealed}");
            assert_eq!(notes(1).open("cs_1", &sealed, at(100)), Some(noted.clone()));
            assert_eq!(notes(1).open("cs_1", &sealed, at(99 + lifetime_s)), Some(noted.clone()));
            assert!(noted.is_fresh(at(99 + FRESH_S)) && !noted.is_fresh(at(100 + FRESH_S)));
            assert_eq!(notes(1).open("cs_1", &sealed, at(100 + lifetime_s)), None);
            assert_eq!(notes(1).open("cs_2", &sealed, at(100)), None);
            assert_eq!(notes(2).open("cs_1", &sealed, at(100)), None);
            let mut forged = sealed.into_bytes();
            forged[20] = if forged[20] == b'A' { b'B' } else { b'A' };
            assert_eq!(notes(1).open("cs_1", std::str::from_utf8(&forged).unwrap(), at(100)), None);
        }
        assert_eq!(notes(1).open("cs_1", "", at(0)), None);
    }
}
