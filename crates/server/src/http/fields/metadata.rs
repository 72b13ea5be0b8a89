//! The caller's own map: any keys, a few limits. We store and echo it and never look inside.

use crate::http::fault::{Fault, FaultCode, Faults, shown};
use crate::http::json::Json;

use super::wrong_type;

/// What a map may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataValues {
    /// Any JSON value.
    Any,
    /// Strings only.
    Strings,
}

const MOST_KEYS: usize = 50;
const LONGEST_KEY: usize = 40;
const LONGEST_TEXT: usize = 500;
const MOST_BYTES: usize = 16 * 1024;

/// Compact JSON text, or nothing after pushing what is wrong.
pub(super) fn read(value: &Json, path: &str, values: MetadataValues, faults: &mut Faults) -> Option<String> {
    let Json::Object(members) = value else {
        faults.push(wrong_type(path, "an object", value));
        return None;
    };
    let mut found = Vec::new();
    if members.len() > MOST_KEYS {
        found.push(Fault::new(
            path,
            FaultCode::TooLong,
            format!("`{path}` must have at most {MOST_KEYS} keys; you sent {}.", members.len()),
        ));
    }
    for (key, value) in members {
        let member = format!("{path}.{}", shown(key));
        if key.is_empty() {
            let message = format!("A key of `{path}` must not be empty.");
            found.push(Fault::new(path, FaultCode::TooShort, message));
        } else if key.chars().count() > LONGEST_KEY {
            let message = format!("A key of `{path}` must have at most {LONGEST_KEY} characters.");
            found.push(Fault::new(&member, FaultCode::TooLong, message));
        }
        match value {
            Json::String(_) => {}
            other if values == MetadataValues::Strings => {
                found.push(wrong_type(&member, "a string", other));
            }
            _ => {}
        }
        if has_long_text(value) {
            let message = format!("`{member}` must have at most {LONGEST_TEXT} characters.");
            found.push(Fault::new(&member, FaultCode::TooLong, message));
        }
    }
    let text = value.to_text();
    if found.is_empty() && text.len() > MOST_BYTES {
        found.push(Fault::new(
            path,
            FaultCode::TooLong,
            format!("`{path}` must be at most {MOST_BYTES} bytes of JSON; you sent {}.", text.len()),
        ));
    }
    let is_sound = found.is_empty();
    faults.extend(found);
    is_sound.then_some(text)
}

fn has_long_text(value: &Json) -> bool {
    match value {
        Json::String(text) => text.chars().count() > LONGEST_TEXT,
        Json::Array(elements) => elements.iter().any(has_long_text),
        Json::Object(members) => members.iter().any(|(_, value)| has_long_text(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}
