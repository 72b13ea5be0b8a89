//! A transaction of several closures that only add: what they read is read once, and what they write goes out together, one
//! statement for all rows of a table.

use std::collections::HashMap;

use super::connection::{Collected, Connection, Patience};
use super::merge;
use super::pipeline::{Step, Text};
use super::value;
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Access;

/// More than this is asked anew.
const READS: usize = 64;

#[derive(Default)]
pub(crate) struct Shared {
    /// The answers to queries, until a table that they name is written.
    reads: HashMap<(String, Vec<Value>), Vec<Row>>,
    /// Where the savepoints are that were begun and not left.
    savepoints: Vec<Moment>,
    /// So often something was sent that changes rows.
    sent: usize,
    /// The server ended the transaction with a statement that it refused: a COMMIT would be answered, and done as a rollback.
    pub(super) has_failed: bool,
}

/// A moment to go back to, while nothing that came later has been sent.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    collected: usize,
    sent: usize,
}

/// The rows of one statement.
struct Group<'a> {
    sql: &'a str,
    rows: Vec<&'a [Value]>,
    guarded: bool,
}

impl Connection {
    pub(crate) fn begin_shared(&mut self, patience: Patience) {
        self.begin(Access::Write, patience);
        self.shared = Some(Shared::default());
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { collected: self.collected.len(), sent: self.shared.as_ref().map_or(0, |shared| shared.sent) }
    }

    /// Drops what was written since. Where that isn't possible any more, it is a conflict.
    pub(crate) fn back_to(&mut self, moment: Moment) -> Result<(), Error> {
        if self.moment().sent != moment.sent || self.shared.as_ref().is_some_and(|shared| shared.has_failed) {
            return Err(Error::Conflict);
        }
        self.collected.truncate(moment.collected);
        Ok(())
    }

    pub(super) fn mark_savepoint(&mut self) {
        let moment = self.moment();
        if let Some(shared) = &mut self.shared {
            shared.savepoints.push(moment);
        }
    }

    pub(super) fn leave_savepoint(&mut self) -> Result<Moment, Error> {
        self.shared.as_mut().and_then(|shared| shared.savepoints.pop()).ok_or(Error::Conflict)
    }

    pub(super) fn recall(&self, sql: &str, values: &[Value]) -> Option<Vec<Row>> {
        let reads = &self.shared.as_ref()?.reads;
        // The key is made only where there can be something to find.
        if reads.is_empty() { None } else { reads.get(&(sql.to_owned(), values.to_vec())).cloned() }
    }

    pub(super) fn remember(&mut self, sql: &str, values: &[Value], rows: &[Row]) {
        if let Some(shared) = &mut self.shared
            && shared.reads.len() < READS
        {
            shared.reads.insert((sql.to_owned(), values.to_vec()), rows.to_vec());
        }
    }

    pub(super) fn forget_reads_of(&mut self, table: &str) {
        if let Some(shared) = &mut self.shared {
            shared.reads.retain(|(sql, _), _| !sql.contains(table));
        }
    }

    /// By a statement that was sent at once, whichever table it names.
    pub(super) fn changed_rows(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.sent += 1;
            shared.reads.clear();
        }
    }

    /// Sends what is collected, without a statement behind it.
    pub(crate) fn send_together(&mut self) -> Result<(), Error> {
        if self.collected.is_empty() {
            return Ok(());
        }
        if let Some(shared) = &mut self.shared {
            shared.sent += 1;
        }
        self.wrote = true;
        if !self.begun {
            self.send_begin()?;
        }
        let collected = std::mem::take(&mut self.collected);
        let (mut steps, mut guards) = (Vec::new(), Vec::new());
        for group in groups(&collected) {
            let many = self.for_many_rows(&group)?;
            if let Some(step) = many {
                if group.guarded {
                    guards.push(steps.len());
                }
                steps.push(step);
                continue;
            }
            for values in group.rows {
                let text = match self.prepared(group.sql)? {
                    Some(prepared) => Text::Prepared(prepared.statement.clone()),
                    None => Text::Unprepared(group.sql),
                };
                if group.guarded {
                    guards.push(steps.len());
                    steps.push(Step::Query(text, values));
                } else {
                    steps.push(Step::Execute(text, values));
                }
            }
        }
        self.send(&steps, &guards).map(drop)
    }

    fn for_many_rows<'a>(&mut self, group: &Group<'a>) -> Result<Option<Step<'a>>, Error> {
        let Some(prepared) = self.prepared(group.sql)? else { return Ok(None) };
        let types = prepared.statement.params().to_vec();
        for values in &group.rows {
            value::check(values, &types, group.sql)?;
        }
        if group.rows.len() == 1 {
            return Ok(None);
        }
        let Some(sql) = merge::for_many_rows(group.sql, &types) else { return Ok(None) };
        let Some(prepared) = self.prepared(&sql)? else { return Ok(None) };
        let statement = prepared.statement.clone();
        let columns = (0..types.len()).map(|column| group.rows.iter().map(|values| &values[column]).collect());
        Ok(Some(Step::Many(statement, columns.collect())))
    }
}

/// By statement, in the order in which each came first; the rows of additions don't depend on one another. The rows of a
/// statement are in order of their values: two transactions with the same keys then meet at the first of them, and neither
/// holds one that the other waits for.
fn groups(collected: &[Collected]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for item in collected {
        let Collected::Write { sql, values, guarded, .. } = item else { continue };
        match groups.iter_mut().find(|group| group.sql == sql) {
            Some(group) => group.rows.push(values),
            None => groups.push(Group { sql, rows: vec![values], guarded: *guarded }),
        }
    }
    for group in &mut groups {
        group.rows.sort_unstable();
    }
    groups
}
