//! What was reached, row by row: for a terminal, and as a page of the documentation.

use super::record::{Key, Reached, Record};
use super::{Task, Tier};
use crate::Result;

/// Rows of the programme, and parts of rows, that nothing proves yet, each with the reason.
pub(super) const NOT_BUILT: &[(&str, &str)] = &[
    (
        "B9.released",
        "there is no release yet; from the first on one backup file of each is kept, restored and compared. Until then B9 makes its stores \
         of the migrations themselves",
    ),
    (
        "A10.gate",
        "the queues' threads are played in every order; those of the gate that sheds requests, and of caches, are not",
    ),
    (
        "B1.model",
        "shops of their own tell what they were promised while servers are killed and calls fail (B1, B2, B5); the simulation's model \
         and operations do not drive the real server yet, and no proxy stands between it and them",
    ),
    ("B4.lazyfs", "PostgreSQL loses no power: LazyFS needs FUSE; what it does when it crashes is C8's"),
    ("C2.signed", "no rail speaks by itself over HTTP yet, so that there is no signature to replay"),
    (
        "C4.crowd",
        "100 clients of each kind that is slow, not 5,000 for ten minutes; that a TLS handshake ends in time is a test of one",
    ),
    (
        "D7.races",
        "Miri comes with nightly compilers alone, and ThreadSanitizer wants a standard library that is built for it from its sources",
    ),
    ("D13.coverage", "mutants say which tests see a change; which lines and error branches they reach is not measured"),
    (
        "D14.vet",
        "bans, licences, sources and what is publicly known are looked at; no cargo-vet says that somebody has read a crate",
    ),
    (
        "PostgreSQL 18",
        "rows run on the version that the machine has, Debian's 15; 18 was run by hand, as docs/deploy/postgresql.md says",
    ),
];

pub(crate) struct Table {
    tier: Tier,
    commit: String,
    lines: Vec<Line>,
}

struct Line {
    key: Key,
    reached: Reached,
    wanted: u64,
    unit: &'static str,
    title: &'static str,
    /// Where its counts begin with another commit than the program's.
    anew: Option<String>,
}

const HEADINGS: [&str; 7] = ["row", "database", "reached", "violations", "controls", "seeds", "what"];

impl Table {
    pub(crate) fn of(record: &Record, tasks: &[Task], tier: Tier) -> Result<Self> {
        let mut all = record.read()?;
        let line = |task: &Task| Line {
            key: task.key(),
            reached: all.remove(&task.key()).unwrap_or_default(),
            wanted: task.row.wanted(tier),
            unit: task.row.unit,
            title: task.row.title,
            anew: Some(record.commit_of(task.row.id)).filter(|commit| *commit != record.commit).map(str::to_owned),
        };
        Ok(Self { tier, commit: record.commit.clone(), lines: tasks.iter().map(line).collect() })
    }

    /// What was found, and what was planted and not caught.
    pub(crate) fn faults(&self) -> Vec<String> {
        let of_line = |line: &Line| {
            let name = line.name();
            let found = line.reached.found.iter().map(|what| format!("{name}: {what}"));
            let missed = line.reached.missed.iter().map(|control| format!("{name}: planted and not caught: {control}"));
            found.chain(missed).collect::<Vec<_>>()
        };
        self.lines.iter().flat_map(of_line).collect()
    }

    /// The rows that say nothing of their promise.
    pub(crate) fn not_run(&self) -> Vec<String> {
        let reason = |line: &Line| Some(format!("{}: NOT RUN: {}", line.name(), line.reached.not_run.as_ref()?));
        self.lines.iter().filter_map(reason).collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("Proofs of commit {}, tier {}:\n\n", self.commit, self.tier.name());
        for [row, database, reached, violations, controls, seeds, what] in
            std::iter::once(HEADINGS.map(str::to_owned)).chain(self.lines.iter().map(Line::cells))
        {
            text +=
                &format!("{row:<12} {database:<9} {reached:>28} {violations:>10} {controls:>9}  {seeds:<31} {what}\n");
        }
        for (id, reason) in NOT_BUILT {
            text += &format!("{id:<12} not built: {reason}\n");
        }
        text
    }

