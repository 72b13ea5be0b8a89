//! An object as it is stored: shared by the states that hold it, and told apart by what would be written of it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Two are the same if their JSON is, private fields and all. A digest of that is compared, so copies are cheap.
#[derive(Clone)]
pub(crate) struct Kept<T> {
    value: Arc<T>,
    digest: u64,
}

impl<T: Serialize + Clone> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        let mut text = Vec::with_capacity(2048);
        let mut serializer = Serializer::with_formatter(&mut text, Present::default());
        value.serialize(&mut serializer).expect("what is stored can be written");
        let mut digest = DefaultHasher::new();
        digest.write(&text);
        Self { value: Arc::new(value), digest: digest.finish() }
    }

    /// A copy that can be changed.
    pub(crate) fn load(&self) -> T {
        (*self.value).clone()
    }
}

/// Times that are kept for readers. In a world whose clock only goes forward nothing is decided by them, so states that
/// differ in nothing else are one.
const PAST: [&str; 8] =
    ["at", "created_at", "updated_at", "seen_at", "issued_at", "sent_at", "payment_date", "revision"];

/// Leaves out the past.
#[derive(Default)]
struct Present {
    is_key: bool,
    is_past: bool,
}

impl Formatter for Present {
    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        self.is_key = true;
        writer.write_all(b",")
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_key = false;
        Ok(())
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.is_key {
            self.is_past = PAST.contains(&fragment);
        }
        writer.write_all(fragment.as_bytes())
    }

    fn write_i64<W: Write + ?Sized>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if self.is_past { Ok(()) } else { writer.write_all(&value.to_be_bytes()) }
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Kept<T> {}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
