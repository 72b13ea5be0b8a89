//! What one showing of a page says beyond the state of the payment: the error of a form that did nothing, or that the
//! payer has just been told to go on. It travels in the address of the page, since a POST always ends in a redirect and
//! there is no cookie.
//!
//! It is sealed: nobody can make a page of ours say what we did not say, nor read the phone number that was mistyped.
//! What the payment's state says wins over it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use domain::{Method, Timestamp};
use serde::{Deserialize, Serialize};

use crate::secrets::{MasterKey, Subkey};

/// An error stays on the page so long.
const LIFETIME_S: i64 = 600;
/// What leads on by itself does so only at once: who comes back by the back button stays.
const FRESH_S: i64 = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub(super) enum Note {
    /// A method was chosen just now: the page may lead outward by itself.
    Go {},
    /// Left just now.
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
    Phone {
        method: Method,
        fault: PhoneFault,
        typed: Option<String>,
        /// The part of an invoice that was chosen before.
        part: Option<String>,
    },
    /// An amount that can't be paid.
    Part {
        fault: FieldFault,
        typed: String,
    },
    /// Fields of a payment link: what was filled in, and what is wrong with it, by their names.
    Fields {
        typed: Vec<(String, String)>,
        wrong: Vec<(String, FieldFault)>,
    },
    Code {
        fault: CodeFault,
    },
}

impl Note {
    /// Whether it is still worth saying when the payer switches the language: nothing leads outward then, and no amount that
    /// was typed in one language is read in the other.
    pub(super) fn outlives_language(&self) -> bool {
        match self {
            Self::NotStarted { .. }
            | Self::InProgress {}
            | Self::TooOften {}
            | Self::StaleForm {}
            | Self::AmountChanged {}
            | Self::NoNewPayment {}
            | Self::Code { .. }
            | Self::Approved {}
            | Self::Phone { part: None, .. } => true,
            Self::Go {} | Self::Leaving {} | Self::Phone { .. } | Self::Part { .. } | Self::Fields { .. } => false,
        }
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

#[derive(Serialize, Deserialize)]
struct Sealed {
    at_s: i64,
    #[serde(flatten)]
    note: Note,
}

/// Seals and opens notes. Its key is not the one under stored secrets: anybody can make us seal a note.
pub(super) struct Notes(MasterKey);

impl Notes {
    pub(super) fn new(key: &Subkey) -> Self {
        Self(MasterKey::from_bytes(key.derive("page notes v1")))
    }

    pub(super) fn seal(&self, object_id: &str, note: &Note, now: Timestamp) -> String {
        let sealed = Sealed { at_s: now.seconds(), note: note.clone() };
        let text = serde_json::to_vec(&sealed).expect("a note has nothing that JSON can't say");
        let blob = self.0.wrap(&text, &bound_to(object_id));
        let body = blob.rsplit(':').next().unwrap_or_default();
        let bytes = STANDARD_NO_PAD.decode(body).expect("a wrapped secret is base64");
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Nothing where it is not ours, of another page or too old: then the page shows its state alone.
    pub(super) fn open(&self, object_id: &str, text: &str, now: Timestamp) -> Option<Note> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let blob = format!("v1:{}:{}", self.0.id(), STANDARD_NO_PAD.encode(bytes));
        let opened = self.0.unwrap(&blob, &bound_to(object_id)).ok()?;
        let Sealed { at_s, note } = serde_json::from_slice(opened.expose()).ok()?;
        let lifetime_s = match note {
            Note::Go {} | Note::Leaving {} => FRESH_S,
            Note::Approved {}
            | Note::NotStarted { .. }
            | Note::InProgress {}
            | Note::TooOften {}
            | Note::StaleForm {}
            | Note::AmountChanged {}
            | Note::NoNewPayment {}
            | Note::Phone { .. }
            | Note::Part { .. }
            | Note::Fields { .. }
            | Note::Code { .. } => LIFETIME_S,
        };
        (now.seconds() < at_s.saturating_add(lifetime_s)).then_some(note)
    }
}

fn bound_to(object_id: &str) -> String {
    format!("page note:{object_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Purpose;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_note_opens_on_its_own_page_for_a_while() {
        let notes = |byte| Notes::new(&MasterKey::from_bytes([byte; 32]).subkey(Purpose::FormToken));
        let typed =
            Note::Phone { method: Method::Qmoney, fault: PhoneFault::Format, typed: Some("12".into()), part: None };
        for (note, lifetime_s) in [(typed, LIFETIME_S), (Note::Go {}, FRESH_S)] {
            let sealed = notes(1).seal("cs_1", &note, at(100));
            assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{sealed}");
            assert_eq!(notes(1).open("cs_1", &sealed, at(100)), Some(note.clone()));
            assert_eq!(notes(1).open("cs_1", &sealed, at(99 + lifetime_s)), Some(note));
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
