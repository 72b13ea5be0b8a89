//! Rows of a backup that are not what was written: by the checksums of documents and events, by whether those parse that have none,
//! and because no text that this program stores holds U+0000.
//!
//! They are copied as they are, with all that is right; whoever makes the copy, or reads it, is told.

use serde::{Deserialize, Serialize};

use crate::checksum;
use crate::sql::{FromValue, Value};

/// More than these are counted and not named.
const MOST_NAMED: usize = 100;
/// The column that names a row with a checksum, behind its organization and mode.
const ID: usize = 2;
/// What stands for a name that is no text any more.
const UNREADABLE: &str = "?";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// All of them, those that are not named included.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<DamagedRow>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedRow {
    pub table: String,
    /// An organization has the same id in both.
    pub mode: String,
    pub id: String,
}

impl Damage {
    /// How many were counted and not named.
    #[must_use]
    pub fn unnamed(&self) -> u64 {
        self.count.saturating_sub(u64::try_from(self.rows.len()).unwrap_or(u64::MAX))
    }

    /// Whether each of these rows is among the others. Of one that is not named nobody knows.
    #[must_use]
    pub fn is_within(&self, others: &Self) -> bool {
        let is_among = |row: &DamagedRow| row.is_named() && others.rows.contains(row);
        self.unnamed() == 0 && others.unnamed() == 0 && self.rows.iter().all(is_among)
    }

    pub(crate) fn look_at(&mut self, table: &str, columns: &Watched, row: &[Value]) {
        if columns.checksums.hold_for(row) && !row.iter().any(holds_nul) {
            return;
        }
        self.count += 1;
        if self.rows.len() < MOST_NAMED {
            let name = |column: Option<usize>| {
                let name = column.and_then(|column| row.get(column)).filter(|name| !holds_nul(name));
                name.and_then(|name| String::from_value(name).ok()).unwrap_or_else(|| UNREADABLE.to_owned())
            };
            self.rows.push(DamagedRow { table: table.to_owned(), mode: name(columns.mode), id: name(columns.id) });
        }
    }
}

impl DamagedRow {
    fn is_named(&self) -> bool {
        self.mode != UNREADABLE && self.id != UNREADABLE
    }
}

/// PostgreSQL can't store it, and nothing is written that one database alone would take.
pub(crate) fn holds_nul(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.contains('\0'))
}

/// What is looked at of a table's rows.
pub(crate) struct Watched {
    checksums: Checksums,
    mode: Option<usize>,
    pub(crate) id: Option<usize>,
}

impl Watched {
    pub(crate) fn of(columns: &[String]) -> Self {
        let place = |name: &str| columns.iter().position(|column| column == name);
        let checksums = Checksums::of(columns);
        let id = if matches!(checksums, Checksums::Nowhere) { place("id") } else { Some(ID) };
        Self { checksums, mode: place("mode"), id }
    }
}

/// Where a table's checksums are.
#[derive(Clone, Copy)]
enum Checksums {
    /// It has none; events of an earlier schema have none either.
    Nowhere,
    InDocument {
        document: usize,
    },
    BesideBody {
        body: usize,
        sum: usize,
    },
}

impl Checksums {
    /// By the names of its columns, which are the same for every kind of document.
    fn of(columns: &[String]) -> Self {
        let place = |name: &str| columns.iter().position(|column| column == name);
        match (place("doc"), place("body"), place("body_crc32")) {
            (Some(document), _, _) => Self::InDocument { document },
            (None, Some(body), Some(sum)) => Self::BesideBody { body, sum },
            (None, _, _) => Self::Nowhere,
        }
    }

    /// Whatever holds something else than a text was not written so either.
    fn hold_for(self, row: &[Value]) -> bool {
        match self {
            Self::Nowhere => true,
            Self::InDocument { document } => match &row[document] {
                Value::Text(document) => checksum::is_whole(document),
                Value::Null | Value::Integer(_) | Value::Blob(_) => false,
            },
            Self::BesideBody { body, sum } => match (&row[body], Option::<i64>::from_value(&row[sum])) {
                (Value::Text(body), Ok(sum)) => checksum::is_whole_beside(body, sum),
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(columns: &[&str], row: &[Value]) -> Vec<String> {
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        let mut damage = Damage::default();
        damage.look_at("things", &Watched::of(&columns), row);
        damage.rows.into_iter().map(|row| row.id).collect()
    }

    #[test]
    fn what_can_be_no_document_is_damaged() {
        let columns = ["organization_id", "mode", "id", "doc"];
        let document = |doc: Value| found(&columns, &["o".into(), "m".into(), "a".into(), doc]);
        let written = checksum::added("{\"a\":1}".to_owned());
        assert_eq!(document(written.as_str().into()), [""; 0]);
        assert_eq!(document(written.replace(":1,", ":2,").into()), ["a"]);
        assert_eq!(document(written.into_bytes().into()), ["a"]);
        assert_eq!(document("{\"a\":2}".into()), [""; 0], "of a version that kept none");
        assert_eq!([document("{\"a\":2|".into()), document("{\"a\"".into())], [["a"], ["a"]]);
    }

    #[test]
    fn a_text_that_nobody_can_have_written_is_damaged_in_any_table() {
        let row = |columns: &[&str], id: &str, text: &str| found(columns, &["o".into(), id.into(), text.into()]);
        let columns = ["organization_id", "id", "reason"];
        assert_eq!(row(&columns, "a", "why\\u0000"), [""; 0]);
        assert_eq!(row(&columns, "a", "w\0y"), ["a"]);
        assert_eq!(row(&columns, "\0", "why"), [UNREADABLE]);
        assert_eq!(row(&["organization_id", "name", "reason"], "a", "\0"), [UNREADABLE]);
    }

    #[test]
    fn a_row_is_among_others_by_its_whole_name() {
        let row = |mode: &str, id: &str| DamagedRow { table: "things".into(), mode: mode.into(), id: id.into() };
        let damage = |count: u64, rows: Vec<DamagedRow>| Damage { count, rows };
        let test = damage(1, vec![row("test", "a")]);
        let live = damage(1, vec![row("live", "a")]);
        let both = damage(2, vec![row("test", "a"), row("live", "a")]);
        assert!(test.is_within(&both) && live.is_within(&both) && both.is_within(&both));
        assert!(!both.is_within(&test) && !live.is_within(&test) && !test.is_within(&Damage::default()));
        let more = damage(3, both.rows.clone());
        assert!(!more.is_within(&both) && !test.is_within(&more), "a third is not named");
        let nameless = damage(1, vec![row("test", UNREADABLE)]);
        assert!(!nameless.is_within(&nameless));
    }

    #[test]
    fn a_body_is_held_against_the_checksum_beside_it() {
        let columns = ["organization_id", "mode", "id", "body", "body_crc32"];
        let event = |sum: Value| found(&columns, &["o".into(), "m".into(), "a".into(), "{}".into(), sum]);
        let sum = i64::from(checksum::of("{}"));
        assert_eq!([event(sum.into()), event(Value::Null)], [[""; 0], [""; 0]]);
        assert_eq!([event((sum ^ 1).into()), event("1".into())], [["a"], ["a"]]);
        // Without that column it is no event's, or an older one's.
        assert_eq!(found(&columns[..4], &["o".into(), "m".into(), "a".into(), Value::Null]), [""; 0]);
    }
}
