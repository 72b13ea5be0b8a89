//! Several statements in one round trip: all are sent before the first answer is waited for.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::TryStreamExt as _;
use futures_util::future::maybe_done;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, RowStream, Statement};

use super::value::natural_type;
use crate::sql::{Room, Value};

pub(crate) enum Step<'a> {
    /// Begin, commit, savepoints: no values, no rows.
    Command(&'a str),
    Query(Text<'a>, &'a [Value]),
    /// A query, of which no more is kept than there is room for.
    Part(Text<'a>, &'a [Value], Room),
    Execute(Text<'a>, &'a [Value]),
    /// Of a statement for many rows: for each placeholder the values of all rows.
    Many(Statement, Vec<Vec<&'a Value>>),
}

pub(crate) enum Text<'a> {
    Prepared(Statement),
    /// Parsed anew each time, for poolers that don't know prepared statements.
    Unprepared(&'a str),
}

pub(crate) enum Reply {
    Done,
    Rows(Vec<tokio_postgres::Row>),
    /// And the room that is left.
    Part(Vec<tokio_postgres::Row>, Room),
    Touched(u64),
}

pub(crate) async fn send(client: &Client, steps: &[Step<'_>]) -> Vec<Result<Reply, tokio_postgres::Error>> {
    in_order(steps.iter().map(|step| send_one(client, step))).await
}

async fn send_one(client: &Client, step: &Step<'_>) -> Result<Reply, tokio_postgres::Error> {
    match step {
        Step::Command(sql) => client.batch_execute(sql).await.map(|()| Reply::Done),
        Step::Query(Text::Prepared(statement), values) => {
            client.query(statement, &untyped(values)).await.map(Reply::Rows)
        }
        Step::Query(Text::Unprepared(sql), values) => client.query_typed(sql, &typed(values)).await.map(Reply::Rows),
        Step::Part(Text::Prepared(statement), values, room) => {
            part(client.query_raw(statement, values.iter()).await?, *room).await
        }
        Step::Part(Text::Unprepared(sql), values, room) => {
            let values = values.iter().map(|value| (value, natural_type(value)));
            part(client.query_typed_raw(sql, values).await?, *room).await
        }
        Step::Execute(Text::Prepared(statement), values) => {
            client.execute(statement, &untyped(values)).await.map(Reply::Touched)
        }
        Step::Execute(Text::Unprepared(sql), values) => {
            client.execute_typed(sql, &typed(values)).await.map(Reply::Touched)
        }
        Step::Many(statement, columns) => {
            let columns: Vec<_> = columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
            client.query(statement, &columns).await.map(Reply::Rows)
        }
    }
}

/// What comes behind it is read off the connection as it arrives, before the next answer, and not kept.
async fn part(rows: RowStream, mut room: Room) -> Result<Reply, tokio_postgres::Error> {
    let (mut rows, mut kept) = (pin!(rows), Vec::new());
    while let Some(row) = rows.try_next().await? {
        if !room.takes(row.raw_size_bytes()) {
            break;
        }
        kept.push(row);
    }
    Ok(Reply::Part(kept, room))
}

fn untyped(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), natural_type(value))).collect()
}

/// A request goes out when its future is polled for the first time, so the first polls have to come in order. The answers
/// come in order by themselves.
async fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        for future in &mut futures {
            // Whether it is already done is seen below.
            let _ = future.as_mut().poll(context);
        }
        Poll::Ready(())
    })
    .await;
    let mut outputs = Vec::with_capacity(futures.len());
    for future in &mut futures {
        future.as_mut().await;
        let output = Pin::as_mut(future).take_output();
        outputs.push(output.expect("a future that was awaited has its output"));
    }
    outputs
}
