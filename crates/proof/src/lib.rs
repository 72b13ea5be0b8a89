//! What a row of the proof programme is asked for, and how it says what it reached.
//!
//! A row is an ordinary test or program: without anything in its environment it runs as the gate runs it.
//! `cargo xtask prove` says by `DALASI_TIER`, `DALASI_PROOF_COUNT`, `DALASI_PROOF_LEAST` and `DALASI_PROOF_SEED` what it wants,
//! and reads what was reached from the file named by `DALASI_PROOF_FILE`; of what commit that is stands in `DALASI_PROOF_COMMIT`.
//! Nothing of the product is in here.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// How much is proven: the same code, other counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    Gate,
    Nightly,
    Release,
}

/// One run of one row.
#[derive(Debug)]
pub struct Proof {
    row: &'static str,
    database: Option<String>,
    /// How many histories, images, rounds or cases to run now.
    pub count: u64,
    /// Fewer say too little, and fail.
    pub least: u64,
    /// The first seed; case number `n` takes `seed + n`.
    pub seed: u64,
    pub tier: Tier,
    commit: Option<String>,
    file: Option<PathBuf>,
    /// What any row needs is said to be there.
    has_all: bool,
    start: Instant,
    caught: Vec<String>,
    missed: Vec<String>,
    found: Vec<String>,
    notes: Map<String, Value>,
}

