//! `dalasi restore`: a backup into a new, empty database, and the books checked before anybody serves it.

use std::fs::File;
use std::future::Future;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use store::{DamagedRow, Schema, Summary};

use super::backup::{Answer, Counted, Flow, name_damaged};
use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use super::verify;
use crate::clock::SystemClock;
use crate::config::{Database, StoreArguments};
use crate::entropy::SystemEntropy;
use crate::monotonic;

const EXAMPLES: &str = "\
Examples:
  dalasi restore dalasi.backup --data-dir ./restored && cp master.key ./restored/
  gunzip < dalasi.backup.gz | dalasi restore - --data-dir ./restored";

const TELL_EVERY: Duration = Duration::from_millis(500);
/// What was read until then says nothing of the rest.
const SOON: Duration = Duration::from_secs(2);

/// Load a backup into a new, empty database
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// The backup; - is standard input
    file: PathBuf,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let read = Arc::new(Flow::default());
    let (reader, size) = open(&arguments.file, Arc::clone(&read))?;
    let opened = installation::store_settings(&settings, Part::Owner { allow_unsafe: true })?;
    let summary = load(opened, reader, &read, size).await?;
    // Settings may be missing, and then it went where nobody meant it to.
    output::message(&match &settings.database {
        Database::Sqlite { data_dir } => {
            format!("The backup was restored into {}.", data_dir.join(installation::DATABASE_FILE).display())
        }
        Database::Postgres { .. } => "The backup was restored into PostgreSQL.".to_owned(),
    });

    let store = installation::open_store(&settings, Part::Guest).await?;
    let report = verify::check(&store).await;
    let key = installation::check_key_file(&store, &settings).await;
    store.close().await;
    let report = report?;
    // The verdict is said also where nobody reads the answer.
    let told = match arguments.format.json {
        true => output::json(&Answer::of(&arguments.file, &summary)),
        false => Ok(()),
    };
    output::message(&format!(
        "It holds what was stored by {}: whatever was revoked, rotated or decided after that is as it was before. See \"After a loss\" in \
         docs/deploy/backup.md before you start the server.",
        Timestamp::from_micros(summary.created_at).to_text()
    ));
    if let Ok(false) = &key {
        output::message(&format!(
            "Now put the master key that belongs to it at {}: it is not in the backup, and `dalasi serve` needs it.",
            settings.key_file.display()
        ));
    }
    if !report.is_clean() {
        for fault in &report.faults {
            output::message(&format!("{} {}: {}", fault.table, fault.row, fault.what));
        }
        let is_told =
            |row: &DamagedRow| report.faults.iter().any(|fault| fault.table == row.table && fault.row == row.id);
        name_damaged(summary.damage.rows.iter().filter(|row| !is_told(row)));
        output::message(&verify::summary(&report));
        let problem = "the backup was restored as it is, but its books are not right: see the rows above.";
        return Err(Problem::failed(problem).beside(key.err()));
    }
    // Not all of it is looked at with the books.
    if summary.damage.count > 0 {
        name_damaged(&summary.damage.rows);
        let problem = format!(
            "the backup was restored as it is, with {} that it had already: see above.",
            output::counted(summary.damage.count, "damaged row", "damaged rows")
        );
        return Err(Problem::failed(problem).beside(key.err()));
    }
    if !arguments.format.json {
        output::message(&verify::summary(&report));
    }
    key?;
    told
}

pub(super) type Reader = Box<dyn BufRead + Send>;

/// A backup, and how large it is where that can be known.
pub(super) fn open(path: &Path, read: Arc<Flow>) -> Result<(Reader, Option<u64>), Problem> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(Counted { inner: io::stdin(), flow: read })), None));
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Problem::not_found(format!("there is no file {}", path.display())),
        _ => Problem::failed(format!("{}: {error}", path.display())),
    };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((Box::new(BufReader::new(Counted { inner: file, flow: read })), Some(size)))
}

async fn load(settings: store::Settings, reader: Reader, read: &Flow, size: Option<u64>) -> Result<Summary, Problem> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let restored = store::restore(settings, Schema::product(), clock, entropy, reader);
    watched(restored, read, size).await.map_err(refused)
}

/// A person at a terminal sees how far the backup is read.
pub(super) async fn watched<T>(reading: impl Future<Output = T>, read: &Flow, size: Option<u64>) -> T {
    let mut reading = std::pin::pin!(reading);
    let (is_watched, began) = (io::stderr().is_terminal(), monotonic::now());
    loop {
        tokio::select! {
            done = &mut reading => {
                if is_watched {
                    output::progress_done();
                }
                return done;
            }
            () = tokio::time::sleep(TELL_EVERY) => {
                if is_watched {
                    output::progress(&told(read.bytes(), size, began.elapsed()));
                }
            }
        }
    }
}

fn told(read: u64, size: Option<u64>, took: Duration) -> String {
    let Some(size) = size.filter(|size| *size > 0) else { return format!("{} MB read", read / 1_000_000) };
    let far = format!("{} % of {} MB read", read.saturating_mul(100) / size, size / 1_000_000);
    match took.as_secs().saturating_mul(size.saturating_sub(read)).checked_div(read) {
        Some(left_s) if took >= SOON => match left_s.div_ceil(60) {
            0 | 1 => format!("{far}, about a minute left"),
            minutes => format!("{far}, about {minutes} min left"),
        },
        _ => far,
    }
}

fn refused(error: store::Error) -> Problem {
    const NOTHING: &str = "nothing was restored";
    match &error {
        store::Error::Backup(sentence) if sentence.contains("not empty") => Problem::conflict(format!(
            "{sentence}; {NOTHING}. Name a new folder with --data-dir, or an empty database."
        )),
        // Nobody knows.
        store::Error::UnknownCommit => error.into(),
        // It says itself what was restored.
        store::Error::Backup(sentence) if sentence.contains("was restored") => error.into(),
        _ => Problem::from(error).and(NOTHING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_says_about_how_long_it_takes() {
        let told = |read_mb: u64, seconds| told(read_mb * 1_000_000, Some(1_000_000_000), Duration::from_secs(seconds));
        assert_eq!(told(250, 60), "25 % of 1000 MB read, about 3 min left");
        assert_eq!(told(990, 600), "99 % of 1000 MB read, about a minute left");
        assert_eq!([told(0, 60), told(10, 1)], ["0 % of 1000 MB read", "1 % of 1000 MB read"]);
        assert_eq!(super::told(3_000_000, None, Duration::from_secs(60)), "3 MB read");
    }
}
