//! Beside G6: how much of the disk each object takes, with its indexes and all that belongs to it. It does not depend on the machine.

use std::time::Duration;

use super::NO_POSTGRES;
use super::rates::{create, none, pay};
use super::webhooks::{happen, received, wait_for};
use crate::Result;
use crate::load::Load;
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::server::Server;

const LONG: Duration = Duration::from_secs(600);
/// What the receiver hears: nothing of a payment.
const TOLD: &str = "checkout.cancelled";

pub(super) async fn rows(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    let sqlite = Some(bench.sqlite("storage")?);
    let postgres = bench.postgres("storage")?;
    let mut rows = Vec::new();
    for (installation, database) in [(sqlite, "SQLite"), (postgres, "PostgreSQL")] {
        match installation {
            Some(installation) => rows.extend(of(bench, &installation, database).await?),
            None => rows.push(Row::not_run("G6", &format!("on disk, {database}"), NO_POSTGRES)),
        }
    }
    Ok(rows)
}

/// A delivery is what a batch of events with a receiver takes more than the same batch without. Payments come after both: what they leave
/// for later (seals, files that were not made yet) would be counted to one of them and not to the other.
async fn of(bench: &mut Bench<'_>, installation: &Installation, database: &str) -> Result<Vec<Row>> {
    let count: u64 = if bench.is_full() { 50_000 } else { 5_000 };
    let all = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
    let cores = bench.cores.server.clone();
    let mut sizes = vec![size(installation, [installation.serve(cores.as_ref())?]).await?];

    let servers = [installation.serve(cores.as_ref())?];
    create(bench, installation, &servers, all, count, none()).await?;
    sizes.push(size(installation, servers).await?);

    let servers = [installation.serve(cores.as_ref())?];
    happen(bench, installation, &servers, count).await?;
    sizes.push(size(installation, servers).await?);

    let sink = bench.reference("sink", bench.cores.client.clone().as_ref())?;
    let servers = [installation.serve(cores.as_ref())?];
    installation.tell(servers[0].address, &format!("http://{}/hook", sink.address), TOLD, bench.seed()).await?;
    happen(bench, installation, &servers, count).await?;
    let came = wait_for(sink.address, count).await?;
    if came < count {
        return Err(format!("of {count} deliveries only {} came", received(sink.address).await?.all));
    }
    sizes.push(size(installation, servers).await?);

    let servers = [installation.serve(cores.as_ref())?];
    pay(bench, installation, &servers, all, count).await?;
    sizes.push(size(installation, servers).await?);

    let each: Vec<f64> = sizes.windows(2).map(|pair| (pair[1] - pair[0]) / count as f64 / 1024.0).collect();
    let told = Wanted::Told(Unit::Kilobytes);
    let row =
        |what: &str, kilobytes: f64| Row::new("G6", &format!("on disk, {database}: {what}"), &[kilobytes], told, count);
    Ok(vec![
        row("an open checkout, its answer kept", each[0]),
        row("a checkout that was paid", each[3]),
        row("a delivery of an event", each[2] - each[1]),
    ])
}

/// In bytes, once the server has written all it has.
async fn size(installation: &Installation, [server]: [Server; 1]) -> Result<f64> {
    match server.stop(LONG).await {
        Some(fault) => Err(fault),
        None => installation.size(),
    }
}
