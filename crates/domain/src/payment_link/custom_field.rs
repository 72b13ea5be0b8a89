//! What a merchant wants to know of each payer.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomField {
    /// The key in the payment's metadata.
    pub name: String,
    /// What the payer reads.
    pub label: String,
    #[serde(rename = "type")]
    pub kind: FieldType,
    pub required: bool,
    /// What a payer can select; empty for the other types.
    #[serde(default)]
    pub options: Vec<String>,
}

impl CustomField {
    /// The option that an answer means: a form gives it back with other blanks than it was given.
    pub fn option(&self, answer: &str) -> Option<&str> {
        let is_meant = |option: &&String| option.split_whitespace().eq(answer.split_whitespace());
        self.options.iter().find(is_meant).map(String::as_str)
    }

    /// How an option is kept: what differs in nothing but blanks is one.
    pub fn option_text(sent: &str) -> String {
        sent.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    Text,
    Number,
    Email,
    Phone,
    Select,
    Checkbox,
}

impl FieldType {
    pub const ALL: [FieldType; 6] = [
        FieldType::Text,
        FieldType::Number,
        FieldType::Email,
        FieldType::Phone,
        FieldType::Select,
        FieldType::Checkbox,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FieldType::Text => "text",
            FieldType::Number => "number",
            FieldType::Email => "email",
            FieldType::Phone => "phone",
            FieldType::Select => "select",
            FieldType::Checkbox => "checkbox",
        }
    }
}
