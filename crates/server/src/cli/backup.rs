//! `dalasi backup`: a consistent copy of everything, taken while the server runs.
//!
//! The file gets its name only when it is whole, on the disk, and has been read back. One with damaged rows is whole, and all the
//! same the command fails: whoever makes room for new backups then keeps the earlier ones, as this does.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::Serialize;
use store::{Damage, DamagedRow, EntropySource, Summary};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use super::stop::{PATIENCE, Stop};
use crate::config::StoreArguments;
use crate::entropy::SystemEntropy;
use crate::monotonic;

const EXAMPLES: &str = "\
Examples:
  dalasi backup /backups/dalasi-$(date +%F).backup
  set -o pipefail; dalasi backup - | gzip | ssh safe 'umask 077; cat > new.part' && ssh safe 'mv new.part dalasi.backup.gz'";

const DAMAGE: &str = "\
FILE may be a link to an earlier backup: then that one is replaced, where it is. A backup of another installation makes no room, nor
does one with an organization for one without any: the command ends with exit code 5.

Exit code 1 also where rows in the database are damaged, by their checksums, because a document is torn, or because a text has U+0000
in it: the command names them. The backup is whole and has them as they are; it replaces no earlier one, and gets that one's name with
.damaged behind it. What has that name already makes room if all these rows are damaged in it too; otherwise the time of the new one is
put behind its name as well.";

/// Behind the name of an earlier backup.
const DAMAGED: &str = ".damaged";

const TELL_EVERY: Duration = Duration::from_millis(500);
const LONGEST_STALL: Duration = Duration::from_secs(300);

/// Copy everything into a file while the server runs
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, after_help = DAMAGE, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// Where to: a new file, or an earlier backup to replace; - is standard output
    file: PathBuf,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

/// What a backup holds.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    /// JSON is UTF-8, and a name of a file need not be.
    pub(super) file: Cow<'a, str>,
    pub(super) rows: u64,
    pub(super) sha256: &'a str,
    pub(super) created_at: String,
    /// The first of the rows that are not what was written.
    damaged: &'a [DamagedRow],
    /// All of them.
    damaged_count: u64,
}

impl<'a> Answer<'a> {
    pub(super) fn of(file: &'a Path, summary: &'a Summary) -> Self {
        Self {
            file: file.to_string_lossy(),
            rows: summary.rows.values().sum(),
            sha256: &summary.sha256,
            created_at: domain::Timestamp::from_micros(summary.created_at).to_text(),
            damaged: &summary.damage.rows,
            damaged_count: summary.damage.count,
        }
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let to_stdout = arguments.file.as_os_str() == "-";
    let store = installation::open_installed(&settings, Part::Copier).await?;
    let file = if to_stdout { arguments.file } else { meant(arguments.file)? };
    let written = async {
        let mut stop = Stop::new()?;
        if to_stdout {
            return Ok((file.clone(), write(&store, io::stdout(), &mut stop).await?));
        }
        to_file(&store, &file, &mut stop).await
    };
    // Whoever only reads has nothing to undo, and the thread that reads may never come back from its output.
    let (place, summary) = written.await?;
    store.close().await;
    let answer = Answer::of(&place, &summary);
    let mut told = Ok(());
    if arguments.format.json && !to_stdout {
        told = output::json(&answer);
    } else {
        let checked = if to_stdout { "written" } else { "written and read back" };
        output::message(&format!("{} rows {checked}; SHA-256 {}.", answer.rows, answer.sha256));
    }
    output::message(&format!(
        "The master key {} is not in it: keep a copy of that file apart. Without it the backup's secrets can't be used.",
        settings.key_file.display()
    ));
    if place != file {
        output::message(&format!("{}: this one is {}.", left(&file, &place), place.display()));
    }
    // The verdict is said also where nobody reads the answer.
    if summary.damage.count > 0 {
        return Err(damaged(&summary.damage));
    }
    told
}

/// The earlier backups that a damaged one stands beside.
fn left(file: &Path, place: &Path) -> String {
    let (name, damaged) = (file.display(), with_end(file, DAMAGED));
    if place == damaged {
        return format!("{name} is a backup from before and was left as it is");
    }
    format!("{name} and {} are backups from before and were left as they are", damaged.display())
}

pub(super) fn name_damaged<'d>(rows: impl IntoIterator<Item = &'d DamagedRow>) {
    for row in rows {
        output::message(&format!("{} {}: it is not what was written.", row.table, row.id));
    }
}

