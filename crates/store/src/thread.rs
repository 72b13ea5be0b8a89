//! The threads of the drivers. Whoever asks for something waits for one of them, so none of them may be missing in silence.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

use crate::error::Error;

/// A panic of `run` itself ends the process, and whoever supervises it starts it again: what the thread was doing is not known
/// any more, and nobody would do its work. Those of callers' closures don't come this far (`job`).
pub(crate) fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = name.clone();
    let or_abort = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!(thread, "a thread of the store panicked; the process ends");
            std::process::abort();
        }
    };
    let spawned = Builder::new().name(name).spawn(or_abort);
    spawned.map_err(|error| Error::Unavailable(format!("a thread can't be started: {error}")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    const CHILD: &str = "DALASI_TEST_PANICKING_THREAD";

    #[test]
    fn a_panic_of_a_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let thread = spawn("planted".to_owned(), || panic!("planted")).unwrap();
            // The process goes on here only if the panic does not end it.
            drop(thread.join());
            return;
        }
        let name = "thread::tests::a_panic_of_a_thread_ends_the_process";
        let ended =
            Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "").output().unwrap();
        assert_eq!(ended.status.signal(), Some(6), "by SIGABRT: {ended:?}");
    }
}
