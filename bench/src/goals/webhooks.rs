//! G9: how fast what happened is told, and what a dead receiver costs the others.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::rates::create;
use crate::connection::once;
use crate::load::{self, Load, Work};
use crate::product::Installation;
use crate::row::{Row, Unit, Wanted};
use crate::run::{Bench, addresses};
use crate::server::Server;
use crate::work::{Each, Ids};
use crate::{Result, clock};

const LONG: Duration = Duration::from_secs(300);
/// What has not come by then is not waited for: the rate is that of what came.
const PATIENCE: Duration = Duration::from_secs(180);
/// Longer than a worker sleeps between two looks.
const LULL: Duration = Duration::from_secs(2);

pub(super) const EVENTS: &str = "checkout.*";

/// What a receiver has got.
pub(super) struct Received {
    pub(super) all: u64,
    pub(super) different: u64,
}

pub(super) async fn deliver(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let cores = bench.cores.server.clone();
    let echo = bench.reference("echo", cores.as_ref())?;
    let events: u64 = if bench.is_full() { 20_000 } else { 5_000 };
    let (mut shares, mut slowed) = (Vec::new(), Vec::new());
    let repeats = 5;
    for _ in 0..repeats {
        let reference = bench.echo(&echo, bench.load()).await?;
        let well = rate(bench, events, false).await?;
        let beside_dead = rate(bench, events, true).await?;
        shares.push(well / reference.rate());
        slowed.push(beside_dead / well);
    }
    let count = events * repeats;
    Ok(vec![
        Row::new("G9", "signed deliveries / E", &shares, Wanted::AtLeast(0.25, Unit::Share), count),
        Row::new(
            "G9",
            "deliveries beside a dead endpoint / without",
            &slowed,
            Wanted::AtLeast(0.95, Unit::Share),
            count,
        ),
    ])
}

/// Deliveries a second, from the moment when they wait.
async fn rate(bench: &mut Bench<'_>, events: u64, beside_dead: bool) -> Result<f64> {
    let cores = bench.cores.server.clone();
    let sink = bench.reference("sink", bench.cores.client.clone().as_ref())?;
    let installation = bench.sqlite("webhooks")?;
    let servers = [installation.serve(cores.as_ref())?];
    let address = servers[0].address;
    installation.tell(address, &format!("http://{}/hook", sink.address), EVENTS, bench.seed()).await?;
    if beside_dead {
        installation.tell(address, &format!("http://{}/dead", sink.address), EVENTS, bench.seed()).await?;
    }
    let began = happen(bench, &installation, &servers, events).await?;
    let waiting_since = clock::now();
    let before = received(sink.address).await?.all;
    let came = wait_for(sink.address, events).await?;
    // Where they kept up with what happened, there was never anything that waited.
    let (count, since): (u64, Instant) =
        if before * 4 > events * 3 { (came, began) } else { (came - before, waiting_since) };
    Ok(count as f64 / since.elapsed().as_secs_f64())
}

/// Creates so many checkouts and cancels them: each tells one event. Gives when the first was cancelled.
pub(super) async fn happen(
    bench: &mut Bench<'_>,
    installation: &Installation,
    servers: &[Server],
    events: u64,
) -> Result<Instant> {
    let load = Load { warm_up: Duration::ZERO, length: LONG, ..bench.load() };
    let ids = Ids::default();
    create(bench, installation, servers, load, events, (1, Rc::clone(&ids))).await?;
    let caller = installation.caller(bench.seed());
    let began = clock::now();
    load::run(&addresses(servers), load, |_| {
        Box::new(Each {
            caller: caller.clone(),
            method: "POST",
            before: "/v1/checkouts/",
            after: "/cancel",
            body: "",
            ids: Rc::clone(&ids),
            taken: None,
            then: Ids::default(),
        }) as Box<dyn Work>
    })
    .await?;
    Ok(began)
}

pub(super) async fn received(sink: SocketAddr) -> Result<Received> {
    let (_, answer) = once(sink, b"GET /count HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let count = |name: &str| answer[name].as_u64().ok_or_else(|| format!("the receiver said {answer}"));
    Ok(Received { all: count("all")?, different: count("different")? })
}

/// Waits until nothing more comes.
pub(super) async fn all_received(sink: SocketAddr) -> Result<()> {
    let began = clock::now();
    let mut before = None;
    while began.elapsed() < PATIENCE {
        let now = received(sink).await?.all;
        if before.replace(now) == Some(now) {
            return Ok(());
        }
        tokio::time::sleep(LULL).await;
    }
    Err("there was no end of webhooks".to_owned())
}

/// Gives how many have come.
pub(super) async fn wait_for(sink: SocketAddr, events: u64) -> Result<u64> {
    let began = clock::now();
    loop {
        let came = received(sink).await?.different;
        if came >= events || began.elapsed() > PATIENCE {
            return Ok(came);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
