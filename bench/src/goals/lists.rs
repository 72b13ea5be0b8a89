//! Beside G6: how long lists take as they are used, while somebody writes, and the first of them after a start.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::slice;
use std::time::Duration;

use super::NO_POSTGRES;
use super::rates::{create, none};
use crate::connection::Connection;
use crate::load::{self, Load, Work};
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::sample::Sample;
use crate::server::Server;
use crate::work::{Caller, Change};
use crate::{Result, clock};

/// Connections that make checkouts and cancel them while lists are asked for. Where nobody writes, a list is counted once.
pub(crate) const WRITERS: usize = 4;
/// What PostgreSQL is filled with for them, by a full run alone.
pub(crate) const ON_POSTGRES: u64 = 1_000_000;

const LONG: Duration = Duration::from_secs(1200);
const FILTERS: [(&str, &str); 2] = [("status", "status=pending"), ("date", "start_date=2020-01-01")];
const PAGE: usize = 20;
const PAGES: usize = 1000;

/// On a store and the server that runs on it; `stored` says what is in it.
pub(super) async fn of(
    bench: &mut Bench<'_>,
    installation: &Installation,
    server: Server,
    stored: &str,
) -> Result<Vec<Row>> {
    let (mut rows, mut rates, mut written) = (Vec::new(), Vec::new(), 0);
    for (what, filter) in FILTERS {
        let Pages { first, last, writes } = pages(bench, installation, server.address, filter).await?;
        for (page, sample) in [("first", first), ("thousandth", last)] {
            rows.extend(asked(&format!("list by {what}, {page} page, {stored}"), &sample));
        }
        rates.push(writes.rate());
        written += writes.count();
    }
    let what = format!("writes beside the lists, {stored}, a second");
    rows.push(Row::new("G6", &what, &rates, Wanted::Told(Unit::PerSecond), written));
    stop(server).await?;
    for (what, filter) in FILTERS {
        let firsts = after_starts(bench, installation, filter).await?;
        let what = format!("list by {what}, the first after a start, {stored}");
        rows.push(Row::new("G6", &what, &firsts, Wanted::Told(Unit::Milliseconds), firsts.len() as u64));
    }
    Ok(rows)
}

/// On a store of their own: nobody has ten million there.
pub(super) async fn on_postgres(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    if !bench.is_full() {
        return Ok(Vec::new());
    }
    let Some(installation) = bench.postgres("lists")? else {
        return Ok(vec![Row::not_run("G6", "lists, PostgreSQL", NO_POSTGRES)]);
    };
    let server = installation.serve(bench.cores.server.as_ref())?;
    let fill = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
    let filled = create(bench, &installation, slice::from_ref(&server), fill, ON_POSTGRES, none()).await?.count();
    if filled < ON_POSTGRES {
        return Err(format!("of {ON_POSTGRES} checkouts only {filled} were stored in PostgreSQL in time"));
    }
    installation.vacuum()?;
    of(bench, &installation, server, &format!("{ON_POSTGRES} stored, PostgreSQL")).await
}

/// The middle is judged, between the shortest and the longest; the slowest hundredth is told.
fn asked(what: &str, sample: &Sample) -> [Row; 2] {
    let milliseconds = |share| sample.percentile(share) / 1000.0;
    let (wanted, told) = (Wanted::AtMost(5.0, Unit::Milliseconds), Wanted::Told(Unit::Milliseconds));
    [
        Row::new("G6", what, &[0.5, 0.0, 1.0].map(milliseconds), wanted, sample.count()),
        Row::new("G6", "the same, p99", &[milliseconds(0.99)], told, sample.count()),
    ]
}

struct Pages {
    first: Sample,
    /// The thousandth and those behind it.
    last: Sample,
    /// What was written meanwhile.
    writes: Sample,
}

