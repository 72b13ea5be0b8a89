//! Says how late the work is, so that a worker that is stuck, missing or cut off from its database is seen before a merchant asks.
//! It only looks.

use std::time::Duration;

use domain::job::Lane;
use domain::{Mode, Timestamp};
use store::Tx;
use store::queries::{deliveries, events, jobs, ledger_batches, mails};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::app::{App, delivery_places};
use crate::error::Failure;
use crate::{metrics, monotonic};

const PERIOD: Duration = Duration::from_secs(10);

/// How late each queue is.
type Late = [(&'static str, Duration); 11];

const NOTHING_DUE: Late = [
    ("jobs", Duration::ZERO),
    ("jobs_ahead", Duration::ZERO),
    ("jobs_aside", Duration::ZERO),
    ("jobs_test", Duration::ZERO),
    ("jobs_timers", Duration::ZERO),
    ("webhooks", Duration::ZERO),
    ("webhooks_test", Duration::ZERO),
    ("mails", Duration::ZERO),
    ("mails_test", Duration::ZERO),
    ("events", Duration::ZERO),
    ("seals", Duration::ZERO),
];

pub(super) async fn run(app: App, stop: watch::Receiver<bool>) {
    let look = move || {
        let app = app.clone();
        async move { app.read(|tx, _| late(tx)).await }
    };
    tell(look, PERIOD, stop).await;
}

fn late(tx: &mut Tx<'_>) -> Result<Late, Failure> {
    let now = tx.now();
    let late = |since: Option<Timestamp>| since.map_or(Duration::ZERO, |since| now.since(since));
    let failing = delivery_places::failing(tx)?;
    let webhooks_without = |tx: &mut Tx<'_>, mode: Mode| -> Result<Duration, Failure> {
        let of_mode = deliveries::owed_in(tx, mode)?.into_iter().map(|(endpoint, _)| endpoint);
        let left_out: Vec<_> = of_mode.chain(failing.iter().copied()).collect();
        Ok(late(deliveries::next_due(tx, &left_out)?))
    };
    Ok([
        ("jobs", late(jobs::next_due(tx, Lane::Prompt)?)),
        ("jobs_ahead", late(jobs::next_due(tx, Lane::Ahead)?)),
        ("jobs_aside", late(jobs::next_due(tx, Lane::Aside)?)),
        ("jobs_test", late(jobs::next_due(tx, Lane::Test)?)),
        ("jobs_timers", late(jobs::next_due(tx, Lane::Timers)?)),
        ("webhooks", webhooks_without(tx, Mode::Test)?),
        ("webhooks_test", webhooks_without(tx, Mode::Live)?),
        ("mails", late(mails::next_due(tx, &[Mode::Live])?)),
        ("mails_test", late(mails::next_due(tx, &[Mode::Test])?)),
        ("events", late(events::oldest_unlogged(tx)?)),
        ("seals", late(ledger_batches::oldest_unsealed(tx)?)),
    ])
}

/// What was seen last, and when.
struct Seen {
    at: Instant,
    late: Late,
}

impl Seen {
    /// As if nothing had been done since: whoever can't look can't work either.
    fn by(&self, now: Instant) -> Late {
        self.late.map(|(queue, late)| (queue, late + (now - self.at)))
    }
}

/// Looks every `period`, and waits no longer for what it sees.
async fn tell<F>(look: impl Fn() -> F, period: Duration, mut stop: watch::Receiver<bool>)
where
    F: Future<Output = Result<Late, Failure>>,
{
    let mut seen = Seen { at: monotonic::now(), late: NOTHING_DUE };
    while !*stop.borrow() {
        match timeout(period, look()).await {
            Ok(Ok(late)) => seen = Seen { at: monotonic::now(), late },
            // What asks for it has no answer either, and says so.
            Ok(Err(failure)) => tracing::warn!(%failure, "how late the work is can't be told"),
            Err(_) => tracing::warn!("how late the work is can't be told: the database does not answer"),
        }
        seen.by(monotonic::now()).into_iter().for_each(|(queue, late)| metrics::backlog(queue, late));
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            _ = stop.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    const LATE: Duration = Duration::from_secs(7);

    /// What is told of a queue that was late when it was seen last, while the database is away, as `goes_away` says: for longer than
    /// it was late then?
    async fn grows(goes_away: impl AsyncFn() -> Result<Late, Failure>) -> bool {
        let recorder = PrometheusBuilder::new().build_recorder();
        let told = recorder.handle();
        let _guard = ::metrics::set_default_local_recorder(&recorder);
        let (has_looked, (_stop, stopped)) = (Cell::new(false), watch::channel(false));
        let look = async || match has_looked.replace(true) {
            false => Ok(NOTHING_DUE.map(|(queue, _)| (queue, LATE))),
            true => goes_away().await,
        };
        let seconds = || {
            let text = told.render();
            let line = text.lines().find_map(|line| line.strip_prefix("dalasi_backlog_seconds{queue=\"events\"} "));
            line.map_or(0.0, |seconds| seconds.parse::<f64>().unwrap())
        };
        let grown = async {
            while seconds() < LATE.as_secs_f64() + 0.2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = tell(look, Duration::from_millis(20), stopped) => unreachable!("nobody stops it"),
            grown = timeout(Duration::from_secs(5), grown) => grown.is_ok(),
        }
    }

    #[tokio::test]
    async fn work_is_the_later_the_longer_nobody_can_look() {
        assert!(grows(async || Err(Failure::Broken("the database refuses".into()))).await);
        assert!(grows(async || pending().await).await, "a database that says nothing is away too");
    }
}
