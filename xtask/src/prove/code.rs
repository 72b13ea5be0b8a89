//! What counts are of: the program, and the test that a row is. What is changed in the test of one row leaves the others theirs.

use std::collections::BTreeMap;
use std::path::Path;

use super::row::{Row, Runner};
use super::rows;
use crate::Result;
use crate::steps::Machine;

/// Names of what is checked out: equal names are equal files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    /// Of the program, which every row is about.
    pub(crate) product: String,
    /// Of the program and a row's own test, by the row's id.
    pub(crate) rows: BTreeMap<String, String>,
}

/// Who reads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'p> {
    /// Nobody who plays a row.
    Document,
    /// Everybody.
    Product,
    Simulation,
    /// Tests beside the program's own code, and the tools that judge, measure and build it.
    RustTest,
    /// What Python tests share.
    Python,
    /// Tests of one subject: none reads another's.
    PythonTest(&'p str),
}

/// At the end of the name of what is not committed as it is: other changes would have the same.
const CHANGED: &str = "-changed";

impl Code {
    pub(crate) fn is_committed(&self) -> bool {
        !std::iter::once(&self.product).chain(self.rows.values()).any(|name| name.ends_with(CHANGED))
    }

    pub(crate) fn of(machine: &Machine) -> Result<Self> {
        let files = machine.git(&["ls-files", "--stage"])?;
        // With the names of both sides where one was moved.
        let changed = machine.git(&["status", "--porcelain", "--no-renames", "--untracked-files=all"])?;
        Self::named(&files, &changed, &|list| Ok(machine.name_of(list)?[..12].to_owned()))
    }

    /// From git's lists of what there is and of what is changed since.
    fn named(files: &str, changed: &str, name_of: &dyn Fn(&str) -> Result<String>) -> Result<Self> {
        let name = |is_read: &dyn Fn(Part<'_>) -> bool| -> Result<String> {
            let list = files.lines().filter(|line| line.split('\t').nth(1).is_some_and(|path| is_read(part(path))));
            let name = name_of(&list.collect::<Vec<_>>().join("\n"))?;
            let is_changed = changed.lines().filter_map(|line| line.get(3..)).any(|path| is_read(part(path)));
            Ok(format!("{name}{}", if is_changed { CHANGED } else { "" }))
        };
        let of_row =
            |row: &Row| Ok((row.id.to_owned(), name(&|part| part == Part::Product || is_own(part, &row.runner))?));
        Ok(Self {
            product: name(&|part| part == Part::Product)?,
            rows: rows::all().map(of_row).collect::<Result<_>>()?,
        })
    }
}

fn part(path: &str) -> Part<'_> {
    let is_below = |folder: &str| path.starts_with(folder);
    if let Some(file) = path.strip_prefix("tests/sdk/") {
        return if file.starts_with("test_") { Part::PythonTest(file) } else { Part::Python };
    }
    let is_text = Path::new(path).extension().is_some_and(|it| it == "md");
    let is_of_folder = |folder: &str| path.strip_prefix(folder).is_some_and(|name| !name.contains('/'));
    if (is_text && (is_of_folder("") || is_of_folder("docs/")))
        || ["docs/proof/", "docs/performance/", "docs/deploy/", "tests/browser/"].into_iter().any(is_below)
    {
        return Part::Document;
    }
    if is_below("crates/sim/") || is_below("crates/fuzz/") {
        return Part::Simulation;
    }
    let is_test =
        is_below("crates/") && (path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs"));
    let is_tool = ["xtask/", "bench/", "docs/security/", ".ci/", ".config/"].into_iter().any(is_below)
        || ["clippy.toml", "deny.toml", "rustfmt.toml"].contains(&path);
    if is_test || is_tool {
        return Part::RustTest;
    }
    Part::Product
}

