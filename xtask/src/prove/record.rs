//! What was reached so far: a file of JSON lines. The first names the code, and for each row the commit that its counts begin
//! with; each other one is what a run of a row said.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::code::Code;
use crate::Result;

/// Everything that was said of one row on one database.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Reached {
    pub(crate) count: u64,
    pub(crate) violations: u64,
    pub(crate) caught: Vec<String>,
    pub(crate) missed: Vec<String>,
    pub(crate) seeds: Option<(u64, u64)>,
    pub(crate) seconds: f64,
    /// The run that counted most in its time.
    pub(crate) quickest: Option<Run>,
    pub(crate) found: Vec<String>,
    pub(crate) not_run: Option<String>,
    /// How often it has spoken, and the line of the record in which it did so last.
    pub(crate) lines: u64,
    pub(crate) last_line: usize,
}

/// What one run counted, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

impl Run {
    /// As many in less time, or more in as much.
    fn is_quicker_than(self, other: Self) -> bool {
        self.count as f64 * other.seconds > other.count as f64 * self.seconds
    }
}

/// The row's id, and the database where it has one.
pub(crate) type Key = (String, Option<String>);

pub(crate) struct Record {
    pub(crate) path: PathBuf,
    /// The first commit of the program that was proved.
    pub(crate) commit: String,
    /// What it held when it was opened.
    pub(crate) lines_before: usize,
    /// By a row's id.
    rows: BTreeMap<String, Begun>,
    /// Locked as long as we add up: two who do so at once would play the same seeds.
    _open: fs::File,
}

/// What a row's counts are of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Begun {
    code: String,
    /// The first of that code.
    commit: String,
}

impl Record {
    /// Opens a record of this code, or begins it with this commit. Counts of two codes are never added up: another program wants
    /// another file, and a row whose own test is another begins anew, which leaves out what the file says of it. What differs in
    /// documents alone, as a record that is kept among them does, is the same code.
    pub(crate) fn open(path: &Path, code: &Code, commit: &str) -> Result<Self> {
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fault)?;
        }
        let open = fs::OpenOptions::new().create(true).append(true).read(true).open(path).map_err(fault)?;
        open.try_lock().map_err(|error| format!("{}: {error}; does another add up in it?", path.display()))?;
        let text = fs::read_to_string(path).map_err(fault)?;
        let (first, known) = match text.split_once('\n') {
            None if text.is_empty() => (commit.to_owned(), BTreeMap::new()),
            lines => {
                let head: Value = serde_json::from_str(lines.map_or("", |(head, _)| head)).unwrap_or_default();
                let (Some(known), Some(first), Some(rows)) =
                    (head["code"].as_str(), head["commit"].as_str(), head["rows"].as_object())
                else {
                    return Err(format!("{} is no record of proofs: name another file", path.display()));
                };
                if known != code.product {
                    return Err(format!(
                        "{} counts for the code {known} of commit {first}; this is {}: name another file",
                        path.display(),
                        code.product
                    ));
                }
                (
                    first.to_owned(),
                    rows.iter().filter_map(|(id, begun)| Some((id.clone(), Begun::read(begun)?))).collect(),
                )
            }
        };
        let begun = |(id, code): (&String, &String)| {
            let known = known.get(id).filter(|begun| begun.code == *code).cloned();
            (id.clone(), known.unwrap_or_else(|| Begun { code: code.clone(), commit: commit.to_owned() }))
        };
        let rows: BTreeMap<String, Begun> = code.rows.iter().map(begun).collect();
        let mut lines = text.lines().count();
        if rows != known {
            let is_kept = |line: &&str| {
                let row =
                    serde_json::from_str::<Value>(line).ok().and_then(|line| Some(line["row"].as_str()?.to_owned()));
                row.is_some_and(|id| rows.get(&id).is_some_and(|begun| known.get(&id) == Some(begun)))
            };
            let kept: Vec<&str> = text.lines().skip(1).filter(is_kept).collect();
            let shown: serde_json::Map<_, _> = rows.iter().map(|(id, begun)| (id.clone(), begun.shown())).collect();
            let head = json!({ "commit": first, "code": code.product, "rows": shown }).to_string();
            let text: String = std::iter::once(head.as_str()).chain(kept).map(|line| format!("{line}\n")).collect();
            lines = text.lines().count();
            fs::write(path, text).map_err(fault)?;
        }
        Ok(Self { path: path.to_path_buf(), commit: first, lines_before: lines, rows, _open: open })
    }

    /// The first of what the row's counts are of.
    pub(crate) fn commit_of(&self, row: &str) -> &str {
        self.rows.get(row).map_or(&self.commit, |begun| &begun.commit)
    }

    /// Sums by row and database. A line that was cut off by a power cut is left out.
    pub(crate) fn read(&self) -> Result<BTreeMap<Key, Reached>> {
        let text = fs::read_to_string(&self.path).map_err(|error| format!("{}: {error}", self.path.display()))?;
        let mut all = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            if let Some(row) = line["row"].as_str() {
                let key = (row.to_owned(), line["database"].as_str().map(str::to_owned));
                let reached: &mut Reached = all.entry(key).or_default();
                reached.add(&line);
                reached.last_line = number;
            }
        }
        Ok(all)
    }

    /// A program that ended badly without saying why counts as a violation.
    pub(crate) fn broke(&self, row: &str, database: Option<&str>, what: &str) -> Result<()> {
        self.say(&json!({ "row": row, "database": database, "count": 0, "violations": 1, "found": [what] }))
    }

    /// What this machine can't run, or somebody ended, says nothing of the promise. It is never a pass.
    pub(crate) fn not_run(&self, row: &str, database: Option<&str>, why: &str) -> Result<()> {
        self.say(&json!({ "row": row, "database": database, "not_run": why }))
    }

    pub(crate) fn say(&self, line: &Value) -> Result<()> {
        fs::OpenOptions::new()
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Begun {
    fn read(value: &Value) -> Option<Self> {
        let word = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Self { code: word("code")?, commit: word("commit")? })
    }

    fn shown(&self) -> Value {
        json!({ "code": self.code, "commit": self.commit })
    }
}

