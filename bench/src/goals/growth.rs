//! G6: what ten million stored checkouts cost the next one.

use std::rc::Rc;
use std::time::Duration;

use super::rates::{create, none, read};
use super::{lists, storage};
use crate::Result;
use crate::load::Load;
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::work::Ids;

/// The picture of the rate over what is stored.
pub(crate) const GROWTH: &str = "growth";
pub(crate) const FOLDER: &str = "growth";

const SMALL: u64 = 10_000;
const QUICK: u64 = 50_000;
const FULL: u64 = 10_000_000;
/// Filled in parts, so that a run that was cut off loses little.
const PART: u64 = 250_000;
/// Ids that are kept for reading.
const IDS: u64 = 20_000;
const LONG: Duration = Duration::from_secs(600);

pub(super) async fn flat(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let cores = bench.cores.server.clone();
    let target = if bench.is_full() { FULL } else { QUICK };
    let folder = bench.options.folder.join(FOLDER);
    match bench.resume.filled() {
        0 => drop(bench.fresh(FOLDER)?),
        filled if !folder.is_dir() => {
            return Err(format!("the store of {filled} checkouts is gone: take another file"));
        }
        _ => {}
    }
    let large = Installation::sqlite(&bench.options.dalasi, &folder)?;
    let servers = [large.serve(cores.as_ref())?];
    let fill = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
    while bench.resume.filled() < target {
        let filled = bench.resume.filled();
        // A point of the picture at every power of ten.
        let next = powers().find(|power| *power > filled).unwrap_or(target).min(filled + PART).min(target);
        let ids = Ids::default();
        create(bench, &large, &servers, fill, next - filled, ((target / IDS).max(1), Rc::clone(&ids))).await?;
        bench.resume.fill(next, ids.take())?;
        if powers().any(|power| power == next) {
            let echo = bench.reference("echo", cores.as_ref())?;
            let reference = bench.echo(&echo, bench.load()).await?;
            let sample = create(bench, &large, &servers, bench.load(), u64::MAX, none()).await?;
            bench.resume.point(GROWTH, next as f64, sample.rate() / reference.rate())?;
        }
    }

    let known = Ids::default();
    known.borrow_mut().extend(bench.resume.ids());
    let (mut creates, mut reads, mut created, mut read_count) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..bench.repeats() {
        // A small store of the same moment: what it has too many after one repeat, the next one must not have.
        let small = bench.sqlite("small")?;
        let smalls = [small.serve(cores.as_ref())?];
        let few = Ids::default();
        create(bench, &small, &smalls, fill, SMALL, (1, Rc::clone(&few))).await?;
        let at_small = read(bench, &small, &smalls, bench.load(), &few).await?;
        let at_large = read(bench, &large, &servers, bench.load(), &known).await?;
        reads.push(at_large.rate() / at_small.rate());
        read_count += at_large.count();
        let at_small = create(bench, &small, &smalls, bench.load(), u64::MAX, none()).await?;
        let at_large = create(bench, &large, &servers, bench.load(), u64::MAX, none()).await?;
        creates.push(at_large.rate() / at_small.rate());
        created += at_large.count();
    }
    let wanted = Wanted::AtLeast(0.85, Unit::Share);
    let mut rows = vec![
        Row::new("G6", &format!("create at {target} stored / at {SMALL}"), &creates, wanted, created),
        Row::new("G6", &format!("GET at {target} stored / at {SMALL}"), &reads, wanted, read_count),
    ];
    let [server] = servers;
    rows.extend(lists::of(bench, &large, server, &format!("{target} stored")).await?);
    rows.extend(lists::on_postgres(bench).await?);
    rows.extend(storage::rows(bench).await?);
    Ok(rows)
}

fn powers() -> impl Iterator<Item = u64> {
    [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000].into_iter()
}