/// Whether a row is played with it, beside the program.
fn is_own(part: Part<'_>, runner: &Runner) -> bool {
    match (part, runner) {
        (Part::Document | Part::Product, _) => false,
        (Part::Python, Runner::Pytest(_) | Runner::Patroni(_)) => true,
        (Part::PythonTest(file), Runner::Pytest(words) | Runner::Patroni(words)) => {
            words.iter().any(|word| word.split("::").next() == Some(file))
        }
        (Part::Simulation, Runner::Simulation(_) | Runner::CargoRun(_)) => true,
        (Part::Simulation | Part::RustTest, Runner::CargoTest(_) | Runner::Xtask(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(id: &str) -> &'static Runner {
        &rows::all().find(|row| row.id == id).expect("there").runner
    }

    fn is_played_with(path: &str, id: &str) -> bool {
        part(path) == Part::Product || is_own(part(path), runner(id))
    }

    #[test]
    fn a_row_is_played_with_the_program_and_its_own_test() {
        let rows = ["A1", "A6", "A9", "C8.failover", "D6", "D13.service"];
        for (path, wanted) in [
            ("crates/server/src/app/refunds.rs", &rows[..]),
            ("crates/store/migrations/0001.sql", &rows),
            ("Cargo.lock", &rows),
            ("docs/samples/checkouts.create.py", &rows),
            ("crates/proof/src/lib.rs", &rows),
            ("crates/sim/src/model.rs", &["A1", "A9", "D6", "D13.service"]),
            ("crates/domain/tests/machines/main.rs", &["A9", "D13.service"]),
            ("crates/server/src/tokens/tests.rs", &["A9", "D13.service"]),
            ("crates/domain/src/payment/code_race_tests.rs", &["A9", "D13.service"]),
            (".config/nextest.toml", &["A9", "D13.service"]),
            ("deny.toml", &["A9", "D13.service"]),
            ("tests/sdk/server.py", &["A6", "C8.failover"]),
            ("tests/sdk/failover.py", &["A6", "C8.failover"]),
            ("tests/sdk/test_linearizability.py", &["A6"]),
            ("tests/sdk/test_refunds.py", &[]),
            ("docs/proof/nightly.jsonl", &[]),
            ("docs/proof.md", &[]),
            ("CHANGELOG.md", &[]),
        ] {
            let found: Vec<&str> = rows.into_iter().filter(|id| is_played_with(path, id)).collect();
            assert_eq!(found, wanted, "{path}");
        }
    }

    /// Otherwise a change in one would go unseen by the row of another.
    #[test]
    fn no_python_test_reads_another() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests/sdk");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "py") {
                let text = std::fs::read_to_string(&path).unwrap();
                let others: Vec<&str> = text
                    .lines()
                    .filter(|line| line.starts_with("from test_") || line.starts_with("import test_"))
                    .collect();
                assert_eq!(others, [""; 0], "{}", path.display());
            }
        }
    }

    #[test]
    fn what_a_row_is_not_played_with_leaves_its_name() {
        let of = |blobs: [&str; 3], changed: &str| {
            let paths = ["crates/server/src/lib.rs", "crates/sim/src/lib.rs", "tests/sdk/test_linearizability.py"];
            let files: Vec<String> =
                blobs.iter().zip(paths).map(|(blob, path)| format!("100644 {blob} 0\t{path}")).collect();
            Code::named(&files.join("\n"), changed, &|text| Ok(text.to_owned())).unwrap()
        };
        let first = of(["a", "b", "c"], "");
        for (blobs, differ) in [
            (["x", "b", "c"], [true, true, true]),
            (["a", "x", "c"], [false, true, false]),
            (["a", "b", "x"], [false, false, true]),
        ] {
            let other = of(blobs, "");
            let found = [
                first.product != other.product,
                first.rows["A1"] != other.rows["A1"],
                first.rows["A6"] != other.rows["A6"],
            ];
            assert_eq!(found, differ, "{blobs:?}");
        }
        let changed = of(["a", "b", "c"], " M tests/sdk/test_linearizability.py\n?? docs/proof/nightly.jsonl");
        assert_eq!((&changed.product, &changed.rows["A1"]), (&first.product, &first.rows["A1"]));
        assert_eq!(changed.rows["A6"], format!("{}-changed", first.rows["A6"]));
        assert!(first.is_committed() && !changed.is_committed());
    }
}
