//! Typed readers over a parsed body. Each pushes every fault that it sees and goes on, so that a caller learns all of
//! them at once; `finish` adds the fields that nobody has read. They know shapes, not rules: what an amount or a date
//! may be is passed in as a function.
//!
//! ```
//! use dalasi::http::{fields::Fields, json::Body};
//! struct New { name: String, quantity: i64, note: Option<String> }
//! let body = Body::parse(br#"{"name": "Tea", "quantity": 0, "colour": "red"}"#).expect("JSON");
//! let mut f = Fields::new(&body);
//! let name = f.text("name").min(1).max(200).required();
//! let quantity = f.integer("quantity", 1..=1_000_000).required();
//! let note = f.text("note").max(2000).optional();
//! let faults = match f.finish() {
//!     Ok(checked) => {
//!         let _new = New { name: checked.of(name), quantity: checked.of(quantity), note };
//!         return;
//!     }
//!     Err(faults) => faults,
//! };
//! assert_eq!(faults.len(), 2); // `quantity` out of range, `colour` unknown
//! ```

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::fault::{Complaint, Fault, FaultCode, Faults, shown};
use super::json::{Body, Json};

pub(super) mod field;
mod metadata;

pub use field::{Change, Field};
pub use metadata::MetadataValues;

use field::Outcome;

/// The members of one object of a request, and what is wrong with them so far.
pub struct Fields<'j> {
    members: &'j [(Box<str>, Json)],
    prefix: String,
    read: Vec<&'static str>,
    faults: Faults,
}

/// Proof that a request had no fault, so that every required field was there.
#[derive(Debug, Clone, Copy)]
pub struct Checked(());

impl Checked {
    /// The value of a required reader; it is there, because without it there had been a fault.
    pub fn of<T>(self, value: Option<T>) -> T {
        value.expect("a reader that yields nothing has reported a fault")
    }
}

impl<'j> Fields<'j> {
    /// Begins with the faults that the parser found (duplicate keys, NUL characters).
    pub fn new(body: &'j Body) -> Self {
        let mut fields = Self::inside(&body.value, String::new());
        fields.faults = body.faults.clone();
        fields
    }

    fn inside(value: &'j Json, prefix: String) -> Self {
        let members = match value {
            Json::Object(members) => members.as_slice(),
            _ => &[],
        };
        Self { members, prefix, read: Vec::new(), faults: Faults::default() }
    }

    pub fn text(&mut self, name: &'static str) -> Field<'_, String> {
        self.field(name, |value, path| match value {
            Json::String(text) => Ok(text.to_string()),
            other => Err(wrong_type(path, "a string", other)),
        })
    }

    pub fn boolean(&mut self, name: &'static str) -> Field<'_, bool> {
        self.field(name, |value, path| match value {
            Json::Bool(value) => Ok(*value),
            other => Err(wrong_type(path, "true or false", other)),
        })
    }

    /// A whole number; `1.0` is one, `1e3` is not written as one and is refused.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Field<'_, i64> {
        self.field(name, |value, path| match value {
            Json::Number(text) => integer(path, whole(text), &range, FaultCode::WrongType),
            other => Err(wrong_type(path, "a whole number", other)),
        })
    }

    /// The text of a number as it was sent, for values that a float would spoil (`tax_rate`).
    pub fn number(&mut self, name: &'static str) -> Field<'_, String> {
        self.field(name, |value, path| match value {
            Json::Number(text) => Ok(text.to_string()),
            other => Err(wrong_type(path, "a number", other)),
        })
    }

    /// Money: always a string, whose rules `parse` knows.
    pub fn amount<T, E: Into<Complaint>>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Field<'_, T> {
        self.field(name, |value, path| match value {
            Json::String(text) => Ok(text.to_string()),
            Json::Number(_) => Err(Fault::new(
                path,
                FaultCode::AmountMustBeString,
                format!("`{path}` must be a string such as \"100.00\"; you sent a number."),
            )),
            other => Err(wrong_type(path, "a string such as \"100.00\"", other)),
        })
        .parse(parse)
    }

    /// A free map of the caller's, as compact JSON text with its keys in the order given.
    pub fn metadata(&mut self, name: &'static str, values: MetadataValues) -> Field<'_, String> {
        self.field_with_faults(name, |value, path, faults| metadata::read(value, path, values, faults))
    }

    /// An array of objects; `read` gets the fields of each and yields nothing if it has pushed a fault.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        most: usize,
        read: impl FnMut(&mut Fields<'j>) -> Option<T>,
    ) -> Field<'_, Vec<T>> {
        self.objects_keeping(name, most, &mut Vec::new(), read)
    }

    /// The same. Where one of them is faulty, the others are put into `sound`, each with its place in the array.
    pub fn objects_keeping<T>(
        &mut self,
        name: &'static str,
        most: usize,
        sound: &mut Vec<(usize, T)>,
        mut read: impl FnMut(&mut Fields<'j>) -> Option<T>,
    ) -> Field<'_, Vec<T>> {
        self.field_with_faults(name, |value, path, faults| {
            let found = elements(value, path, most, faults, |element, path, faults| {
                if !matches!(element, Json::Object(_)) {
                    faults.push(wrong_type(path, "an object", element));
                    return None;
                }
                let mut fields = Fields::inside(element, format!("{path}."));
                let value = read(&mut fields);
                let found = fields.into_faults();
                let value = value.filter(|_| found.is_empty());
                faults.extend(found);
                value
            });
            if !found.is_all {
                sound.extend(found.sound);
                return None;
            }
            found.all()
        })
    }

    /// An array of strings; `read` checks each, as a reader of a single field would.
    pub fn texts<T>(
        &mut self,
        name: &'static str,
        most: usize,
        mut read: impl FnMut(Field<'_, String>) -> Option<T>,
    ) -> Field<'_, Vec<T>> {
        self.field_with_faults(name, |value, path, faults| {
            elements(value, path, most, faults, |element, path, faults| {
                let outcome = match element {
                    Json::String(text) => Outcome::Value(text.to_string()),
                    other => {
                        faults.push(wrong_type(path, "a string", other));
                        Outcome::Faulty
                    }
                };
                read(Field::new(path.to_owned(), outcome, faults))
            })
            .all()
        })
    }

    /// Whether the field was sent with a value, right or wrong (null is none).
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| *value != Json::Null)
    }

    /// A fault that takes more than one field to see.
    pub fn fault(&mut self, name: &str, code: FaultCode, message: impl Into<String>) {
        let path = format!("{}{name}", self.prefix);
        self.faults.push(Fault::new(path, code, message));
    }

    /// A field that clients send and that means nothing here.
    pub fn ignore(&mut self, name: &'static str) {
        self.read.push(name);
    }

    /// Every fault, the fields that nobody asked for among them; or the proof that there is none.
    pub fn finish(self) -> Result<Checked, Vec<Fault>> {
        let faults = self.into_faults();
        if faults.is_empty() { Ok(Checked(())) } else { Err(faults) }
    }

    fn into_faults(mut self) -> Vec<Fault> {
        let mut reported: Vec<&str> = Vec::new();
        for (name, _) in self.members {
            let name: &str = name;
            if self.read.contains(&name) || reported.contains(&name) {
                continue;
            }
            reported.push(name);
            let name = shown(name);
            self.faults.push(Fault::new(
                format!("{}{name}", self.prefix),
                FaultCode::UnknownField,
                format!("`{name}` is not a field of this request; check its spelling or leave it out."),
            ));
        }
        self.faults.into_vec()
    }

    fn get(&self, name: &str) -> Option<&'j Json> {
        self.members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    fn field<T>(&mut self, name: &'static str, read: impl FnOnce(&Json, &str) -> Result<T, Fault>) -> Field<'_, T> {
        self.field_with_faults(name, |value, path, faults| read(value, path).map_err(|fault| faults.push(fault)).ok())
    }

    fn field_with_faults<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'j Json, &str, &mut Faults) -> Option<T>,
    ) -> Field<'_, T> {
        self.read.push(name);
        let path = match self.prefix.as_str() {
            "" => Cow::Borrowed(name),
            prefix => Cow::Owned(format!("{prefix}{name}")),
        };
        let outcome = match self.get(name) {
            None => Outcome::Absent,
            Some(Json::Null) => Outcome::Null,
            Some(value) => match read(value, &path, &mut self.faults) {
                Some(value) => Outcome::Value(value),
                None => Outcome::Faulty,
            },
        };
        Field::new(path, outcome, &mut self.faults)
    }
}

