//! `cargo xtask prove`: runs the rows of the proof programme for as long as somebody likes, adds up what they reached
//! for one commit's code, and prints one table, or writes it down as a page.

mod code;
mod record;
mod row;
mod rows;
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use self::code::Code;
use self::record::{Key, Reached, Record};
use self::row::{Row, Runner};
use self::table::Table;
use crate::steps::Machine;
use crate::{Result, command};

/// About how long one slice of a row takes, unless it is said; then the next row has its turn.
const SLICE: Duration = Duration::from_secs(120);
/// How many of the gate's rows run beside each other on two cores: some of them wait more than they work.
const GATE_JOBS: usize = 3;
/// How a program's end is told that somebody, or a machine without memory, wanted.
const ENDED_BY_OTHERS: [&str; 4] = ["signal: 1 ", "signal: 2 ", "signal: 9 ", "signal: 15 "];
/// Where `--write` puts the table.
const PAGE: &str = "docs/proof.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    Gate = 0,
    Nightly = 1,
    Release = 2,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    tier: Tier,
    budget: Duration,
    resume: Option<PathBuf>,
    only: Vec<String>,
    database: Option<String>,
    /// How long a slice may take; nothing when a row is to run at a stretch.
    slice: Option<Duration>,
    /// How many rows run beside each other; those that look at the time run alone.
    jobs: usize,
    writes: bool,
}

impl Options {
    /// `[--tier gate|nightly|release] [--budget 120m] [--resume FILE] [--only ROW,…] [--database sqlite|postgres] [--slice 10m|all] [--jobs 2] [--write]`
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self {
            tier: Tier::Gate,
            budget: Duration::MAX,
            resume: None,
            only: Vec::new(),
            database: None,
            slice: Some(SLICE),
            jobs: 1,
            writes: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--write" {
                options.writes = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--tier" => options.tier = Tier::parse(value)?,
                "--budget" => options.budget = duration(word, value)?,
                "--slice" if value == "all" => options.slice = None,
                "--slice" => options.slice = Some(duration(word, value)?),
                "--jobs" => match value.parse() {
                    Ok(jobs @ 1..=64) => options.jobs = jobs,
                    _ => return Err(format!("--jobs: {value:?} is no number from 1 to 64")),
                },
                "--resume" => options.resume = Some(std::path::absolute(value).map_err(|error| error.to_string())?),
                "--only" => options.only.extend(value.split(',').map(str::to_owned)),
                "--database" if rows::BOTH.contains(&value.as_str()) => options.database = Some(value.clone()),
                "--database" => return Err(format!("--database: {value:?} is none of {}", rows::BOTH.join(", "))),
                _ => return Err(format!("unknown option: {word}")),
            }
        }
        let is_known = |id: &&String| rows::all().any(|row| row.is_named(id));
        match options.only.iter().find(|id| !is_known(id)) {
            Some(id) => Err(format!("no row is called {id:?}; there are {}", rows::ids())),
            None => Ok(options),
        }
    }

    fn chosen(&self) -> Vec<Task> {
        let rows = rows::all().filter(|row| self.only.is_empty() || self.only.iter().any(|id| row.is_named(id)));
        let is_wanted = |database: Option<&str>| {
            self.database.is_none() || database.is_none() || database == self.database.as_deref()
        };
        tasks_of(rows).filter(|task| is_wanted(task.database)).collect()
    }
}

impl Tier {
    fn parse(word: &str) -> Result<Self> {
        match word {
            "gate" => Ok(Self::Gate),
            "nightly" => Ok(Self::Nightly),
            "release" => Ok(Self::Release),
            _ => Err(format!("--tier: {word:?} is none of gate, nightly, release")),
        }
    }

    fn name(self) -> &'static str {
        ["gate", "nightly", "release"][self as usize]
    }
}

/// A row on one database.
#[derive(Clone, Copy)]
struct Task {
    row: &'static Row,
    database: Option<&'static str>,
}

/// The gate's rows that are no test of another step. What could not be run has not passed.
pub(crate) fn gate(machine: &mut Machine) -> Result<()> {
    let tasks = gate_tasks();
    let options = Options { jobs: GATE_JOBS, ..Options::parse(&[])? };
    let table = run_on(machine, &options, &tasks)?;
    judged([table.faults(), table.not_run()].concat())
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let table = run_on(&mut Machine::new()?, options, &options.chosen())?;
    judged(table.faults())
}

