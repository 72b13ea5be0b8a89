//! Values and rows as both databases see them: 64-bit integers, text, bytes, null. Nothing else crosses this border.

pub(crate) mod text;

use std::sync::Arc;

use domain::Timestamp;

use crate::error::Error;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "an integer",
            Self::Text(_) => "text",
            Self::Blob(_) => "bytes",
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Blob(value.to_vec())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a column can be read as. A wrong type is an error and never a default.
pub trait FromValue: Sized {
    fn from_value(value: &Value) -> Result<Self, &'static str>;
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        Ok(value.clone())
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Integer(integer) => Ok(*integer),
            _ => Err("an integer"),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Integer(0) => Ok(false),
            Value::Integer(1) => Ok(true),
            _ => Err("0 or 1"),
        }
    }
}

impl FromValue for Timestamp {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Integer(micros) => Timestamp::from_stored(*micros).map_err(|_| "a time from 1970 to 9999"),
            _ => Err("a time"),
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err("text"),
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Blob(bytes) => Ok(bytes.clone()),
            _ => Err("bytes"),
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(columns: Arc<[String]>, values: Vec<Value>) -> Self {
        assert_eq!(columns.len(), values.len(), "a value for each column");
        Self { columns, values }
    }

    /// By position or by name: `row.get::<i64>(0)`, `row.get::<Option<String>>("email")`.
    pub fn get<T: FromValue>(&self, column: impl ColumnName) -> Result<T, Error> {
        let position = column.position(&self.columns)?;
        let value = self
            .values
            .get(position)
            .ok_or_else(|| Error::Corrupt(format!("column {position} of a row with {} columns", self.values.len())))?;
        T::from_value(value).map_err(|wanted| {
            let name = &self.columns[position];
            Error::Corrupt(format!("column {name} holds {}, not {wanted}", value.kind()))
        })
    }

    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// What it takes, but for what every row takes.
    pub(crate) fn bytes(&self) -> usize {
        let of_value = |value: &Value| match value {
            Value::Null | Value::Integer(_) => 8,
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
        };
        self.values.iter().map(of_value).sum()
    }
}

/// The first rows of a query, as many as a bound on their bytes lets be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: Vec<Row>,
    /// There is at least one more.
    pub(crate) is_cut: bool,
}

/// For rows of so many bytes together, and for one of any size.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    most: usize,
    taken: usize,
}

impl Room {
    pub(crate) fn of(most: usize) -> Self {
        Self { most, taken: 0 }
    }

    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.taken == 0 || bytes <= self.most.saturating_sub(self.taken);
        // Nothing comes behind what didn't fit.
        self.taken = if fits { self.taken.saturating_add(bytes.max(1)) } else { usize::MAX };
        fits
    }

    /// Something didn't fit.
    pub(crate) fn is_full(&self) -> bool {
        self.taken == usize::MAX
    }

    /// How many rows have room in all, and how many have it still, if each is like the `rows` that were taken.
    pub(crate) fn for_more_like(&self, rows: usize) -> (usize, usize) {
        let each = self.taken.div_ceil(rows.max(1)).max(1);
        (self.most / each, self.most.saturating_sub(self.taken) / each)
    }
}

pub trait ColumnName {
    fn position(&self, columns: &[String]) -> Result<usize, Error>;
}

impl ColumnName for usize {
    fn position(&self, _columns: &[String]) -> Result<usize, Error> {
        Ok(*self)
    }
}

impl ColumnName for &str {
    fn position(&self, columns: &[String]) -> Result<usize, Error> {
        columns
            .iter()
            .position(|column| column == self)
            .ok_or_else(|| Error::Corrupt(format!("no column is called {self}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row::new(
            Arc::from(["count".to_owned(), "name".to_owned(), "note".to_owned()]),
            vec![Value::Integer(7), Value::from("Ada"), Value::Null],
        )
    }

    #[test]
    fn reads_by_position_and_by_name() {
        assert_eq!(row().get::<i64>(0), Ok(7));
        assert_eq!(row().get::<String>("name"), Ok("Ada".to_owned()));
        assert_eq!(row().get::<Option<String>>("note"), Ok(None));
    }

    #[test]
    fn there_is_room_for_one_and_then_for_what_fits() {
        let takes = |bytes: &[usize]| {
            let mut room = Room::of(100);
            bytes.iter().map(|bytes| room.takes(*bytes)).collect::<Vec<_>>()
        };
        assert_eq!(takes(&[60, 40, 1]), [true, true, false]);
        assert_eq!(takes(&[60, 41, 1]), [true, false, false]);
        assert_eq!(takes(&[1000, 1]), [true, false]);
        assert_eq!(takes(&[0, 1000]), [true, false]);
    }

    #[test]
    fn room_is_judged_by_what_was_taken() {
        let judged = |bytes: &[usize]| {
            let mut room = Room::of(100);
            let rows = bytes.iter().filter(|bytes| room.takes(**bytes)).count();
            (room.is_full(), room.for_more_like(rows))
        };
        assert_eq!(judged(&[]), (false, (100, 100)));
        assert_eq!(judged(&[10, 20]), (false, (6, 4)));
        assert_eq!(judged(&[50, 50]), (false, (2, 0)));
        assert_eq!(judged(&[50, 51]), (true, (0, 0)));
        assert_eq!(judged(&[1000]), (false, (0, 0)));
    }

    #[test]
    fn a_time_is_one_that_can_be_printed() {
        let read = |micros: i64| Row::new(Arc::from(["at".to_owned()]), vec![micros.into()]).get::<Timestamp>("at");
        assert_eq!(read(7), Ok(Timestamp::from_micros(7)));
        for micros in [i64::MIN, -1, i64::MAX] {
            assert!(matches!(read(micros), Err(Error::Corrupt(_))), "{micros}");
        }
    }

    #[test]
    fn a_wrong_type_or_name_is_an_error() {
        assert!(matches!(row().get::<i64>("name"), Err(Error::Corrupt(_))));
        assert!(matches!(row().get::<String>("note"), Err(Error::Corrupt(_))));
        assert!(matches!(row().get::<bool>("count"), Err(Error::Corrupt(_))));
        assert!(matches!(row().get::<i64>("absent"), Err(Error::Corrupt(_))));
        assert!(matches!(row().get::<i64>(3), Err(Error::Corrupt(_))));
        assert!(matches!(row().get::<Timestamp>("name"), Err(Error::Corrupt(_))));
    }
}
