//! Several servers beside one PostgreSQL: they are killed, or it is cut off, killed or replaced.

use crate::prove::row::{Row, Runner};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "C8",
        title: "cuts, restarts, locks and kills between servers and PostgreSQL: nothing lost, nothing twice",
        databases: &["postgres"],
        runner: Runner::CargoTest(&[
            "--workspace",
            "--test=fleet",
            "--",
            "--exact",
            "a_database_that_fails_loses_and_doubles_nothing",
            "--nocapture",
            "--ignored",
        ]),
        unit: "faults",
        counts: [6, 1_000, 1_000],
        is_gate_step: true,
    },
    Row {
        id: "C8.processes",
        title: "four processes beside one PostgreSQL, killed at any moment and started again, also behind PgBouncer: nothing lost, nothing twice",
        databases: &["postgres"],
        runner: test!("kills::processes_that_are_killed_lose_and_double_nothing", "--workspace", "--test=fleet"),
        unit: "kills",
        counts: [16, 1_000, 1_000],
        is_gate_step: false,
    },
    Row {
        id: "C8.standby",
        title: "the primary is lost, its synchronous standby takes over: nothing acknowledged is lost",
        databases: &["postgres"],
        runner: test!("a_failover_loses_nothing_that_was_acknowledged", "--workspace", "--test=fleet"),
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
