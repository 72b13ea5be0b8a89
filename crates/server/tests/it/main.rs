//! The one integration binary: the real application on a temporary database, driven from outside.

#![expect(clippy::unwrap_used, reason = "a test that meets what can't be has to stop")]

mod authentication;
mod authorization;
mod before_checksums;
mod books;
mod cli;
mod clocks;
mod delivery_turns;
mod echoes;
mod endpoint_requests;
mod endpoints;
mod events;
mod faults;
mod invoices;
mod ledger_sums;
mod logos;
mod mails;
mod pages;
mod payables;
mod publishable_keys;
mod refund_race;
mod refunds;
mod repeated;
mod request_log;
mod security_sheet;
mod starts;
mod stood_still;
mod tidy;
mod world;
