//! What a run has found, a line each, so that the next one goes on where it stopped.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::options::Scale;
use crate::row::Row;

/// What a run measures: what another one found is none of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) commit: String,
    pub(crate) profile: String,
    pub(crate) scale: Scale,
}

#[derive(Serialize, Deserialize)]
enum Line {
    /// The first.
    Run(Measured),
    /// A goal's rows, complete.
    Goal { goal: String, rows: Vec<Row> },
    /// So many checkouts lie in the store of the growth, beside some of their ids.
    Filled { checkouts: u64, ids: Vec<String> },
    /// A point of a picture.
    Point { picture: String, x: f64, y: f64 },
}

/// Kept in memory alone without a file.
#[derive(Default)]
pub(crate) struct Resume {
    path: Option<PathBuf>,
    lines: Vec<Line>,
}

impl Resume {
    /// What was found before, if that was of the same.
    pub(crate) fn open(path: Option<&Path>, measured: &Measured) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        // A line that was cut off by the end of its run is as good as none.
        let lines: Vec<Line> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut resume = Self { path: Some(path.to_path_buf()), lines };
        match resume.lines.first() {
            None => resume.add(Line::Run(measured.clone()))?,
            Some(Line::Run(earlier)) if earlier == measured => {}
            Some(Line::Run(Measured { commit, profile, scale })) => {
                let path = path.display();
                return Err(format!(
                    "{path} is of commit {commit}, profile {profile}, {}: take another file",
                    scale.word()
                ));
            }
            Some(_) => return Err(format!("{} does not say what it is of: take another file", path.display())),
        }
        Ok(resume)
    }

    pub(crate) fn rows(&self, goal: &str) -> Option<&[Row]> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Goal { goal: known, rows } if known == goal => Some(rows.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn found(&mut self, goal: &str, rows: Vec<Row>) -> Result<()> {
        self.add(Line::Goal { goal: goal.to_owned(), rows })
    }

    pub(crate) fn filled(&self) -> u64 {
        let filled = |line: &Line| match line {
            Line::Filled { checkouts, .. } => Some(*checkouts),
            Line::Run(_) | Line::Goal { .. } | Line::Point { .. } => None,
        };
        self.lines.iter().filter_map(filled).max().unwrap_or_default()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = |line: &Line| match line {
            Line::Filled { ids, .. } => ids.clone(),
            Line::Run(_) | Line::Goal { .. } | Line::Point { .. } => Vec::new(),
        };
        self.lines.iter().flat_map(ids).collect()
    }

    pub(crate) fn fill(&mut self, checkouts: u64, ids: Vec<String>) -> Result<()> {
        self.add(Line::Filled { checkouts, ids })
    }

    pub(crate) fn points(&self, picture: &str) -> Vec<(f64, f64)> {
        let point = |line: &Line| match line {
            Line::Point { picture: of, x, y } if of == picture => Some((*x, *y)),
            _ => None,
        };
        self.lines.iter().filter_map(point).collect()
    }

    pub(crate) fn point(&mut self, picture: &str, x: f64, y: f64) -> Result<()> {
        self.add(Line::Point { picture: picture.to_owned(), x, y })
    }

    fn add(&mut self, line: Line) -> Result<()> {
        if let Some(path) = &self.path {
            let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
            let mut file = File::options().create(true).append(true).open(path).map_err(|error| error.to_string())?;
            writeln!(file, "{text}").map_err(|error| format!("{}: {error}", path.display()))?;
        }
        self.lines.push(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Unit, Wanted};

    fn measured(commit: &str) -> Measured {
        Measured { commit: commit.to_owned(), profile: "dist".to_owned(), scale: Scale::Full }
    }

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("dalasi-bench-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_was_found_of_something_else_is_not_taken() {
        let path = file("other");
        Resume::open(Some(&path), &measured("one")).expect("no file is an empty one");
        for (other, is_taken) in [
            (measured("one"), true),
            (measured("two"), false),
            (Measured { scale: Scale::Quick, ..measured("one") }, false),
            (Measured { profile: "release".to_owned(), ..measured("one") }, false),
        ] {
            assert_eq!(Resume::open(Some(&path), &other).is_ok(), is_taken, "{other:?}");
        }
        std::fs::write(&path, "{\"Filled\":{\"checkouts\":1,\"ids\":[]}}\n").expect("written");
        assert!(Resume::open(Some(&path), &measured("one")).is_err(), "nobody knows of what it is");
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_run_goes_on_where_the_last_one_stopped() {
        let path = file("resume");
        let row = Row::new("G1", "create", &[0.4], Wanted::AtLeast(0.4, Unit::Share), 5);
        let mut first = Resume::open(Some(&path), &measured("one")).expect("no file is an empty one");
        first.found("G1", vec![row.clone()]).expect("written");
        first.fill(100, vec!["cs_1".to_owned()]).expect("written");
        first.fill(200, vec!["cs_2".to_owned()]).expect("written");
        first.point("growth", 1.0, 2.0).expect("written");
        let mut file = File::options().append(true).open(&path).expect("there");
        file.write_all(br#"{"Goal":{"goal":"G2","ro"#).expect("half a line");
        let second = Resume::open(Some(&path), &measured("one")).expect("readable");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(second.rows("G1"), Some([row].as_slice()));
        assert_eq!(second.rows("G2"), None);
        assert_eq!((second.filled(), second.ids()), (200, vec!["cs_1".to_owned(), "cs_2".to_owned()]));
        assert_eq!(second.points("growth"), [(1.0, 2.0)]);
    }
}
