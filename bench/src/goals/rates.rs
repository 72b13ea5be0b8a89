//! G1 to G4: how many operations a second, as a share of what the reference answers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::NO_POSTGRES;
use super::webhooks::all_received;
use crate::load::{self, Load, Work};
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::sample::Sample;
use crate::server::Server;
use crate::work::{Caller, Create, Draft, Each, Get, Ids, Pay};
use crate::{Result, clock, product};

/// For work that ends by itself.
const LONG: Duration = Duration::from_secs(600);

/// Beside creates under a key each, in the same repeats.
const WITHOUT_KEYS: &str = "create without an idempotency key / with one";

/// Creates until the time is over, or `most` of them.
pub(super) async fn create(
    bench: &mut Bench<'_>,
    installation: &Installation,
    servers: &[Server],
    load: Load,
    most: u64,
    keep: (u64, Ids),
) -> Result<Sample> {
    create_by(&installation.caller(bench.seed()), servers, load, most, keep).await
}

/// As many as there is time for, by somebody who brings no idempotency keys.
async fn create_without_keys(bench: &mut Bench<'_>, installation: &Installation, servers: &[Server]) -> Result<Sample> {
    let caller = installation.caller(bench.seed()).without_keys();
    create_by(&caller, servers, bench.load(), u64::MAX, none()).await
}

async fn create_by(caller: &Caller, servers: &[Server], load: Load, most: u64, keep: (u64, Ids)) -> Result<Sample> {
    let left = Rc::new(Cell::new(most));
    load::run(&crate::run::addresses(servers), load, |_| {
        Box::new(Create {
            caller: caller.clone(),
            body: String::new(),
            left: Rc::clone(&left),
            keep_every: keep.0,
            kept: Rc::clone(&keep.1),
        }) as Box<dyn Work>
    })
    .await
}

pub(super) async fn get(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let mut rows = Vec::new();
    let cores = bench.cores.server.clone();
    let echo = bench.reference("echo", cores.as_ref())?;
    let sqlite = Some(bench.sqlite("get")?);
    let postgres = bench.postgres("get")?;
    for (installation, what, wanted) in [
        (sqlite, "GET /v1/checkouts/{id}, SQLite / E", 0.75),
        (postgres, "GET /v1/checkouts/{id}, PostgreSQL / E", 0.5),
    ] {
        let Some(installation) = installation else {
            rows.push(Row::not_run("G3", what, NO_POSTGRES));
            continue;
        };
        let servers = [installation.serve(cores.as_ref())?];
        let ids = Ids::default();
        let prepare = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
        create(bench, &installation, &servers, prepare, 10_000, (1, Rc::clone(&ids))).await?;
        let (mut ratios, mut samples) = (Vec::new(), Vec::new());
        for _ in 0..bench.repeats() {
            let reference = bench.echo(&echo, bench.load()).await?;
            let sample = read(bench, &installation, &servers, bench.load(), &ids).await?;
            ratios.push(sample.rate() / reference.rate());
            samples.push(sample);
        }
        let count = samples.iter().map(Sample::count).sum();
        rows.push(Row::new("G3", what, &ratios, Wanted::AtLeast(wanted, Unit::Share), count));
        rows.extend(waits("G3", &samples));
    }
    Ok(rows)
}

pub(super) async fn read(
    bench: &mut Bench<'_>,
    installation: &Installation,
    servers: &[Server],
    load: Load,
    ids: &Ids,
) -> Result<Sample> {
    let caller = installation.caller(bench.seed());
    load::run(&crate::run::addresses(servers), load, |_| {
        Box::new(Get { caller: caller.clone(), ids: Rc::clone(ids) }) as Box<dyn Work>
    })
    .await
}

/// How long the answers took, told beside how many there were.
pub(super) fn waits(goal: &str, samples: &[Sample]) -> Vec<Row> {
    let count: u64 = samples.iter().map(Sample::count).sum();
    let row = |(name, share): (&str, f64)| {
        let what = format!("the same, {name}");
        Row::new(goal, &what, &milliseconds(samples, share), Wanted::Told(Unit::Milliseconds), count)
    };
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("worst", 1.0)].into_iter().map(row).collect()
}

/// One of each sample.
pub(super) fn milliseconds(samples: &[Sample], share: f64) -> Vec<f64> {
    samples.iter().map(|sample| sample.percentile(share) / 1000.0).collect()
}