    /// The same in Markdown, with how to go on.
    pub(crate) fn page(&self) -> String {
        let tier = self.tier.name();
        let complete = self.lines.iter().filter(|line| line.is_complete()).count();
        let mut page = format!(
            "# What was proved\n\n\
             Each row tries to break a promise of the service: how often it did so far, whether the promise broke, and how many of the \
             faults that were planted for it were seen. The counts are those of the tier `{tier}`, of the code of commit `{}`; what \
             later commits change in documents, or in the test of another row, leaves them as they are. {complete} of {} rows have \
             reached theirs.\n\n\
             Whoever has the time goes on, at that code; a row that has found something stands still until it is mended. Where that \
             changes the program all begin anew, and where it changes a row's own test, that row:\n\n\
             ```sh\ncargo xtask prove --tier {tier} --budget 120m --jobs 2 --resume docs/proof/{tier}.jsonl --write\n```\n\n",
            self.commit,
            self.lines.len(),
        );
        let row = |cells: [String; 7]| format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        page += &row(HEADINGS.map(str::to_owned));
        page += "|---|---|--:|--:|--:|---|---|\n";
        self.lines.iter().for_each(|line| page += &row(line.cells()));
        page += "\n## Found, or planted and not caught\n\n";
        let faults = self.faults();
        if faults.is_empty() {
            page += "Nothing.\n";
        }
        for fault in faults {
            page += &format!("- {}\n", fault.lines().next().unwrap_or_default());
        }
        page += "\n## Not built\n\n";
        for (id, reason) in NOT_BUILT {
            page += &format!("- {id}: {reason}.\n");
        }
        page
    }
}

impl Line {
    fn name(&self) -> String {
        let (row, database) = &self.key;
        database.as_ref().map_or_else(|| row.clone(), |database| format!("{row} on {database}"))
    }

    fn is_complete(&self) -> bool {
        let Self { reached, wanted, .. } = self;
        reached.not_run.is_none() && !reached.is_broken() && *wanted <= reached.count
    }

    fn cells(&self) -> [String; 7] {
        let Self { key: (row, database), reached, wanted, unit, title, anew } = self;
        let shown = match &reached.not_run {
            Some(reason) => format!("NOT RUN: {reason}"),
            None if *wanted == 0 => "not in this tier".to_owned(),
            None => format!("{} of {wanted} {unit}", reached.count),
        };
        let caught = reached.caught.iter().filter(|control| !reached.missed.contains(control)).count();
        let controls = match caught + reached.missed.len() {
            0 => "—".to_owned(),
            all => format!("{caught} of {all}"),
        };
        let seeds = reached.seeds.map_or(String::new(), |(first, last)| format!("{first}–{last}"));
        [
            row.clone(),
            database.clone().unwrap_or_else(|| "—".to_owned()),
            shown,
            reached.violations.to_string(),
            controls,
            seeds,
            anew.as_ref().map_or_else(|| (*title).to_owned(), |commit| format!("{title} (begun anew at {commit})")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;
    use crate::prove::Options;
    use crate::prove::code::Code;

    #[test]
    fn a_page_says_how_far_each_row_has_come_and_what_it_found() {
        let path = std::env::temp_dir().join(format!("dalasi-table-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let rows = ["A9", "B6", "D5"].map(|id| (id.to_owned(), id.to_owned()));
        let code = Code { product: "c0ffee".to_owned(), rows: rows.into() };
        let record = Record::open(&path, &code, "first").unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        for line in [
            r#"{"row":"A9","count":318000,"controls_caught":["a","b"],"first_seed":1,"last_seed":2}"#,
            r#"{"row":"B6","database":"sqlite","count":7,"violations":1,"found":["it stayed read only | for ever\nby seed 7"]}"#,
            r#"{"row":"D5","database":"sqlite","not_run":"no listener"}"#,
        ] {
            writeln!(file, "{line}").unwrap();
        }
        let options = Options::parse(&["--only", "A9,B6,D5"].map(str::to_owned)).unwrap();
        let table = Table::of(&record, &options.chosen(), Tier::Nightly).unwrap();
        let page = table.page();
        assert!(page.contains("1 of 3 rows have reached theirs"), "{page}");
        assert!(page.contains("| A9 | — | 318000 of 318000 states | 0 | 2 of 2 | 1–2 |"), "{page}");
        assert!(page.contains("| B6 | sqlite | 7 of 200 cycles | 1 | — |"), "{page}");
        assert!(page.contains("| D5 | sqlite | NOT RUN: no listener | 0 |"), "{page}");
        assert!(page.contains("- B6 on sqlite: it stayed read only | for ever\n"), "{page}");
        assert_eq!(table.faults().len(), 1);
        assert_eq!(table.not_run(), ["D5 on sqlite: NOT RUN: no listener"]);
        fs::remove_file(path).unwrap();
    }
}
