//! The shell around the pure core: what talks to the network, the clock and the operator.

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod credentials;
pub mod egress;
pub mod entropy;
pub mod error;
pub mod fault;
pub mod form_token;
pub mod http;
pub mod jobs;
pub mod listener;
pub mod logging;
pub mod mail;
pub mod metrics;
pub mod monotonic;
pub mod pages;
pub mod plausible;
pub mod rails;
pub mod rate_limit;
pub mod request_id;
pub mod secrets;
pub mod signing;
pub mod tokens;
pub mod wire;
