//! How fast the product is: ratios to references that run beside it, interleaved, warmed up, repeated.
//!
//! `cargo xtask bench` builds this and the product in one profile and starts `dalasi-bench run`. Absolute figures differ
//! from machine to machine and from hour to hour; a ratio taken in one run says something everywhere. Nothing here is a
//! test with a time limit.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks on its streams")]

mod clock;
mod connection;
mod disk;
mod goals;
mod load;
mod options;
mod peers;
mod picture;
mod pin;
mod product;
mod reference;
mod report;
mod resume;
mod row;
mod run;
mod sample;
mod server;
mod soak;
mod work;

use std::process::ExitCode;

/// The product's allocator, so that the reference has no other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why something could not be measured, in a sentence for the person at the terminal.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("echo") => reference::echo(),
        Some("sink") => reference::sink(),
        Some("run") => options::Options::parse(&words[1..]).and_then(|options| run::run(&options)),
        Some("soak") => soak::Options::parse(&words[1..]).and_then(|options| soak::run(&options)),
        _ => Err("usage: dalasi-bench run …; `cargo xtask bench` and `cargo xtask soak` say it all".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
