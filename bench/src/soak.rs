//! Row C7: the server at half of what it can do, for as long as somebody likes, while receivers fail, payers leave and somebody
//! reads the database for half an hour. What it takes of the machine doesn't grow, and its books are right.
//!
//! The control is the same server with a planted defect: each request keeps a kibibyte.

mod faults;
mod judge;
mod mix;
mod pace;
mod place;
mod watch;

use std::rc::Rc;
use std::time::Duration;

use proof::Proof;

use self::judge::{Part, Verdict};
use self::mix::Mix;
use self::place::Place;
use crate::load::{self, Load, Work};
use crate::pin::Cores;
use crate::run::CONNECTIONS;
use crate::work::Ids;
use crate::{Result, clock};

pub(crate) use self::place::Options;

/// Unless it is said how long.
const SECONDS: u64 = 3_600;
/// Of the peak.
const SHARE: f64 = 0.5;
const PEAK: Load = Load { connections: CONNECTIONS, warm_up: Duration::from_secs(3), length: Duration::from_secs(10) };
/// Of the whole, and no longer than this, until caches have filled.
const WARM_UP: f64 = 0.25;
const LONGEST_WARM_UP: Duration = Duration::from_secs(1_800);
const LONGEST_READER: Duration = Duration::from_secs(1_800);
/// Of what is free on the disk.
const MOST_DISK: f64 = 0.8;
/// At least. It takes as long as the leak needs to be more than caches that fill.
const CONTROL: Duration = Duration::from_secs(150);
const CONTROL_REQUESTS: f64 = 64.0 * 1024.0;
const LEAK: &str = "request_keeps_memory";

/// What one run found.
struct Soaked {
    rate: f64,
    parts: Vec<Part>,
    faults: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut proof = Proof::begin("C7", Some(&options.database), SECONDS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the client can't start: {error}"))?;
    let length = Duration::from_secs(proof.count);
    let began = clock::now();
    let cores = Cores::find();
    if cores.server.is_none() {
        proof.not_run("it takes a core for the server and one for the load");
        return Ok(());
    }
    Cores::move_to(cores.client.as_ref())?;
    let soaked = match runtime.block_on(soak(options, &cores, None, length))? {
        Ok(soaked) => soaked,
        Err(reason) => {
            proof.not_run(&reason);
            return Ok(());
        }
    };
    let mut undecided = Vec::new();
    for verdict in judge::all(&soaked.parts) {
        match verdict {
            Verdict::Holds(told) => println!("{told}"),
            Verdict::TooShort(told) => undecided.push(told),
            Verdict::Broken(told) => proof.violation(told),
        }
    }
    let is_right = soaked.faults.is_empty() && !has_broken(&soaked.parts);
    soaked.faults.into_iter().for_each(|fault| proof.violation(fault));
    let control = CONTROL.max(Duration::from_secs_f64(CONTROL_REQUESTS / soaked.rate));
    let control = runtime.block_on(soak(options, &cores, Some(LEAK), control))?;
    let seen = control.as_ref().map(|control| judge::memory(&control.parts)).map_err(Clone::clone);
    println!("where each request keeps a kibibyte: {seen:?}");
    let is_seen = matches!(seen, Ok(Verdict::Broken(_)));
    proof.control(LEAK, is_seen);
    println!("{:.0} s in all", began.elapsed().as_secs_f64());
    if is_right && is_seen && !undecided.is_empty() {
        proof.not_run(&format!("{} s are too short to judge: {}", length.as_secs(), undecided.join("; ")));
        return Ok(());
    }
    undecided.iter().for_each(|told| println!("too short to judge: {told}"));
    let reached = length.as_secs();
    proof.end(reached)
}

fn has_broken(parts: &[Part]) -> bool {
    judge::all(parts).iter().any(|verdict| matches!(verdict, Verdict::Broken(_)))
}

/// The inner error is why this machine can't.
async fn soak(
    options: &Options,
    cores: &Cores,
    defect: Option<&str>,
    length: Duration,
) -> Result<std::result::Result<Soaked, String>> {
    let place = Place::open(options, defect, cores)?;
    place.subscribe().await?;
    let caller = place.installation.caller(u64::from(std::process::id()));
    let ids = Ids::default();
    let make = |_| Box::new(Mix::new(caller.clone(), Rc::clone(&ids))) as Box<dyn Work>;

    let before = place.stored();
    let peak = load::run(&[place.server.address], PEAK, make).await?;
    let rate = peak.rate() * SHARE;
    let each = (place.stored() - before) / (peak.count() as f64 * 1.3);
    println!(
        "{:.0} stories a second at the peak, {rate:.0} from here on for {} s; each leaves {each:.0} bytes",
        peak.rate(),
        length.as_secs()
    );
    let (needed, free) = (each * rate * length.as_secs_f64(), place.free()?);
    if needed > free * MOST_DISK {
        let gb = |bytes: f64| bytes / 1e9;
        return Ok(Err(format!("it would store {:.0} GB, and {:.0} GB are free", gb(needed), gb(free))));
    }

    let warm_up = length.mul_f64(WARM_UP).min(LONGEST_WARM_UP);
    let pace = pace::Pace { rate, warm_up, length, reader: (length / 3).min(LONGEST_READER) };
    let (parts, mut faults) = pace::run(&place, &caller, pace, make).await?;
    faults.extend(place.end().await?);
    Ok(Ok(Soaked { rate, parts, faults }))
}
