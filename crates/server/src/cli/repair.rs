//! `dalasi repair`: which documents and events are damaged, and putting one right.
//!
//! It shows and asks. What may be put in a text's place `app/repair` decides.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use domain::{Mode, Timestamp};
use serde::Serialize;
use store::queries::repair::{self as stored, Columns};
use store::{Store, Summary, Value};

use super::backup::{Flow, on_disk};
use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use super::restore;
use crate::app::repair::{self, Case, DamagedRow, Found, Unrepaired};
use crate::config::StoreArguments;
use crate::monotonic;
use crate::pages::text::plain;

const EXAMPLES: &str = "\
Examples:
  dalasi repair                                                            which rows are damaged
  dalasi repair transactions txn_01h455vb4pex5vsknk084sn02q                what stands there, and what can be done
  dalasi repair transactions txn_01h455vb4pex5vsknk084sn02q --from dalasi.backup
  gunzip < dalasi.backup.gz | dalasi repair customers cus_01h455vb4pex5vsknk084sn02q --from - --yes
  dalasi repair customers cus_01h455vb4pex5vsknk084sn02q --accept          asks first; --yes in a script";

const TELL_AFTER: Duration = Duration::from_secs(1);
/// Beyond this, what stands deeper is not moved further to the right.
const DEEPEST: usize = 20;

/// Find documents and events that are damaged, and put one right
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// The table of one, as the list names it
    #[arg(requires = "id", value_parser = PossibleValuesParser::new(stored::tables()))]
    table: Option<String>,

    /// Its id
    id: Option<String>,

    /// Take its text from a backup in which its row is the same; - is standard input
    #[arg(long, value_name = "BACKUP", requires = "id", conflicts_with = "accept")]
    from: Option<PathBuf>,

    /// Let its text stand, once you have looked at it, and give it a new checksum
    #[arg(long, requires = "id")]
    accept: bool,

    /// Don't ask; needed where there is no terminal
    #[arg(long, requires = "id")]
    yes: bool,

    /// The row of test mode, where an organization is damaged in both
    #[arg(long, requires = "id", conflicts_with = "live")]
    test: bool,

    /// The row of live mode
    #[arg(long, requires = "id")]
    live: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

/// A row as a program reads it.
#[derive(Serialize)]
struct RowView<'a> {
    table: &'a str,
    id: &'a str,
    organization_id: String,
    mode: &'static str,
    /// Null where nothing is wrong with it.
    what: Option<&'a str>,
    text: String,
    /// Why the text can't stand as it is; null where it could.
    not_acceptable: Option<String>,
}

/// What was put right.
#[derive(Serialize)]
struct RepairedView<'a> {
    table: &'a str,
    id: &'a str,
    organization_id: String,
    mode: &'static str,
    /// When the backup was made that its text is from; null where it stands as it did.
    backup_created_at: Option<String>,
}

/// What is to stand there.
struct Plan {
    wanted: Columns,
    /// Lines that say what that changes.
    shown: Vec<String>,
    question: String,
    /// For the audit log.
    how: String,
    backup_created_at: Option<String>,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let Arguments { table, id, from, accept, yes, test, live, store, format } = arguments;
    let mode = match (test, live) {
        (true, _) => Some(Mode::Test),
        (false, true) => Some(Mode::Live),
        (false, false) => None,
    };
    let store = installation::open_installed(&store.check()?, Part::Guest).await?;
    let done = async {
        let (Some(table), Some(id)) = (table, id) else { return list(&store, &format).await };
        let case = one(&store, &table, &id, mode).await?;
        let plan = match (from, accept) {
            (None, false) => return show(&case, &format),
            (None, true) => as_it_stands(&case)?,
            (Some(file), _) => from_backup(&store, &case, &file).await?,
        };
        if !yes {
            match format.json {
                // What is answered is one line for a program; who is asked reads beside it.
                true => plan.shown.iter().for_each(|line| output::message(line)),
                false => plan.shown.iter().try_for_each(|line| output::line(line))?,
            }
            output::confirm(&plan.question)?;
        }
        put_right(&store, &case, plan, &format).await
    };
    let done: Result<(), Problem> = done.await;
    store.close().await;
    done
}

