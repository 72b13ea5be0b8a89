//! Reads a backup through, without a database: each line parses, and the counts and the checksum are right.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::backup::{Summary, TableHeader, Trailer, from_json};
use crate::error::Error;
use crate::restore::Input;

/// Whether it begins as a backup does; what follows may be damaged.
pub fn is_backup(reader: impl BufRead) -> bool {
    Input::new(reader).header().is_ok()
}

/// What the backup says of itself, if it is whole.
pub fn check_backup(reader: impl BufRead) -> Result<Summary, Error> {
    let damaged = |what: &str| Error::Backup(format!("the backup is damaged or incomplete ({what})"));
    let mut input = Input::new(reader);
    let header = input.header()?;
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    let mut reading: Option<(String, usize, u64)> = None;
    loop {
        let before = input.sha256();
        let line = input.line()?;
        if line.starts_with(b"[") {
            let (_, columns, count) = reading.as_mut().ok_or_else(|| damaged("a row before its table"))?;
            let fields: Vec<serde_json::Value> = serde_json::from_slice(&line).map_err(|_| damaged("a row"))?;
            if fields.len() != *columns || fields.into_iter().any(|field| from_json(field).is_err()) {
                return Err(damaged("a row"));
            }
            *count += 1;
            continue;
        }
        if let Some((table, _, count)) = reading.take() {
            rows.insert(table, count);
        }
        if line.starts_with(b"{\"table\":") {
            let table: TableHeader = serde_json::from_slice(&line).map_err(|_| damaged("a table's header"))?;
            reading = Some((table.table, table.columns.len(), 0));
            continue;
        }
        let mut trailer =
            serde_json::to_vec(&Trailer { rows: &rows, sha256: &before }).map_err(|_| damaged("the trailer"))?;
        trailer.push(b'\n');
        if line != trailer || !input.is_at_end()? {
            return Err(damaged("its counts or its checksum"));
        }
        return Ok(Summary { schema: header.schema, created_at: header.created_at, rows, sha256: before });
    }
}
