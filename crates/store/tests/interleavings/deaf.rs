//! The queues on a system that loses wakes and calls.

use shuttle::sync::mpsc::{Receiver, Sender};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

#[derive(Clone)]
struct Call(#[allow(dead_code, reason = "as long as it is there, more could come")] Sender<()>);

impl Call {
    fn send(&self, (): ()) -> Result<(), ()> {
        Ok(())
    }
}

fn channel() -> (Call, Receiver<()>) {
    let (sender, receiver) = shuttle::sync::mpsc::channel();
    (Call(sender), receiver)
}

mod sync {
    pub(crate) use shuttle::sync::{Arc, LockResult, Mutex, MutexGuard, PoisonError, atomic};

    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub(crate) fn wait<'g, T>(&self, guard: MutexGuard<'g, T>) -> LockResult<MutexGuard<'g, T>> {
            self.0.wait(guard)
        }

        pub(crate) fn notify_one(&self) {}

        pub(crate) fn notify_all(&self) {}
    }
}

#[path = "../../src/postgres/additions.rs"]
#[allow(dead_code, reason = "who is careful waits for nobody")]
mod additions;
#[path = "../../src/postgres/blocked.rs"]
#[allow(dead_code, reason = "nobody asks for less patience")]
mod blocked;
#[path = "../../src/sqlite/reads.rs"]
mod reads;

cases!();
