//! The books, as `verify` checks them, for as long as there is time.

use std::time::Duration;

use store::Store;
use store::queries::doubts::{self, Standing};

use super::report::Finding;
use crate::app::verify::{Check, Progress, Report};
use crate::error::Failure;
use crate::monotonic;

/// More of them are counted only.
const MOST_NAMED: usize = 5;

pub(super) async fn look(store: &Store, limit: Duration) -> Vec<Finding> {
    let checked = store.read(move |tx| {
        let begun = monotonic::now();
        let standing = doubts::standing(tx)?;
        let mut check = Check::new(&Progress::default());
        while !check.is_done() && begun.elapsed() < limit {
            check.step(tx)?;
        }
        Ok::<_, Failure>((check.is_done(), check.into_report(), standing))
    });
    match checked.await {
        Ok((is_whole, report, standing)) => {
            let mut findings = told(is_whole, &report, limit);
            findings.extend(standing.iter().take(MOST_NAMED).map(waiting));
            findings
        }
        Err(failure) => {
            vec![Finding::failed(format!("the books can't be read: {failure}"), "See what `database` says.")]
        }
    }
}

fn told(is_whole: bool, report: &Report, limit: Duration) -> Vec<Finding> {
    let rows: u64 = report.checked.values().sum();
    if !report.is_clean() {
        let named = report.faults.iter().take(MOST_NAMED);
        let next =
            "Keep a copy of the data as it is; `dalasi verify` names every fault, `dalasi repair` what is damaged.";
        let mut findings: Vec<Finding> = named
            .map(|fault| Finding::failed(format!("{} {}: {}", fault.table, fault.row, fault.what), next))
            .collect();
        let unnamed = report.fault_count.saturating_sub(u64::try_from(findings.len()).unwrap_or(u64::MAX));
        if unnamed > 0 {
            findings.push(Finding::failed(format!("{unnamed} more faults"), next));
        }
        return findings;
    }
    match is_whole {
        true => vec![Finding::ok(format!("{rows} rows checked, no fault; the ledger sums to zero"))],
        false => {
            let found =
                format!("in part: no fault in {rows} rows; there was no time for the rest ({} s)", limit.as_secs());
            vec![Finding::warning(found, "`dalasi verify` checks everything; --time-limit looks longer.")]
        }
    }
}

/// Whose refunds wait, also where nothing is wrong any more: the server has not looked since.
fn waiting(doubt: &Standing) -> Finding {
    let whose = match doubt.whose {
        Some(scope) => format!("the refunds of {} in {} mode", scope.organization, scope.mode),
        None => "all refunds".to_owned(),
    };
    let found = format!("{whose} wait since {}: {}", doubt.since.to_text(), doubt.found);
    Finding::warning(found, "They go out once the server's own check, every ten minutes, has seen no fault.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::doctor::report::Status;
    use crate::clock::SystemClock;
    use crate::entropy::SystemEntropy;

    #[tokio::test]
    async fn what_there_was_no_time_for_is_not_called_well() {
        let settings = store::Settings::new(store::Database::SqliteMemory);
        let store = Store::open(settings, Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await.expect("opens");
        let whole = look(&store, Duration::from_secs(60)).await;
        let part = look(&store, Duration::ZERO).await;
        store.close().await;
        assert_eq!([whole.len(), part.len()], [1, 1]);
        assert_eq!([whole[0].status, part[0].status], [Status::Ok, Status::Warning]);
        assert!(part[0].found.starts_with("in part"), "{part:?}");
    }

    #[tokio::test]
    async fn whose_refunds_wait_is_told_with_the_fault_that_was_seen() {
        let settings = store::Settings::new(store::Database::SqliteMemory);
        let store = Store::open(settings, Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await.expect("opens");
        store.write(|tx| doubts::see(tx, None, "a posting is gone")).await.expect("it is seen");
        let found = look(&store, Duration::from_secs(60)).await;
        store.close().await;
        assert_eq!(found.iter().map(|one| one.status).collect::<Vec<_>>(), [Status::Ok, Status::Warning]);
        let told = &found[1].found;
        assert!(told.starts_with("all refunds wait since ") && told.ends_with(": a posting is gone"), "{told}");
    }
}
