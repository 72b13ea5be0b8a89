//! A merchant's own key/value data, kept and given back as it was sent: order and number text.

use std::fmt;

use serde::de::{MapAccess, Visitor};
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

    /// Its members in their order, each value as its JSON text.
    pub fn members(&self) -> Vec<(String, String)> {
        let Members(members) = serde_json::from_str(&self.0).expect("metadata was read as a JSON object");
        members
    }

    pub fn text(&self, name: &str) -> Option<String> {
        let members = self.members();
        let (_, value) = members.iter().find(|(known, _)| known == name)?;
        serde_json::from_str(value).ok()
    }

    /// The same with these texts, in place of members of the same name.
    pub fn with_texts(&self, texts: &[(String, String)]) -> Self {
        let mut members = self.members();
        members.retain(|(name, _)| texts.iter().all(|(new, _)| new != name));
        let json = |text: &str| serde_json::Value::from(text).to_string();
        members.extend(texts.iter().map(|(name, text)| (name.clone(), json(text))));
        Self::of_members(members)
    }

    /// Each value is JSON text, as [`Metadata::members`] gives it.
    pub fn of_members(members: impl IntoIterator<Item = (String, String)>) -> Self {
        let name_of = |name: String| serde_json::Value::from(name).to_string();
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{}:{value}", name_of(name))).collect();
        Self::from_canonical(format!("{{{}}}", members.join(",")))
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
        // Whoever asks for its members gets them: what is stored may have been altered.
        if raw.get() != "{}" {
            serde_json::from_str::<Members>(raw.get()).map_err(<D::Error as serde::de::Error>::custom)?;
        }
        Ok(Self(raw.get().to_owned()))
    }
}

struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((name, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_join_without_touching_the_rest() {
        let metadata = Metadata::from_canonical(r#"{"b":1.10,"a":[1,{"c":null}],"size":"S"}"#.into());
        let texts = [("size".to_owned(), "L \"wide\"".to_owned()), ("é".to_owned(), String::new())];
        let joined = r#"{"b":1.10,"a":[1,{"c":null}],"size":"L \"wide\"","é":""}"#;
        assert_eq!(metadata.with_texts(&texts).as_json(), joined);
        assert_eq!(Metadata::default().with_texts(&[]).as_json(), "{}");
        assert_eq!((metadata.text("size"), metadata.text("a"), metadata.text("c")), (Some("S".into()), None, None));
        let names: Vec<String> = metadata.members().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a", "size"]);
    }

    #[test]
    fn what_was_stored_is_read_as_an_object_or_not_at_all() {
        for text in ["{}", r#"{"b":1.10,"a":{"c":null}}"#] {
            let read: Metadata = serde_json::from_str(text).expect("an object");
            assert_eq!(read.as_json(), text);
        }
        for text in ["5", "null", "[]", r#""{}""#, r#"{"\ud800":1}"#] {
            assert!(serde_json::from_str::<Metadata>(text).is_err(), "{text}");
        }
    }
}
