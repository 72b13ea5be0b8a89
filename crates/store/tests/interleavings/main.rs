//! Row A10: the queues that are written by hand, under a scheduler that decides who goes on at each lock, wait and wake.
//! Every order of the smallest case, and many random ones of larger cases: each job is taken once, nobody sleeps for ever, and who
//! shares a commit is told what became of his own.
//!
//! The files are the product's own, read in here a second time with the scheduler's locks in place of the system's.

#![allow(clippy::duplicate_mod, reason = "once as they are, once on a system with a defect")]

#[macro_use]
mod cases;
mod deaf;
mod real;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proof::Proof;
use real::commits;
use shuttle::scheduler::{DfsScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// What the queues hold, and what is written of it.
mod job {
    use crate::error::Error;
    use crate::real::commits::Rows;

    pub(crate) const MAX_RUNS: u32 = 3;
    /// The smallest that is ever full.
    pub(crate) const BATCH: usize = 2;

    #[derive(Debug)]
    pub(crate) enum Verdict {
        Commit,
        RollBack,
        Failed(Error),
    }

    pub(crate) trait Job: Send {
        fn number(&self) -> usize;

        fn abandoned(&self) -> bool {
            false
        }

        fn run(&mut self, _: &mut Rows, _has_savepoints: bool) -> Verdict {
            Verdict::Commit
        }

        fn answer(self: Box<Self>) {}

        fn refuse(self: Box<Self>, _: Error) {}
    }
}

mod error {
    pub(crate) use ::store::Error;
}

/// A queue of the smallest size that is ever full.
mod store {
    pub(crate) const QUEUE_LIMIT: usize = 2;
}

const GATE_SCHEDULES: u64 = 670_000;
/// Of each larger case, however many orders the smallest have.
const FEWEST: usize = 2_000;
/// Noted by who has played all orders of the smallest cases.
const EVERY_READ: &str = "reads, every order";
const EVERY_COMMIT: &str = "commits, every order";

#[test]
fn whoever_goes_first_each_job_is_taken_once() {
    let mut proof = Proof::begin("A10", None, GATE_SCHEDULES);
    let seed = proof.seed;
    let mut reached = 0;
    let every = || DfsScheduler::new(None, false);
    // Once for a commit: there are no others.
    if proof.earlier(EVERY_READ).is_empty() {
        reached += play(&mut proof, EVERY_READ, every(), || real::reads(1, 2, 1));
        reached += play(&mut proof, "additions, every order", every(), || real::additions(1, 2, 1));
    }
    if proof.earlier(EVERY_COMMIT).is_empty() {
        let orders = commits::smallest().try_fold(0, |orders, (pair, fails)| {
            Ok(orders + fault(every(), move || commits::commits(&pair, fails, None))?)
        });
        reached += played(&mut proof, EVERY_COMMIT, orders);
    }
    let few = || RandomScheduler::new_from_seed(seed, FEWEST);
    reached += play(&mut proof, "those held up", few(), || real::blocked(2, 2, 2));
    let each = usize::try_from(proof.count.saturating_sub(reached).div_ceil(3)).unwrap().max(FEWEST);
    let random = || RandomScheduler::new_from_seed(seed, each);
    reached += play(&mut proof, "reads", random(), || real::reads(2, 3, 2));
    reached += play(&mut proof, "additions", random(), || real::additions(3, 2, 2));
    reached +=
        play(&mut proof, "commits", random(), || commits::commits(&commits::some(4), commits::some_failure(), None));
    let found = fault(every(), || deaf::reads(1, 2, 1)).is_err();
    proof.control("a wake that is lost", found);
    let found = fault(every(), || deaf::additions(1, 2, 1)).is_err();
    proof.control("a call that is lost", found);
    let found = fault(few(), || deaf::blocked(1, 2, 1)).is_err();
    proof.control("a call for those held up that is lost", found);
    for defect in commits::Defect::ALL {
        let found = fault(random(), move || commits::commits(&commits::some(4), commits::some_failure(), Some(defect)));
        proof.control(format!("commits: {defect:?}"), found.is_err());
    }
    proof.finish(reached);
}

/// How many orders were played.
fn play(
    proof: &mut Proof,
    name: &str,
    scheduler: impl Scheduler + 'static,
    case: impl Fn() + Send + Sync + 'static,
) -> u64 {
    played(proof, name, fault(scheduler, case))
}

fn played(proof: &mut Proof, name: &str, orders: Result<u64, String>) -> u64 {
    match orders {
        Ok(orders) => {
            proof.note(name, orders);
            orders
        }
        Err(fault) => {
            proof.violation(format!("{name}: {fault}"));
            0
        }
    }
}

fn fault(scheduler: impl Scheduler + 'static, case: impl Fn() + Send + Sync + 'static) -> Result<u64, String> {
    let runner = Runner::new(scheduler, Config::default());
    catch_unwind(AssertUnwindSafe(|| runner.run(case) as u64)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or(panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
    })
}