/// Keeps nothing.
pub(super) fn none() -> (u64, Ids) {
    (u64::MAX, Ids::default())
}

pub(super) async fn create_sqlite(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let cores = bench.cores.server.clone();
    let echo = bench.reference("echo", cores.as_ref())?;
    let installation = bench.sqlite("create")?;
    let servers = [installation.serve(cores.as_ref())?];
    let (mut ratios, mut rates, mut echoes, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut without_keys, mut without_keys_count) = (Vec::new(), 0);
    for _ in 0..bench.repeats() {
        let reference = bench.echo(&echo, bench.load()).await?;
        let sample = create(bench, &installation, &servers, bench.load(), u64::MAX, none()).await?;
        let keyless = create_without_keys(bench, &installation, &servers).await?;
        ratios.push(sample.rate() / reference.rate());
        rates.push(sample.rate());
        echoes.push(reference.rate());
        count += sample.count();
        without_keys.push(keyless.rate() / sample.rate());
        without_keys_count += keyless.count();
    }
    let told = Wanted::Told(Unit::PerSecond);
    Ok(vec![
        Row::new("G1", "POST /v1/checkouts, SQLite, one core / E", &ratios, Wanted::AtLeast(0.4, Unit::Share), count),
        Row::new("G1", "the same, a second", &rates, told, count),
        Row::new("G1", "E, a second", &echoes, told, 0),
        Row::new("G1", WITHOUT_KEYS, &without_keys, Wanted::Told(Unit::Share), without_keys_count),
    ])
}

pub(super) async fn create_postgres(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    const TO_ECHO: &str = "POST /v1/checkouts, PostgreSQL, unpinned / E";
    const TO_PGBENCH: &str = "the same / P";
    bench.pin_client(false)?;
    let Some(installation) = bench.postgres("create")? else {
        return Ok(vec![Row::not_run("G2", TO_ECHO, NO_POSTGRES), Row::not_run("G2", TO_PGBENCH, NO_POSTGRES)]);
    };
    let cores = bench.cores.all.clone();
    let echo = bench.reference("echo", cores.as_ref())?;
    let pgbench = Pgbench::prepare(bench)?;
    let servers = [installation.serve(cores.as_ref())?];
    let (mut to_echo, mut to_pgbench, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    let (mut without_keys, mut without_keys_count) = (Vec::new(), 0);
    for _ in 0..bench.repeats() {
        let reference = bench.echo(&echo, bench.load()).await?;
        let inserts = pgbench.measure(bench.load().length)?;
        let sample = create(bench, &installation, &servers, bench.load(), u64::MAX, none()).await?;
        let keyless = create_without_keys(bench, &installation, &servers).await?;
        to_echo.push(sample.rate() / reference.rate());
        to_pgbench.push(sample.rate() / inserts);
        without_keys.push(keyless.rate() / sample.rate());
        without_keys_count += keyless.count();
        samples.push(sample);
    }
    let rates: Vec<f64> = samples.iter().map(Sample::rate).collect();
    let count = samples.iter().map(Sample::count).sum();
    let mut rows = vec![
        Row::new("G2", TO_ECHO, &to_echo, Wanted::AtLeast(0.3, Unit::Share), count),
        Row::new("G2", TO_PGBENCH, &to_pgbench, Wanted::AtLeast(1.5, Unit::Times), count),
        Row::new("G2", "the same, a second", &rates, Wanted::Told(Unit::PerSecond), count),
    ];
    rows.extend(waits("G2", &samples));
    rows.push(Row::new("G2", WITHOUT_KEYS, &without_keys, Wanted::Told(Unit::Share), without_keys_count));
    Ok(rows)
}

/// Reference P: one row of the same size and indexes in each transaction, into a table that is empty at first. As ours, its ids are
/// in the order of time: each client counts from the time at which all begin.
struct Pgbench {
    url: String,
    programs: std::path::PathBuf,
    script: std::path::PathBuf,
}

const TABLE: &str = "\
create table if not exists reference (
    organization_id text not null, mode text not null, id text not null unique, version bigint not null,
    doc text not null, status text not null, amount_minor bigint not null, currency text not null,
    reference text not null, created_at bigint not null, primary key (organization_id, mode, id));