/// What could be read of an array, each with its place.
struct Elements<T> {
    sound: Vec<(usize, T)>,
    is_all: bool,
}

impl<T> Elements<T> {
    /// Nothing if one of them is faulty.
    fn all(self) -> Option<Vec<T>> {
        self.is_all.then(|| self.sound.into_iter().map(|(_, element)| element).collect())
    }
}

/// Beyond `most` none is looked at.
fn elements<'j, T>(
    value: &'j Json,
    path: &str,
    most: usize,
    faults: &mut Faults,
    mut read: impl FnMut(&'j Json, &str, &mut Faults) -> Option<T>,
) -> Elements<T> {
    let mut found = Elements { sound: Vec::new(), is_all: true };
    let Json::Array(elements) = value else {
        faults.push(wrong_type(path, "an array", value));
        found.is_all = false;
        return found;
    };
    if elements.len() > most {
        found.is_all = false;
        faults.push(Fault::new(
            path,
            FaultCode::TooLong,
            format!("`{path}` must have at most {most} entries; you sent {}.", elements.len()),
        ));
    }
    found.sound.reserve(elements.len().min(most));
    for (index, element) in elements.iter().take(most).enumerate() {
        match read(element, &format!("{path}[{index}]"), faults) {
            Some(value) => found.sound.push((index, value)),
            None => found.is_all = false,
        }
    }
    found
}

fn wrong_type(path: &str, expected: &str, sent: &Json) -> Fault {
    Fault::new(path, FaultCode::WrongType, format!("`{path}` must be {expected}; you sent {}.", sent.kind()))
}

/// Without a fraction of nothing: many languages write 3 as `3.0` when it was reckoned, and to JSON Schema it is an integer.
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// A whole number in decimal digits. `not_whole` is the code for other texts: a wrong type in a body,
/// a wrong format in a query, where everything is text.
pub(super) fn integer(path: &str, text: &str, range: &RangeInclusive<i64>, not_whole: FaultCode) -> Result<i64, Fault> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::new(path, not_whole, format!("`{path}` must be a whole number, written in digits only.")));
    }
    let (least, most) = (range.start(), range.end());
    match text.parse::<i64>() {
        Ok(value) if range.contains(&value) => Ok(value),
        value => {
            let is_above_all = value.is_err() && !text.starts_with('-');
            let bounds = match *most == i64::MAX && !is_above_all {
                true => format!("{least} or more"),
                false => format!("between {least} and {most}"),
            };
            Err(Fault::new(path, FaultCode::OutOfRange, format!("`{path}` must be {bounds}.")))
        }
    }
}

#[cfg(test)]
mod tests;
