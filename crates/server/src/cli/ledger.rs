//! `dalasi ledger`: the sealed ledger as a file, and checking such a file without the server that wrote it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use domain::{Mode, Scope, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use store::queries::ledger_batches::{self as batches, BatchRow};
use store::{Store, Tx};

use super::backup::{Unfinished, on_disk, sync_folder_of};
use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use super::stop::Stop;
use crate::app::ledger;
use crate::config::StoreArguments;
use crate::error::Failure;
use crate::ledger_proof::{self, Checked, Line, SealedBatch, SealedEntry};
use crate::tokens::PublicKey;
use crate::wire::ledger::{NOT_COVERED, WITHOUT_THE_END, key_set};

const EXAMPLES: &str = "\
Examples:
  dalasi ledger export --live ledger.jsonl            every sealed entry, with the signed batches over them
  dalasi ledger keys > keys.json                      the public keys; keep them where nobody can change them
  dalasi ledger verify ledger.jsonl --keys keys.json  on any machine, without the server
  curl -H 'Authorization: Bearer KEY' http://127.0.0.1:8080/v1/ledger/proof | dalasi ledger verify -";

/// Batches that are read at once.
const PAGE: i64 = 16;

/// Export the sealed ledger, and check an export
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write every sealed entry with its batches
    Export(Export),
    /// Print the public keys that signed, as a JSON Web Key Set
    Keys(Keys),
    /// Check an export, or a saved answer of /v1/ledger/proof; needs no installation
    Verify(Verify),
}

#[derive(clap::Args)]
struct Export {
    /// Where to, a new file; - is standard output
    file: PathBuf,

    /// Live mode: real money
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
struct Keys {
    #[command(flatten)]
    store: StoreArguments,

    // A key set is JSON anyway; a program that asks for that is not refused.
    #[command(flatten)]
    _format: Format,
}

#[derive(clap::Args)]
struct Verify {
    /// What to check; - is standard input
    file: PathBuf,

    /// The public keys to trust; without them the file is held against the keys that it brings
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    #[command(flatten)]
    format: Format,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Export(arguments) => export(arguments).await,
        Command::Keys(arguments) => keys(arguments).await,
        Command::Verify(arguments) => verify(&arguments),
    }
}

/// What an export holds.
#[derive(Serialize)]
struct Exported<'a> {
    /// As in the answer about a backup.
    file: Cow<'a, str>,
    mode: &'static str,
    batches: i64,
    entries: i64,
    /// Written to the ledger and not sealed yet, so not in the file.
    unsealed_entries: i64,
}

async fn export(arguments: Export) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, Part::Guest).await?;
    let mode = if arguments.live { Mode::Live } else { Mode::Test };
    let written = async {
        let scope = Scope { organization: installation::only_organization(&store).await?, mode };
        if arguments.file.as_os_str() == "-" {
            let written = write(&store, scope, io::stdout().lock()).await;
            return written.map_err(|problem| problem.or_lost("the export is not whole"));
        }
        let mut stop = Stop::new()?;
        tokio::select! {
            written = to_file(&store, scope, &arguments.file) => written,
            () = stop.asked() => Err(Problem::failed("interrupted; nothing was exported.")),
        }
    };
    let written = written.await;
    store.close().await;
    let Written { batches, entries, unsealed_entries } = written?;
    if arguments.format.json && arguments.file.as_os_str() != "-" {
        let (file, mode) = (arguments.file.to_string_lossy(), mode.as_str());
        return output::json(&Exported { file, mode, batches, entries, unsealed_entries });
    }
    output::message(&format!("{} in {} written.", entries_of(entries), batches_of(batches)));
    Ok(())
}

fn entries_of(count: impl Into<i128>) -> String {
    output::counted(count, "entry", "entries")
}

fn batches_of(count: impl Into<i128>) -> String {
    output::counted(count, "batch", "batches")
}

