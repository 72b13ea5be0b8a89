//! Whom a transaction leaves something to do, so that whoever commits it wakes them and nobody else.

use std::time::Duration;

use domain::job::Lane;

/// Without being woken, a worker looks this often.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Who looks for what is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    Jobs(Lane),
    Deliveries,
    Mails,
    /// Gives events their place in the log.
    Sequencer,
}

impl Worker {
    pub const ALL: [Worker; 8] = [
        Worker::Jobs(Lane::Prompt),
        Worker::Jobs(Lane::Ahead),
        Worker::Jobs(Lane::Aside),
        Worker::Jobs(Lane::Timers),
        Worker::Jobs(Lane::Test),
        Worker::Deliveries,
        Worker::Mails,
        Worker::Sequencer,
    ];

    /// Its place in [`Worker::ALL`].
    #[must_use]
    pub fn place(self) -> usize {
        match self {
            Worker::Jobs(Lane::Prompt) => 0,
            Worker::Jobs(Lane::Ahead) => 1,
            Worker::Jobs(Lane::Aside) => 2,
            Worker::Jobs(Lane::Timers) => 3,
            Worker::Jobs(Lane::Test) => 4,
            Worker::Deliveries => 5,
            Worker::Mails => 6,
            Worker::Sequencer => 7,
        }
    }
}

/// A set of workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakes([bool; Worker::ALL.len()]);

impl Wakes {
    pub(crate) fn add(&mut self, worker: Worker) {
        self.0[worker.place()] = true;
    }

    #[must_use]
    pub fn has(self, worker: Worker) -> bool {
        self.0[worker.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_a_place_of_its_own() {
        for (place, worker) in Worker::ALL.into_iter().enumerate() {
            assert_eq!(worker.place(), place);
            let mut wakes = Wakes::default();
            wakes.add(worker);
            assert!(Worker::ALL.into_iter().all(|one| wakes.has(one) == (one == worker)));
        }
    }
}