async fn pages(
    bench: &mut Bench<'_>,
    installation: &Installation,
    address: SocketAddr,
    filter: &'static str,
) -> Result<Pages> {
    let mut lists = Lists::open(installation, address, filter).await?;
    // No other way leads to the thousandth. It is not measured.
    let mut after = String::new();
    for _ in 1..PAGES {
        (_, after) = lists.ask(&after).await?;
    }
    let count = if bench.is_full() { 200 } else { 100 };
    let is_over = Rc::new(Cell::new(false));
    let (warm_up, caller) = (bench.load().warm_up, installation.caller(bench.seed()));
    let (addresses, load) = ([address], Load { connections: WRITERS, warm_up, length: LONG });
    let writing = load::run(&addresses, load, |_| {
        let (caller, is_over) = (caller.clone(), Rc::clone(&is_over));
        Box::new(Change { caller, body: String::new(), made: None, is_over }) as Box<dyn Work>
    });
    let asking = async {
        tokio::time::sleep(warm_up).await;
        let asked = lists.first_and_last(after, count).await;
        is_over.set(true);
        asked
    };
    let (writes, asked) = tokio::join!(writing, asking);
    // Without those who write it is not what it says.
    let writes = writes?;
    let (first, last) = asked?;
    Ok(Pages { first, last, writes })
}

/// Milliseconds: each is the first that its server answers. What the machine has in its memory stays there.
async fn after_starts(bench: &Bench<'_>, installation: &Installation, filter: &'static str) -> Result<Vec<f64>> {
    let mut milliseconds = Vec::new();
    for _ in 0..bench.starts() {
        let server = installation.serve(bench.cores.server.as_ref())?;
        let mut lists = Lists::open(installation, server.address, filter).await?;
        let (took, _) = lists.ask("").await?;
        milliseconds.push(f64::from(took) / 1000.0);
        stop(server).await?;
    }
    Ok(milliseconds)
}

async fn stop(server: Server) -> Result<()> {
    server.stop(LONG).await.map_or(Ok(()), Err)
}

/// Asks for one list after the other on one connection.
struct Lists {
    caller: Caller,
    connection: Connection,
    filter: &'static str,
}

impl Lists {
    async fn open(installation: &Installation, address: SocketAddr, filter: &'static str) -> Result<Self> {
        Ok(Self { caller: installation.caller(0), connection: Connection::open(address).await?, filter })
    }

    /// Gives how many microseconds it took, and what leads to the page behind it.
    async fn ask(&mut self, after: &str) -> Result<(u32, String)> {
        let path = format!("/v1/checkouts?{}&limit={PAGE}{after}", self.filter);
        self.connection.request.clear();
        self.caller.get(&path, &mut self.connection.request);
        let began = clock::now();
        let status = self.connection.ask().await?;
        let took = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
        let id = last_id(self.connection.body());
        let id = id.ok_or_else(|| {
            let body = String::from_utf8_lossy(self.connection.body()).chars().take(300).collect::<String>();
            format!("{path} answered {status}: {body}")
        })?;
        Ok((took, format!("&after={id}")))
    }

    /// So many of each, in turns: both are asked for beside the same writes.
    async fn first_and_last(&mut self, mut after: String, count: usize) -> Result<(Sample, Sample)> {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for _ in 0..count {
            first.push(self.ask("").await?.0);
            let (took, next) = self.ask(&after).await?;
            last.push(took);
            after = next;
        }
        Ok((Sample::new(Duration::ZERO, first), Sample::new(Duration::ZERO, last)))
    }
}

/// Of a full page: a shorter one is not what was asked for.
fn last_id(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let items = answer["data"]["items"].as_array().filter(|items| items.len() == PAGE)?;
    items.last()?["id"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_judged_and_the_slowest_hundredth_told() {
        let slow = |many: usize| {
            let latencies = (0..200).map(|place| if place < many { 20_000 } else { 1_000 }).collect();
            asked("list", &Sample::new(Duration::ZERO, latencies)).map(|row| (row.cells()[3].clone(), row.verdict()))
        };
        let row = |found: &str, verdict| (format!("{found} ms"), verdict);
        assert_eq!(slow(99), [row("1.00", "pass"), row("20.00", "told")]);
        assert_eq!(slow(101), [row("20.00", "short"), row("20.00", "told")]);
        assert_eq!(slow(1), [row("1.00", "pass"), row("1.00", "told")]);
    }

    #[test]
    fn the_next_page_begins_behind_the_last_of_a_full_one() {
        let page = |items: usize| {
            let items: Vec<_> = (1..=items).map(|number| serde_json::json!({"id": format!("cs_{number}")})).collect();
            serde_json::json!({"data": {"items": items}}).to_string()
        };
        assert_eq!(last_id(page(PAGE).as_bytes()).as_deref(), Some("cs_20"));
        for body in [page(PAGE - 1), page(0), r#"{"error":{"code":"busy"}}"#.to_owned(), "half of a".to_owned()] {
            assert_eq!(last_id(body.as_bytes()), None, "{body}");
        }
    }
}
