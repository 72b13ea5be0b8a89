//! What a row of the proof programme is.

use super::{Tier, rows};

/// They look at how long something takes: nothing else runs meanwhile.
pub(crate) const ALONE: &[&str] = &[
    "B8",
    "B8.size",
    "C1.latency",
    "C3",
    "C4",
    "C6",
    "C6.memory",
    "C7",
    "C8",
    "C8.standby",
    "C8.failover",
    "C8.frozen",
    "D6",
    "D11",
    "D12",
];

/// They say something of all their seconds together, and of a part of them nothing.
const WHOLE: &[&str] = &["C6", "C7"];

/// What the list of promises asks of the gate, in the row's unit, where the gate's time is enough for fewer.
pub(crate) const PROMISED: &[(&str, u64)] = &[
    ("A1", 10_000),
    ("A1.planted", 60),
    ("A2", 10_000),
    ("A3", 2_000),
    ("A5", 500),
    ("A6", 4),
    ("A7.pairs", 3_150),
    ("A8", 100),
    ("B1", 50),
    ("B2", 40),
    ("B4", 10_000),
    ("B5", 200),
    ("B7", 200),
    ("B10", 5),
    ("C1", 5_000),
    ("C6", 20),
    ("C8", 20),
    ("D1", 20),
    ("D5", 1_000),
];

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
    /// Whether the gate has a run of its own for it, because it is no test of another step.
    pub(crate) is_gate_step: bool,
}

/// In every word `{database}` is replaced.
#[derive(PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo test --locked WORDS`.
    CargoTest(&'static [&'static str]),
    /// `dalasi-sim WORDS`, with the product's defects on purpose.
    Simulation(&'static [&'static str]),
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
    pub(crate) fn is_whole(&self) -> bool {
        WHOLE.contains(&self.id)
    }

    /// `C8` names that row, `C8.*` its parts as well; `A7`, which has parts alone, names them.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let whole = self.id.split_once('.').map_or(self.id, |(whole, _)| whole);
        match name.strip_suffix(".*") {
            Some(id) => whole == id,
            None => self.id == name || (whole == name && rows::all().all(|row| row.id != name)),
        }
    }

    pub(crate) fn is_alone(&self) -> bool {
        ALONE.contains(&self.id)
    }

    pub(crate) fn wanted(&self, tier: Tier) -> u64 {
        self.counts[tier as usize]
    }

    /// Below a tenth of what the gate promises it fails.
    pub(crate) fn least(&self) -> u64 {
        let promised = PROMISED.iter().find(|(id, _)| *id == self.id).map(|(_, promised)| *promised);
        promised.unwrap_or_else(|| self.wanted(Tier::Gate)).div_ceil(10)
    }
}
