//! What a payer answers to a link's own questions; it lands in the payment's metadata.

use std::collections::BTreeMap;

use domain::payment_link::{CustomField, FieldType};
use domain::{Metadata, Msisdn};

use crate::fault::{Fault, FaultCode, shown};
use crate::plausible::is_email;

/// As long as any text in metadata.
const LONGEST: usize = 500;
const MOST_KEYS: usize = 50;

/// What was sent for one field.
enum Given {
    Text(String),
    /// The text of a number as it was sent.
    Number(String),
    Checked(bool),
    Nothing,
    /// What no field takes.
    Many,
}

impl Given {
    fn read(json: &str) -> Self {
        match serde_json::from_str(json) {
            Ok(serde_json::Value::String(text)) => Given::Text(text),
            Ok(serde_json::Value::Number(_)) => Given::Number(json.to_owned()),
            Ok(serde_json::Value::Bool(checked)) => Given::Checked(checked),
            Ok(serde_json::Value::Null) => Given::Nothing,
            Ok(serde_json::Value::Array(_) | serde_json::Value::Object(_)) | Err(_) => Given::Many,
        }
    }
}

/// The payment's metadata with the answers. `known` holds what was answered before; where an attempt begins, everything
/// that is required has to be there. `None` after pushing everything that is wrong.
pub(in crate::app) fn join(
    fields: &[CustomField],
    known: &Metadata,
    sent: Option<&Metadata>,
    answers: &Metadata,
    is_beginning: bool,
    faults: &mut Vec<Fault>,
) -> Option<Metadata> {
    let faults_before = faults.len();
    let field_of = |name: &str| fields.iter().find(|field| field.name == name);
    for (name, _) in sent.map(Metadata::members).unwrap_or_default() {
        if field_of(&name).is_some() {
            let message = format!("`{name}` is a question of this payment link: send it in `custom_field_values`.");
            faults.push(Fault::new(format!("metadata.{name}"), FaultCode::Conflict, message));
        }
    }
    let known_texts = fields.iter().filter_map(|field| Some((field.name.clone(), known.text(&field.name)?)));
    let mut texts: BTreeMap<String, String> = known_texts.collect();
    for (name, json) in answers.members() {
        let path = format!("custom_field_values.{}", shown(&name));
        let refuse = |code, what: &str| Fault::new(path.clone(), code, format!("`{path}` {what}"));
        match field_of(&name).map(|field| read(field, &Given::read(&json))) {
            None => faults.push(refuse(FaultCode::UnknownField, "is no question of this payment link; leave it out.")),
            Some(Ok(Some(text))) => drop(texts.insert(name, text)),
            Some(Ok(None)) => drop(texts.remove(&name)),
            Some(Err((code, what))) => {
                texts.insert(name, String::new());
                faults.push(refuse(code, &what));
            }
        }
    }
    for field in fields.iter().filter(|field| is_beginning && field.required && !texts.contains_key(&field.name)) {
        let path = format!("custom_field_values.{}", field.name);
        faults.push(Fault::new(path.clone(), FaultCode::Required, format!("`{path}` is required: {}", field.label)));
    }
    let texts: Vec<(String, String)> = texts.into_iter().collect();
    // What was taken back is not kept from before.
    let beside = sent.unwrap_or(known).members().into_iter().filter(|(name, _)| field_of(name).is_none());
    let joined = Metadata::of_members(beside).with_texts(&texts);
    if joined.members().len() > MOST_KEYS {
        let message = format!("`metadata` and the answers must have at most {MOST_KEYS} keys together.");
        faults.push(Fault::new("metadata", FaultCode::TooLong, message));
    }
    (faults.len() == faults_before).then_some(joined)
}

/// What is wrong with one answer by itself, in JSON.
pub(crate) fn refused_answer(field: &CustomField, json: &str) -> Option<FaultCode> {
    read(field, &Given::read(json)).err().map(|(code, _)| code)
}

/// The text that is kept; none where nothing was answered.
fn read(field: &CustomField, given: &Given) -> Result<Option<String>, (FaultCode, String)> {
    let refuse = |code, what: &str| Err((code, what.to_owned()));
    let text = match (field.kind, given) {
        (_, Given::Nothing) => return Ok(None),
        (FieldType::Checkbox, Given::Checked(true)) => return Ok(Some("true".into())),
        // A box that has to be ticked and is not has no answer.
        (FieldType::Checkbox, Given::Checked(false)) => return Ok((!field.required).then(|| "false".into())),
        (FieldType::Checkbox, _) => return refuse(FaultCode::WrongType, "must be true or false."),
        (FieldType::Number, Given::Number(text) | Given::Text(text)) => text.trim(),
        (FieldType::Number, _) => return refuse(FaultCode::WrongType, "must be a number."),
        (_, Given::Text(text)) => text.trim(),
        (FieldType::Text | FieldType::Email | FieldType::Phone | FieldType::Select, _) => {
            return refuse(FaultCode::WrongType, "must be a string.");
        }
    };
    if text.is_empty() {
        return Ok(None);
    }
    if text.chars().count() > LONGEST {
        return Err((FaultCode::TooLong, format!("must have at most {LONGEST} characters.")));
    }
    match field.kind {
        FieldType::Number if !is_number(text) => refuse(FaultCode::InvalidFormat, "must be a number."),
        FieldType::Email if !is_email(text) => {
            refuse(FaultCode::InvalidFormat, "must be an e-mail address, such as \"awa@example.gm\".")
        }
        FieldType::Phone => match Msisdn::parse(text) {
            Ok(phone) => Ok(Some(phone.as_str().to_owned())),
            Err(_) => refuse(FaultCode::InvalidFormat, "must be a phone number, such as \"+2207000000\"."),
        },
        FieldType::Select => match field.option(text) {
            Some(option) => Ok(Some(option.to_owned())),
            None => Err((FaultCode::InvalidEnum, format!("must be one of: {}.", field.options.join(", ")))),
        },
        FieldType::Text | FieldType::Number | FieldType::Email | FieldType::Checkbox => Ok(Some(text.to_owned())),
    }
}

/// A decimal number, with a sign if it is below nothing.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    [whole, part].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
