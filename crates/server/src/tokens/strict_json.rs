//! The two JSON objects of a token, read without mercy: one flat object, no key twice, nothing behind it.
//!
//! A lenient reader keeps the last of two equal keys and may so see another token than the one that was checked.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Integer(i64),
    /// A value of no use in a token of ours: float, boolean, null, an integer beyond 63 bits.
    Other,
}

pub(super) struct Object(BTreeMap<String, Scalar>);

impl Object {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Scalar::Text(text) => Some(text),
            Scalar::Integer(_) | Scalar::Other => None,
        }
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            Scalar::Integer(value) => Some(*value),
            Scalar::Text(_) | Scalar::Other => None,
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a flat object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Scalar>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a key appears twice"));
                    }
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        // Arrays and objects have no method here: the visitor's default refuses them.
        impl Visitor<'_> for Value {
            type Value = Scalar;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a scalar")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Integer(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(i64::try_from(value).map_or(Scalar::Other, Scalar::Integer))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }
        }
        deserializer.deserialize_any(Value)
    }
}
