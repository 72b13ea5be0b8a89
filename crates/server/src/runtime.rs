//! The threads that run every task, and how one that is lost is told from a task that panicked.

use std::cell::Cell;

use tokio::runtime::{Builder, Runtime};
use tokio::task;

thread_local! {
    /// The task as which a thread runs the others; nothing where it runs none.
    static DRIVER: Cell<Option<task::Id>> = const { Cell::new(None) };
}

/// One thread for each core.
///
/// # Errors
///
/// The system starts no thread, or tells of nothing that happens.
pub(crate) fn start() -> std::io::Result<Runtime> {
    builder().build()
}

fn builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().on_thread_park(|| DRIVER.set(task::try_id()));
    builder
}

/// Whether a panic here is none of a task's: whoever else runs tasks may wait for what this thread alone hears of, and a release
/// build of the runtime says nothing of its end.
pub(crate) fn drives() -> bool {
    DRIVER.get().is_some_and(|driver| task::try_id() == Some(driver))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_task_is_told_from_what_runs_it() {
        let (has_driven, has_slept) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let (driven, slept) = (has_driven.clone(), has_slept.clone());
        let unparked = move || {
            driven.fetch_and(drives(), Ordering::Relaxed);
            slept.store(true, Ordering::Relaxed);
        };
        let runtime = builder().worker_threads(1).on_thread_unpark(unparked).build().expect("a runtime");
        let seen = runtime.block_on(async {
            let task = async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                drives()
            };
            [tokio::spawn(task).await, task::spawn_blocking(drives).await].map(|it| it.expect("no panic"))
        });
        assert_eq!(seen, [false, false]);
        assert!(has_slept.load(Ordering::Relaxed) && has_driven.load(Ordering::Relaxed));
        assert!(!drives(), "this thread runs no task");
    }
}
