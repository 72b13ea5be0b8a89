//! Reads a backup through, without a database: each line parses, and the counts and the checksum are right.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use domain::organization::Organization;

use crate::backup::{Summary, TableHeader, Trailer, from_json};
use crate::damage::{Damage, Watched};
use crate::entity::Entity;
use crate::error::Error;
use crate::queries::repair::Columns;
use crate::restore::Input;
use crate::sql::Value;

/// Whether it begins as a backup does; what follows may be damaged.
pub fn is_backup(reader: impl BufRead) -> bool {
    Input::new(reader).header().is_ok()
}

/// What the backup says of itself, if it is whole.
pub fn check_backup(reader: impl BufRead) -> Result<Summary, Error> {
    read_through(reader, |_, _| {})
}

/// The same, with the row of `table` whose columns have the values of `key`. Of a backup that is not whole nothing is given.
pub fn find_in_backup(reader: impl BufRead, table: &str, key: &Columns) -> Result<(Summary, Option<Columns>), Error> {
    let mut found: Option<Columns> = None;
    let summary = read_through(reader, |header, row| {
        let has = |name: &str, value: &Value| {
            let place = header.columns.iter().position(|column| column == name);
            place.is_some_and(|place| row[place] == *value)
        };
        if header.table == table && key.iter().all(|(name, value)| has(name, value)) {
            found = Some(header.columns.iter().cloned().zip(row).collect());
        }
    })?;
    Ok((summary, found))
}

/// The organizations of a backup, as far as it can be read: those behind a place where it is torn or damaged are not known.
pub fn organizations_in_backup(reader: impl BufRead) -> BTreeSet<String> {
    let (mut input, mut found) = (Input::new(reader), BTreeSet::new());
    // Of their table, once it has begun.
    let mut place: Option<usize> = None;
    if input.header().is_err() {
        return found;
    }
    while let Ok(line) = input.line() {
        if line.starts_with(b"[") {
            // Of a table before.
            let Some(place) = place else { continue };
            let fields: Vec<serde_json::Value> = serde_json::from_slice(&line).unwrap_or_default();
            found.extend(fields.get(place).and_then(serde_json::Value::as_str).map(str::to_owned));
            continue;
        }
        let table = serde_json::from_slice::<TableHeader>(&line).ok();
        match table.filter(|_| place.is_none()) {
            Some(table) if table.table == Organization::TABLE => {
                place = table.columns.iter().position(|column| column == "organization_id");
            }
            Some(_) => {}
            None => break,
        }
    }
    found
}

/// `each` gets the rows as they come, before it is known whether the backup is whole.
fn read_through(reader: impl BufRead, mut each: impl FnMut(&TableHeader, Vec<Value>)) -> Result<Summary, Error> {
    let damaged = |what: &str| Error::Backup(format!("the backup is damaged or incomplete ({what})"));
    let mut input = Input::new(reader);
    let header = input.header()?;
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    let mut damage = Damage::default();
    let mut reading: Option<(TableHeader, Watched, u64)> = None;
    loop {
        let line = input.line()?;
        if line.starts_with(b"[") {
            let (table, watched, count) = reading.as_mut().ok_or_else(|| damaged("a row before its table"))?;
            let fields: Vec<serde_json::Value> = serde_json::from_slice(&line).map_err(|_| damaged("a row"))?;
            let read = fields.into_iter().map(from_json).collect::<Result<Vec<_>, _>>();
            let row = read.ok().filter(|row| row.len() == table.columns.len()).ok_or_else(|| damaged("a row"))?;
            damage.look_at(&table.table, watched, &row);
            *count += 1;
            each(table, row);
            continue;
        }
        if let Some((table, _, count)) = reading.take() {
            rows.insert(table.table, count);
        }
        if line.starts_with(b"{\"table\":") {
            let table: TableHeader = serde_json::from_slice(&line).map_err(|_| damaged("a table's header"))?;
            let watched = Watched::of(&table.columns);
            reading = Some((table, watched, 0));
            continue;
        }
        let sha256 = input.sha256();
        let mut trailer =
            serde_json::to_vec(&Trailer { rows: &rows, sha256: &sha256 }).map_err(|_| damaged("the trailer"))?;
        trailer.push(b'\n');
        if line != trailer || !input.is_at_end()? {
            return Err(damaged("its counts or its checksum"));
        }
        return Ok(Summary { schema: header.schema, created_at: header.created_at, rows, sha256, damage });
    }
}