async fn list(store: &Store, format: &Format) -> Result<(), Problem> {
    let (is_watched, begun) = (std::io::stderr().is_terminal(), monotonic::now());
    let mut found = Found::default();
    let looked = repair::look(store, &mut found, |rows| {
        if is_watched && begun.elapsed() >= TELL_AFTER {
            output::progress(&format!("{rows} rows looked at"));
        }
    });
    let looked = looked.await;
    if is_watched {
        output::progress_done();
    }
    if let Err(failure) = looked {
        // The verdict is that, also where nobody reads what was found until then.
        if found.damaged_count > 0 {
            let _ = tell(&found, format);
        }
        return Err(Problem::from(failure).and("the look ended there, and not every row was looked at"));
    }
    // The verdict is said also where nobody reads what it rests on.
    let told = tell(&found, format);
    match found.damaged_count {
        0 => told,
        1 => Err(Problem::failed("1 row is damaged. `dalasi repair TABLE ID` shows it, and what can be done.")),
        count => Err(Problem::failed(format!(
            "{count} rows are damaged. `dalasi repair TABLE ID` shows one, and what can be done."
        ))),
    }
}

fn tell(found: &Found, format: &Format) -> Result<(), Problem> {
    if format.json {
        return output::json(found);
    }
    if found.damaged.is_empty() {
        output::message(&format!("{} rows looked at, none is damaged.", found.checked));
        return Ok(());
    }
    let row = |damaged: &DamagedRow| {
        let organization = damaged.organization_id.clone().unwrap_or_default();
        let mode = damaged.mode.unwrap_or_default().to_owned();
        vec![damaged.table.to_owned(), damaged.id.clone(), organization, mode, damaged.what.clone()]
    };
    let rows: Vec<Vec<String>> = found.damaged.iter().map(row).collect();
    let told = output::table(&["table", "id", "organization", "mode", "what is wrong"], &rows);
    let named = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    if found.damaged_count > named {
        output::message(&format!("There are more: these are the first {named}."));
    }
    told
}

/// The row of that name; of two, the one that is damaged.
async fn one(store: &Store, table: &str, id: &str, mode: Option<Mode>) -> Result<Case, Problem> {
    let unknown = || Problem::usage(format!("no rows of {table:?} have checksums."));
    let kind = stored::kind(table).ok_or_else(unknown)?;
    let asked = id.to_owned();
    let mut cases = store.read(move |tx| repair::find(tx, kind, &asked, mode)).await?;
    if cases.iter().any(|case| case.fault.is_some()) {
        cases.retain(|case| case.fault.is_some());
    }
    let absent = || {
        Problem::not_found(format!(
            "there is no {id} among the {table} of any organization. `dalasi repair` lists what is damaged."
        ))
    };
    let case = cases.pop().ok_or_else(absent)?;
    match cases.is_empty() {
        true => Ok(case),
        false => Err(Problem::usage(format!("{id} is there in both modes: say which with --test or --live."))),
    }
}

fn show(case: &Case, format: &Format) -> Result<(), Problem> {
    let text = readable(case.text());
    let refused = case.fault.as_ref().and_then(|_| case.as_it_stands().err());
    if format.json {
        return output::json(&RowView {
            table: case.kind.table,
            id: &case.id,
            organization_id: case.scope.organization.to_string(),
            mode: case.scope.mode.as_str(),
            what: case.fault.as_deref(),
            text,
            not_acceptable: refused,
        });
    }
    let fault = case.fault.as_deref().map_or_else(|| "nothing is wrong with it.".to_owned(), plain);
    output::message(&format!("{}: {fault}", named(case)));
    laid_out(&text).iter().try_for_each(|line| output::line(line))?;
    if case.fault.is_some() {
        output::message(
            "--from BACKUP takes its text from a backup, if all other columns of the row are there as they are here, and what is left of \
             its checksum, or else when it was last changed, says that it was this text.",
        );
        output::message(&match refused {
            None => "--accept lets this text stand and gives it a new checksum: look at every line first. It can be read and agrees \
                     with the columns beside it, but a name, an address or a time may be another than was written."
                .to_owned(),
            Some(why) => format!("--accept would be refused: {}.", plain(&why)),
        });
    }
    Ok(())
}

