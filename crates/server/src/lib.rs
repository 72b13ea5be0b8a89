//! The shell around the pure core: what talks to the network, the clock and the operator.

pub mod config;
pub mod http;
pub mod listener;
pub mod logging;
pub mod metrics;
pub mod rate_limit;
