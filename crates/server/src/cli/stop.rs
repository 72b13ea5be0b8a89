//! The signals that end a command which has something to take away or to finish before. From [`Stop::new`] on they don't end the
//! process: whoever awaits something looks at them.

use std::fs;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::problem::Problem;

/// After a signal, for what is under way to end by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl Stop {
    pub(super) fn new() -> Result<Self, Problem> {
        let take = |kind| {
            signal(kind).map_err(|error: io::Error| Problem::failed(format!("signals can't be handled: {error}")))
        };
        let hangup = if is_hangup_ignored() { None } else { Some(take(SignalKind::hangup())?) };
        Ok(Self { terminate: take(SignalKind::terminate())?, interrupt: take(SignalKind::interrupt())?, hangup })
    }

    pub(super) async fn asked(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hung_up => {}
        }
    }

    /// Once more. That is not said by a terminal, which goes away twice: for its shell, and for what runs in it.
    pub(super) async fn insisted(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// As under `nohup`: what was begun so outlives its terminal. Where the system doesn't tell, nothing is changed.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    // It is number 1.
    ignored.is_none_or(|signals| signals & 1 != 0)
}
