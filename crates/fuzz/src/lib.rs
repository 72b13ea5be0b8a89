//! What somebody outside can send, each kind fed to the code that reads it (row D6 of the proof programme).
//!
//! A target takes any bytes and panics where a promise is broken: by the code's own assertions, by a round trip that
//! doesn't come back, by an answer that blames us. [`watched`] adds the promise that holds for all of them: no input takes
//! long or much memory. The stored inputs below `inputs` are those that a campaign found to reach something new.

pub mod campaign;
mod documents;
mod inputs;
pub mod replay;
mod requests;
mod texts;
mod watch;

pub use inputs::{escaped, folder, stored, unescaped};
pub use watch::{MOST_MEMORY, MOST_TIME, watched};

/// Code that reads what outsiders send.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Bytes; longer inputs are cut off before it, or teach nothing that a shorter one doesn't.
    pub longest: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), longest: usize) -> Target {
    Target { name, run, longest }
}

pub const TARGETS: &[Target] = &[
    target("json", texts::json, 4096),
    target("query", texts::query, 1024),
    target("amount", texts::amount, 64),
    target("tax_rate", texts::tax_rate, 64),
    target("phone", texts::phone, 64),
    target("time", texts::time, 64),
    target("id", texts::id, 64),
    target("web_address", texts::web_address, 512),
    target("email", texts::email, 320),
    target("card_number", texts::card_number, 8192),
    target("language", texts::language, 512),
    target("words", texts::words, 512),
    target("api_key", texts::api_key, 128),
    target("access_token", texts::access_token, 2048),
    target("form_token", texts::form_token, 128),
    target("webhook_secret", texts::webhook_secret, 256),
    target("key_set", texts::key_set, 2048),
    target("settings", texts::settings, 2048),
    target("receipt_statement", documents::receipt_statement, 1024),
    target("ledger_proof", documents::ledger_proof, 8192),
    target("picture", documents::picture, 8192),
    target("invoice_file", documents::invoice_file, 512),
    target("receipt_file", documents::receipt_file, 512),
    target("request", requests::request, 4096),
    target("connection", requests::connection, 4096),
];

/// Defects of our own making, to see that they are found: never part of a campaign's count.
pub const CONTROLS: &[Target] = &[
    target("length", texts::planted_length, 64),
    target("time_of_input", texts::planted_time, 64),
    target("memory", texts::planted_memory, 64),
];

/// The target or control of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain(CONTROLS).find(|target| target.name == name)
}
