//! The shell of Dalasi: everything that talks to the world outside the process.

pub mod clock;
pub mod credentials;
pub mod egress;
pub mod entropy;
pub mod form_token;
pub mod secrets;
pub mod signing;
pub mod tokens;