fn as_it_stands(case: &Case) -> Result<Plan, Problem> {
    require_damaged(case)?;
    let wanted = case.as_it_stands().map_err(|why| {
        refused(
            case,
            Unrepaired::Refused(format!("it can't stand as it is ({why}): take it from a backup with --from")),
        )
    })?;
    Ok(Plan {
        wanted,
        shown: laid_out(&readable(case.text())),
        question: format!("Let this text of {} stand?", named(case)),
        how: "as it stood, with a new checksum".to_owned(),
        backup_created_at: None,
    })
}

async fn from_backup(store: &Store, case: &Case, file: &Path) -> Result<Plan, Problem> {
    require_damaged(case)?;
    let (backup, kept) = read_backup(case, file).await?;
    let created_at = Timestamp::from_micros(backup.created_at).to_text();
    let how = format!("from the backup of {created_at}, SHA-256 {}", backup.sha256);
    let asked = case.clone();
    let restored = store.read(move |tx| repair::restored(tx, &asked, &backup, kept.as_ref())).await;
    let wanted = restored.map_err(|why| refused(case, why))?;
    Ok(Plan {
        shown: changes(&readable(case.text()), &readable(case.text_of(&wanted))),
        wanted,
        question: match case.has_checksum() {
            true => format!("Take the text of {} from the backup of {created_at}?", named(case)),
            false => format!(
                "What stands there has checksum none, so that nothing but its columns and its beginning say that it was this text. \
                 Take the text of {} from the backup of {created_at}?",
                named(case)
            ),
        },
        how,
        backup_created_at: Some(created_at),
    })
}

/// The whole of it is read, and the row given only where its checksum is right.
async fn read_backup(case: &Case, file: &Path) -> Result<(Summary, Option<Columns>), Problem> {
    let read = Arc::new(Flow::default());
    let (reader, size) = restore::open(file, Arc::clone(&read))?;
    let (table, key) = (case.kind.table, case.key());
    let reading = on_disk(move || Ok(store::find_in_backup(reader, table, &key)));
    let found = restore::watched(reading, &read, size).await;
    let found = found.map_err(|error| Problem::failed(format!("{}: {error}", file.display())))?;
    found.map_err(|error| Problem::from(error).and("nothing was repaired"))
}

async fn put_right(store: &Store, case: &Case, plan: Plan, format: &Format) -> Result<(), Problem> {
    let Plan { wanted, how, backup_created_at, .. } = plan;
    let (asked, actor) = (case.clone(), installation::actor());
    let put = store.write(move |tx| repair::put_right(tx, &asked, &wanted, &actor, &how)).await;
    put.map_err(|why| refused(case, why))?;
    if format.json {
        return output::json(&RepairedView {
            table: case.kind.table,
            id: &case.id,
            organization_id: case.scope.organization.to_string(),
            mode: case.scope.mode.as_str(),
            backup_created_at,
        });
    }
    let done = match backup_created_at {
        Some(created_at) => format!("has its text of {created_at} again"),
        None => "stands as it did, with a new checksum".to_owned(),
    };
    output::message(&format!("{} {done}, and that is written to the audit log.", named(case)));
    match case.kind.table {
        "events" => output::message(&format!(
            "What was given up because of it stays so: `dalasi events resend {}{}` sends it again.",
            case.id,
            if case.scope.mode.is_live() { " --live" } else { "" }
        )),
        "transactions" | "refunds" => output::message(
            "Refunds that wait because of it go out once the server's own check, every ten minutes, has seen no fault.",
        ),
        _ => {}
    }
    Ok(())
}

fn require_damaged(case: &Case) -> Result<(), Problem> {
    match case.fault {
        Some(_) => Ok(()),
        None => Err(refused(case, Unrepaired::Refused("nothing is wrong with it".to_owned()))),
    }
}

fn refused(case: &Case, why: Unrepaired) -> Problem {
    match why {
        Unrepaired::Refused(why) => {
            Problem::conflict(format!("{}: {}; nothing was repaired.", named(case), plain(&why)))
        }
        Unrepaired::Failed(failure) => failure.into(),
    }
}

