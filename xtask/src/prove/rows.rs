//! The rows of the proof programme: which program proves a row, and how much each tier asks for.

use super::row::{Row, Runner};

pub(crate) const BOTH: &[&str] = &["sqlite", "postgres"];

/// What plays them says what it reached of A1 and of A2.
const HISTORIES: Runner = Runner::CargoRun(&["--profile=sim", "--package=dalasi-sim", "--features=planted"]);

const KILLS: Runner = Runner::Pytest(&["test_under_load.py::test_a_kill_at_any_moment"]);

/// How many of the planted defects (`domain::planted`) the simulation can see.
const DEFECTS: u64 = 95;

pub(crate) const ROWS: &[Row] = &[
    Row {
        id: "A1",
        title: "the real service is what its model says, whatever fails: histories of 250 operations",
        databases: &[],
        runner: HISTORIES,
        unit: "histories",
        counts: [1_000, 1_000_000, 10_000_000],
        is_gate_step: false,
    },
    Row {
        id: "A1.planted",
        title: "the simulation finds what is planted in the service",
        databases: &[],
        runner: Runner::CargoRun(&["--profile=sim", "--package=dalasi-sim", "--features=planted", "--", "planted"]),
        unit: "defects",
        counts: [DEFECTS, DEFECTS, DEFECTS],
        is_gate_step: false,
    },
    Row {
        id: "A2",
        title: "histories reach every transition, and in the long run with everything that can go wrong for it",
        databases: &[],
        runner: HISTORIES,
        unit: "histories",
        counts: [1_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "A3",
        title: "faults stop at a random moment: ten minutes later nothing is stuck, and the clearing accounts say why",
        databases: &[],
        runner: Runner::CargoRun(&["--profile=sim", "--package=dalasi-sim", "--features=planted", "--", "liveness"]),
        unit: "histories",
        counts: [500, 200_000, 200_000],
        is_gate_step: false,
    },
    Row {
        id: "A4",
        title: "the same history on SQLite and on PostgreSQL is told the same, byte for byte",
        databases: &["postgres"],
        runner: Runner::CargoRun(&["--profile=sim", "--package=dalasi-sim", "--features=planted", "--", "databases"]),
        unit: "histories",
        counts: [100, 100_000, 100_000],
        is_gate_step: false,
    },
    Row {
        id: "A5",
        title: "what one sees alone is what it sees beside a hostile other, and live beside test",
        databases: &[],
        runner: Runner::CargoRun(&["--profile=sim", "--package=dalasi-sim", "--features=planted", "--", "pairs"]),
        unit: "pairs",
        counts: [250, 50_000, 50_000],
        is_gate_step: false,
    },
    Row {
        id: "A6",
        title: "an order explains what 64 clients were answered who change and read the same objects, by two processes on PostgreSQL",
        databases: BOTH,
        runner: Runner::Pytest(&["test_linearizability.py", "-s"]),
        unit: "histories",
        counts: [2, 200, 200],
        is_gate_step: false,
    },
    Row {
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
    },
    Row {
        id: "A9",
        title: "every state of checkouts, invoices, refunds and their attempts that few actors can bring about keeps the rules",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi-domain",
            "--test=machines",
            "--",
            "--exact",
            "every_state_keeps_the_rules",
            "--nocapture",
        ]),
        unit: "states",
        counts: [318_000, 318_000, 318_000],
        is_gate_step: false,
    },
    Row {
        id: "A10",
        title: "whoever goes first at a lock or a wake: the queues give each job out once, and nobody sleeps for ever",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi-store",
            "--test=interleavings",
            "--",
            "--exact",
            "whoever_goes_first_each_job_is_taken_once",
            "--nocapture",
        ]),
        unit: "orders",
        counts: [370_000, 1_400_000, 1_400_000],
        is_gate_step: false,
    },
    Row {
        id: "A11",
        title: "times are read and printed as by a calendar that shares nothing with ours",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi-domain",
            "--test=calendar",
            "--",
            "--exact",
            "an_independent_calendar_agrees",
            "--nocapture",
        ]),
        unit: "cases",
        counts: [10_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "A12",
        title: "every page of every list is that of a naive scan, whatever happens between two pages",
        databases: BOTH,
        runner: Runner::CargoRun(&[
            "--profile=sim",
            "--package=dalasi-sim",
            "--features=planted",
            "--",
            "lists",
            "{database}",
        ]),
        unit: "pages",
        counts: [10_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "A12.plans",
        title: "no list of invoices reads others, among many",
        databases: BOTH,
        runner: Runner::CargoTest(&[
            "--package=dalasi-store",
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
        counts: [2, 2_000, 2_000],
        is_gate_step: false,
    },
    Row {
        id: "B1",
        title: "killed at any moment under load: nothing acknowledged is missing, nothing happened twice",
        databases: &["postgres"],
        runner: KILLS,
        unit: "kills",
        counts: [2, 1_000, 1_000],
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
        runner: Runner::CargoTest(&[
            "--workspace",
            "--test=conformance",
            "--features=dalasi-store/planted",
            "--",
            "--exact",
            "power_cut::nothing_acknowledged_is_lost_with_the_power",
            "--nocapture",
        ]),
        unit: "images",
        counts: [1_000, 1_000_000, 1_000_000],
        is_gate_step: true,
    },
    Row {
        id: "B5",
        title: "a failed system call is never acknowledged, and a failed sync ends the server with its own exit code",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_io_errors.py::test_a_failed_call_is_never_acknowledged"]),
        unit: "points",
        counts: [5, 5_000, 5_000],
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
        counts: [8, 10_000, 10_000],
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
        id: "B10",
        title: "a graceful stop under load resets nothing that was accepted",
        databases: BOTH,
        runner: Runner::Pytest(&["test_under_load.py::test_a_graceful_stop_resets_nothing"]),
        unit: "stops",
        counts: [2, 500, 500],
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
        counts: [240, 63_000, 63_000],
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
    Row {
        id: "C1",
        title: "receivers that fail, hang, lie and never end, and then heal: every event arrives, in order, signed",
        databases: BOTH,
        runner: Runner::Pytest(&["test_receiver_from_hell.py", "-s"]),
        unit: "deliveries",
        counts: [560, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "C3",
        title: "idle connections cost little memory and nobody's time: 500 in the gate, 10,000 beyond",
        databases: BOTH,
        runner: Runner::Pytest(&["test_idle_connections.py", "-s"]),
        unit: "crowds",
        counts: [1, 3, 3],
        is_gate_step: false,
    },
    Row {
        id: "C4",
        title: "clients that are slow on purpose are cut off in time",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_slow_clients.py", "-s"]),
        unit: "of each",
        counts: [20, 100, 100],
        is_gate_step: false,
    },
    Row {
        id: "C5",
        title: "bodies, numbers, addresses and frames that are meant to hurt",
        databases: BOTH,
        runner: Runner::Pytest(&["test_bombs.py", "-s"]),
        unit: "bombs",
        counts: [2_500, 7_500, 7_500],
        is_gate_step: false,
    },
    Row {
        id: "C6",
        title: "several times more requests than it can answer: it does what it can, refuses the rest at once, and is well again",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--release",
            "--package=dalasi",
            "--test=overload",
            "--",
            "--exact",
            "more_than_it_can_answer",
            "--nocapture",
        ]),
        unit: "seconds",
        counts: [5, 1_800, 1_800],
        is_gate_step: false,
    },
    Row {
        id: "C7",
        title: "at half of what it can do, for hours, beside faults and a reader: it never needs more, and its books are right",
        databases: BOTH,
        runner: Runner::Xtask(&["soak", "--database", "{database}"]),
        unit: "seconds",
        counts: [0, 0, 86_400],
        is_gate_step: false,
    },
    Row {
        id: "D1",
        title: "schemathesis over the served description: all phases, all checks but one that another stands in for",
        databases: BOTH,
        runner: Runner::Pytest(&["openapi_properties.py", "-s"]),
        unit: "examples",
        counts: [4, 200, 2_000],
        is_gate_step: false,
    },
    Row {
        id: "D2",
        title: "every operation, by every credential, on everybody's objects: the right answer and no trace",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi",
            "--test=it",
            "--",
            "--exact",
            "authorization::every_cell_of_the_matrix",
            "--nocapture",
        ]),
        unit: "cells",
        counts: [30_000, 30_000, 30_000],
        is_gate_step: false,
    },
    Row {
        id: "D3",
        title: "no field of an answer is taken in a request that doesn't name it",
        databases: BOTH,
        runner: Runner::Pytest(&["test_mass_assignment.py", "-s"]),
        unit: "fields",
        counts: [300, 300, 300],
        is_gate_step: false,
    },
    Row {
        id: "D4",
        title: "no forged token and none with flipped bits is accepted",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi",
            "--lib",
            "--",
            "--exact",
            "tokens::tests::flips::no_forged_and_no_flipped_token_is_accepted",
            "--nocapture",
        ]),
        unit: "flips",
        counts: [10_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "D5",
        title: "whatever URL it is given, the server begins no connection inside: every first packet is watched",
        databases: &["sqlite"],
        runner: Runner::Pytest(&["test_ssrf.py", "-s"]),
        unit: "URLs",
        counts: [400, 100_000, 100_000],
        is_gate_step: false,
    },
    Row {
        id: "D6",
        title: "whatever outsiders send, the code that reads it breaks no promise and takes neither long nor much memory",
        databases: &[],
        runner: Runner::CargoRun(&["--package=dalasi-fuzz"]),
        unit: "executions",
        counts: [500, 100_000_000, 10_000_000_000],
        is_gate_step: false,
    },
    Row {
        id: "D7",
        title: "AddressSanitizer finds nothing in the store and in SQLite; a sum that doesn't fit ends a release build",
        databases: &[],
        runner: Runner::Xtask(&["sanitize"]),
        unit: "tests",
        counts: [90, 90, 90],
        is_gate_step: false,
    },
    Row {
        id: "D8",
        title: "no card number, key, token, secret or code is left behind anywhere",
        databases: BOTH,
        runner: Runner::Pytest(&["canaries.py", "-s"]),
        unit: "canaries",
        counts: [300, 10_000, 10_000],
        is_gate_step: false,
    },
    Row {
        id: "D9",
        title: "what outsiders write is text and nothing else, on every page, in every mail, file and answer, and at a terminal",
        databases: BOTH,
        runner: Runner::Pytest(&["test_injection.py", "-s"]),
        unit: "cells",
        counts: [1_700, 16_200, 16_200],
        is_gate_step: false,
    },
    Row {
        id: "D10",
        title: "no page leads away, takes a foreign form or is shown in a frame",
        databases: BOTH,
        runner: Runner::Pytest(&["test_hosted_pages.py", "-s"]),
        unit: "cases",
        counts: [2_000, 5_500, 5_500],
        is_gate_step: false,
    },
    Row {
        id: "D11",
        title: "neither the answer nor its time tells an id or key of others from one of nobody's",
        databases: BOTH,
        runner: Runner::Pytest(&["test_enumeration.py", "-s"]),
        unit: "samples",
        counts: [3_000, 1_000_000, 1_000_000],
        is_gate_step: false,
    },
    Row {
        id: "D12",
        title: "one request more than the limit is refused, and there is no way round",
        databases: BOTH,
        runner: Runner::Pytest(&["test_rate_limits.py", "-s"]),
        unit: "ways",
        counts: [40, 40, 40],
        is_gate_step: false,
    },
    Row {
        id: "D13",
        title: "the domain's tests see what is changed in it: all of what moves money and gives rights, 95 % of the rest",
        databases: &[],
        runner: Runner::Xtask(&["mutants"]),
        unit: "mutants",
        counts: [20, 300, 1_200],
        is_gate_step: false,
    },
    Row {
        id: "D14",
        title: "bans, licences and sources; a bill of materials that leaves nothing out",
        databases: &[],
        runner: Runner::Xtask(&["supply-chain"]),
        unit: "crates",
        counts: [200, 200, 200],
        is_gate_step: false,
    },
    Row {
        id: "D14.advisories",
        title: "nothing is publicly known against what the program is made of",
        databases: &[],
        runner: Runner::Xtask(&["advisories"]),
        unit: "crates",
        counts: [200, 200, 200],
        is_gate_step: false,
    },
    Row {
        id: "D14.builds",
        title: "built in two folders, the program is the same, byte for byte",
        databases: &[],
        runner: Runner::Xtask(&["builds"]),
        unit: "builds",
        counts: [0, 0, 2],
        is_gate_step: false,
    },
    Row {
        id: "D15",
        title: "every file and test that the security sheet names is there",
        databases: &[],
        runner: Runner::CargoTest(&[
            "--package=dalasi",
            "--test=it",
            "--",
            "--exact",
            "security_sheet::what_the_security_sheet_names_is_there",
            "--nocapture",
        ]),
        unit: "names",
        counts: [300, 300, 300],
        is_gate_step: false,
    },
    Row {
        id: "C8",
        title: "cuts, restarts, locks and kills between servers and PostgreSQL: nothing lost, nothing twice",
        databases: &["postgres"],
        runner: Runner::CargoTest(&[
            "--package=dalasi",
            "--test=fleet",
            "--",
            "--exact",
            "a_database_that_fails_loses_and_doubles_nothing",
            "--nocapture",
            "--ignored",
        ]),
        unit: "faults",
        counts: [20, 1_000, 1_000],
        is_gate_step: false,
    },
    Row {
        id: "C8.standby",
        title: "the primary is lost, its synchronous standby takes over: nothing acknowledged is lost",
        databases: &["postgres"],
        runner: Runner::CargoTest(&[
            "--package=dalasi",
            "--test=fleet",
            "--",
            "--exact",
            "a_failover_loses_nothing_that_was_acknowledged",
            "--nocapture",
        ]),
        unit: "failovers",
        counts: [2, 10, 100],
        is_gate_step: false,
    },
    Row {
        id: "C8.failover",
        title: "the leader of a Patroni cluster dies under load: nothing lost, nothing twice, and nobody starts anything again",
        databases: &["postgres"],
        runner: Runner::Patroni(&["failover.py::test_a_leader_that_dies_takes_nothing_with_it", "-s"]),
        unit: "failovers",
        counts: [1, 10, 100],
        is_gate_step: false,
    },
    Row {
        id: "C8.frozen",
        title: "the leader answers no more, another takes over, and it wakes up: nothing lost, nothing twice",
        databases: &["postgres"],
        runner: Runner::Patroni(&["failover.py::test_a_leader_that_freezes_acknowledges_nothing_when_it_wakes", "-s"]),
        unit: "failovers",
        counts: [1, 10, 100],
        is_gate_step: false,
    },
];

