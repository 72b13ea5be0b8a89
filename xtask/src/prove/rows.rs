//! The rows of the proof programme: which program proves a row, and how much each tier asks for.

use super::Tier;

pub(crate) struct Row {
    /// As in the list of promises; `.part` where one row has several programs.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Empty: the row has nothing to do with the database.
    pub(crate) databases: &'static [&'static str],
    pub(crate) runner: Runner,
    /// What is counted, and how many of it gate, nightly and release ask for.
    pub(crate) unit: &'static str,
    pub(crate) counts: [u64; 3],
    /// Whether the gate has a run of its own for it, because no other step runs it.
    pub(crate) is_gate_step: bool,
}

/// In every word `{database}` is replaced.
#[allow(dead_code, reason = "a row takes the runner that its program needs")]
pub(crate) enum Runner {
    /// `cargo test --locked WORDS`.
    CargoTest(&'static [&'static str]),
    /// `cargo run --locked WORDS`.
    CargoRun(&'static [&'static str]),
    /// `pytest --database DATABASE WORDS` in `tests/sdk`.
    Pytest(&'static [&'static str]),
}

pub(crate) const BOTH: &[&str] = &["sqlite", "postgres"];

pub(crate) const ROWS: &[Row] = &[Row {
    id: "A7.refunds",
    title: "refunds of one payment race: never more than was paid",
    databases: BOTH,
    runner: Runner::CargoTest(&[
        "--release",
        "--package=dalasi",
        "--test=it",
        "--",
        "--exact",
        "refund_race::on_{database}",
        "--nocapture",
    ]),
    unit: "rounds",
    counts: [200, 100_000, 100_000],
    is_gate_step: false,
}];

/// Rows of the programme that nothing proves yet, each with the reason.
pub(crate) const NOT_BUILT: &[(&str, &str)] = &[];

impl Row {
    pub(crate) fn wanted(&self, tier: Tier) -> u64 {
        self.counts[tier as usize]
    }
}

pub(crate) fn ids() -> String {
    let ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_grows_with_the_tiers() {
        for (place, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..place].iter().all(|other| other.id != row.id), "{} stands twice", row.id);
            let [gate, nightly, release] = row.counts;
            assert!(0 < gate && gate <= nightly && nightly <= release, "{}", row.id);
        }
        for (id, reason) in NOT_BUILT {
            assert!(ROWS.iter().all(|row| row.id != *id), "{id} is built");
            assert!(!reason.is_empty(), "{id}");
        }
    }
}
