//! Keeps card numbers out of requests: a merchant who pastes one into a description would make us store it.

use domain::Scope;

use super::answer::Problem;
use super::json::{Body, Json};
use crate::card_number::has_card_number;

/// Refuses a request of live mode that holds a card number anywhere but in its own fields named in `except`.
pub(super) fn refuse(scope: Scope, body: &Body, except: &[&str]) -> Result<(), Problem> {
    match find(&body.value, except) {
        Some(field) if scope.mode.is_live() => Err(Problem::card_data_not_allowed(&field)),
        Some(_) | None => Ok(()),
    }
}

/// The path of the first text (or number, or key) that holds a card number; the body's own fields named in `except` pass, such as
/// phones, which are read strictly. What has such a name further down, in metadata, is kept as it comes.
/// The value itself is never part of the answer.
pub fn find(value: &Json, except: &[&str]) -> Option<String> {
    look(value, String::new(), except)
}

fn look(value: &Json, path: String, except: &[&str]) -> Option<String> {
    match value {
        Json::Null | Json::Bool(_) => None,
        Json::Number(text) | Json::String(text) => has_card_number(text).then_some(path),
        Json::Array(elements) => {
            elements.iter().enumerate().find_map(|(index, element)| look(element, format!("{path}[{index}]"), except))
        }
        Json::Object(members) => members.iter().find_map(|(key, value)| {
            if has_card_number(key) {
                return Some(if path.is_empty() { "(a key)".into() } else { path.clone() });
            }
            if path.is_empty() && except.contains(&&**key) {
                return None;
            }
            let dot = if path.is_empty() { "" } else { "." };
            look(value, format!("{path}{dot}{}", super::fault::shown(key)), except)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::json;

    #[test]
    fn names_the_field_and_not_the_number() {
        let text = br#"{"customer_phone":"4242424242424242","items":[{"description":"no"},
            {"description":"4242 4242 4242 4242"}]}"#;
        let body = json::parse(text).expect("JSON");
        let path = find(&body.value, &["customer_phone"]);
        assert_eq!(path.as_deref(), Some("items[1].description"));
        let body = json::parse(br#"{"metadata":{"n":4242424242424242}}"#).expect("JSON");
        assert_eq!(find(&body.value, &[]).as_deref(), Some("metadata.n"));
        let body = json::parse(br#"{"metadata":{"4242424242424242":1}}"#).expect("JSON");
        assert_eq!(find(&body.value, &[]).as_deref(), Some("metadata"));
        let body = json::parse(br#"{"metadata":{"customer_phone":"4242424242424242"}}"#).expect("JSON");
        assert_eq!(find(&body.value, &["customer_phone"]).as_deref(), Some("metadata.customer_phone"));
    }
}