/// The file gets its name only when it is whole and on the disk, and takes nobody else's.
async fn to_file(store: &Store, scope: Scope, file: &Path) -> Result<Written, Problem> {
    let name = file.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Problem::conflict(format!(
            "{name} is there, and an export replaces nothing: name a new file, or move that one away."
        )),
        _ => Problem::failed(format!("{name}: {error}")),
    };
    if std::fs::symlink_metadata(file).is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let unfinished = Unfinished::beside(file).map_err(failed)?;
    let mut opened = unfinished.create().map_err(failed)?;
    let written = write(store, scope, io::BufWriter::new(&mut opened)).await?;
    on_disk(move || opened.sync_all()).await.map_err(failed)?;
    unfinished.take_new_name(file).map_err(failed)?;
    sync_folder_of(file).map_err(failed)?;
    Ok(written)
}

struct Written {
    batches: i64,
    entries: i64,
    unsealed_entries: i64,
}

/// What there is to export, in one snapshot: the keys are those of these batches, and what waits is in none of them.
struct Extent {
    keys: Vec<String>,
    last_batch: i64,
    unsealed_entries: i64,
    at: Timestamp,
}

fn extent(tx: &mut Tx<'_>, scope: Scope) -> Result<Extent, store::Error> {
    Ok(Extent {
        keys: batches::public_keys(tx, scope)?,
        last_batch: batches::last(tx, scope)?.map_or(0, |last| last.batch_no),
        unsealed_entries: batches::count_unsealed(tx, scope)?,
        at: tx.now(),
    })
}

/// Batches never change, so those of one snapshot may be read a page after the other.
async fn write(store: &Store, scope: Scope, mut to: impl Write) -> Result<Written, Problem> {
    let mut line = |line: Line| {
        let text = serde_json::to_string(&line).expect("a line is JSON");
        writeln!(to, "{text}").map_err(|error| Problem::output(&error))
    };
    let Extent { keys, last_batch, unsealed_entries, at } = store.read(move |tx| extent(tx, scope)).await?;
    let (organization_id, mode) = (scope.organization.to_string(), scope.mode.as_str().to_owned());
    line(Line::Header { organization_id, mode, exported_at: at.to_text(), keys: key_set(&parsed(&keys)?) })?;
    let (mut next, mut last) = (1, 0);
    while next <= last_batch {
        let limit = PAGE.min(last_batch - next + 1);
        let page = store.read(move |tx| page(tx, scope, next, limit)).await?;
        if page.is_empty() {
            return Err(Problem::failed(format!("batch {next} of {last_batch} is missing. See `dalasi verify`.")));
        }
        for (batch, entries) in page {
            (next, last) = (batch.batch_no + 1, batch.last_log_no);
            entries.into_iter().try_for_each(|entry| line(Line::Entry(entry)))?;
            line(Line::Batch(SealedBatch::of(&batch)))?;
        }
    }
    line(Line::End { unsealed_entries })?;
    to.flush().map_err(|error| Problem::output(&error))?;
    Ok(Written { batches: next - 1, entries: last, unsealed_entries })
}

fn page(tx: &mut Tx<'_>, scope: Scope, from: i64, limit: i64) -> Result<Vec<(BatchRow, Vec<SealedEntry>)>, Failure> {
    let of = |tx: &mut Tx<'_>, batch: BatchRow| {
        let entries = ledger::sealed_entries(tx, scope, &batch)?;
        Ok((batch, entries))
    };
    batches::list(tx, scope, from, limit)?.into_iter().map(|batch| of(tx, batch)).collect()
}

/// The keys of all batches, each once.
async fn signed_with(store: &Store, scope: Scope) -> Result<Vec<PublicKey>, Problem> {
    parsed(&store.read(move |tx| batches::public_keys(tx, scope)).await?)
}

fn parsed(texts: &[String]) -> Result<Vec<PublicKey>, Problem> {
    let read = |text: &String| PublicKey::parse(text).map_err(|fault| Problem::failed(fault.to_string()));
    texts.iter().map(read).collect()
}

async fn keys(arguments: Keys) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, Part::Guest).await?;
    let found = async {
        let organization = installation::only_organization(&store).await?;
        let mut keys: Vec<PublicKey> = Vec::new();
        for mode in [Mode::Test, Mode::Live] {
            let signed = signed_with(&store, Scope { organization, mode }).await?;
            keys.extend(signed.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
        }
        Ok::<_, Problem>(keys)
    };
    let found = found.await;
    store.close().await;
    output::json(&key_set(&found?)).map_err(|problem| problem.or_lost("the key set is not whole"))
}

