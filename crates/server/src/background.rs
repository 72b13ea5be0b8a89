//! A thread that gives way to everything else on the machine: for work that nobody waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Work = Box<dyn FnOnce() + Send>;

/// The lowest priority there is.
const NICENESS: i32 = 19;

/// Starts its thread with the first work.
#[derive(Default)]
pub(crate) struct Background(OnceLock<Sender<Work>>);

impl Background {
    /// Blocks until it is done, which can take long on a busy machine. Nothing: it panicked, or there is no thread.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (reply, answer) = channel();
        let work = move || {
            // Whoever asked may have gone.
            let _ = reply.send(work());
        };
        self.0.get_or_init(start).send(Box::new(work)).ok()?;
        answer.recv().ok()
    }
}

fn start() -> Sender<Work> {
    let (sender, waiting) = channel::<Work>();
    let run = move || {
        if let Err(error) = give_way() {
            tracing::warn!(%error, "work that nobody waits for runs as if somebody did");
        }
        for work in waiting {
            // The panic hook has told of it, and the reply is dropped with the work.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    };
    if let Err(error) = thread::Builder::new().name("background".to_owned()).spawn(run) {
        tracing::error!(%error, "a thread can't be started");
    }
    sender
}

/// On Linux a priority belongs to a thread; elsewhere it is the whole process's, which is to keep its own.
fn give_way() -> Result<(), rustix::io::Errno> {
    if cfg!(target_os = "linux") { rustix::process::nice(NICENESS).map(drop) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_on_a_thread_that_gives_way_and_survives_a_panic() {
        let background = Background::default();
        assert_eq!(background.run(|| 1 + 1), Some(2));
        assert_eq!(background.run(|| -> u8 { panic!("planted") }), None);
        let niceness = || rustix::process::getpriority_process(None).expect("a priority");
        let own = niceness();
        assert_eq!(background.run(niceness), Some(NICENESS));
        assert_eq!(niceness(), own, "the others keep theirs");
    }
}
