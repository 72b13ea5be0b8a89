//! What is wrong with one field of a request: the entries of an error's `details`.
//! All faults of a request are reported at once, so readers push faults and go on.

use serde::Serialize;
use utoipa::ToSchema;

/// The stable field codes. A sentence may change, a code may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    Required,
    UnknownField,
    DuplicateKey,
    NulCharacter,
    WrongType,
    InvalidFormat,
    InvalidEnum,
    TooLong,
    TooShort,
    OutOfRange,
    AmountMustBeString,
    AmountNotPositive,
    TooManyDecimals,
    AmountTooLarge,
    NotFound,
    Inactive,
    CurrencyMismatch,
    Conflict,
    NotAllowed,
}

/// One fault: where (`items[0].quantity`), which stable code, and a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub field: String,
    pub code: FaultCode,
    pub message: String,
}

impl Fault {
    pub fn new(field: impl Into<String>, code: FaultCode, message: impl Into<String>) -> Self {
        Self { field: field.into(), code, message: message.into() }
    }
}

/// A fault without its place: what a parser of one value answers, which does not know the field.
/// Types of other crates become one by `From`, so that their parsers can be passed to a reader as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    pub code: FaultCode,
    pub message: String,
}

impl<M: Into<String>> From<(FaultCode, M)> for Complaint {
    fn from((code, message): (FaultCode, M)) -> Self {
        Self { code, message: message.into() }
    }
}

/// More than this is a bomb, not a mistake: the rest is left out, so that an answer stays small.
const MOST_FAULTS: usize = 1000;
/// Of the fields' names and the sentences together: a name may be some kilobytes long where a body is nested deeply.
const MOST_BYTES: usize = 256 * 1024;

/// The faults found so far, in the order of discovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    faults: Vec<Fault>,
    bytes: usize,
}

impl Faults {
    pub(crate) fn push(&mut self, fault: Fault) {
        if !self.is_full() {
            self.bytes += fault.field.len() + fault.message.len();
            self.faults.push(fault);
        }
    }

    /// Whoever makes the name of a field only for a fault needn't.
    pub(crate) fn is_full(&self) -> bool {
        self.faults.len() >= MOST_FAULTS || self.bytes >= MOST_BYTES
    }

    pub(crate) fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.push(fault);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.faults
    }

    pub fn as_slice(&self) -> &[Fault] {
        &self.faults
    }
}

/// A name or another text out of a request, cut so that an answer never echoes a megabyte.
pub(crate) fn shown(name: &str) -> String {
    const MOST: usize = 64;
    let mut shown: String = name.chars().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
