//! A closed loop: each connection sends its next request when its last was answered. All on one thread.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;

use crate::connection::Connection;
use crate::sample::Sample;
use crate::{Result, clock};

/// What one connection does, again and again.
pub(crate) trait Work {
    /// Writes the next request; `false` when nothing is left to do.
    fn next(&mut self, request: &mut Vec<u8>) -> bool;
    /// Reads an answer.
    fn answered(&mut self, status: u16, body: &[u8]) -> Step;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// One operation is complete.
    Done,
    /// It takes another request.
    More,
    /// Not what was expected: the measurement is void.
    Failed,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) warm_up: Duration,
    pub(crate) length: Duration,
}

/// Runs until the time is over or the work is done. Several addresses share the connections.
pub(crate) async fn run(addresses: &[SocketAddr], load: Load, make: impl Fn(usize) -> Box<dyn Work>) -> Result<Sample> {
    let begin = clock::now() + load.warm_up;
    let end = begin + load.length;
    let latencies = Rc::new(RefCell::new(Vec::with_capacity(1 << 20)));
    let last = Rc::new(Cell::new(begin));
    let local = LocalSet::new();
    let mut tasks = Vec::new();
    for number in 0..load.connections {
        let address = *addresses.get(number % addresses.len().max(1)).ok_or("there is no server to load")?;
        let (mut work, latencies, last) = (make(number), Rc::clone(&latencies), Rc::clone(&last));
        tasks.push(local.spawn_local(async move {
            let mut connection = Connection::open(address).await?;
            let mut started = clock::now();
            loop {
                connection.request.clear();
                if started >= end || !work.next(&mut connection.request) {
                    return Ok(());
                }
                let status = connection.ask().await?;
                match work.answered(status, connection.body()) {
                    Step::More => continue,
                    Step::Done => {}
                    Step::Failed => {
                        let body = String::from_utf8_lossy(connection.body()).chars().take(300).collect::<String>();
                        return Err(format!("unexpected answer {status}: {body}"));
                    }
                }
                let now = clock::now();
                if now >= begin && now <= end {
                    let took = u32::try_from((now - started).as_micros()).unwrap_or(u32::MAX);
                    latencies.borrow_mut().push(took);
                    last.set(now);
                }
                started = now;
            }
        }));
    }
    local
        .run_until(async {
            for task in tasks {
                task.await.map_err(|error| error.to_string())??;
            }
            Ok::<_, String>(())
        })
        .await?;
    let latencies = latencies.take();
    Ok(Sample::new(last.get().saturating_duration_since(begin), latencies))
}