impl Reached {
    pub(crate) fn add(&mut self, line: &Value) {
        let number = |name: &str| line[name].as_u64().unwrap_or(0);
        let words = |name: &str| -> Vec<String> {
            let list = line[name].as_array().into_iter().flatten();
            list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        self.lines += 1;
        self.not_run = line["not_run"].as_str().map(str::to_owned);
        self.count += number("count");
        self.violations += number("violations");
        let run = Run { count: number("count"), seconds: line["seconds"].as_f64().unwrap_or(0.0) };
        self.seconds += run.seconds;
        if run.count > 0 && run.seconds > 0.0 && self.quickest.is_none_or(|other| run.is_quicker_than(other)) {
            self.quickest = Some(run);
        }
        self.found.extend(words("found"));
        for name in words("controls_caught") {
            if !self.caught.contains(&name) {
                self.caught.push(name);
            }
        }
        // Missed once is missed, however often it was caught.
        for name in words("controls_missed") {
            if !self.missed.contains(&name) {
                self.missed.push(name);
            }
        }
        if let (Some(first), Some(last)) = (line["first_seed"].as_u64(), line["last_seed"].as_u64()) {
            let (low, high) = self.seeds.unwrap_or((first, last));
            self.seeds = Some((low.min(first), high.max(last)));
        }
    }

    /// Whether it was said behind the first so many lines that this machine can't do it.
    pub(crate) fn not_run_since(&self, lines: usize) -> bool {
        self.not_run.is_some() && self.last_line >= lines
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.violations > 0 || !self.missed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(product: &str) -> Code {
        let rows = ["A1", "B4", "D5"].map(|id| (id.to_owned(), format!("{product} and {id}")));
        Code { product: product.to_owned(), rows: rows.into() }
    }

    fn file(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dalasi-record-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn what_several_runs_said_is_added_up() {
        let path = file("sums");
        let record = Record::open(&path, &code("c0ffee"), "first").unwrap();
        let say = |line: &str| {
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            writeln!(file, "{line}").unwrap();
        };
        say(
            r#"{"row":"A1","database":"sqlite","count":10,"violations":0,"controls_caught":["a"],"first_seed":5,"last_seed":14}"#,
        );
        say(
            r#"{"row":"A1","database":"sqlite","count":7,"violations":1,"controls_caught":["a","b"],"controls_missed":["c"],"first_seed":2,"last_seed":8,"found":["x"]}"#,
        );
        say(r#"{"row":"A1","database":"postgr"#);
        let all = record.read().unwrap();
        let reached = &all[&("A1".to_owned(), Some("sqlite".to_owned()))];
        assert_eq!((all.len(), reached.count, reached.violations, reached.seeds), (1, 17, 1, Some((2, 14))));
        assert_eq!((reached.caught.len(), reached.missed.len(), reached.is_broken()), (2, 1, true));
        record.broke("B4", None, "it stopped").unwrap();
        assert!(record.read().unwrap()[&("B4".to_owned(), None)].is_broken());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_could_not_be_run_is_tried_again_in_the_next_sitting() {
        let path = file("sittings");
        let first = Record::open(&path, &code("c0ffee"), "first").unwrap();
        first.not_run("D5", None, "no listener").unwrap();
        let reached = first.read().unwrap().remove(&("D5".to_owned(), None)).unwrap();
        assert!(reached.not_run_since(first.lines_before));
        drop(first);
        let second = Record::open(&path, &code("c0ffee"), "first").unwrap();
        assert!(!reached.not_run_since(second.lines_before));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn two_never_add_up_in_one_record_at_once() {
        let path = file("lock");
        let first = Record::open(&path, &code("c0ffee"), "first").unwrap();
        assert!(Record::open(&path, &code("c0ffee"), "first").err().unwrap().contains("does another"));
        drop(first);
        assert!(Record::open(&path, &code("c0ffee"), "first").is_ok());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn two_codes_never_share_a_record() {
        let path = file("codes");
        assert_eq!(Record::open(&path, &code("c0ffee"), "first").unwrap().commit, "first");
        assert_eq!(Record::open(&path, &code("c0ffee"), "second").unwrap().commit, "first", "its documents differ");
        assert!(Record::open(&path, &code("decade"), "third").err().unwrap().contains("name another file"));
        fs::write(&path, "something else\n").unwrap();
        assert!(Record::open(&path, &code("c0ffee"), "first").is_err(), "nothing of somebody else's is written to");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_row_whose_test_is_another_begins_anew() {
        let path = file("anew");
        let first = Record::open(&path, &code("c0ffee"), "first").unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, r#"{{"row":"A1","count":10}}"#).unwrap();
        writeln!(file, r#"{{"row":"B4","count":7,"violations":1}}"#).unwrap();
        drop(first);
        let mut mended = code("c0ffee");
        mended.rows.insert("B4".to_owned(), "mended".to_owned());
        for commit in ["second", "third"] {
            let record = Record::open(&path, &mended, commit).unwrap();
            let all = record.read().unwrap();
            assert_eq!(all.keys().map(|(row, _)| row.as_str()).collect::<Vec<_>>(), ["A1"]);
            assert_eq!((record.commit_of("A1"), record.commit_of("B4")), ("first", "second"));
            assert_eq!((record.commit.as_str(), record.lines_before), ("first", 2));
        }
        fs::remove_file(path).unwrap();
    }
}
