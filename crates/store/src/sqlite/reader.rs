//! A thread that reads: each closure sees one snapshot, and neither waits for the writer nor holds it up.

use super::connection::Connection;
use super::reads::Waiting;
use crate::clock::Monotone;
use crate::job::{Job, Verdict};
use crate::tx::{Access, Tx};

pub(crate) fn run(mut connection: Connection, clock: &Monotone, waiting: &Waiting) {
    while let Some(job) = waiting.next() {
        if !job.abandoned() {
            read(&mut connection, clock, job);
        }
    }
}

pub(super) fn read(connection: &mut Connection, clock: &Monotone, mut job: Box<dyn Job>) {
    if let Err(error) = connection.command("begin") {
        job.refuse(error);
        return;
    }
    let (now_us, seed) = (clock.now_us(), job.seed());
    match job.run(&mut Tx::new(connection, Access::Read, now_us, seed)) {
        Verdict::Commit | Verdict::RollBack => job.answer(),
        Verdict::Failed(error) => job.refuse(error),
    }
    if !connection.sqlite.is_autocommit()
        // Nothing was written, and a rollback would look through everything all the same.
        && let Err(error) = connection.command("commit")
    {
        tracing::error!(%error, "a snapshot could not be given back");
    }
}
