//! The queues as they are.

use shuttle::sync::mpsc::channel;
use shuttle::sync::{self, Arc, Mutex};
use shuttle::thread::{self, yield_now};

#[path = "../../src/postgres/additions.rs"]
#[allow(dead_code, reason = "who is careful waits for nobody")]
mod additions;
#[path = "../../src/sqlite/batches.rs"]
mod batches;
#[path = "../../src/postgres/blocked.rs"]
#[allow(dead_code, reason = "nobody asks for less patience")]
mod blocked;
#[path = "commits.rs"]
pub(crate) mod commits;
#[path = "../../src/sqlite/reads.rs"]
mod reads;

cases!();