fn verify(arguments: &Verify) -> Result<(), Problem> {
    let trusted = arguments.keys.as_deref().map(trusted).transpose()?;
    let file: Box<dyn BufRead> = match arguments.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(open(&arguments.file)?)),
    };
    let name = arguments.file.display();
    let checked = match ledger_proof::check(file, trusted) {
        Ok(checked) => checked,
        Err(ledger_proof::Fault::Unreadable(error)) => return Err(Problem::failed(format!("{name}: {error}"))),
        Err(ledger_proof::Fault::Unsound(unsound)) if arguments.format.json => {
            // The exit code says it as well.
            let _ = output::json(&json!({ "sound": false, "line": unsound.line, "what": unsound.what }));
            return Err(Problem::failed(format!("{name}, {unsound}")));
        }
        Err(ledger_proof::Fault::Unsound(unsound)) => {
            return Err(Problem::failed(format!("{name}, {unsound}. It is not the ledger that was sealed.")));
        }
    };
    if checked.last_batch == 0 && !checked.has_the_end {
        return Err(Problem::failed(format!(
            "{name}: no batch is in it, so that there is nothing to check. Ask without `from_batch`."
        )));
    }
    if arguments.format.json {
        let mut answer = serde_json::to_value(&checked).expect("a result is JSON");
        answer["sound"] = true.into();
        answer["not_covered"] = not_covered(&checked).into();
        return output::json(&answer);
    }
    show(&checked)
}

fn show(checked: &Checked) -> Result<(), Problem> {
    let rows: Vec<Vec<String>> = checked
        .balances
        .iter()
        .map(|of| vec![of.account.clone(), of.currency.clone(), of.debits.clone(), of.credits.clone()])
        .collect();
    let told = output::table(&["account", "currency", "debits", "credits"], &rows);
    let Checked { organization_id, mode, first_batch, last_batch, last_sealed_at, entries, .. } = checked;
    let [organization_id, mode, last_sealed_at] =
        [organization_id, mode, last_sealed_at].map(|said| said.as_deref().unwrap_or_default());
    let is_nothing_sealed = *last_batch == 0;
    output::message(&match (is_nothing_sealed, checked.is_whole) {
        (true, _) => "Nothing is sealed yet: there is nothing to check.".to_owned(),
        (false, true) => format!(
            "Sound: {} in {} of {organization_id} ({mode}), the last sealed {last_sealed_at}; debits equal credits.",
            entries_of(*entries),
            batches_of(*last_batch),
        ),
        (false, false) => format!(
            "Sound: batches {first_batch} to {last_batch} of {organization_id} ({mode}) are signed and chained, and of their entries \
             {entries} are in this file."
        ),
    });
    if checked.trusts_its_own_keys && !is_nothing_sealed {
        output::message(
            "It was held against the keys that it brings, which whoever wrote it could choose: give --keys with a copy of your own.",
        );
    }
    output::message(&format!("Not covered ({} entries are unsealed):", checked.unsealed_entries));
    not_covered(checked).iter().for_each(|what| output::message(&format!("  {what}")));
    told
}

fn not_covered(checked: &Checked) -> Vec<&'static str> {
    NOT_COVERED.into_iter().chain((!checked.has_the_end).then_some(WITHOUT_THE_END)).collect()
}

fn trusted(file: &Path) -> Result<Vec<PublicKey>, Problem> {
    let set: Value = serde_json::from_reader(BufReader::new(open(file)?)).map_err(|fault| match fault.is_io() {
        true => Problem::failed(format!("{}: {fault}", file.display())),
        false => Problem::usage(format!("{} is no JSON Web Key Set: {fault}", file.display())),
    })?;
    ledger_proof::parse_key_set(&set).map_err(|what| Problem::usage(format!("{}: {what}", file.display())))
}

fn open(file: &Path) -> Result<File, Problem> {
    File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Problem::not_found(format!("there is no file {}", file.display())),
        _ => Problem::failed(format!("{}: {error}", file.display())),
    })
}