/// Names what is damaged, and says what next.
fn damaged(damage: &Damage) -> Problem {
    name_damaged(&damage.rows);
    let unnamed = match damage.unnamed() {
        0 => String::new(),
        unnamed => format!(", of which {unnamed} are not named"),
    };
    Problem::failed(format!(
        "{} in the database{unnamed}: what is there is not what was written, and what is no document any more nobody can read. \
         The backup is whole, and has it as it is. Keep every earlier backup, which may have it as it was: delete none \
         and replace none. `dalasi repair` shows documents and events, and takes them from one of them.",
        output::counted(damage.count, "damaged row", "damaged rows")
    ))
}

fn interrupted() -> Problem {
    Problem::failed("interrupted; no backup was made.")
}

/// What a disk may take long for, on a thread of its own: whoever awaits it can look at signals as well, and the end of the
/// process waits for no such thread.
pub(super) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new().name("disk".into()).spawn(move || tell.send(work()))?;
    told.await.unwrap_or_else(|_| Err(io::Error::other("what was done on the disk broke off")))
}

/// Where it is, and what it holds.
async fn to_file(store: &store::Store, file: &Path, stop: &mut Stop) -> Result<(PathBuf, Summary), Problem> {
    let failed = |error: io::Error| Problem::failed(format!("{}: {error}", file.display()));
    let unfinished = Unfinished::beside(file).map_err(failed)?;
    let opened = unfinished.create().map_err(failed)?;
    let summary = write(store, opened.try_clone().map_err(failed)?, stop).await?;
    let written = unfinished.0.clone();
    let reading_back = on_disk(move || {
        opened.sync_all()?;
        Ok(store::check_backup(BufReader::new(File::open(written)?)))
    });
    let read = tokio::select! {
        read = reading_back => read.map_err(failed)??,
        () = stop.asked() => return Err(interrupted()),
    };
    if read != summary {
        return Err(Problem::failed("the backup reads back differently from what was written; it was thrown away."));
    }
    // Hours may have passed.
    check_free(file)?;
    let place = match place_of(file, &summary, stop).await? {
        Place::Free(place) => {
            check_same(&place, &unfinished.0, stop).await?;
            // A backup of that name from before is replaced at once by a whole one.
            fs::rename(&unfinished.0, &place).map_err(failed)?;
            place
        }
        Place::New(place) => {
            let failed = |error: io::Error| Problem::failed(format!("{}: {error}", place.display()));
            unfinished.take_new_name(&place).map_err(failed)?;
            place
        }
    };
    sync_folder_of(&place).map_err(failed)?;
    Ok((place, summary))
}

/// Where a backup is put.
enum Place {
    /// An earlier one of that name makes room.
    Free(PathBuf),
    /// Nothing does.
    New(PathBuf),
}

/// An earlier backup may be the last that has the damaged rows as they were. One with damaged rows may be so for others.
async fn place_of(file: &Path, summary: &Summary, stop: &mut Stop) -> Result<Place, Problem> {
    if summary.damage.count == 0 || fs::symlink_metadata(file).is_err() {
        return Ok(Place::Free(file.to_owned()));
    }
    let damaged = with_end(file, DAMAGED);
    let check = || check_free(&damaged).map_err(|problem| problem.and("it is for a backup with damaged rows"));
    check()?;
    if fs::symlink_metadata(&damaged).is_err() {
        return Ok(Place::Free(damaged));
    }
    if !is_as_damaged(&damaged, &summary.damage, stop).await? {
        return Ok(Place::New(with_end(&damaged, &time_in_name(summary.created_at))));
    }
    check()?;
    Ok(Place::Free(damaged))
}

