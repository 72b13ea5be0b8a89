//! What a run has found, a line each, so that the next one goes on where it stopped.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::row::Row;

#[derive(Serialize, Deserialize)]
enum Line {
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
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        // A line that was cut off by the end of its run is as good as none.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { path: Some(path.to_path_buf()), lines })
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
            Line::Goal { .. } | Line::Point { .. } => None,
        };
        self.lines.iter().filter_map(filled).max().unwrap_or_default()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = |line: &Line| match line {
            Line::Filled { ids, .. } => ids.clone(),
            Line::Goal { .. } | Line::Point { .. } => Vec::new(),
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

    #[test]
    fn a_run_goes_on_where_the_last_one_stopped() {
        let path = std::env::temp_dir().join(format!("dalasi-bench-resume-{}", std::process::id()));
        let row = Row::new("G1", "create", &[0.4], Wanted::AtLeast(0.4, Unit::Share), 5);
        let mut first = Resume::open(Some(&path)).expect("no file is an empty one");
        first.found("G1", vec![row.clone()]).expect("written");
        first.fill(100, vec!["cs_1".to_owned()]).expect("written");
        first.fill(200, vec!["cs_2".to_owned()]).expect("written");
        first.point("growth", 1.0, 2.0).expect("written");
        let mut file = File::options().append(true).open(&path).expect("there");
        file.write_all(br#"{"Goal":{"goal":"G2","ro"#).expect("half a line");
        let second = Resume::open(Some(&path)).expect("readable");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(second.rows("G1"), Some([row].as_slice()));
        assert_eq!(second.rows("G2"), None);
        assert_eq!((second.filled(), second.ids()), (200, vec!["cs_1".to_owned(), "cs_2".to_owned()]));
        assert_eq!(second.points("growth"), [(1.0, 2.0)]);
    }
}
