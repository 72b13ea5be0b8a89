//! Stories at a pace of their own, whether or not the earlier ones have ended, and a look at the server all the while.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::faults;
use super::judge::Part;
use super::place::Place;
use super::watch::Watch;
use crate::connection::Connection;
use crate::load::{Step, Work};
use crate::work::Caller;
use crate::{Result, clock};

/// More than are ever busy at half of what the server can do.
const CONNECTIONS: usize = 256;
const PARTS: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Between one thing that goes wrong and the next.
const FAULTS: Duration = Duration::from_secs(5);
/// For what is under way when the time is over.
const PATIENCE: Duration = Duration::from_secs(40);
const MOST_FAULTS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Stories a second.
    pub(super) rate: f64,
    pub(super) warm_up: Duration,
    /// With the warm-up.
    pub(super) length: Duration,
    /// From the end of the warm-up.
    pub(super) reader: Duration,
}

/// What is to be told, and since when.
#[derive(Default)]
struct Due {
    times: RefCell<VecDeque<Instant>>,
    more: Notify,
    /// Since the last part ended, in microseconds from the moment they were due.
    took: RefCell<Vec<u32>>,
    done: Cell<u64>,
    faults: RefCell<Vec<String>>,
}

impl Due {
    fn fault(&self, fault: String) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MOST_FAULTS {
            faults.push(fault);
        }
    }
}

pub(super) async fn run(
    place: &Place,
    caller: &Caller,
    pace: Pace,
    make: impl Fn(usize) -> Box<dyn Work>,
) -> Result<(Vec<Part>, Vec<String>)> {
    let due = Rc::new(Due::default());
    let local = LocalSet::new();
    for number in 0..CONNECTIONS {
        local.spawn_local(tell(place.server.address, Rc::clone(&due), make(number)));
    }
    let begin = clock::now();
    local.spawn_local(set_the_pace(Rc::clone(&due), begin, pace));
    local.spawn_local(faults::go_wrong(place.server.address, caller.clone(), FAULTS.min(pace.length / 10)));
    local
        .run_until(async {
            let parts = watch(place, &due, begin, pace).await?;
            let all = (pace.rate * pace.length.as_secs_f64()) as u64;
            let end = clock::now() + PATIENCE;
            while due.done.get() < all && due.faults.borrow().is_empty() && clock::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            if due.done.get() < all {
                due.fault(format!("{} of {all} stories came to an end", due.done.get()));
            }
            Ok((parts, due.faults.take()))
        })
        .await
}

async fn set_the_pace(due: Rc<Due>, begin: Instant, pace: Pace) {
    let all = (pace.rate * pace.length.as_secs_f64()) as u64;
    let mut told = 0;
    while told < all {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let until = ((pace.rate * begin.elapsed().as_secs_f64()) as u64).min(all);
        for number in told..until {
            due.times.borrow_mut().push_back(begin + Duration::from_secs_f64(number as f64 / pace.rate));
            due.more.notify_one();
        }
        told = until;
    }
}

async fn tell(address: std::net::SocketAddr, due: Rc<Due>, mut work: Box<dyn Work>) {
    let mut connection = None;
    loop {
        let next = due.times.borrow_mut().pop_front();
        let Some(since) = next else {
            due.more.notified().await;
            continue;
        };
        match story(address, &mut connection, &mut *work).await {
            Ok(()) => {
                due.done.set(due.done.get() + 1);
                due.took.borrow_mut().push(u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            Err(fault) => {
                connection = None;
                due.fault(fault);
            }
        }
    }
}

async fn story(address: std::net::SocketAddr, kept: &mut Option<Connection>, work: &mut dyn Work) -> Result<()> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    loop {
        connection.request.clear();
        work.next(&mut connection.request);
        let status = connection.ask().await?;
        match work.answered(status, connection.body()) {
            Step::More => {}
            Step::Done => break,
            Step::Failed => {
                let body = String::from_utf8_lossy(connection.body()).chars().take(300).collect::<String>();
                return Err(format!("unexpected answer {status}: {body}"));
            }
        }
    }
    *kept = Some(connection);
    Ok(())
}

async fn watch(place: &Place, due: &Due, begin: Instant, pace: Pace) -> Result<Vec<Part>> {
    let part = (pace.length - pace.warm_up) / PARTS;
    let look = (part / 4).min(Duration::from_secs(1));
    let minute = MINUTE.min(pace.length / 4);
    let (mut parts, mut seen, mut books) = (Vec::new(), Watch::default(), minute);
    let mut reader = None;
    while begin.elapsed() < pace.length {
        tokio::time::sleep(look).await;
        let now = begin.elapsed();
        if now >= books {
            books += minute;
            if let Some(fault) = place.wrong_books().await? {
                due.fault(fault);
            }
        }
        if now < pace.warm_up {
            due.took.borrow_mut().clear();
            continue;
        }
        if parts.is_empty() && reader.is_none() {
            reader = Some(place.reader(pace.reader)?);
        }
        let since = now - pace.warm_up;
        let is_beside_reader = since < pace.reader;
        seen.look(place);
        if since >= part * (parts.len() as u32 + 1) {
            let took = due.took.take();
            parts.push(std::mem::take(&mut seen).part(since, took, is_beside_reader || reader.is_some()));
        }
        if !is_beside_reader && !parts.is_empty() {
            reader = None;
        }
    }
    Ok(parts)
}
