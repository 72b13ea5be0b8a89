//! G10: what a user might pick instead, beside us: each on the core that our server gets, with its own store empty.
//!
//! `cargo xtask bench --peers` installs them; what is not installed is not run.

mod create;
mod start;

use std::time::Duration;

use crate::goals::creates_beside;
use crate::load::Load;
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::sample::Sample;
use crate::{Result, load};
use create::{Create, Ids};
use start::Running;

/// Some answer a few dozen times a second.
const SHORTEST_WARM_UP: Duration = Duration::from_secs(1);
const SHORTEST_LENGTH: Duration = Duration::from_secs(2);

/// From fewer answers comes no figure.
const FEWEST: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Localstripe,
    Vendure,
    /// stripe-stateful-mock: Node, in memory.
    Mock,
    Lnbits,
}

impl Peer {
    const ALL: [Self; 4] = [Self::Localstripe, Self::Vendure, Self::Mock, Self::Lnbits];

    fn name(self) -> &'static str {
        match self {
            Self::Localstripe => "localstripe",
            Self::Vendure => "Vendure on PostgreSQL",
            Self::Mock => "stripe-stateful-mock",
            Self::Lnbits => "LNbits",
        }
    }

    /// How many of our creates to one of theirs.
    fn wanted(self) -> Wanted {
        match self {
            Self::Localstripe | Self::Vendure => Wanted::AtLeast(300.0, Unit::Times),
            Self::Mock => Wanted::AtLeast(8.0, Unit::Times),
            Self::Lnbits => Wanted::Told(Unit::Times),
        }
    }

    /// localstripe writes all that it holds to a file with each create. It is started again for each measurement; the
    /// others get warmer.
    fn tires(self) -> bool {
        self == Self::Localstripe
    }
}

pub(crate) async fn compare(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    bench.pin_client(true)?;
    let mut rows = Vec::new();
    for peer in Peer::ALL {
        let found = beside(bench, peer).await;
        rows.extend(found.map_err(|fault| format!("{}: {fault}", peer.name()))?);
    }
    Ok(rows)
}

async fn beside(bench: &mut Bench<'_>, peer: Peer) -> Result<Vec<Row>> {
    let ratio = format!("create / {}", peer.name());
    if let Some(why) = peer.missing(bench.options) {
        return Ok(vec![Row::not_run("G10", &ratio, why)]);
    }
    let load = bench.load();
    let load = Load { warm_up: load.warm_up.max(SHORTEST_WARM_UP), length: load.length.max(SHORTEST_LENGTH), ..load };
    let mut running = None;
    let (mut ratios, mut rates, mut ours_count, mut theirs_count) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..bench.starts() {
        let started = match running.take() {
            Some(started) => started,
            None => warm(Running::start(bench, peer).await?, load).await?,
        };
        let theirs = measure(&started, load).await?;
        if !peer.tires() {
            running = Some(started);
        }
        let ours = creates_beside(bench).await?;
        ratios.push(ours.rate() / theirs.rate());
        rates.push(theirs.rate());
        ours_count += ours.count();
        theirs_count += theirs.count();
    }
    let told = Wanted::Told(Unit::PerSecond);
    Ok(vec![
        Row::new("G10", &ratio, &ratios, peer.wanted(), ours_count),
        Row::new("G10", &format!("{}, a second", peer.name()), &rates, told, theirs_count),
    ])
}

/// A just-in-time compiler has to see the work first.
async fn warm(running: Running, load: Load) -> Result<Running> {
    if !running.peer.tires() {
        creates(&running, load).await?;
    }
    Ok(running)
}

async fn creates(running: &Running, load: Load) -> Result<Sample> {
    let ids = Ids::default();
    let make = |_| Box::new(Create::new(running.peer, &running.request, &ids)) as Box<dyn load::Work>;
    load::run(&[running.server.address], load, make).await
}

async fn measure(running: &Running, load: Load) -> Result<Sample> {
    let sample = creates(running, load).await?;
    if sample.count() < FEWEST {
        return Err(format!("only {} creates were answered in time: too few to compare with", sample.count()));
    }
    Ok(sample)
}
