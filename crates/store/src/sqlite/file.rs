//! The database file on disk: readable by its owner alone, served by one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// The next step of whoever may not reach a file.
pub(super) const WHOSE: &str = "If it belongs to another user, run this as the user of the service";

/// SQLite gives its write-ahead log the permissions of the database file, so setting them here is enough.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    let create = || -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        // A file whose folder entry was never synced is lost with the power, however well its content was synced.
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    };
    create().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::Unavailable(format!("{} can't be opened or made: {error}. {WHOSE}", path.display()))
        }
        _ => Error::Unavailable(format!("{} can't be created: {error}", path.display())),
    })
}

pub(crate) fn require(path: &Path) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
        return Ok(());
    }
    Err(Error::Unavailable(format!("there is no database at {}", path.display())))
}

/// Of the file that is there, by whatever links it is named. Held until the last clone is dropped; the system releases it when the
/// process ends, however it ends.
pub(crate) fn lock(path: &Path) -> Result<Arc<File>, Error> {
    let failed = |error: io::Error| Error::Unavailable(format!("{} can't be locked: {error}", path.display()));
    let mut name = fs::canonicalize(path).map_err(failed)?.into_os_string();
    name.push(".lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(name)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Arc::new(file)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(format!(
            "{} is served by another process: stop it first, or use PostgreSQL to run several",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Removed with everything in it when dropped; connections that are still open keep their files until they close.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(crate) fn create() -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("dalasi-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::Unavailable(format!("{} can't be created: {error}", path.display()))),
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "a temporary folder stays behind");
        }
    }
}