/// The database may be another than was meant: a server that starts where the folder of its data is not mounted installs itself anew.
async fn check_same(earlier: &Path, new: &Path, stop: &mut Stop) -> Result<(), Problem> {
    let (place, new) = (earlier.to_owned(), new.to_owned());
    let reading = on_disk(move || {
        let earlier = if fs::exists(&place)? { organizations_in(&place)? } else { BTreeSet::new() };
        Ok(earlier.is_empty() || !earlier.is_disjoint(&organizations_in(&new)?))
    });
    let is_same = tokio::select! {
        read = reading => read.map_err(|error| Problem::failed(format!("{}: {error}", earlier.display())))?,
        () = stop.asked() => return Err(interrupted()),
    };
    match is_same {
        true => Ok(()),
        false => Err(Problem::conflict(format!(
            "{} is a backup of another installation: none of the organizations in it is in this database, so it is not replaced. \
             See that this is the database that you mean (--data-dir, --database-url, a disk that is not mounted), or name another file.",
            earlier.display()
        ))),
    }
}

fn organizations_in(backup: &Path) -> io::Result<BTreeSet<String>> {
    Ok(store::organizations_in_backup(BufReader::new(File::open(backup)?)))
}

/// Whether all these rows are damaged in an earlier backup too. Of one that can't be read to its end nobody knows.
async fn is_as_damaged(earlier: &Path, damage: &Damage, stop: &mut Stop) -> Result<bool, Problem> {
    let earlier = earlier.to_owned();
    let reading = on_disk(move || Ok(store::check_backup(BufReader::new(File::open(earlier)?))));
    tokio::select! {
        read = reading => Ok(matches!(read, Ok(Ok(earlier)) if damage.is_within(&earlier.damage))),
        () = stop.asked() => Err(interrupted()),
    }
}

fn with_end(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// `-2026-11-21-034558`, in UTC: before a colon, some programs look for the name of a machine.
fn time_in_name(created_at: i64) -> String {
    let time = domain::Timestamp::from_micros(created_at).to_text();
    format!("-{}", time.replace('T', "-").replace([':', 'Z'], ""))
}

/// What is meant by a name: where that is a link to an earlier backup, that one, which may be on another disk.
fn meant(file: PathBuf) -> Result<PathBuf, Problem> {
    check_free(&file)?;
    match fs::symlink_metadata(&file) {
        Ok(there) if there.is_symlink() => {
            fs::canonicalize(&file).map_err(|error| Problem::failed(format!("{}: {error}", file.display())))
        }
        Ok(_) | Err(_) => Ok(file),
    }
}

/// An earlier backup makes room for a new one. Nothing else does: a name typed wrongly may be the master key's.
fn check_free(file: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Problem::failed(format!("{}: {error}", file.display()))),
        Ok(_) => {}
    }
    // A pipe is not opened: nobody may ever write to it.
    let is_file = fs::metadata(file).is_ok_and(|there| there.is_file());
    if is_file && File::open(file).is_ok_and(|there| store::is_backup(BufReader::new(there))) {
        return Ok(());
    }
    Err(Problem::conflict(format!(
        "{} is there and is no backup that can be read, so it is not replaced: name another file, or move it away.",
        file.display()
    )))
}

