//! The shell around the pure core: what talks to the network, the clock and the operator.

pub mod app;
pub mod clock;
pub mod credentials;
pub mod egress;
pub mod entropy;
pub mod error;
pub mod fault;
pub mod form_token;
pub mod http;
pub mod jobs;
pub mod logging;
pub mod metrics;
pub mod rails;
pub mod secrets;
pub mod signing;
pub mod tokens;
pub mod wire;
