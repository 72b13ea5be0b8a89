//! What a row of the proof programme reached, and whether its negative controls were caught.

use std::io::Write as _;
use std::time::Instant;

use serde_json::json;

/// Gathers one line; `end` says it, keeps it where the programme asks for it, and fails what has to fail.
pub(crate) struct Proof {
    row: &'static str,
    database: &'static str,
    pub(crate) count: u64,
    pub(crate) found: Vec<String>,
    caught: Vec<String>,
    missed: Vec<String>,
    started: Instant,
}

impl Proof {
    #[expect(clippy::disallowed_methods, reason = "how long a row took is shown to a person and decides nothing")]
    pub(crate) fn of(row: &'static str, database: &'static str) -> Self {
        let (found, caught, missed) = (Vec::new(), Vec::new(), Vec::new());
        Self { row, database, count: 0, found, caught, missed, started: Instant::now() }
    }

    pub(crate) fn control(&mut self, name: &str, is_caught: bool) {
        if is_caught { &mut self.caught } else { &mut self.missed }.push(name.to_owned());
    }

    #[expect(clippy::print_stdout, reason = "a row says how much it has looked at")]
    pub(crate) fn end(self) {
        let line = json!({
            "row": self.row, "database": self.database, "count": self.count, "violations": self.found.len(),
            "controls_caught": self.caught, "controls_missed": self.missed,
            "seconds": self.started.elapsed().as_secs_f64(),
            "found": self.found.iter().take(20).collect::<Vec<_>>(),
        });
        println!("{line}");
        if let Ok(file) = std::env::var("DALASI_PROOF_FILE") {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
            writeln!(file, "{line}").unwrap();
        }
        let shown: Vec<&String> = self.found.iter().take(20).collect();
        assert!(shown.is_empty(), "{} violations:\n{shown:#?}", self.found.len());
        assert!(self.missed.is_empty(), "controls that went unseen: {:?}", self.missed);
    }
}
