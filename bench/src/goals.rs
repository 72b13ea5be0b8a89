//! The goals, one function each: what runs beside what, and what the figures are held against.

mod growth;
mod lists;
mod machine;
mod processes;
mod rates;
mod storage;
mod webhooks;

use crate::row::Row;
use crate::run::Bench;
use crate::{Result, peers};

pub(crate) use growth::{FOLDER as GROWTH_FOLDER, GROWTH};
pub(crate) use lists::{ON_POSTGRES as LISTS_ON_POSTGRES, WRITERS};
pub(crate) use machine::LATENCY;
pub(crate) use rates::creates_beside;

pub(crate) async fn measure(bench: &mut Bench<'_>, goal: &str) -> Result<Vec<Row>> {
    match goal {
        "G1" => rates::create_sqlite(bench).await,
        "G2" => rates::create_postgres(bench).await,
        "G3" => rates::get(bench).await,
        "G4" => rates::others(bench).await,
        "G5" => machine::latency(bench).await,
        "G6" => growth::flat(bench).await,
        "G7" => machine::memory(bench).await,
        "G8" => machine::start(bench).await,
        "G9" => webhooks::deliver(bench).await,
        "G10" => peers::compare(bench).await,
        "G11" => processes::several(bench).await,
        _ => Err(format!("no goal is called {goal}")),
    }
}

/// Those that are measured on the store of the growth.
pub(crate) const ON_GROWTH: [&str; 3] = ["G6", "G7", "G8"];

pub(crate) const NO_POSTGRES: &str = "there is no PostgreSQL";
