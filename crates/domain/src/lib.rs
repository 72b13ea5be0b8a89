//! The rules of money and of every object: values in, values out.
//!
//! Nothing here waits, reads a clock, draws randomness or knows a database. A transition takes
//! what it needs as arguments (`now`, ids, [`Entropy`]) and returns what it caused, or a
//! [`Refusal`] with its stable code. The wire shapes live in the server; the SQL in the store.

pub mod api_key;
pub mod audit;
pub mod checkout;
pub mod customer;
pub mod entropy;
pub mod event;
pub mod id;
pub mod invoice;
pub mod job;
pub mod ledger;
pub mod mail;
pub mod metadata;
pub mod method;
pub mod money;
pub mod number;
pub mod organization;
pub mod payment;
pub mod payment_link;
pub mod phone;
pub mod planted;
pub mod product;
pub mod rail;
pub mod receipt;
pub mod refund;
pub mod refusal;
pub mod return_address;
#[cfg(test)]
mod sample;
pub mod scope;
pub mod signing_key;
pub mod simulator;
#[cfg(test)]
mod table;
pub mod tax_rate;
pub mod time;
pub mod webhook;

pub use entropy::Entropy;
pub use id::{Id, Object};
pub use metadata::Metadata;
pub use method::{Method, OfflineMethod, PaymentMethod};
pub use money::{Currency, Money, Sum};
pub use phone::Msisdn;
pub use refusal::Refusal;
pub use return_address::return_address;
pub use scope::{Mode, Scope};
pub use tax_rate::TaxRate;
pub use time::Timestamp;
