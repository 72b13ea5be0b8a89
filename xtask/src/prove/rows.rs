//! The rows of the proof programme: which program proves a row, and how much each tier asks for.

use super::row::{Row, Runner};

/// One test by its name, and where it is. In the whole workspace it has what it depends on as the step builds it that runs the other
/// tests.
macro_rules! test {
    ($name:literal, $($word:literal),+) => {
        Runner::CargoTest(&[$($word,)+ "--", "--exact", $name, "--nocapture"])
    };
}

mod failover;
mod network;
mod security;

pub(crate) const BOTH: &[&str] = &["sqlite", "postgres"];

/// What plays them says what it reached of A1 and of A2.
const HISTORIES: Runner = Runner::Simulation(&[]);

const KILLS: Runner = Runner::Pytest(&["test_under_load.py::test_a_kill_at_any_moment"]);

/// How many of the planted defects (`domain::planted`) the simulation can see.
const DEFECTS: u64 = 99;

/// In the order in which they are shown, and have their first turn.
const PARTS: [&[Row]; 4] = [SERVICE_AND_STORE, network::ROWS, security::ROWS, failover::ROWS];

pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    PARTS.into_iter().flatten()
}

pub(crate) fn ids() -> String {
    let mut ids: Vec<&str> = all().map(|row| row.id).collect();
    ids.dedup();
    ids.join(", ")
}

