//! The wire: how a request is read, and how an answer leaves.
//! Decides nothing about money; handlers parse, call a command, render.

pub mod card_guard;
pub mod fault;
pub mod fields;
pub mod json;
pub mod query;
