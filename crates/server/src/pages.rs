//! The pages that a payer sees: payments, the simulator behind test mode, the check of receipts, and the pages that
//! say that something is not there. Rendering (`payment`, `simulator`, `verify`, `message`) is a pure
//! function from a plain struct to HTML. The handlers read a request, load what is stored, map it
//! by `state` to such a struct, or run a command; they decide nothing about money.

pub mod amount;
mod answer;
pub mod assets;
pub mod contrast;
mod documents;
mod follow;
mod form;
pub mod headers;
mod html;
mod logos;
pub mod message;
pub mod moment;
mod note;
mod page_path;
pub mod payment;
mod payment_handlers;
mod qr;
mod questions;
mod routes;
mod shown;
pub mod simulator;
mod simulator_handlers;
mod state;
mod streams;
mod subject;
pub mod text;
mod typed;
pub mod verify;
mod verify_handlers;
pub mod view;
mod visit;

pub use routes::{PageSettings, router};

#[cfg(test)]
mod tests;
