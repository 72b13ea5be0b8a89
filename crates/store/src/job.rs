//! A caller's closure on its way through a driver's thread: run, perhaps again, then answered once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::tx::Tx;

/// A closure runs this often at most when other transactions keep being faster.
pub(crate) const MAX_RUNS: u32 = 20;
/// So many closures share a commit of SQLite at most: it bounds how long the first of them waits for the last.
pub(crate) const BATCH: usize = 128;

/// Before a commit. With [`Defect::AnswerBeforeCommit`](domain::planted::Defect) its answers have been sent, and a process that dies
/// in between shows it: as where a group commit waits for company.
pub(crate) fn wait_where_answered() {
    if domain::planted!(Defect::AnswerBeforeCommit) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(crate) trait Job: Send {
    /// The caller has gone away, so that nobody waits for an answer.
    fn abandoned(&self) -> bool;
    fn seed(&self) -> [u8; 32];
    fn run(&mut self, tx: &mut Tx<'_>) -> Verdict;
    /// Sends what the last run returned. Only after the commit.
    fn answer(self: Box<Self>);
    fn refuse(self: Box<Self>, error: Error);
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Commit,
    /// The closure said no (or panicked); its own answer stands, its writes don't.
    RollBack,
    /// The database said no; the driver decides whether the closure runs again.
    Failed(Error),
}

pub(crate) struct Call<F, T, E> {
    closure: F,
    seed: [u8; 32],
    /// Until it was sent.
    reply: Option<oneshot::Sender<Result<T, E>>>,
    result: Option<Result<T, E>>,
}

impl<F, T, E> Call<F, T, E> {
    pub(crate) fn new(closure: F, seed: [u8; 32]) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        (Self { closure, seed, reply: Some(reply), result: None }, answer)
    }
}

impl<F, T, E> Job for Call<F, T, E>
where
    F: Fn(&mut Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn seed(&self) -> [u8; 32] {
        self.seed
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Verdict {
        // Nothing of the closure's captured state is looked at again except by the closure itself, and the transaction that
        // it may have left half done is rolled back.
        let result = match catch_unwind(AssertUnwindSafe(|| (self.closure)(tx))) {
            Ok(result) => result,
            Err(panic) => {
                let message = panic_message(panic.as_ref());
                tracing::error!(message, "a command panicked inside its transaction");
                Err(E::from(Error::Panic(message)))
            }
        };
        let verdict = match (&result, tx.take_doom()) {
            (Ok(_), None) => Verdict::Commit,
            // The closure may have turned a violated constraint into an answer of its own.
            (Err(_), None | Some(Error::Sql { .. })) => Verdict::RollBack,
            (_, Some(doom)) => Verdict::Failed(doom),
        };
        self.result = Some(result);
        if domain::planted!(Defect::AnswerBeforeCommit) && matches!(verdict, Verdict::Commit) && tx.is_write() {
            self.send();
        }
        verdict
    }

    fn answer(mut self: Box<Self>) {
        self.send();
    }

    fn refuse(self: Box<Self>, error: Error) {
        if let Some(reply) = self.reply {
            let _ = reply.send(Err(E::from(error)));
        }
    }
}

impl<F, T, E> Call<F, T, E> {
    fn send(&mut self) {
        if let (Some(reply), Some(result)) = (self.reply.take(), self.result.take()) {
            // Nobody waits any more: the work is done all the same.
            let _ = reply.send(result);
        }
    }
}

/// A text that was put together may hold a value that somebody sent; the panic hook says where it was.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<&'static str>().copied().unwrap_or("with a text of its own").to_owned()
}
