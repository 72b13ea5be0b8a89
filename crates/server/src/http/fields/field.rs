//! One field in the hands of its reader: absent, null, faulty or a value, and the checks that refine it.
//! The first fault of a field is the only one reported for it.

use std::borrow::Cow;

use crate::http::fault::{Complaint, Fault, FaultCode, Faults};
use crate::names::composed;
use crate::plausible::{LONGEST_EMAIL, LONGEST_URL, is_email, is_web_address};

#[derive(Debug)]
pub(crate) enum Outcome<T> {
    Absent,
    Null,
    Value(T),
    /// A fault has been pushed.
    Faulty,
}

#[must_use = "end with required(), optional(), or(), change() or clearable()"]
pub struct Field<'f, T> {
    path: Cow<'static, str>,
    outcome: Outcome<T>,
    faults: &'f mut Faults,
}

/// What an update does to a nullable field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<T> {
    Keep,
    Clear,
    Set(T),
}

impl<'f, T> Field<'f, T> {
    pub(crate) fn new(path: impl Into<Cow<'static, str>>, outcome: Outcome<T>, faults: &'f mut Faults) -> Self {
        Self { path: path.into(), outcome, faults }
    }

    /// Nothing only if a fault was pushed; null is as absent.
    pub fn required(self) -> Option<T> {
        match self.outcome {
            Outcome::Value(value) => Some(value),
            Outcome::Faulty => None,
            Outcome::Absent | Outcome::Null => {
                let message = format!("`{}` is required; send it with a value.", self.path);
                self.faults.push(Fault::new(self.path, FaultCode::Required, message));
                None
            }
        }
    }

    /// Nothing if absent, null or faulty; `Fields::has` tells an absent field from a faulty one.
    pub fn optional(self) -> Option<T> {
        match self.outcome {
            Outcome::Value(value) => Some(value),
            Outcome::Faulty | Outcome::Absent | Outcome::Null => None,
        }
    }

    /// The default stands for a faulty value too; `finish` then refuses the request.
    pub fn or(self, default: T) -> T {
        self.optional().unwrap_or(default)
    }

    /// On an update, a field that has always a value: absent keeps it, null is refused.
    pub fn change(self) -> Option<T> {
        match self.outcome {
            Outcome::Value(value) => Some(value),
            Outcome::Faulty | Outcome::Absent => None,
            Outcome::Null => {
                let message = format!("`{}` must not be null; leave it out to keep it.", self.path);
                self.faults.push(Fault::new(self.path, FaultCode::WrongType, message));
                None
            }
        }
    }

    /// On an update, a field that null clears.
    pub fn clearable(self) -> Change<T> {
        match self.outcome {
            Outcome::Value(value) => Change::Set(value),
            Outcome::Faulty | Outcome::Absent => Change::Keep,
            Outcome::Null => Change::Clear,
        }
    }

    /// Refines the value by a rule that the readers here do not know.
    pub fn check<U, E: Into<Complaint>>(self, check: impl FnOnce(T) -> Result<U, E>) -> Field<'f, U> {
        let outcome = match self.outcome {
            Outcome::Absent => Outcome::Absent,
            Outcome::Null => Outcome::Null,
            Outcome::Faulty => Outcome::Faulty,
            Outcome::Value(value) => match check(value) {
                Ok(value) => Outcome::Value(value),
                Err(complaint) => {
                    let Complaint { code, message } = complaint.into();
                    self.faults.push(Fault::new(&*self.path, code, message));
                    Outcome::Faulty
                }
            },
        };
        Field::new(self.path, outcome, self.faults)
    }
}

impl<'f> Field<'f, String> {
    /// A name, whose letters are written in one way.
    pub fn composed(self) -> Self {
        self.check(|text| Ok::<_, Complaint>(composed(&text)))
    }

    /// At most so many characters.
    pub fn max(self, most: usize) -> Self {
        let path = self.path.clone();
        self.check(|text| {
            let length = text.chars().count();
            if length > most {
                let message = format!("`{path}` must have at most {most} characters; you sent {length}.");
                return Err((FaultCode::TooLong, message));
            }
            Ok(text)
        })
    }

    /// At least so many characters.
    pub fn min(self, least: usize) -> Self {
        let path = self.path.clone();
        self.check(|text| {
            if text.chars().count() < least {
                let message = if least == 1 {
                    format!("`{path}` must not be empty.")
                } else {
                    format!("`{path}` must have at least {least} characters.")
                };
                return Err((FaultCode::TooShort, message));
            }
            Ok(text)
        })
    }

    pub fn parse<T, E: Into<Complaint>>(self, parse: impl FnOnce(&str) -> Result<T, E>) -> Field<'f, T> {
        self.check(|text| parse(&text))
    }

    /// One of a few words, each with what it stands for.
    pub fn choice<T: Clone>(self, choices: &[(&str, T)]) -> Field<'f, T> {
        let path = self.path.clone();
        self.check(|text| {
            if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
                return Ok(value.clone());
            }
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("`{path}` must be one of: {}.", words.join(", "));
            Err((FaultCode::InvalidEnum, message))
        })
    }

    /// An absolute http or https address without user information; the text is kept as it was sent.
    pub fn url(self) -> Self {
        let path = self.path.clone();
        self.max(LONGEST_URL).check(|text| {
            if is_web_address(&text) {
                return Ok(text);
            }
            let message = format!(
                "`{path}` must be an absolute http or https address without user name and password, \
                 such as \"https://shop.example/thanks\"."
            );
            Err((FaultCode::InvalidFormat, message))
        })
    }

    /// A plausible e-mail address; only a message that arrives proves one.
    pub fn email(self) -> Self {
        let path = self.path.clone();
        self.max(LONGEST_EMAIL).check(|text| {
            if is_email(&text) {
                return Ok(text);
            }
            let message = format!("`{path}` must be an e-mail address, such as \"awa@example.gm\".");
            Err((FaultCode::InvalidFormat, message))
        })
    }

    /// The same, or an empty text, which says that there is none.
    pub fn email_or_none(self) -> Self {
        let is_none = matches!(&self.outcome, Outcome::Value(text) if text.is_empty());
        if is_none { self } else { self.email() }
    }
}
