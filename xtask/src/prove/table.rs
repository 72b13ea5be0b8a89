//! What was reached, row by row: for a terminal, and as a page of the documentation.

use super::record::{Key, Reached, Record};
use super::{Task, Tier};
use crate::Result;

/// Rows of the programme, and parts of rows, that nothing proves yet, each with the reason.
pub(super) const NOT_BUILT: &[(&str, &str)] = &[
    (
        "A1.scope",
        "the histories have one database in memory, written by one thread: the writing thread and the log are in those of \
         B4.history, its shared commits in B4; requests come one after the other, the clock jumps forward only, mail is in A3's alone, \
         deliveries go round HTTP and signing, no documents are drawn, and nobody changes keys, tokens, settings or \
         endpoints; after a step only what it touched is compared, in half of the histories' steps, and the whole at \
         the end",
    ),
    (
        "A2.machines",
        "the machines of webhook endpoints and events are not counted, nor are rare states that are no transition (a \
         second secret, a refused request)",
    ),
    (
        "A3.kept",
        "what A1 finds is shortened and kept in `tests/histories`; what A3, A4, A5, A12, B4.history and C2 find is told by \
         its seed alone, and threads take their time: B4.history's may not find it again",
    ),
    ("A4.storage", "storage faults are left out where two databases are compared, and a crash is a lost call"),
    ("A7.rounds", "what runs out meanwhile is a checkout; most refunds race inside the process"),
    (
        "A9.scope",
        "no one-time codes, updated invoices, payment links or other amounts in the exhaustive machines; a run has \
         two starts and two faults at most",
    ),
    (
        "A10.gate",
        "the queues of PostgreSQL, the line of reads and SQLite's shared commits are played in every order; the gate that \
         sheds requests and what is kept in memory are not, and orders of memory (`Ordering`) are not tried",
    ),
    ("A11.edges", "one millisecond before and after an expiry is tested, but not by this row"),
    ("A12.lists", "writes come between two pages, not during one"),
    (
        "B1.model",
        "shops of their own tell what they were promised while servers are killed and calls fail (B1, B2, B5); the \
         simulation's model and operations do not drive the real server yet, no proxy stands between it and them, and \
         no process of PostgreSQL is killed by SIGKILL without all the others (B4.postgres)",
    ),
    ("B2.points", "one in three of the places where a server can be killed, in an order that chance decides"),
    (
        "B4.scope",
        "a loss of power strikes SQLite under what the service does (payments and jobs at their calls and behind them) and \
         under statements of the test's own, not during a backup or a rotation; PostgreSQL's disk keeps every name, zeros where \
         a file had grown, and of a sector its newest content or the synced one, none between",
    ),
    ("B5.short", "system calls fail; none writes a part"),
    (
        "B9.released",
        "there is no release yet; from the first on one backup file of each is kept, restored and compared. Until \
         then B9 makes its stores of the migrations themselves, in one size where it kills",
    ),
    ("C1.library", "the webhooks of one payment are checked by another's library, not all"),
    (
        "C2.signed",
        "no rail speaks by itself over HTTP yet, so that there is no signature to replay, and none of the words come \
         over HTTP",
    ),
    (
        "C4.crowd",
        "100 clients of each kind that is slow, not 5,000 for ten minutes; that a TLS handshake ends in time is a test of one",
    ),
    (
        "C6.limits",
        "SQLite and one kind of write alone, in C6.memory beside large bodies that never end; that those who ask for a \
         payment are refused last is a test of the gate's own. With one core for the server, which is what two cores \
         leave it, the promise does not hold: at twice the peak of creates (18,600 a second) half of the peak is done \
         and a refusal waits up to 0.7 s, since refusing costs a third of a create",
    ),
    (
        "D1.statuses",
        "500 and 503 are not asked to be seen, a body that never comes in the longer tiers alone, and requests are not counted; C6 \
         sees the second",
    ),
    (
        "D2.keys",
        "a rolled key, in and after its time; an expired one, which there is none of; SQLite alone, as D5 and D7, \
         which watches the store alone",
    ),
    (
        "D6.targets",
        "no target of its own for a backup's file, an idempotency key and a rail's answer; CSV is read nowhere yet",
    ),
    (
        "D7.races",
        "Miri comes with nightly compilers alone, and ThreadSanitizer wants a standard library that is built for it \
         from its sources",
    ),
    (
        "D8.places",
        "no form of a page takes a card number in live mode, where none is shown yet; what PostgreSQL has packed in its own files is \
         not unpacked",
    ),
    ("D9.commands", "of the commands one, and no export"),
    ("D11.prefix", "a key with the right beginning against one without"),
    (
        "D13.coverage",
        "mutants say which tests see a change, in what the row names, not in the sending of webhooks, balances and \
         sealing; which lines and error branches tests reach is not measured, for which a compiler's own tools are \
         needed",
    ),
    (
        "D14.vet",
        "bans, licences, sources and what is publicly known are looked at, the last by hand, since the gate reaches \
         no database of it; no cargo-vet says that somebody has read a crate",
    ),
    ("D15.tests", "a third of what the sheet calls met names a document or code, and no test"),
    (
        "controls",
        "what is planted is the program's own defect in A1, A3 to A6, A7.pairs, A8, A12, B1, B2, B4, B4.history, B6, B7, B10, C1, \
         C2, C4, C5, C7, D1, D3, D5, D8 to D10 and D12, and a wrong setting in B4.postgres, C6.memory and the failovers of C8; in A2, A9 to \
         A11, A12.plans, B5, B9, B9.power, B11, C8, C8.processes and D13 what surrounds the program, plays with it or judges it is \
         made wrong, in C3, C6, D2, D4, D6, D7 and D14.builds something stands in for it, and A7.refunds, B8, B8.size, C1.latency, \
         D9.browser, D11, D11.guesses, D14, D14.advisories and D15 judge what was made up or asked for on purpose. Several have \
         more than one kind: the one that is nearest to the program is named",
    ),
    (
        "the gate's time",
        "the rows of the simulation end by the clock, and so do those of the SDK's folder that go case by case; nothing ends \
         the others, or a run of all, that take longer than the gate's budget",
    ),
    (
        "rules",
        "the places where something fails are in what surrounds the program, not one list of points in it that must each be \
         reached; no sum of the written maxima of memory is asserted when a server starts; the domain has one assertion for \
         three functions, not two for each; the simulation's model has twice the 800 lines that were meant; and nothing runs \
         an older server beside a newer one on PostgreSQL, since there is one version",
    ),
    (
        "products",
        "payouts, SMS, subscriptions, donations and what is read from CSV do not exist yet, and are in no row",
    ),
    (
        "PostgreSQL 18",
        "rows run on the version that the machine has, Debian's 15; 18 was run by hand, as docs/deploy/postgresql.md \
         says",
    ),
];