const SERVICE_AND_STORE: &[Row] = &[
    Row {
        id: "A1",
        title: "the real service is what its model says, whatever fails: histories of 250 operations",
        databases: &[],
        runner: HISTORIES,
        unit: "histories",
        counts: [1_000, 1_000_000, 10_000_000],
        is_gate_step: true,
    },
    Row {
        id: "A1.planted",
        title: "the simulation finds what is planted in the service",
        databases: &[],
        runner: Runner::Simulation(&["planted"]),
        unit: "defects",
        counts: [10, DEFECTS, DEFECTS],
        is_gate_step: true,
    },
    Row {
        id: "A2",
        title: "histories reach every transition, and in the long run with everything that can go wrong for it",
        databases: &[],
        runner: HISTORIES,
        unit: "histories",
        counts: [1_000, 1_000_000, 1_000_000],
        is_gate_step: true,
    },
    Row {
        id: "A3",
        title: "faults stop at a random moment: ten minutes later nothing is stuck, and the clearing accounts say why",
        databases: &[],
        runner: Runner::Simulation(&["liveness"]),
        unit: "histories",
        counts: [500, 200_000, 200_000],
        is_gate_step: true,
    },
    Row {
        id: "A4",
        title: "the same history on SQLite and on PostgreSQL is told the same, byte for byte",
        databases: &["postgres"],
        runner: Runner::Simulation(&["databases"]),
        unit: "histories",
        counts: [100, 100_000, 100_000],
        is_gate_step: true,
    },
    Row {
        id: "A5",
        title: "what one sees alone is what it sees beside a hostile other, and live beside test",
        databases: &[],
        runner: Runner::Simulation(&["pairs"]),
        unit: "pairs",
        counts: [250, 50_000, 50_000],
        is_gate_step: true,
    },
    Row {
        id: "A6",
        title: "an order explains what 64 clients were answered who change and read the same objects, by two processes on PostgreSQL",
        databases: BOTH,
        runner: Runner::Pytest(&["test_linearizability.py", "-s"]),
        unit: "histories",
        counts: [1, 200, 200],
        is_gate_step: false,
    },
    Row {
        id: "A7.refunds",
        title: "refunds of one payment race: never more than was paid",
        databases: BOTH,
        runner: test!("refund_race::on_{database}", "--release", "--package=dalasi", "--test=it"),
        unit: "rounds",
        counts: [200, 100_000, 100_000],
        is_gate_step: false,
    },
    Row {
        id: "A9",
        title: "every state of checkouts, invoices, refunds and their attempts that few actors can bring about keeps the rules",
        databases: &[],
        runner: test!("every_state_keeps_the_rules", "--workspace", "--test=machines"),
        unit: "states",
        counts: [318_000, 318_000, 318_000],
        is_gate_step: false,
    },
    Row {
        id: "A10",
        title: "whoever goes first at a lock or a wake: each job is given out once, who shares a commit is told of his own, nobody sleeps for ever",
        databases: &[],
        runner: test!("whoever_goes_first_each_job_is_taken_once", "--workspace", "--test=interleavings"),
        unit: "orders",
        counts: [670_000, 1_700_000, 1_700_000],
        is_gate_step: false,
    },
    Row {
        id: "A11",
        title: "times are read and printed as by a calendar that shares nothing with ours",
        databases: &[],
        runner: test!("an_independent_calendar_agrees", "--workspace", "--test=calendar"),
        unit: "cases",
        counts: [10_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "A12",
        title: "every page of every list is that of a naive scan, whatever happens between two pages",
        databases: BOTH,
        runner: Runner::Simulation(&["lists", "{database}"]),
        unit: "pages",
        counts: [10_000, 1_000_000, 1_000_000],
        is_gate_step: true,
    },
    Row {
        id: "A12.plans",
        title: "no list of invoices reads others, among many",
        databases: BOTH,
        runner: Runner::CargoTest(&[
            "--workspace",
            "--test=conformance",
            "--",
            "--exact",
            "plans::{database}::no_list_of_invoices_reads_others",
        ]),
        unit: "invoices",
        counts: [50_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "B1",
        title: "killed at any moment under load: nothing acknowledged is missing, nothing happened twice",
        databases: &["sqlite"],
        runner: KILLS,
        unit: "kills",
        counts: [5, 2_000, 2_000],
        is_gate_step: false,
    },
    Row {
        id: "B1",
        title: "killed at any moment under load: nothing acknowledged is missing, nothing happened twice",
        databases: &["postgres"],
        runner: KILLS,
        unit: "kills",
        counts: [5, 1_000, 1_000],
        is_gate_step: false,
    },
    Row {
        id: "B2",
        title: "killed at the Nth write or sync: nothing acknowledged is missing, nothing happened twice",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_kill_points.py"]),
        unit: "points",
        counts: [4, 5_000, 5_000],
        is_gate_step: false,
    },
    Row {
        id: "B4",
        title: "a loss of power with any subset of the unsynced sectors loses nothing acknowledged",
        databases: &["sqlite"],
        runner: test!(
            "power_cut::nothing_acknowledged_is_lost_with_the_power",
            "--workspace",
            "--test=conformance",
            "--features=dalasi-store/planted"
        ),
        unit: "images",
        counts: [1_000, 1_000_000, 1_000_000],
        is_gate_step: true,
    },
    Row {
        id: "B4.history",
        title: "so it is in the midst of histories: what the service was answered for is there, and it goes on from what is left",
        databases: &["sqlite"],
        runner: Runner::Simulation(&["power"]),
        unit: "losses",
        counts: [2_000, 1_000_000, 1_000_000],
        is_gate_step: true,
    },
    Row {
        id: "B4.postgres",
        title: "PostgreSQL's own machine loses its power under load, with any subset of the unsynced sectors: nothing acknowledged is lost",
        databases: &["postgres"],
        runner: test!("power::nothing_acknowledged_is_lost_with_the_power", "--workspace", "--test=fleet"),
        unit: "losses",
        counts: [3, 1_000, 1_000],
        is_gate_step: false,
    },
    Row {
        id: "B5",
        title: "a failed system call is never acknowledged, and a failed sync ends the server with its own exit code",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_io_errors.py::test_a_failed_call_is_never_acknowledged"]),
        unit: "points",
        counts: [20, 5_000, 5_000],
        is_gate_step: false,
    },
    Row {
        id: "B6",
        title: "a full disk refuses writes, serves reads, and is well again by itself",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_io_errors.py::test_a_full_disk_refuses_and_recovers"]),
        unit: "cycles",
        counts: [3, 200, 200],
        is_gate_step: false,
    },
    Row {
        id: "B7",
        title: "a flipped bit in the database, its log or a backup is found, or changes no amount",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_bit_rot.py"]),
        unit: "flips",
        counts: [20, 10_000, 10_000],
        is_gate_step: false,
    },
    Row {
        id: "B8",
        title: "a backup under load holds all that was acknowledged before it began",
        databases: BOTH,
        runner: Runner::Pytest(&["test_under_load.py::test_a_hot_backup_holds_what_was_acknowledged_before"]),
        unit: "backups",
        counts: [1, 300, 300],
        is_gate_step: false,
    },
    Row {
        id: "B8.size",
        title: "a store of a GiB is backed up, and restored within a minute, whole",
        databases: BOTH,
        runner: Runner::Pytest(&["test_large_backup.py", "-s"]),
        unit: "stores",
        counts: [1, 3, 3],
        is_gate_step: false,
    },
    Row {
        id: "B9",
        title: "killed or cut off while a store of any earlier schema is brought up to date: it holds, tells and is made as it should",
        databases: BOTH,
        runner: Runner::Pytest(&["test_migration_kills.py", "-s"]),
        unit: "interruptions",
        counts: [6, 2_000, 2_000],
        is_gate_step: false,
    },
    Row {
        id: "B9.power",
        title: "a loss of power while a database of any earlier schema is migrated loses no row of any table",
        databases: &["sqlite"],
        runner: test!(
            "older_schemas::power::a_power_cut_while_migrating_loses_no_row",
            "--workspace",
            "--test=conformance"
        ),
        unit: "images",
        counts: [30, 10_000, 10_000],
        is_gate_step: false,
    },
    Row {
        id: "B10",
        title: "a graceful stop under load resets nothing that was accepted",
        databases: BOTH,
        runner: Runner::Pytest(&["test_under_load.py::test_a_graceful_stop_resets_nothing"]),
        unit: "stops",
        counts: [3, 500, 500],
        is_gate_step: false,
    },
    Row {
        id: "B11",
        title: "the machine's clock jumps, runs backwards and stands still: what has begun ends, what expires does so exactly",
        databases: BOTH,
        runner: Runner::Pytest(&["test_clock.py", "-s"]),
        unit: "jumps",
        counts: [4, 500, 500],
        is_gate_step: false,
    },
    Row {
        id: "A7.pairs",
        title: "every pair of actions on an object at once: what some order of them explains",
        databases: BOTH,
        runner: Runner::Pytest(&["test_race_matrix.py", "-s"]),
        unit: "rounds",
        counts: [320, 103_000, 103_000],
        is_gate_step: false,
    },
    Row {
        id: "A8",
        title: "100 requests with one key and a killed server: one effect, the same bytes",
        databases: BOTH,
        runner: Runner::Pytest(&["test_idempotency_storm.py", "-s"]),
        unit: "keys",
        counts: [12, 5_000, 5_000],
        is_gate_step: false,
    },
];

#[cfg(test)]
mod tests;
