//! The wire: how a request is read, and how an answer leaves.
//! Decides nothing about money; handlers parse, call a command, render.

pub mod answer;
pub mod body;
pub mod card_guard;
pub mod envelope;
pub mod fields;
pub mod json;
pub mod query;

pub use crate::{fault, request_id};
