//! The whole service in one process under a simulated world, and an independent model of what it has to do.
//!
//! A seed decides everything: which operations, by whom, at what time, and what goes wrong meanwhile. The real commands run on
//! a real SQLite database; the payment network, the receivers of webhooks, the clock and the storage's faults are simulated.
//! After each step the service's answer is compared with the model's, and at the end all there is.

#![expect(clippy::expect_used, reason = "a simulation that meets what can't be has to stop")]

pub mod crowd;
mod disk;
pub mod history;
pub mod kept;
pub mod model;
pub mod network;
pub mod operation;
pub mod random;
pub mod shrink;
pub mod world;
