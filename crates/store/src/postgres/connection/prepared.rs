//! The statements that a connection has prepared, and what is known of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_postgres::Statement;

use super::{Connection, State};
use crate::error::Error;
use crate::postgres::fault;
use crate::postgres::pipeline::Text;
use crate::postgres::value;
use crate::sql::Value;

/// More of them are forgotten, all at once.
const MOST: usize = 512;

#[derive(Clone)]
pub(in crate::postgres) struct Prepared {
    pub(in crate::postgres) statement: Statement,
    columns: Arc<[String]>,
}

impl Connection {
    pub(super) fn text<'a>(&self, sql: &'a str) -> Text<'a> {
        match self.statements.get(sql) {
            Some(prepared) => Text::Prepared(prepared.statement.clone()),
            None => Text::Unprepared(sql),
        }
    }

    /// Makes sure that the values can be sent. Returns the columns, unless nothing is prepared.
    pub(super) fn prepare(&mut self, sql: &str, values: &[Value]) -> Result<Option<Arc<[String]>>, Error> {
        let Some(prepared) = self.prepared(sql)? else { return Ok(None) };
        value::check(values, prepared.statement.params(), sql)?;
        Ok(Some(Arc::clone(&prepared.columns)))
    }

    /// `None` where nothing is prepared.
    pub(in crate::postgres) fn prepared(&mut self, sql: &str) -> Result<Option<&Prepared>, Error> {
        if self.unprepared.load(Ordering::Relaxed) {
            self.statements.clear();
            return Ok(None);
        }
        if !self.statements.contains_key(sql) {
            let statement = self.prepare_anew(sql)?;
            let columns = value::columns_of(statement.columns());
            self.statements.insert(sql.to_owned(), Prepared { statement, columns });
        }
        Ok(self.statements.get(sql))
    }

    /// Within the transaction, whose limits then hold for this wait as well: BEGIN goes out in front of it.
    fn prepare_anew(&mut self, sql: &str) -> Result<Statement, Error> {
        let begin = (!self.begun).then(|| self.begin_text());
        self.begun = true;
        let client = &self.client;
        let begun = async {
            match begin {
                Some(text) => client.batch_execute(text).await,
                None => Ok(()),
            }
        };
        // The first one is sent first.
        let answered = self.wait(async { tokio::join!(begun, client.prepare(sql)) });
        match answered {
            Ok((Ok(()), Ok(statement))) => Ok(statement),
            Ok((Err(error), _) | (Ok(()), Err(error))) => {
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

    /// Between transactions, so that no statement is closed that a pipeline still needs.
    pub(crate) fn trim(&mut self) {
        if self.statements.len() > MOST {
            self.statements.clear();
        }
    }
}