/// What is planted for them is a row of its own.
const CONTROLLED_BY_ANOTHER: &[&str] = &["A1"];

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
             Each row tries to break a promise of the service: how often it did so far, whether the promise broke, and, as its \
             controls, how many of the faults were seen that were planted in the program, in what surrounds it, or in what the row \
             judges (where for which row, is [below](#not-built)). The counts are those of the tier `{tier}`, of the code of commit \
             `{}`; what later commits change in documents, or in the test of another row, leaves them as they are. {complete} of {} rows have \
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
        page + &not_built()
    }
}

/// The end of the page.
fn not_built() -> String {
    let mut text = "\n## Not built\n\n".to_owned();
    for (id, reason) in NOT_BUILT {
        text += &format!("- {id}: {reason}.\n");
    }
    text
}

impl Line {
    fn name(&self) -> String {
        let (row, database) = &self.key;
        database.as_ref().map_or_else(|| row.clone(), |database| format!("{row} on {database}"))
    }

    fn is_complete(&self) -> bool {
        let Self { reached, wanted, .. } = self;
        let is_controlled = !reached.caught.is_empty() || CONTROLLED_BY_ANOTHER.contains(&self.key.0.as_str());
        reached.not_run.is_none() && !reached.is_broken() && *wanted <= reached.count && is_controlled
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
    use std::path::Path;

    use super::*;
    use crate::prove::code::Code;
    use crate::prove::{Options, PAGE, rows};

    /// What was reached is written by whoever adds it up; what there is, and what there is not, changes with the code.
    #[test]
    fn the_page_that_is_kept_has_every_row_and_what_is_not_built() {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(PAGE)).unwrap();
        for row in rows::all() {
            let is_shown = |line: &str| line.starts_with(&format!("| {} |", row.id)) && line.contains(row.title);
            assert!(page.lines().any(is_shown), "{PAGE} has another {} or none: {}", row.id, row.title);
        }
        assert!(page.ends_with(&not_built()), "{PAGE} says otherwise; this is right:{}", not_built());
    }

    #[test]
    fn a_page_says_how_far_each_row_has_come_and_what_it_found() {
        let path = std::env::temp_dir().join(format!("dalasi-table-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let rows = ["A9", "A11", "B6", "D5"].map(|id| (id.to_owned(), id.to_owned()));
        let code = Code { product: "c0ffee".to_owned(), rows: rows.into() };
        let record = Record::open(&path, &code, "first").unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        for line in [
            r#"{"row":"A9","count":318000,"controls_caught":["a","b"],"first_seed":1,"last_seed":2}"#,
            r#"{"row":"A11","count":1000000}"#,
            r#"{"row":"B6","database":"sqlite","count":7,"violations":1,"found":["it stayed read only | for ever\nby seed 7"]}"#,
            r#"{"row":"D5","database":"sqlite","not_run":"no listener"}"#,
        ] {
            writeln!(file, "{line}").unwrap();
        }
        let options = Options::parse(&["--only", "A9,A11,B6,D5"].map(str::to_owned)).unwrap();
        let table = Table::of(&record, &options.chosen(), Tier::Nightly).unwrap();
        let page = table.page();
        assert!(page.contains("1 of 4 rows have reached theirs"), "without a control a row says nothing: {page}");
        assert!(page.contains("| A9 | — | 318000 of 318000 states | 0 | 2 of 2 | 1–2 |"), "{page}");
        assert!(page.contains("| B6 | sqlite | 7 of 200 cycles | 1 | — |"), "{page}");
        assert!(page.contains("| D5 | sqlite | NOT RUN: no listener | 0 |"), "{page}");
        assert!(page.contains("- B6 on sqlite: it stayed read only | for ever\n"), "{page}");
        assert_eq!(table.faults().len(), 1);
        assert_eq!(table.not_run(), ["D5 on sqlite: NOT RUN: no listener"]);
        fs::remove_file(path).unwrap();
    }
}
