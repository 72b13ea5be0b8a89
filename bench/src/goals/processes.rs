//! G11: several processes on one PostgreSQL.

use std::time::Duration;

use super::NO_POSTGRES;
use super::rates::{create, none};
use super::webhooks::{EVENTS, happen, received, wait_for};
use crate::Result;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;

const MOST: usize = 4;

pub(super) async fn several(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(false)?;
    let Some(installation) = bench.postgres("processes")? else {
        return Ok(vec![Row::not_run("G11", "several processes / one", NO_POSTGRES)]);
    };
    let cores = bench.cores.all.clone();
    let mut shares: [Vec<f64>; MOST] = Default::default();
    let mut count = 0;
    for _ in 0..bench.starts() {
        let mut one = 0.0;
        for processes in 1..=MOST {
            let servers = (0..processes).map(|_| installation.serve(cores.as_ref())).collect::<Result<Vec<_>>>()?;
            let sample = create(bench, &installation, &servers, bench.load(), u64::MAX, none()).await?;
            if processes == 1 {
                one = sample.rate();
            }
            shares[processes - 1].push(sample.rate() / one);
            count += sample.count();
        }
    }
    let mut rows: Vec<Row> = (2..=MOST)
        .map(|processes| {
            let what = format!("create, {processes} processes / one");
            Row::new("G11", &what, &shares[processes - 1], Wanted::AtLeast(0.95, Unit::Share), count)
        })
        .collect();

    let events = if bench.is_full() { 10_000 } else { 2_000 };
    let sink = bench.reference("sink", cores.as_ref())?;
    let servers = (0..3).map(|_| installation.serve(cores.as_ref())).collect::<Result<Vec<_>>>()?;
    installation.tell(servers[0].address, &format!("http://{}/hook", sink.address), EVENTS, bench.seed()).await?;
    happen(bench, &installation, &servers, events).await?;
    let came = wait_for(sink.address, events).await?;
    if came < events {
        return Err(format!("of {events} deliveries only {came} came"));
    }
    // One that comes twice would come now.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let received = received(sink.address).await?;
    let times = [received.all as f64 / received.different as f64];
    let what = "deliveries of an event to an endpoint, 3 processes";
    rows.push(Row::new("G11", what, &times, Wanted::AtMost(1.0, Unit::Times), received.all));
    Ok(rows)
}