impl Proof {
    /// The row as it is called in the list of promises. `database` where the row runs on each; `gate_count` is how many
    /// the gate runs.
    ///
    /// The gate judges a commit: its seeds are new with each and the same whenever that one is judged again. The longer tiers look
    /// for what nobody has seen yet.
    ///
    /// # Panics
    /// On a count, seed or tier that can't be read.
    #[expect(clippy::disallowed_methods, reason = "a seed drawn anew, and how long it took; both are printed")]
    pub fn begin(row: &'static str, database: Option<&str>, gate_count: u64) -> Self {
        let tier = match set("TIER").as_deref() {
            None | Some("gate") => Tier::Gate,
            Some("nightly") => Tier::Nightly,
            Some("release") => Tier::Release,
            Some(other) => panic!("DALASI_TIER: {other:?} is none of gate, nightly, release"),
        };
        let number =
            |name: &str| set(name).map(|text| text.parse().unwrap_or_else(|_| panic!("DALASI_{name}: {text:?}")));
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() % (1 << 48));
        let count = number("PROOF_COUNT").unwrap_or(gate_count);
        let usual = if tier == Tier::Gate { count } else { count.div_ceil(10) };
        let mut proof = Self {
            row,
            database: database.map(str::to_owned),
            count,
            least: number("PROOF_LEAST").unwrap_or(usual).min(count),
            commit: set("PROOF_COMMIT"),
            seed: 0,
            tier,
            file: set("PROOF_FILE").map(PathBuf::from),
            has_all: set("TEST_ALL").is_some(),
            start: Instant::now(),
            caught: Vec::new(),
            missed: Vec::new(),
            found: Vec::new(),
            notes: Map::new(),
        };
        let seed = number("PROOF_SEED").or_else(|| proof.after_the_last());
        proof.seed = seed.unwrap_or_else(|| match tier {
            Tier::Gate => seed_of(row, proof.commit.as_deref()),
            Tier::Nightly | Tier::Release => u64::try_from(now()).unwrap_or(0),
        });
        proof
    }

    /// Where the last run of this row left off, when somebody adds them up: none is played twice, and none left out.
    fn after_the_last(&self) -> Option<u64> {
        let lines = self.earlier("last_seed").into_iter();
        let of_database = lines.filter(|line| line["database"].as_str() == self.database.as_deref());
        of_database.filter_map(|line| line["last_seed"].as_u64()?.checked_add(1)).max()
    }

    /// Something to find again with [`Proof::earlier`].
    pub fn note(&mut self, name: &str, value: impl Into<Value>) {
        self.notes.insert(name.to_owned(), value.into());
    }

    /// What earlier runs of this row for the same commit have said, without those that said nothing under this name.
    pub fn earlier(&self, note: &str) -> Vec<Value> {
        let text = self.file.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["row"] == self.row && !line[note].is_null()).collect()
    }

    /// A planted defect was played: was it seen?
    pub fn control(&mut self, name: impl Into<String>, is_caught: bool) {
        if is_caught { self.caught.push(name.into()) } else { self.missed.push(name.into()) }
    }

    /// The promise was broken: what happened, and by which seed.
    pub fn violation(&mut self, what: impl Into<String>) {
        self.found.push(what.into());
    }

    /// Says what was reached.
    ///
    /// # Panics
    /// When the promise was broken, when a control was missed, or when the file can't be written.
    pub fn finish(self, reached: u64) {
        if let Err(fault) = self.end(reached) {
            panic!("{fault}");
        }
    }

    /// The same for a run of several rows, each of which is to be heard.
    ///
    /// # Errors
    /// What [`Proof::finish`] panics with.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn end(self, reached: u64) -> Result<(), String> {
        let mut line = json!({
            "row": self.row,
            "database": self.database,
            "commit": self.commit,
            "count": reached,
            "violations": self.found.len(),
            "controls_caught": self.caught,
            "controls_missed": self.missed,
            "first_seed": self.seed,
            "last_seed": self.seed.saturating_add(reached.saturating_sub(1)),
            "seconds": self.start.elapsed().as_secs_f64(),
            "found": self.found,
        });
        for (name, value) in &self.notes {
            line[name] = value.clone();
        }
        self.say(&line);
        let row = self.row;
        if !self.found.is_empty() {
            return Err(format!("{row}: {}", self.found.join("\n")));
        }
        if !self.missed.is_empty() {
            return Err(format!("{row}: planted and not caught: {}", self.missed.join(", ")));
        }
        if reached < self.least {
            return Err(format!("{row}: {reached} of {} reached, and {} are the least", self.count, self.least));
        }
        Ok(())
    }

    /// This machine can't do it; `reason` in one line. That is never a pass: a test that is run by hand ends here, and where
    /// `DALASI_TEST_ALL` says that everything is there, it fails.
    ///
    /// # Panics
    /// Where everything should be there.
    pub fn not_run(self, reason: &str) {
        self.say(&json!({ "row": self.row, "database": self.database, "not_run": reason }));
        assert!(!self.has_all, "{}: NOT RUN: {reason}", self.row);
    }

    #[expect(clippy::print_stdout, reason = "who reads the output of a test wants its seed and its count")]
    fn say(&self, line: &serde_json::Value) {
        println!("{line}");
        if let Some(path) = &self.file {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
            written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(format!("DALASI_{name}")).ok()
}

/// Where the gate begins with a row at a commit; `tests/sdk/proof.py` begins at the same, by zlib's checksum.
fn seed_of(row: &str, commit: Option<&str>) -> u64 {
    u64::from(crc32fast::hash([row, commit.unwrap_or_default()].concat().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(count: u64) -> Proof {
        let mut proof = Proof::begin("T1", None, count);
        proof.file = None;
        (proof.count, proof.least) = (count, count.div_ceil(10));
        proof
    }

    #[test]
    fn a_row_that_kept_its_promise_ends_well() {
        let mut proof = proof(100);
        proof.control("seen", true);
        proof.finish(100);
    }

    #[test]
    #[should_panic(expected = "two winners, seed 7")]
    fn a_violation_ends_badly() {
        let mut proof = proof(1);
        proof.violation("two winners, seed 7");
        proof.finish(1);
    }

    #[test]
    #[should_panic(expected = "planted and not caught: no guard")]
    fn a_missed_control_ends_badly() {
        let mut proof = proof(1);
        proof.control("no guard", false);
        proof.finish(1);
    }

    #[test]
    fn a_later_run_knows_what_an_earlier_one_noted() {
        let path = std::env::temp_dir().join(format!("dalasi-proof-{}.jsonl", std::process::id()));
        let run = |cells: u64| {
            let mut proof = proof(1);
            proof.file = Some(path.clone());
            let earlier: Vec<u64> = proof.earlier("cells").iter().filter_map(|line| line["cells"].as_u64()).collect();
            proof.note("cells", cells);
            proof.finish(1);
            earlier
        };
        assert_eq!((run(5), run(7), run(9)), (vec![], vec![5], vec![5, 7]));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_later_run_goes_on_where_the_last_one_left_off() {
        let path = std::env::temp_dir().join(format!("dalasi-proof-seeds-{}.jsonl", std::process::id()));
        let run = |database: &str, seed: u64| {
            let mut proof = Proof { database: Some(database.to_owned()), ..proof(10) };
            proof.file = Some(path.clone());
            let after = proof.after_the_last();
            proof.seed = after.unwrap_or(seed);
            proof.finish(10);
            after
        };
        assert_eq!((run("sqlite", 7), run("postgres", 100)), (None, None));
        assert_eq!((run("sqlite", 7), run("sqlite", 7), run("postgres", 7)), (Some(17), Some(27), Some(110)));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_commit_has_seeds_of_its_own_and_always_the_same() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926, "as zlib's");
        assert_eq!(seed_of("A1", Some("c0ffee")), seed_of("A1", Some("c0ffee")));
        let seeds = [("A1", None), ("A1", Some("c0ffee")), ("A1", Some("decade")), ("A2", Some("c0ffee"))]
            .map(|(row, commit)| seed_of(row, commit));
        assert_eq!(seeds.iter().collect::<std::collections::BTreeSet<_>>().len(), seeds.len(), "{seeds:?}");
    }

    #[test]
    fn what_cannot_run_by_hand_ends_here() {
        Proof { has_all: false, ..proof(1) }.not_run("no oracle");
    }

    #[test]
    #[should_panic(expected = "T1: NOT RUN: no oracle")]
    fn what_cannot_run_where_everything_is_there_ends_badly() {
        Proof { has_all: true, ..proof(1) }.not_run("no oracle");
    }

    #[test]
    #[should_panic(expected = "9 of 100 reached")]
    fn hardly_anything_reached_ends_badly() {
        proof(100).finish(9);
    }
}
