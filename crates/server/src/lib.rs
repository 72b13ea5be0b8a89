//! The shell around the pure core: what talks to the network, the clock and the operator.

pub mod clock;
pub mod credentials;
pub mod egress;
pub mod entropy;
pub mod fault;
pub mod form_token;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod secrets;
pub mod signing;
pub mod tokens;
