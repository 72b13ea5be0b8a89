//! The pages that a payer sees: the checkout, the simulator behind test mode, and the pages that
//! say that something is not there. Everything here is a pure function from a plain struct to
//! HTML; it reads no clock, no database and no request, and decides nothing about money. The
//! handlers that load a session, map it to a view and answer with these pages live beside it.

pub mod amount;
pub mod assets;
pub mod checkout;
pub mod contrast;
pub mod headers;
mod html;
pub mod mask;
pub mod message;
pub mod moment;
pub mod simulator;
pub mod text;
pub mod view;

#[cfg(test)]
mod tests;
