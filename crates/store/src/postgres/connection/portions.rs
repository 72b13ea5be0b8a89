//! The first rows of a query, as many as there is room for. The server sends every row of a statement, also those behind
//! what is kept: a hundred of a megabyte each for a page of four. So it is asked for a few first where rows may be large.

use super::{Connection, Last, Output};
use crate::error::{Error, SqlKind};
use crate::sql::{Part, Room, Row, Value};
use crate::tx::Access;

/// Rows that are asked for first: large ones fill a page about twice.
const FIRST: usize = 8;
/// A row is large if a page has no room for so many like it.
const MANY: usize = 128;
/// So many queries after the last large rows begin with a few. Large ones that come later than that are sent in vain once, which
/// is less than all these may have shown.
const CAREFUL: u32 = 64;

/// Whether a connection asks for a few rows first, which costs small ones a round trip.
pub(super) struct Portions {
    /// So many times more.
    careful: u32,
}

impl Portions {
    pub(super) fn new() -> Self {
        Self { careful: CAREFUL }
    }

    fn note(&mut self, room: &Room, rows: usize) {
        let (in_all, _) = room.for_more_like(rows);
        let large = in_all < MANY;
        self.careful = if large { CAREFUL } else { self.careful.saturating_sub(1) };
    }
}

impl Connection {
    pub(super) fn first_rows(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error> {
        let room = Room::of(most_bytes);
        // Where a transaction writes, each statement sees another state of the rows.
        let (rows, room) = match self.portions.careful > 0 && self.access == Access::Read {
            true => self.in_portions(sql, values, room)?,
            false => self.portion(sql, values, room)?,
        };
        self.portions.note(&room, rows.len());
        Ok(Part { rows, is_cut: room.is_full() })
    }

    /// After the first few as many at a time as there is room for, if they are like those before them. A subquery's order is kept.
    fn in_portions(&mut self, sql: &str, values: &[Value], mut room: Room) -> Result<(Vec<Row>, Room), Error> {
        let (limit_at, offset_at) = (values.len() + 1, values.len() + 2);
        let sql = format!("select *\nfrom (\n{sql}\n) as part\nlimit ${limit_at} offset ${offset_at}");
        let (mut rows, mut count) = (Vec::new(), FIRST);
        loop {
            let bounds = [count, rows.len()].map(|bound| Value::Integer(i64::try_from(bound).unwrap_or(i64::MAX)));
            let (more, left) = self.portion(&sql, &[values, &bounds].concat(), room)?;
            let is_last = more.len() < count;
            rows.extend(more);
            room = left;
            if is_last || room.is_full() {
                return Ok((rows, room));
            }
            let (_, more) = room.for_more_like(rows.len());
            count = more.max(1);
        }
    }

    fn portion(&mut self, sql: &str, values: &[Value], room: Room) -> Result<(Vec<Row>, Room), Error> {
        match self.round_trip(Last::Part(sql, values, room))? {
            Output::Part(rows, room) => Ok((rows, room)),
            Output::Nothing | Output::Rows(_) | Output::Touched(_) => {
                Err(Error::sql(SqlKind::Other, format!("no part came from: {sql}")))
            }
        }
    }
}
