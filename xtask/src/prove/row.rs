//! What a row of the proof programme is.

use super::Tier;
use super::rows::ALONE;

pub(crate) struct Row {
    /// As in the list of promises; `.part` where one row has several programs.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Empty: the row has nothing to do with the database.
    pub(crate) databases: &'static [&'static str],
    pub(crate) runner: Runner,
    /// What is counted, and how many of it gate, nightly and release ask for; nothing where a tier leaves it alone.
    pub(crate) unit: &'static str,
    pub(crate) counts: [u64; 3],
    /// Whether the gate has a run of its own for it, because no other step runs it.
    pub(crate) is_gate_step: bool,
}

/// In every word `{database}` is replaced.
#[derive(PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo test --locked WORDS`.
    CargoTest(&'static [&'static str]),
    /// `cargo run --locked WORDS`.
    CargoRun(&'static [&'static str]),
    /// `cargo xtask WORDS`.
    Xtask(&'static [&'static str]),
    /// `pytest --database DATABASE WORDS` in `tests/sdk`.
    Pytest(&'static [&'static str]),
    /// The same with a cluster of Patroni's.
    Patroni(&'static [&'static str]),
}

impl Row {
    /// `A7` names all its parts.
    pub(crate) fn is_named(&self, id: &str) -> bool {
        self.id == id || self.id.split_once('.').is_some_and(|(row, _)| row == id)
    }

    pub(crate) fn is_alone(&self) -> bool {
        ALONE.contains(&self.id)
    }

    pub(crate) fn wanted(&self, tier: Tier) -> u64 {
        self.counts[tier as usize]
    }
}
