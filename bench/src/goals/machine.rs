//! G5, G7 and G8: how long one waits, how much memory it takes, how soon it is there.

use std::time::Duration;

use super::growth::FOLDER;
use super::rates::{create, milliseconds, none, waits};
use crate::disk;
use crate::load::Load;
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::sample::{Middle, Sample};

use crate::Result;

/// The picture of the latencies at saturation.
pub(crate) const LATENCY: &str = "latency";

const SYNCS: usize = 1500;
/// Of what takes long.
const FEWEST_REPEATS: u64 = 5;

pub(super) async fn latency(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let cores = bench.cores.server.clone();
    let echo = bench.reference("echo", cores.as_ref())?;
    let installation = bench.sqlite("latency")?;
    let servers = [installation.serve(cores.as_ref())?];
    let alone = Load { connections: 1, ..bench.load() };
    let (mut saturated, mut single, mut syncs, mut sync_tails, mut count) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..bench.repeats() {
        let sync = disk::measure(&bench.options.folder, SYNCS)?;
        let sample = create(bench, &installation, &servers, bench.load(), u64::MAX, none()).await?;
        saturated.push(sample.percentile(0.99) / sync.percentile(0.5));
        count += sample.count();
        let reference = bench.echo(&echo, alone).await?;
        let sample = create(bench, &installation, &servers, alone, u64::MAX, none()).await?;
        single.push((sample.percentile(0.5) - reference.percentile(0.5)) / sync.percentile(0.5));
        syncs.push(sync.percentile(0.5) / 1000.0);
        sync_tails.push(sync.percentile(0.99) / 1000.0);
    }
    let seconds = if bench.is_full() { 60 } else { 5 };
    let long = Load { length: Duration::from_secs(seconds), ..bench.load() };
    let (mut samples, mut stalls) = (Vec::new(), Vec::new());
    for _ in 0..FEWEST_REPEATS {
        let sample = create(bench, &installation, &servers, long, u64::MAX, none()).await?;
        let sync = disk::measure(&bench.options.folder, SYNCS)?;
        stalls.push(sample.longest() / sync.percentile(0.5));
        samples.push(sample);
    }
    let long_count = samples.iter().map(Sample::count).sum();
    for share in [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0] {
        bench.resume.point(LATENCY, share, Middle::of(&milliseconds(&samples, share)).median)?;
    }
    let (told, times) = (Wanted::Told(Unit::Milliseconds), Unit::Times);
    let sync_count = (SYNCS * syncs.len()) as u64;
    let mut rows = vec![
        Row::new("G5", "S, p50", &syncs, told, sync_count),
        Row::new("G5", "S, p99", &sync_tails, told, sync_count),
        Row::new("G5", "create, 64 connections, p99 / S", &saturated, Wanted::AtMost(30.0, times), count),
        Row::new("G5", "create, one connection, (p50 - p50 of E) / S", &single, Wanted::AtMost(3.0, times), count),
        Row::new(
            "G5",
            &format!("create, 64 connections, worst stall in {seconds} s / S"),
            &stalls,
            Wanted::AtMost(150.0, times),
            long_count,
        ),
    ];
    rows.extend(waits("G5", &samples));
    Ok(rows)
}

pub(super) async fn memory(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    const IDLE: &str = "resident, idle";
    const LOADED: &str = "resident at its highest, 64 connections";
    bench.pin_client(true)?;
    let cores = bench.cores.all.clone();
    let (mut idle, mut loaded) = (Vec::new(), Vec::new());
    let load = Load { length: Duration::from_secs(if bench.is_full() { 20 } else { 2 }), ..bench.load() };
    let repeats = FEWEST_REPEATS;
    for _ in 0..repeats {
        let installation = bench.sqlite("memory")?;
        let servers = [installation.serve(cores.as_ref())?];
        tokio::time::sleep(Duration::from_secs(2)).await;
        let Some((now, _)) = servers[0].memory() else {
            return Ok(vec![Row::not_run("G7", IDLE, "this system tells no process's memory")]);
        };
        idle.push(now);
        create(bench, &installation, &servers, load, u64::MAX, none()).await?;
        loaded.extend(servers[0].memory().map(|(_, highest)| highest));
    }
    let mut rows = vec![
        Row::new("G7", IDLE, &idle, Wanted::AtMost(25.0, Unit::Megabytes), repeats),
        Row::new("G7", LOADED, &loaded, Wanted::AtMost(150.0, Unit::Megabytes), repeats),
    ];
    let what = "the same, on the store of G6";
    match grown(bench)? {
        None => rows.push(Row::not_run("G7", what, "the store of G6 is not there: measure both in one run")),
        Some(large) => {
            let mut highest = Vec::new();
            for _ in 0..repeats {
                let servers = [large.serve(cores.as_ref())?];
                create(bench, &large, &servers, load, u64::MAX, none()).await?;
                highest.extend(servers[0].memory().map(|(_, highest)| highest));
            }
            rows.push(Row::new("G7", what, &highest, Wanted::AtMost(150.0, Unit::Megabytes), repeats));
        }
    }
    Ok(rows)
}

fn grown(bench: &Bench<'_>) -> Result<Option<Installation>> {
    let folder = bench.options.folder.join(FOLDER);
    // Without its folder an empty one would be made, and measured in its place.
    if bench.resume.filled() == 0 || !folder.is_dir() {
        return Ok(None);
    }
    Installation::sqlite(&bench.options.dalasi, &folder).map(Some)
}

pub(super) async fn start(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let empty = bench.sqlite("start")?;
    let clean = starts(bench, &empty, false).await?;
    let killed = starts(bench, &empty, true).await?;
    let repeats = bench.repeats() as u64 - 1;
    let milliseconds = |most| Wanted::AtMost(most, Unit::Milliseconds);
    let mut rows = vec![
        Row::new("G8", "listening, on an empty store", &clean, milliseconds(100.0), repeats),
        Row::new("G8", "listening, killed under load before", &killed, milliseconds(100.0), repeats),
    ];
    let what = "the same, on the store of G6";
    match grown(bench)? {
        None => rows.push(Row::not_run("G8", what, "the store of G6 is not there: measure both in one run")),
        Some(large) => {
            let killed = starts(bench, &large, true).await?;
            rows.push(Row::new("G8", what, &killed, milliseconds(1000.0), repeats));
        }
    }
    Ok(rows)
}

async fn starts(bench: &mut Bench<'_>, installation: &Installation, killed: bool) -> Result<Vec<f64>> {
    let cores = bench.cores.all.clone();
    let short = Load { warm_up: Duration::ZERO, length: Duration::from_secs(1), ..bench.load() };
    let mut milliseconds = Vec::new();
    for _ in 0..bench.repeats() {
        let server = installation.serve(cores.as_ref())?;
        milliseconds.push(server.started_in.as_secs_f64() * 1000.0);
        let servers = [server];
        if killed {
            create(bench, installation, &servers, short, u64::MAX, none()).await?;
        }
        servers.into_iter().for_each(crate::server::Server::kill);
    }
    // The first one was killed by nobody, or in another measurement.
    milliseconds.remove(0);
    Ok(milliseconds)
}