create index if not exists reference_by_status on reference (organization_id, mode, status, id);
create index if not exists reference_by_reference on reference (organization_id, mode, reference, id)";

const EMPTY: &str = "truncate reference";

/// Microseconds, as long as nobody inserts more than one in each.
const BEGINNING: &str = "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)";

const INSERT: &str = "\
\\set number :number + 1
insert into reference values ('org_01jd0000000000000000000000', 'test', 'cs_' || :number || '_' || :client_id, 1, \
repeat('x', 1024), 'pending', 145000, 'GMD', 'order-' || :number, :number);
";

impl Pgbench {
    fn prepare(bench: &Bench<'_>) -> Result<Self> {
        let (url, programs) = bench.options.postgres.clone().ok_or(NO_POSTGRES)?;
        let script = bench.options.folder.join("insert.sql");
        std::fs::write(&script, INSERT).map_err(|error| format!("{}: {error}", script.display()))?;
        let pgbench = Self { url, programs, script };
        pgbench.ask(&[TABLE])?;
        // The first is slower than those behind it.
        pgbench.measure(bench.load().length)?;
        Ok(pgbench)
    }

    fn ask(&self, statements: &[&str]) -> Result<String> {
        product::psql(&self.url, &self.programs, statements)
    }

    /// Rows a second.
    fn measure(&self, length: Duration) -> Result<f64> {
        let beginning = self.ask(&[EMPTY, BEGINNING])?;
        let mut pgbench = std::process::Command::new(self.programs.join("pgbench"));
        pgbench.args(["--no-vacuum", "--protocol=prepared", "--client=16", "--jobs=2"]);
        pgbench.arg(format!("--define=number={}", beginning.trim())).arg("--time");
        pgbench.arg(length.as_secs().max(1).to_string()).arg("--file").arg(&self.script).arg(&self.url);
        let said = product::succeed(&mut pgbench)?;
        rows_a_second(&said).ok_or_else(|| format!("pgbench said no rate: {said}"))
    }
}

