//! A merchant's own key/value data, kept and given back as it was sent: order and number text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The canonical text of one JSON object. Its limits (contract §1.7) are checked where it enters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata(String);

impl Metadata {
    /// `text` is a JSON object that the request reader wrote.
    pub fn from_canonical(text: String) -> Self {
        assert!(text.starts_with('{') && text.ends_with('}'), "metadata is an object");
        Self(text)
    }

    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().to_owned()))
    }
}