fn named(case: &Case) -> String {
    format!("{} {} (organization {}, {} mode)", case.kind.table, case.id, case.scope.organization, case.scope.mode)
}

/// The text, or what of it is none any more by its bytes.
fn readable(text: &Value) -> String {
    match text {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => {
            let mut readable = String::new();
            for chunk in bytes.utf8_chunks() {
                readable.push_str(chunk.valid());
                readable.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
            }
            readable
        }
    }
}

/// A line for each member, whether the text is JSON or not any more. What nobody would see is spelled out.
fn laid_out(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let indented = |depth: usize| "  ".repeat(depth.min(DEEPEST));
    for letter in text.chars() {
        if !is_string && matches!(letter, '}' | ']') {
            depth = depth.saturating_sub(1);
            lines.push(std::mem::replace(&mut line, indented(depth)));
        }
        line.push_str(&spelled(letter));
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            '{' | '[' if !is_string => {
                depth += 1;
                lines.push(std::mem::replace(&mut line, indented(depth)));
            }
            ',' if !is_string => lines.push(std::mem::replace(&mut line, indented(depth))),
            _ => {}
        }
    }
    lines.push(line);
    lines.retain(|line| !line.trim().is_empty());
    lines
}

fn spelled(letter: char) -> String {
    let is_blank = letter.is_whitespace() && letter != ' ';
    let is_seen = !is_blank && !plain(&letter.to_string()).is_empty();
    if is_seen { letter.to_string() } else { letter.escape_unicode().to_string() }
}

/// The lines that are others, as they stand and as they are wanted; all of them, where one is not to be found beside the other.
fn changes(text: &str, wanted: &str) -> Vec<String> {
    let (stands, wanted) = (laid_out(text), laid_out(wanted));
    let (gone, new) = (|line: &String| format!("- {line}"), |line: &String| format!("+ {line}"));
    if stands.len() != wanted.len() {
        return stands.iter().map(gone).chain(wanted.iter().map(new)).collect();
    }
    let pairs = stands.iter().zip(&wanted).filter(|(stands, wanted)| stands != wanted);
    pairs.flat_map(|(stands, wanted)| [gone(stands), new(wanted)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"id":"cus_1","contact":{"email":"a{,\"}b@x.gm"},"tags":["x",2],"crc32":"0a0b0c0d"}"#;

    #[test]
    fn a_text_has_a_line_for_each_member() {
        let lines = [
            "{",
            r#"  "id":"cus_1","#,
            r#"  "contact":{"#,
            r#"    "email":"a{,\"}b@x.gm""#,
            "  },",
            r#"  "tags":["#,
            r#"    "x","#,
            "    2",
            "  ],",
            r#"  "crc32":"0a0b0c0d""#,
            "}",
        ];
        assert_eq!(laid_out(TEXT), lines);
        // What is no JSON any more is shown to its end.
        assert_eq!(laid_out(r#"}{"id:1,"x"#), ["}{", r#"  "id:1,"x"#]);
        assert_eq!(laid_out(&"[".repeat(1000)).last().map(String::len), Some(2 * DEEPEST + 1));
    }

    #[test]
    fn what_nobody_would_see_is_spelled_out() {
        assert_eq!(laid_out("\"a\u{1b}[2J\u{202e}b\n\""), [r#""a\u{1b}[2J\u{202e}b\u{a}""#]);
        assert_eq!(laid_out("\"Ndëy متجر\""), ["\"Ndëy متجر\""]);
        assert_eq!(readable(&Value::Blob(b"{\"a\":\"\xffb\"}".to_vec())), r#"{"a":"\xffb"}"#);
    }

    #[test]
    fn only_what_differs_is_shown_beside_the_backup() {
        let flipped = TEXT.replace("cus_1", "cus_q");
        assert_eq!(changes(&flipped, TEXT), [r#"-   "id":"cus_q","#, r#"+   "id":"cus_1","#]);
        let torn = TEXT.replacen(',', ";", 1);
        assert_eq!(changes(&torn, TEXT).len(), laid_out(&torn).len() + laid_out(TEXT).len());
    }
}