fn rows_a_second(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// G4: each kind of write beside creates of the same moment. Payments have a store of their own, with an endpoint that wants to be
/// told of everything.
pub(super) async fn others(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let cores = bench.cores.server.clone();
    let installation = bench.sqlite("others")?;
    let servers = [installation.serve(cores.as_ref())?];
    let paying = bench.sqlite("payments")?;
    let paid_by = [paying.serve(cores.as_ref())?];
    let sink = bench.reference("sink", bench.cores.client.clone().as_ref())?;
    paying.tell(paid_by[0].address, &format!("http://{}/hook", sink.address), "*", bench.seed()).await?;
    let objects: u64 = if bench.is_full() { 50_000 } else { 2_500 };
    let payments: u64 = if bench.is_full() { 8_000 } else { 500 };
    let all = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
    let mut shares: [Vec<f64>; 4] = Default::default();
    // One repeat more than counts: the first one warms up.
    for repeat in 0..=bench.repeats() {
        let pending = Ids::default();
        let created = create(bench, &installation, &servers, all, objects, (1, Rc::clone(&pending))).await?.rate();
        let (drafts, updated) = (drafts(bench, &installation, &servers, all, objects / 2).await?, Ids::default());
        let cancel = Each {
            caller: installation.caller(bench.seed()),
            method: "POST",
            before: "/v1/checkouts/",
            after: "/cancel",
            body: "",
            ids: pending,
            taken: None,
            then: Ids::default(),
        };
        let update = Each {
            caller: installation.caller(bench.seed()),
            method: "PUT",
            before: "/v1/pay/invoices/",
            after: "",
            body: r#"{"tax_rate":7.25,"notes":"Thank you!"}"#,
            ids: drafts,
            taken: None,
            then: Rc::clone(&updated),
        };
        let finalize = Each {
            caller: installation.caller(bench.seed()),
            method: "POST",
            before: "/v1/pay/invoices/",
            after: "/finalize",
            body: "",
            ids: updated,
            taken: None,
            then: Ids::default(),
        };
        let cancelled = each(&servers, all, &cancel).await?;
        let updated = each(&servers, all, &update).await?;
        let finalized = each(&servers, all, &finalize).await?;
        let paid = pay(bench, &paying, &paid_by, all, payments).await?;
        // What the next creates are held against does nothing beside them.
        all_received(sink.address).await?;
        if repeat > 0 {
            for (shares, rate) in shares.iter_mut().zip([cancelled, updated, finalized, paid]) {
                shares.push(rate / created);
            }
        }
    }
    let [cancelled, updated, finalized, paid] = shares;
    let repeats = bench.repeats() as u64;
    let (write, whole) = (Wanted::AtLeast(0.8, Unit::Share), Wanted::AtLeast(0.25, Unit::Share));
    Ok(vec![
        Row::new("G4", "cancel a checkout / create", &cancelled, write, objects * repeats),
        Row::new("G4", "update an invoice / create", &updated, write, objects / 2 * repeats),
        Row::new("G4", "finalize an invoice / create", &finalized, write, objects / 2 * repeats),
        Row::new(
            "G4",
            "a whole payment, webhooks queued and not waited for / create",
            &paid,
            whole,
            payments * repeats,
        ),
    ])
}

async fn drafts(
    bench: &mut Bench<'_>,
    installation: &Installation,
    servers: &[Server],
    load: Load,
    count: u64,
) -> Result<Ids> {
    let (caller, left, kept) = (installation.caller(bench.seed()), Rc::new(Cell::new(count)), Ids::default());
    load::run(&crate::run::addresses(servers), load, |_| {
        Box::new(Draft { caller: caller.clone(), left: Rc::clone(&left), kept: Rc::clone(&kept) }) as Box<dyn Work>
    })
    .await?;
    Ok(kept)
}

async fn each(servers: &[Server], load: Load, work: &Each) -> Result<f64> {
    let sample = load::run(&crate::run::addresses(servers), load, |_| {
        Box::new(Each {
            caller: work.caller.clone(),
            ids: Rc::clone(&work.ids),
            taken: None,
            then: Rc::clone(&work.then),
            ..*work
        }) as Box<dyn Work>
    })
    .await?;
    Ok(sample.rate())
}

/// From the first request until the last payment is completed.
pub(super) async fn pay(
    bench: &mut Bench<'_>,
    installation: &Installation,
    servers: &[Server],
    load: Load,
    count: u64,
) -> Result<f64> {
    const COMPLETED: &str = "/v1/checkouts?status=completed&limit=1";
    let address = servers[0].address;
    let before = installation.total(address, COMPLETED).await?;
    let (caller, left) = (installation.caller(bench.seed()), Rc::new(Cell::new(count)));
    let began = clock::now();
    load::run(&[address], load, |_| {
        let (caller, left) = (caller.clone(), Rc::clone(&left));
        Box::new(Pay { caller, left, client_secret: None, body: String::new() }) as Box<dyn Work>
    })
    .await?;
    while installation.total(address, COMPLETED).await? < before + count {
        if began.elapsed() > LONG {
            return Err("payments were not completed".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// Creates on a store of their own, for whoever holds them against something else.
pub(crate) async fn creates_beside(bench: &mut Bench<'_>) -> Result<Sample> {
    let installation = bench.sqlite("beside")?;
    let servers = [installation.serve(bench.cores.server.clone().as_ref())?];
    create(bench, &installation, &servers, bench.load(), u64::MAX, none()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_its_line() {
        let said = "latency average = 1.2 ms\ntps = 12345.67 (without initial connection time)\n";
        assert_eq!(rows_a_second(said), Some(12_345.67));
        assert_eq!(rows_a_second("pgbench: error"), None);
    }

    #[test]
    fn waits_are_those_of_each_repeat_and_judged_by_nothing() {
        let samples = [1, 2, 3].map(|slower| {
            let latencies = (1..=1000).map(|place| place * 1000 * slower).collect();
            Sample::new(Duration::from_secs(1), latencies)
        });
        let rows = waits("G3", &samples);
        let told: Vec<[String; 7]> = rows.iter().map(Row::cells).collect();
        let expected = [
            ("the same, p50", "1000.00 ms", "500.00 ms – 1500.00 ms"),
            ("the same, p99", "1980.00 ms", "990.00 ms – 2970.00 ms"),
            ("the same, p99.9", "1998.00 ms", "999.00 ms – 2997.00 ms"),
            ("the same, worst", "2000.00 ms", "1000.00 ms – 3000.00 ms"),
        ];
        assert_eq!(told, expected.map(|(what, found, spread)| ["G3", what, "", found, spread, "3000", "told"]));
    }
}
