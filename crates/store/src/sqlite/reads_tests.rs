//! The queue of reads with real threads; every order of them is in `tests/interleavings`.

use std::sync::Arc;
use std::thread;

use super::reads::Reads;
use crate::error::Error;
use crate::job::{Call, Job};
use crate::store::QUEUE_LIMIT;
use crate::tx::Tx;

fn nothing(_: &mut Tx<'_>) -> Result<(), Error> {
    Ok(())
}

fn job() -> Box<dyn Job> {
    Box::new(Call::new(nothing, [0; 32]).0)
}

#[test]
fn every_job_is_taken_once_and_then_the_threads_end() {
    let (reads, waiting) = Reads::new();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || std::iter::from_fn(|| waiting.next()).count())
        })
        .collect();
    let mut pushed = 0;
    while pushed < 10_000 {
        match reads.push(job()) {
            Ok(()) => pushed += 1,
            Err(_) => thread::yield_now(),
        }
    }
    drop(reads);
    let taken: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    assert_eq!(taken, 10_000);
}

#[test]
fn a_full_queue_gives_the_job_back() {
    let (reads, _waiting) = Reads::new();
    for _ in 0..QUEUE_LIMIT {
        assert!(reads.push(job()).is_ok());
    }
    assert!(reads.push(job()).is_err());
}
