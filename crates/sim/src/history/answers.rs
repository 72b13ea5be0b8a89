//! What a request was answered, against what the model says of it.

use serde_json::Value;

use super::Check;
use crate::model::Fields;
use crate::world::Answer;

/// The answer is this status, or this refusal.
pub(super) fn expect(answer: &Answer, predicted: Result<(), &'static str>, status: u16) -> Check {
    let (wanted, code) = match predicted {
        Ok(()) => (status, ""),
        Err(code) if code.ends_with("_not_found") => (404, code),
        Err(code) => (400, code),
    };
    if answer.status == wanted && answer.code() == code {
        return Ok(());
    }
    Err(format!("expected {wanted} {code}, was answered {} {}", answer.status, answer.body))
}

/// Each of these fields is as it is said here. `a/*/b` gathers `b` of every element of `a`.
pub(super) fn compare(answer: &Answer, fields: &Fields) -> Check {
    let json = answer.json();
    let data = &json["data"];
    for (path, wanted) in fields {
        let shown = find(data, path);
        if shown != *wanted {
            return Err(format!("`{path}` should be {wanted} and is {shown}"));
        }
    }
    Ok(())
}

pub(super) fn find(value: &Value, path: &str) -> Value {
    match path.split_once('/') {
        None => value[path].clone(),
        Some((array, rest)) if rest.starts_with("*/") => {
            let elements = value[array].as_array().cloned().unwrap_or_default();
            Value::Array(elements.iter().map(|element| find(element, &rest[2..])).collect())
        }
        Some((object, rest)) => find(&value[object], rest),
    }
}

/// The name of what a request made.
pub(super) fn id_of(answer: &Answer) -> String {
    answer.json()["data"]["id"].as_str().unwrap_or_default().to_owned()
}
