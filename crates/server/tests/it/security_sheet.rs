//! Row D15: what `docs/security` names is there. Every file and every test, a file or a reason in every row, five tests for each
//! of the API Top 10, and the counts at its head. Whether a test shows what its row says, only a reader can tell.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proof::Proof;

const GATE_NAMES: u64 = 300;
const TOP_TEN_TESTS: usize = 5;
/// What may follow the name of a file that stands at the root, where names of other things stand too.
const AT_THE_ROOT: [&str; 5] = [".md", ".toml", ".json", ".lock", ".sample"];

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate stands in crates/");
    crates.parent().expect("crates/ stands in the repository").to_owned()
}

/// The names of files in a text, each with its test if one is named.
fn names(text: &str) -> Vec<(&str, Option<&str>)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter_map(|name| {
            let (path, test) = name.split_once("::").map_or((name, None), |(path, test)| (path, Some(test)));
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
            let is_at_the_root = !path.contains('/') && AT_THE_ROOT.iter().any(|ending| path.ends_with(ending));
            let is_path = (path.contains('/') && !path.starts_with('/')) || is_at_the_root;
            (is_path && path.chars().all(is_plain)).then_some((path, test))
        })
        .collect()
}

/// What is wrong with a name, if anything is.
fn missing(path: &str, test: Option<&str>) -> Option<String> {
    let file = root().join(path);
    if !file.exists() {
        return Some(format!("`{path}` is not there"));
    }
    let test = test?;
    let text = fs::read_to_string(&file).unwrap_or_default();
    let is_there = [format!("fn {test}("), format!("def {test}("), format!("test(\"{test}\"")]
        .iter()
        .any(|declaration| text.contains(declaration.as_str()));
    (!is_there).then(|| format!("`{path}` has no test `{test}`"))
}

/// The cells of a table's row; the lines below a heading are none.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split(" | ").map(str::trim).collect())
}

/// How many requirements a row stands for: `V1.2.6–V1.2.9` are four.
fn requirements(cell: &str) -> Option<(String, usize)> {
    let last = |name: &str| name.rsplit('.').next().and_then(|number| number.parse::<usize>().ok());
    let (first, until) = cell.split_once('–').unwrap_or((cell, cell));
    let chapter = first.strip_prefix('V')?.split('.').next()?;
    let count = last(until)?.checked_sub(last(first)?)? + 1;
    Some((format!("V{chapter}"), count))
}

/// The faults of a sheet of requirements.
fn faults_of_sheet(text: &str) -> Vec<String> {
    let (mut faults, mut counted, mut told) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for cells in text.lines().filter_map(cells) {
        match cells.as_slice() {
            [requirement, _, files, status] if requirements(requirement).is_some() => {
                let (chapter, count) = requirements(requirement).unwrap();
                let (word, reason) = status.split_once(": ").unwrap_or((status, ""));
                let place = ["met", "partly", "not applicable", "not met"].iter().position(|known| *known == word);
                match place {
                    Some(place) => counted.entry(chapter).or_insert([0; 4])[place] += count,
                    None => faults.push(format!("{requirement}: {status:?} is no status")),
                }
                if names(files).is_empty() {
                    faults.push(format!("{requirement} names neither a test nor a file"));
                }
                if word != "met" && reason.is_empty() {
                    faults.push(format!("{requirement} is {word} without a reason"));
                }
            }
            [chapter, counts @ ..] if counts.len() == 4 && chapter.starts_with('V') => {
                let counts: Vec<usize> = counts.iter().filter_map(|count| count.parse().ok()).collect();
                told.insert((*chapter).to_owned(), counts);
            }
            [risk, tests] if risk.starts_with("API") => {
                let tests = names(tests).iter().filter(|(_, test)| test.is_some()).count();
                if tests < TOP_TEN_TESTS {
                    faults.push(format!("{risk}: {tests} tests"));
                }
            }
            _ => {}
        }
    }
    for (chapter, counts) in &counted {
        if told.get(chapter).is_none_or(|told| told != counts) {
            faults.push(format!("{chapter}: the head says {:?}, the rows are {counts:?}", told.get(chapter)));
        }
    }
    faults
}

#[test]
fn what_the_security_sheet_names_is_there() {
    let mut proof = Proof::begin("D15", None, GATE_NAMES);
    let mut reached = 0;
    for file in fs::read_dir(root().join("docs/security")).unwrap() {
        let file = file.unwrap().path();
        let (text, shown) = (fs::read_to_string(&file).unwrap(), file.file_name().unwrap().to_string_lossy());
        for (path, test) in names(&text) {
            reached += 1;
            if let Some(fault) = missing(path, test) {
                proof.violation(format!("{shown}: {fault}"));
            }
        }
        for fault in faults_of_sheet(&text) {
            proof.violation(format!("{shown}: {fault}"));
        }
    }
    let row =
        |files: &str, status: &str| format!("| V1 | 1 | 0 | 0 | 0 |\n| V1.1.1 | It is so. | {files} | {status} |");
    let good = row("`Cargo.toml`", "met");
    proof.control("a sheet that is right", faults_of_sheet(&good).is_empty());
    proof.control("a row naming no test", !faults_of_sheet(&row("everywhere", "met")).is_empty());
    proof.control("a gap without a reason", !faults_of_sheet(&row("`Cargo.toml`", "partly")).is_empty());
    proof.control("a count that is wrong", !faults_of_sheet(&good.replace("| 1 | 0", "| 2 | 0")).is_empty());
    proof.control("four tests", !faults_of_sheet("| API1 x | `a/b::c`; `a/b::d`; `a/b::e`; `a/b::f` |").is_empty());
    proof.control("a file that is gone", missing("crates/server/src/gone.rs", None).is_some());
    let here = "crates/server/tests/it/security_sheet.rs";
    proof.control("a test that is gone", missing(here, Some("a_test_that_was_renamed")).is_some());
    proof.control("a test that is there", missing(here, Some("what_the_security_sheet_names_is_there")).is_none());
    proof.control("what is no file", names("`/logos`, `pay-url`, `dalasi verify`, `a b/c`").is_empty());
    proof.finish(reached);
}