/// Rows of the programme that nothing proves yet, each with the reason.
pub(crate) const NOT_BUILT: &[(&str, &str)] = &[
    (
        "B9",
        "an ordinary test: schemas 2 to 8 with rows, half steps and power cuts; there is no release yet whose golden files it could have",
    ),
    (
        "C2",
        "A1 plays it, a word before the answer, of another currency and about an unknown payment as well; over HTTP no rail speaks by \
         itself yet, so that there is no signature to replay",
    ),
    ("D7.races", "ThreadSanitizer and Miri need a nightly compiler with its sources"),
];

/// They look at how long something takes: nothing else runs meanwhile.
pub(crate) const ALONE: &[&str] =
    &["C3", "C4", "C6", "C7", "C8", "C8.standby", "C8.failover", "C8.frozen", "D6", "D11", "D12"];

pub(crate) fn ids() -> String {
    let mut ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
    ids.dedup();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_grows_with_the_tiers() {
        let mut names = BTreeSet::new();
        for row in ROWS {
            // What is asked for may be another number for each database.
            for database in if row.databases.is_empty() { &[""] } else { row.databases } {
                assert!(names.insert((row.id, *database)), "{} stands twice", row.id);
            }
            let [gate, nightly, release] = row.counts;
            assert!(gate <= nightly && nightly <= release && 0 < release, "{}", row.id);
            assert!(0 < gate || !row.is_gate_step, "{}", row.id);
        }
        for id in ALONE {
            assert!(ROWS.iter().any(|row| row.id == *id), "no row is called {id}");
        }
        for (id, reason) in NOT_BUILT {
            assert!(ROWS.iter().all(|row| row.id != *id), "{id} is built");
            assert!(!reason.is_empty(), "{id}");
        }
    }
}
