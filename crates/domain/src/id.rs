//! `Id<T>`: a UUIDv7 that knows what it names and prints as a TypeID (`cs_01h4…`, contract §1.6).
//!
//! Ids are public names, never secrets.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use type_safe_id::{StaticType, TypeSafeId};
use uuid::Uuid;

use crate::time::Timestamp;

/// Something that has public ids.
pub trait Object: 'static {
    /// Before the underscore: `cs`.
    const PREFIX: &'static str;
    /// In codes and sentences, snake case: `checkout`.
    const NOUN: &'static str;
}

pub struct Id<T> {
    uuid: Uuid,
    kind: PhantomData<fn() -> T>,
}

/// The text is not an id of this kind. A malformed id names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedId;

impl<T: Object> Id<T> {
    /// A time-ordered id: milliseconds of `now`, then 74 of the random bits.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.micros() / 1000).expect("business time is after 1970");
        Self::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Milliseconds since 1970, of the time with which it was made.
    pub fn made_at_ms(&self) -> i64 {
        i64::try_from(self.uuid.as_u128() >> 80).expect("48 bits fit")
    }

    /// The id itself, for where it is sealed within something else.
    pub fn to_bytes(self) -> [u8; 16] {
        self.uuid.into_bytes()
    }

    /// What [`Id::to_bytes`] gave. Other bytes make some id as well, and it may be one that names something.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self::from_uuid(Uuid::from_bytes(bytes))
    }

    fn from_uuid(uuid: Uuid) -> Self {
        Self { uuid, kind: PhantomData }
    }
}

struct Tag<T>(PhantomData<fn() -> T>);

impl<T> Default for Tag<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Object> StaticType for Tag<T> {
    const TYPE: &'static str = T::PREFIX;
}

impl<T: Object> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TypeSafeId::<Tag<T>>::from_uuid(self.uuid).fmt(f)
    }
}

impl<T: Object> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: Object> FromStr for Id<T> {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        // The canonical text only: an id has one spelling.
        let parsed = text.parse::<TypeSafeId<Tag<T>>>().map_err(|_| MalformedId)?;
        let id = Self::from_uuid(parsed.uuid());
        if id.to_string() == text { Ok(id) } else { Err(MalformedId) }
    }
}

impl<T: Object> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: Object> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(|MalformedId| serde::de::Error::custom(format!("not a {} id", T::NOUN)))
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.uuid == other.uuid
    }
}
impl<T> Eq for Id<T> {}
impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.uuid.cmp(&other.uuid)
    }
}
impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uuid.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing;
    impl Object for Thing {
        const PREFIX: &'static str = "cs";
        const NOUN: &'static str = "thing";
    }

    #[test]
    fn prints_and_parses_one_spelling() {
        let id = Id::<Thing>::new(Timestamp::from_micros(1_700_000_000_000_000), [7; 10]);
        let text = id.to_string();
        assert!(text.starts_with("cs_") && text.len() == 29, "{text}");
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(Id::from_bytes(id.to_bytes()), id);
        assert_eq!(id.made_at_ms(), 1_700_000_000_000);
        for wrong in ["", "cs_", "xx_01h455vb4pex5vsknk084sn02q", &text.to_uppercase(), &text[3..], &format!("{text}0")]
        {
            assert_eq!(wrong.parse::<Id<Thing>>(), Err(MalformedId), "{wrong}");
        }
    }

    #[test]
    fn ids_are_ordered_by_their_time() {
        let id = |micros, random| Id::<Thing>::new(Timestamp::from_micros(micros), [random; 10]);
        let (early, late) = (id(1_700_000_000_000_000, 255), id(1_700_000_000_001_000, 0));
        assert!(early < late && early.to_string() < late.to_string(), "both ways of comparing agree");
        assert_ne!(id(0, 1), id(0, 2));
    }

    #[test]
    fn an_id_of_another_kind_names_nothing() {
        let text = Id::<Thing>::new(Timestamp::from_micros(0), [7; 10]).to_string();
        let other = text.replace("cs_", "ps_");
        // The first character of 26 carries three bits only.
        let overflow = format!("cs_8{}", &text[4..]);
        let lookalike = format!("{}u", &text[..28]);
        for wrong in [other, overflow, lookalike, format!(" {text}"), format!("{text}\n"), text.replace("cs_", "cs__")]
        {
            assert_eq!(wrong.parse::<Id<Thing>>(), Err(MalformedId), "{wrong:?}");
            assert!(serde_json::from_str::<Id<Thing>>(&format!("{wrong:?}")).is_err());
        }
        let read: Id<Thing> = serde_json::from_str(&format!("{text:?}")).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), format!("{text:?}"));
    }
}