/// A file that is not whole yet; gone when the command ends, however it ends.
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    pub(super) fn beside(file: &Path) -> io::Result<Self> {
        let name = file.file_name().ok_or_else(|| io::Error::other("this is no name of a file"))?;
        let mut random = [0; 32];
        SystemEntropy.fill(&mut random);
        let suffix: String = random[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(folder_of(file).join(format!(".{}.{suffix}.unfinished", name.to_string_lossy()))))
    }

    /// For its owner alone.
    pub(super) fn create(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Fails where something has that name.
    pub(super) fn take_new_name(&self, file: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.0, CWD, file, RenameFlags::NOREPLACE) {
            // A file system that can't has links, such as NFS; the name from before goes with `self`.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(&self.0, file),
            renamed => renamed.map_err(io::Error::from),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A name that was never synced is lost with the power.
pub(super) fn sync_folder_of(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

async fn write(store: &store::Store, writer: impl Write + Send + 'static, stop: &mut Stop) -> Result<Summary, Problem> {
    let flow = Arc::new(Flow::default());
    let is_watched = io::stderr().is_terminal();
    let size = if is_watched { store.read(store::size).await? } else { 0 };
    let backup = store::backup(store, Counted { inner: writer, flow: Arc::clone(&flow) });
    let mut backup = std::pin::pin!(backup);
    let (mut stopped_at, mut stall) = (None, Stall::default());
    loop {
        let now = monotonic::now();
        if stopped_at.is_some_and(|at| now - at > PATIENCE) {
            return Err(interrupted());
        }
        // It holds its snapshot, and SQLite keeps in its log whatever is written meanwhile.
        if stall.lasts(&flow, now) > LONGEST_STALL {
            return Err(Problem::failed(format!(
                "the output took nothing for {} minutes; no backup was made. See what reads it.",
                LONGEST_STALL.as_secs() / 60
            )));
        }
        tokio::select! {
            summary = &mut backup => {
                if is_watched {
                    output::progress_done();
                }
                return match summary {
                    Err(_) if flow.is_stopped() => Err(interrupted()),
                    summary => Ok(summary?),
                };
            }
            () = stop.asked() => { flow.stop(); stopped_at = stopped_at.or(Some(now)); }
            () = tokio::time::sleep(TELL_EVERY) => {
                if is_watched {
                    output::progress(&told(flow.bytes(), size));
                }
            }
        }
    }
}

/// How long the output has taken nothing of what it was given. Before it is given anything, the backup waits for its tables, which a
/// migration may hold.
#[derive(Default)]
struct Stall {
    bytes: u64,
    since: Option<Instant>,
}

impl Stall {
    fn lasts(&mut self, flow: &Flow, now: Instant) -> Duration {
        if !flow.has_begun() {
            return Duration::ZERO;
        }
        let since = self.since.filter(|_| self.bytes == flow.bytes()).unwrap_or(now);
        *self = Self { bytes: flow.bytes(), since: Some(since) };
        now - since
    }
}

/// A backup takes about as much as the database with its indexes, and is never told to be whole before it is.
fn told(written: u64, size: u64) -> String {
    let percent = written.saturating_mul(100).checked_div(size).unwrap_or(0).min(99);
    format!("{} MB written, about {percent} %", written / 1_000_000)
}

/// How much passed through, and whether it shall go on.
#[derive(Default)]
pub(super) struct Flow {
    /// There was something to write.
    begun: AtomicBool,
    bytes: AtomicU64,
    stopped: AtomicBool,
}

impl Flow {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn passed(&self, bytes: usize) -> io::Result<usize> {
        self.bytes.fetch_add(u64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
        if self.is_stopped() { Err(io::Error::other("interrupted")) } else { Ok(bytes) }
    }
}

/// A reader or writer whose flow is watched.
pub(super) struct Counted<T> {
    pub(super) inner: T,
    pub(super) flow: Arc<Flow>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flow.begin();
        let written = self.inner.write(bytes)?;
        self.flow.passed(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: io::Read> io::Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.flow.passed(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_stalls_from_when_it_is_given_something() {
        let (flow, mut stall) = (Arc::new(Flow::default()), Stall::default());
        let begun = monotonic::now();
        let mut lasts = |seconds| stall.lasts(&flow, begun + Duration::from_secs(seconds)).as_secs();
        assert_eq!([0, 600, 601].map(&mut lasts), [0, 0, 0], "it waits for its tables");
        flow.begin();
        assert_eq!([602, 603, 902].map(&mut lasts), [0, 1, 300], "nothing is taken from the start");
        let mut out = Counted { inner: io::sink(), flow: Arc::clone(&flow) };
        out.write_all(b"a line").expect("a sink takes everything");
        assert_eq!([903, 904].map(&mut lasts), [0, 1]);
    }

    #[test]
    fn a_new_name_replaces_nothing() {
        let folder = std::env::temp_dir().join(format!("dalasi-new-name-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("kept.damaged{}", time_in_name(1_795_232_758_000_123)));
        assert!(file.ends_with("kept.damaged-2026-11-21-034558"), "{}", file.display());
        let named = |content: &[u8]| {
            let unfinished = Unfinished::beside(&file).unwrap();
            unfinished.create().unwrap().write_all(content).unwrap();
            unfinished.take_new_name(&file).map_err(|error| error.kind())
        };
        assert_eq!([named(b"earlier"), named(b"later")], [Ok(()), Err(io::ErrorKind::AlreadyExists)]);
        assert_eq!(fs::read(&file).unwrap(), b"earlier");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_backup_says_about_how_far_it_is() {
        assert_eq!(told(250_000_000, 1_000_000_000), "250 MB written, about 25 %");
        assert_eq!(told(1_200_000_000, 1_000_000_000), "1200 MB written, about 99 %");
        assert_eq!(told(1, 0), "0 MB written, about 0 %");
    }
}
