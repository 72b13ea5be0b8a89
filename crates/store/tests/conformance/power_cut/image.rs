//! Looks into an image: as SQLite sees it, and now and then as the product does.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use power_cut::Image;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::Runtime;

use super::workload::{JOBS, open};

pub(super) const FILE: &str = "dalasi.sqlite";
/// Every so many images the product's own driver opens one, which migrates what is left to migrate.
const OPENED_BY_THE_DRIVER: u64 = 40;

/// A new folder in memory, where there is one: whether an image lies on a disk makes no difference to what is in it.
pub(super) fn scratch() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("dalasi-power-cut-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.join(name) } else { std::env::temp_dir().join(name) };
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(super) struct Bench {
    folder: PathBuf,
    runtime: Runtime,
    images: u64,
}

impl Bench {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { folder: scratch(), runtime, images: 0 }
    }

    /// Or what is wrong with it.
    pub(super) fn check(&mut self, image: &Image, acknowledged: i64) -> Result<(), String> {
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        power_cut::write(image, &self.folder).unwrap();
        self.images += 1;
        if self.images.is_multiple_of(OPENED_BY_THE_DRIVER) {
            let opened = self.runtime.block_on(open(&self.folder, false));
            let store = opened.map_err(|error| format!("the driver refuses it: {error}"))?;
            self.runtime.block_on(store.close());
        }
        let file = self.folder.join(FILE);
        if !file.exists() {
            // Cut before the first sync of the folder.
            return if acknowledged == 0 { Ok(()) } else { Err("there is no database any more".to_owned()) };
        }
        look(&file, acknowledged).map_err(|error| format!("not readable: {error}"))?
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn look(path: &Path, acknowledged: i64) -> rusqlite::Result<Result<(), String>> {
    let sqlite =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    sqlite.pragma_update(None, "synchronous", "off")?;
    let whole: String = sqlite.query_row("pragma integrity_check(1)", [], |row| row.get(0))?;
    if whole != "ok" {
        return Ok(Err(format!("integrity: {whole}")));
    }
    let number =
        |sql: &str| sqlite.query_row(sql, [], |row| row.get::<_, Option<i64>>(0)).map(Option::unwrap_or_default);
    if number("select count(*) from sqlite_master where name = 'ledger_log'")? == 0 {
        // Still migrating: nothing can have been acknowledged.
        return Ok(if acknowledged == 0 { Ok(()) } else { Err("the schema is gone".to_owned()) });
    }
    let present = number("select max(last_number) from counters")?;
    let found = [
        ("answers", number("select count(*) from idempotency_keys")?, present),
        ("entries", number("select count(distinct entry_id) from ledger_postings")?, present),
        ("the last entry", number("select max(cast(entry_id as integer)) from ledger_postings")?, present),
        (
            "postings",
            number("select count(*) from ledger_postings")?,
            number("select sum(status) from idempotency_keys")?,
        ),
        ("the ledger's sum", number("select sum(amount_minor) from ledger_postings")?, 0),
        ("jobs", number("select count(*) from jobs where kind = 'cut'")?, present.min(JOBS)),
    ];
    for (what, is, should) in found {
        if is != should {
            return Ok(Err(format!("of {present} transactions: {what} {is} instead of {should}")));
        }
    }
    if present < acknowledged {
        return Ok(Err(format!("{acknowledged} transactions were acknowledged, {present} are there")));
    }
    Ok(Ok(()))
}