fn judged(faults: Vec<String>) -> Result<()> {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn gate_tasks() -> Vec<Task> {
    tasks_of(rows::all().filter(|row| row.is_gate_step)).collect()
}

/// Each row on each of its databases.
fn tasks_of<'r>(rows: impl Iterator<Item = &'static Row> + 'r) -> impl Iterator<Item = Task> + 'r {
    rows.flat_map(|row| {
        let databases: Vec<Option<&'static str>> = match row.databases {
            [] => vec![None],
            names => names.iter().copied().map(Some).collect(),
        };
        databases.into_iter().map(move |database| Task { row, database })
    })
}

fn run_on(machine: &mut Machine, options: &Options, tasks: &[Task]) -> Result<Table> {
    let start = now();
    if options.tier != Tier::Gate {
        machine.use_release();
    }
    let path = match &options.resume {
        Some(path) => path.clone(),
        None => {
            let path = machine.scratch()?.join(format!("proofs-{}.jsonl", std::process::id()));
            let _ = std::fs::remove_file(&path);
            path
        }
    };
    let code = Code::of(machine)?;
    if options.resume.is_some() && !code.is_committed() {
        return Err("counts are added up for a commit: commit what is changed first, or leave --resume out".to_owned());
    }
    let record = Record::open(&path, &code, &machine.commit()?)?;
    let (alone, shared): (Vec<Task>, Vec<Task>) = tasks.iter().partition(|task| task.row.is_alone());
    let page = Mutex::new(machine.root().join(PAGE));
    let write_page = || -> Result<()> {
        let page = page.lock().map_err(|_| "a worker died while it wrote the page")?;
        let text = page_of(&record, options.tier)?;
        std::fs::write(&*page, text).map_err(|error| format!("{}: {error}", page.display()))
    };
    // In turns, so that a budget that ends too early has seen something of every row.
    loop {
        let mut groups = [
            (in_turn(&shared, &record, options, start)?, options.jobs),
            (in_turn(&alone, &record, options, start)?, 1),
        ];
        groups.sort_by(|(one, _), (other, _)| least_played(one).total_cmp(&least_played(other)));
        let mut has_worked = false;
        for (group, jobs) in groups {
            let mut due: Vec<(Task, u64, Command)> = Vec::new();
            for (_, task) in group {
                let Some(count) = task.due(&record, options, start)? else { continue };
                // What one program says of two rows it is asked for once.
                if due.iter().any(|(other, ..)| other.is_by_program_of(task)) {
                    continue;
                }
                match task.command(machine) {
                    Ok(command) => due.push((task, count, command)),
                    Err(why) => record.not_run(task.row.id, task.database, &why)?,
                }
            }
            has_worked |= !due.is_empty();
            run_beside_each_other(due, jobs, options, start, &record, &write_page)?;
        }
        if !has_worked {
            break;
        }
    }
    let table = Table::of(&record, tasks, options.tier)?;
    println!("\n{}", table.text());
    Ok(table)
}

/// Of every row, whichever were chosen: it is what the record says.
fn page_of(record: &Record, tier: Tier) -> Result<String> {
    let all: Vec<Task> = tasks_of(rows::all()).collect();
    Ok(Table::of(record, &all, tier)?.page())
}

/// Those that go on, and how many seconds each was played: the shortest first, so that each row has its turn in the long run,
/// however often somebody stops before the end.
fn in_turn(tasks: &[Task], record: &Record, options: &Options, start: Instant) -> Result<Vec<(f64, Task)>> {
    let mut turn = Vec::new();
    for task in tasks {
        if task.due(record, options, start)?.is_some() {
            turn.push((task.reached(record)?.seconds, *task));
        }
    }
    turn.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(turn)
}

fn least_played(turn: &[(f64, Task)]) -> f64 {
    turn.first().map_or(f64::INFINITY, |(seconds, _)| *seconds)
}

