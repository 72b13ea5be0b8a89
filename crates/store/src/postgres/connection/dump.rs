//! All rows of a query, each handed on as it arrives. A cursor sends a few at a time, so that no statement lasts as long as whoever
//! takes them; and of these no more are in memory than what is on the way, because a few hundred may have a megabyte each.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tokio_postgres::types::Type;

use super::{Connection, State};
use crate::error::Error;
use crate::postgres::{fault, value};
use crate::sql::Value;
use crate::tx::{Conn as _, EachRow};

/// Rows for each question.
const FETCH: &str = "fetch 500 from dump";

enum Broken {
    /// By the server, or on the way to it.
    Sent(tokio_postgres::Error),
    Taken(Error),
}

impl Connection {
    pub(super) fn dump(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error> {
        self.define(&format!("declare dump no scroll cursor for {sql}"))?;
        let mut columns = None;
        while self.fetch(&mut columns, each)? > 0 {}
        self.define("close dump")
    }

    /// How many there were.
    fn fetch(&mut self, columns: &mut Option<Arc<[String]>>, each: &mut EachRow<'_>) -> Result<usize, Error> {
        let mut take = |row: tokio_postgres::Row| {
            let columns = columns.get_or_insert_with(|| value::columns_of(row.columns()));
            value::rows(&[row], columns)?.into_iter().try_for_each(&mut *each)
        };
        let fetched = self.wait(async {
            // Never prepared: the name of a cursor means another query each time.
            let rows = self.client.query_typed_raw(FETCH, std::iter::empty::<(&Value, Type)>()).await;
            let (mut rows, mut count) = (pin!(rows.map_err(Broken::Sent)?), 0);
            while let Some(row) = rows.try_next().await.map_err(Broken::Sent)? {
                take(row).map_err(Broken::Taken)?;
                count += 1;
            }
            Ok(count)
        });
        match fetched {
            Ok(Ok(count)) => Ok(count),
            Ok(Err(Broken::Taken(error))) => Err(error),
            Ok(Err(Broken::Sent(error))) => {
                let fault = fault::classify(&error);
                self.note(fault.cause);
                Err(fault.error)
            }
            Err(error) => {
                self.state = State::Lost;
                Err(error)
            }
        }
    }
}
