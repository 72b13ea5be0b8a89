//! What a command says: data on standard output, messages on standard error.
//!
//! Tables have headings and columns for a person at a terminal, and are tab-separated lines for everyone else.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use super::problem::Problem;
use crate::pages::text::plain;

/// Whether a command answers in JSON.
#[derive(clap::Args)]
pub(super) struct Format {
    /// Answer with JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A line of data.
pub(super) fn line(text: &str) -> Result<(), Problem> {
    let mut stdout = std::io::stdout().lock();
    // Flushed at once: a program that waits for this line reads it through a pipe.
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(|error| Problem::output(&error))
}

pub(super) fn json(value: &impl Serialize) -> Result<(), Problem> {
    line(&serde_json::to_string(value).expect("what commands answer has nothing that JSON can't say"))
}

/// A line for the person who typed the command.
pub(super) fn message(text: &str) {
    // If nobody can be told, the exit code still says it.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line that the next one replaces. For terminals only.
pub(super) fn progress(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}

/// Ends the line that `progress` keeps.
pub(super) fn progress_done() {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
}

/// Asks a person at a terminal. Where nobody can be asked, a program has to have said that it means it.
pub(super) fn confirm(question: &str) -> Result<(), Problem> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Problem::usage(format!("{question} There is no terminal to ask at: give --yes to mean it.")));
    }
    let mut answer = String::new();
    let asked = write!(stderr.lock(), "{question} [y/N] ").and_then(|()| stdin.read_line(&mut answer));
    match asked {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) | Err(_) => Err(Problem::failed("nothing was changed.")),
    }
}

/// How long ago something was, no more exactly than a person needs it.
pub(super) fn lasting(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// "1 batch", "2 batches".
pub(super) fn counted(count: impl Into<i128>, one: &str, many: &str) -> String {
    match count.into() {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> Result<(), Problem> {
    let text = if std::io::stdout().is_terminal() { aligned(headings, rows) } else { separated(rows) };
    text.iter().try_for_each(|text| line(text))
}

fn separated(rows: &[Vec<String>]) -> Vec<String> {
    // What others wrote is one cell, and tells a terminal behind the pipe nothing.
    let clean = |cell: &String| cell.replace(char::is_control, " ");
    rows.iter().map(|row| row.iter().map(clean).collect::<Vec<_>>().join("\t")).collect()
}

fn aligned(headings: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    // A terminal obeys control characters, and turns around what direction marks tell it to.
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&headings).chain(&rows).collect();
    let width = |column: usize| lines.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let shown = |row: &&Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_columns_and_programs_get_tabs() {
        let rows = [vec!["a".to_owned(), "1\t2".to_owned()], vec!["longer".to_owned(), "é".to_owned()]];
        assert_eq!(aligned(&["name", "n"], &rows), ["name    n", "a       1 2", "longer  é"]);
        assert_eq!(separated(&rows), ["a\t1 2", "longer\té"]);
    }

    #[test]
    fn a_time_is_told_as_people_tell_it() {
        for (seconds, wanted) in [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h")] {
            assert_eq!(lasting(Duration::from_secs(seconds)), wanted);
        }
    }

    #[test]
    fn a_terminal_is_told_nothing_by_what_others_wrote() {
        let rows = [vec!["\u{1b}[2Ja\nb\u{9b}c\u{202e}d".to_owned()]];
        assert_eq!(aligned(&["name"], &rows), ["name", "[2Ja bcd"]);
        assert_eq!(separated(&rows), [" [2Ja b c\u{202e}d"]);
    }
}