/// Each to its end, in their order as soon as there is a place; after the budget none begins. The page is written as soon as
/// there is something new: whoever is interrupted has it up to there.
fn run_beside_each_other(
    due: Vec<(Task, u64, Command)>,
    jobs: usize,
    options: &Options,
    start: Instant,
    record: &Record,
    write_page: &(dyn Fn() -> Result<()> + Sync),
) -> Result<()> {
    let due = Mutex::new(due.into_iter());
    let next = || due.lock().map_or(None, |mut due| due.next());
    let work = || -> Result<()> {
        while let Some((task, count, command)) = next() {
            if start.elapsed() < options.budget {
                task.run(command, options.tier, count, record)?;
                if options.writes {
                    write_page()?;
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err("a worker died".to_owned())));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// How many to run now: the gate's count first, then as many as fit the slice at the best rate that was seen, and never fewer: a
/// row may say nothing of less, and in its first turn may have built what it plays. What the gate leaves alone is counted in
/// seconds, or is over in one go.
fn slice(reached: &Reached, left: u64, gate: u64, most: Duration) -> u64 {
    if gate == 0 {
        return left.min(most.as_secs());
    }
    let Some(quickest) = reached.quickest else { return gate };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let passed = Duration::try_from_secs_f64(quickest.seconds).unwrap_or(Duration::MAX);
    let fitting = quickest.count.saturating_mul(milliseconds(most)) / milliseconds(passed);
    left.min(fitting).max(gate)
}

impl Task {
    fn key(self) -> Key {
        (self.row.id.to_owned(), self.database.map(str::to_owned))
    }

    fn is_by_program_of(self, other: Self) -> bool {
        self.row.runner == other.row.runner && self.database == other.database
    }

    fn reached(self, record: &Record) -> Result<Reached> {
        Ok(record.read()?.remove(&self.key()).unwrap_or_default())
    }

    /// How many are to run now, unless it has ended.
    fn due(self, record: &Record, options: &Options, start: Instant) -> Result<Option<u64>> {
        let reached = self.reached(record)?;
        let left = self.row.wanted(options.tier).saturating_sub(reached.count);
        // What could not be run in an earlier sitting may be possible in this one.
        let is_over = left == 0 || reached.is_broken() || reached.not_run_since(record.lines_before);
        // The gate's rows have so much time and no more.
        let is_over = is_over || (options.tier == Tier::Gate && reached.count > 0);
        if is_over || start.elapsed() >= options.budget {
            return Ok(None);
        }
        let rest = options.budget.saturating_sub(start.elapsed());
        if self.row.is_whole() && options.tier != Tier::Gate {
            // In seconds: it begins where there is time to end it.
            return Ok((Duration::from_secs(left) <= rest).then_some(left));
        }
        Ok(Some(match options.slice {
            Some(most) => slice(&reached, left, self.row.wanted(Tier::Gate), most.min(rest)),
            None => left,
        }))
    }

    fn run(self, mut command: Command, tier: Tier, count: u64, record: &Record) -> Result<()> {
        let before = self.reached(record)?;
        let on = self.database.map_or(String::new(), |database| format!(" on {database}"));
        println!("\n── {}{on}: {count} {} more after {} ──", self.row.id, self.row.unit, before.count);
        command
            .env("DALASI_TIER", tier.name())
            .env("DALASI_PROOF_COUNT", count.to_string())
            .env("DALASI_PROOF_COMMIT", record.commit_of(self.row.id))
            .env("DALASI_PROOF_FILE", &record.path);
        if tier == Tier::Gate {
            command.env("DALASI_PROOF_LEAST", self.row.least().to_string());
        }
        let outcome = command::run(&mut command);
        let after = self.reached(record)?;
        let has_spoken = after.lines > before.lines;
        match outcome {
            Err(message) if !has_spoken && ENDED_BY_OTHERS.iter().any(|signal| message.contains(signal)) => {
                record.not_run(self.row.id, self.database, "somebody ended it")
            }
            Err(message) if !after.is_broken() && !self.other_row_of_program_broke(record)? => {
                record.broke(self.row.id, self.database, &message)
            }
            Ok(()) if !has_spoken => {
                record.broke(self.row.id, self.database, "it ended without saying what it reached")
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// A program that is asked for several rows ends badly for each when one is broken.
    fn other_row_of_program_broke(self, record: &Record) -> Result<bool> {
        let all = record.read()?;
        let others = rows::all().filter(|row| row.id != self.row.id).map(|row| Task { row, ..self });
        let others = others.filter(|other| other.is_by_program_of(self));
        Ok(others.filter_map(|other| all.get(&other.key())).any(Reached::is_broken))
    }

    fn command(self, machine: &mut Machine) -> Result<Command> {
        let fill = |word: &&str| word.replace("{database}", self.database.unwrap_or_default());
        let mut command = match self.row.runner {
            Runner::CargoTest(words) => {
                let mut cargo = machine.cargo();
                cargo.args(["test", "--locked"]).args(words.iter().map(fill));
                cargo
            }
            Runner::Simulation(words) => {
                let mut simulation = Command::new(machine.simulation()?);
                simulation.args(words.iter().map(fill)).current_dir(machine.root());
                simulation
            }
            Runner::CargoRun(words) => {
                let mut cargo = machine.cargo();
                cargo.args(["run", "--locked"]).args(words.iter().map(fill));
                cargo
            }
            Runner::Xtask(words) => {
                let program = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
                let mut xtask = Command::new(program);
                xtask.args(words.iter().map(fill));
                xtask
            }
            Runner::Pytest(words) => {
                let mut pytest = machine.pytest(self.database.unwrap_or("sqlite"))?;
                pytest.args(words.iter().map(fill));
                pytest
            }
            Runner::Patroni(words) => {
                let mut pytest = machine.pytest_with_patroni()?;
                pytest.args(words.iter().map(fill));
                pytest
            }
        };
        if self.database == Some("postgres") {
            command.env("DALASI_TEST_POSTGRES_URL", machine.postgres_url()?);
        }
        Ok(command)
    }
}

pub(crate) fn is_database(name: &str) -> bool {
    rows::BOTH.contains(&name)
}

/// `90s`, `120m`, `8h`.
pub(crate) fn duration(option: &str, text: &str) -> Result<Duration> {
    let wrong = || format!("{option}: {text:?} is no time; write 90s, 120m or 8h");
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}

#[expect(clippy::disallowed_methods, reason = "a budget of somebody's patience decides nothing but when to stop")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn a_line_says_which_rows_how_far_and_how_long() {
        let options =
            parse("--tier nightly --budget 120m --resume /tmp/reached --write --only A7 --database postgres --jobs 2")
                .expect("good");
        assert_eq!((options.tier, options.budget), (Tier::Nightly, Duration::from_secs(7_200)));
        assert_eq!((options.resume.clone(), options.jobs), (Some(PathBuf::from("/tmp/reached")), 2));
        assert!(options.writes);
        let tasks = options.chosen();
        assert!(!tasks.is_empty() && tasks.iter().all(|task| task.row.id.starts_with("A7.")));
        assert!(tasks.iter().all(|task| task.database == Some("postgres")));
    }

    #[test]
    fn a_name_is_one_rows_and_with_a_star_also_its_parts() {
        for (names, wanted) in [
            ("C8", &["C8"][..]),
            ("C8.*", &["C8", "C8.processes", "C8.standby", "C8.failover", "C8.frozen"]),
            ("C8.standby,C8", &["C8", "C8.standby"]),
            ("A1", &["A1"]),
            ("A7", &["A7.refunds", "A7.pairs"]),
            ("A7.*", &["A7.refunds", "A7.pairs"]),
            ("D1.*", &["D1"]),
        ] {
            let tasks = parse(&format!("--only {names}")).expect("good").chosen();
            let mut ids: Vec<&str> = tasks.iter().map(|task| task.row.id).collect();
            ids.dedup();
            assert_eq!(ids, wanted, "{names}");
        }
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in [
            "--tier daily",
            "--budget 2",
            "--jobs 0",
            "--jobs many",
            "--budget m",
            "--slice 2",
            "--only Z9",
            "--only Z9.*",
            "--only C8.",
            "--database oracle",
            "--fast yes",
            "--tier",
        ] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }

    #[test]
    fn the_gate_plays_what_no_test_of_another_step_does() {
        let tasks = gate_tasks();
        let is_played =
            |id: &str, database: Option<&str>| tasks.iter().any(|task| task.row.id == id && task.database == database);
        for id in ["A1", "A1.planted", "A2", "A3", "A5"] {
            assert!(is_played(id, None), "{id}");
        }
        for id in ["A12", "D1", "D8"] {
            assert!(is_played(id, Some("sqlite")) && is_played(id, Some("postgres")), "{id}");
        }
        assert!(
            is_played("A4", Some("postgres")) && is_played("C8", Some("postgres")) && is_played("B4", Some("sqlite"))
        );
        assert!(!is_played("C8.failover", Some("postgres")) && !is_played("A6", Some("sqlite")), "another step's");
        assert!(!is_played("C8.processes", Some("postgres")), "another step's");
    }

    #[test]
    fn the_page_has_every_row_whichever_was_played() {
        let path = std::env::temp_dir().join(format!("dalasi-record-page-{}", std::process::id()));
        let rows = rows::all().map(|row| (row.id.to_owned(), "r".to_owned())).collect();
        let record = Record::open(&path, &Code { product: "p".to_owned(), rows }, "c").expect("a record");
        record.say(&serde_json::json!({ "row": "A5", "count": 250, "seconds": 30.0 })).expect("said");
        let page = page_of(&record, Tier::Nightly).expect("read");
        let lines_of = |id: &str| page.lines().filter(|line| line.starts_with(&format!("| {id} |"))).count();
        for task in tasks_of(rows::all()) {
            let databases = tasks_of(rows::all()).filter(|other| other.row.id == task.row.id).count();
            assert_eq!(lines_of(task.row.id), databases, "{}", task.row.id);
        }
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn what_says_something_of_its_whole_time_is_not_cut_into_slices() {
        let path = std::env::temp_dir().join(format!("dalasi-record-whole-{}", std::process::id()));
        let rows = rows::all().map(|row| (row.id.to_owned(), "r".to_owned())).collect();
        let record = Record::open(&path, &Code { product: "p".to_owned(), rows }, "c").expect("a record");
        let due = |id: &str, line: &str| {
            let row = rows::all().find(|row| row.id == id).expect("there");
            let database = row.databases.first().copied();
            Task { row, database }.due(&record, &parse(line).expect("good"), now()).expect("read")
        };
        assert_eq!(due("C6", "--tier nightly --slice 2m --budget 31m"), Some(1_800));
        assert_eq!(due("C6", "--tier nightly --slice 2m --budget 30m"), None, "it would not come to its end");
        assert_eq!(due("C7", "--tier release --slice 2m"), Some(86_400));
        assert_eq!(due("A1", "--tier nightly --slice 2m --budget 30m"), Some(1_000), "the first of many");
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn one_program_is_asked_once_for_all_its_rows() {
        let of = |id: &str, database| Task { row: rows::all().find(|row| row.id == id).expect("there"), database };
        assert!(of("A1", None).is_by_program_of(of("A2", None)));
        assert!(!of("A1", None).is_by_program_of(of("A3", None)));
        assert!(!of("D8", Some("sqlite")).is_by_program_of(of("D8", Some("postgres"))));
    }

    #[test]
    fn who_was_played_least_comes_first() {
        let path = std::env::temp_dir().join(format!("dalasi-record-in-turn-{}", std::process::id()));
        let code = Code {
            product: "p".to_owned(),
            rows: rows::all().map(|row| (row.id.to_owned(), "r".to_owned())).collect(),
        };
        let record = Record::open(&path, &code, "c").expect("a record");
        let said = [("A3", 500, 40.0), ("A5", 250, 30.0), ("A9", 318_000, 1.0), ("D6", 10, 35.0)];
        for (row, count, seconds) in said {
            let line = serde_json::json!({ "row": row, "database": null, "count": count, "violations": 0, "seconds": seconds });
            record.say(&line).expect("said");
        }
        let of = |id: &str| Task { row: rows::all().find(|row| row.id == id).expect("there"), database: None };
        let options = parse("--tier nightly").expect("good");
        let turn = |ids: &[&str]| {
            let tasks: Vec<Task> = ids.iter().map(|id| of(id)).collect();
            in_turn(&tasks, &record, &options, now()).expect("read")
        };
        let ids = |turn: &[(f64, Task)]| turn.iter().map(|(_, task)| task.row.id).collect::<Vec<_>>();
        let shared = turn(&["A3", "A5", "A9", "A11"]);
        assert_eq!(ids(&shared), ["A11", "A5", "A3"], "what has ended has no turn");
        let alone = turn(&["D6"]);
        assert!(least_played(&shared) < least_played(&alone));
        assert!(least_played(&alone) < least_played(&turn(&["A3"])), "the group of one who had less goes first");
        assert!(least_played(&alone) < least_played(&turn(&["A9"])), "nobody is left of that one");
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_slice_follows_the_rate() {
        let reached = |count, seconds| {
            let mut reached = Reached::default();
            // What it played first it had to build.
            reached.add(&serde_json::json!({ "count": count, "seconds": seconds * 30.0 }));
            reached.add(&serde_json::json!({ "count": count, "seconds": seconds }));
            reached.add(&serde_json::json!({ "count": 0, "seconds": 0.0 }));
            reached
        };
        assert_eq!(slice(&Reached::default(), 1_000_000, 200, SLICE), 200);
        assert_eq!(slice(&reached(0, 0.0), 1_000_000, 200, SLICE), 200);
        assert_eq!(slice(&reached(200, 10.0), 1_000_000, 200, SLICE), 2_400);
        assert_eq!(slice(&reached(200, 10.0), 1_000_000, 50, Duration::from_secs(5)), 100);
        assert_eq!(slice(&reached(200, 10.0), 7, 200, SLICE), 200, "never fewer than the gate");
        assert_eq!(slice(&reached(4, 46.0), 196, 4, SLICE), 10, "less than one a second");
        assert_eq!(slice(&reached(1, 500.0), 7, 1, SLICE), 1, "slow rows go on one by one");
        assert_eq!(slice(&reached(0, 0.0), 86_400, 0, SLICE), 120, "what the gate leaves alone has its time");
    }
}
