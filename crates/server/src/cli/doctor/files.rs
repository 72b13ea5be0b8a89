//! Who may read and write the files that hold secrets and settings.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::report::Finding;
use crate::cli::installation::DATABASE_FILE;
use crate::config::{self, Database, ServeSettings};
use crate::secrets::{KeyFileFault, load_key_file};

/// Bits of a file's mode.
const OTHERS_READ: u32 = 0o004;
const OTHERS_OR_GROUP: u32 = 0o077;
const OTHERS_OR_GROUP_WRITE: u32 = 0o022;

pub(super) struct Files {
    key: PathBuf,
    config: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    /// Secrets that the group may read: root gives them to the service so.
    secrets: Vec<PathBuf>,
}

impl Files {
    pub(super) fn of(settings: &ServeSettings, config: Option<PathBuf>) -> Self {
        let password = settings.mail.as_ref().and_then(|mail| mail.password_file()).map(Path::to_owned);
        let tls_key = settings.tls.as_ref().map(|files| files.key.clone());
        let data_dir = match &settings.store.database {
            Database::Sqlite { data_dir } => Some(data_dir.clone()),
            Database::Postgres { .. } => None,
        };
        let config = config.filter(|path| !path.as_os_str().is_empty());
        Self {
            key: settings.store.key_file.clone(),
            config,
            data_dir,
            secrets: password.into_iter().chain(tls_key).collect(),
        }
    }

    /// To be called where a file system may hang.
    pub(super) fn look(self) -> impl FnOnce() -> Vec<Finding> + Send + 'static {
        move || {
            let mut findings = vec![self.key()];
            findings.extend(self.config());
            findings.extend(self.data());
            let secret = |path: &PathBuf| {
                judged(path, |mode| mode & OTHERS_READ == 0, "holds a secret, and everybody may read it", "640")
            };
            findings.extend(self.secrets.iter().filter_map(secret));
            findings
        }
    }

    fn key(&self) -> Finding {
        match load_key_file(&self.key) {
            Ok(_) => Finding::ok(format!("{}: only its owner reads the master key", self.key.display())),
            Err(fault) => Finding::failed(
                fault.to_string(),
                match &fault {
                    KeyFileFault::Missing(_) => {
                        "Put the master key back (backups leave it out), or name it with --key-file; for a new installation \
                     `dalasi init` makes it."
                    }
                    KeyFileFault::Permissions { .. } => {
                        "Close it as said. Whoever read it can open every stored secret."
                    }
                    KeyFileFault::Malformed(_) => {
                        "Put the right file there: the copy that you keep apart from the backups."
                    }
                    KeyFileFault::Io { .. } | KeyFileFault::Exists(_) => "Run this as the user of the service.",
                },
            ),
        }
    }

    fn config(&self) -> Option<Finding> {
        let path = self.config.as_ref()?;
        let written = judged(
            path,
            |mode| mode & OTHERS_OR_GROUP_WRITE == 0,
            "others than its owner may change the settings",
            "640",
        );
        if written.is_some() {
            return written;
        }
        if config::holds_password(path) {
            let read =
                judged(path, |mode| mode & OTHERS_READ == 0, "holds a password, and everybody may read it", "640");
            if read.is_some() {
                return read;
            }
        }
        Some(Finding::ok(format!("{}: nobody changes or reads what they should not", path.display())))
    }

    fn data(&self) -> Vec<Finding> {
        let Some(folder) = &self.data_dir else { return Vec::new() };
        let mut findings = Vec::new();
        findings.extend(judged(
            folder,
            |mode| mode & OTHERS_OR_GROUP_WRITE == 0,
            "others may put files into the data folder",
            "700",
        ));
        for ending in ["", "-wal", "-shm"] {
            let file = folder.join(format!("{DATABASE_FILE}{ending}"));
            findings.extend(judged(
                &file,
                |mode| mode & OTHERS_OR_GROUP == 0,
                "others than its owner may read or write the data",
                "600",
            ));
        }
        if findings.is_empty() && folder.is_dir() {
            findings.push(Finding::ok(format!("{}: only its owner reads the data", folder.display())));
        }
        findings
    }
}

/// What is wrong with a file, if anything is. One that is not there is no fault here.
fn judged(path: &Path, is_well: impl Fn(u32) -> bool, fault: &str, right_mode: &str) -> Option<Finding> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            return Some(Finding::failed(
                format!("{}: {error}", path.display()),
                "Run this as the user of the service.",
            ));
        }
    };
    let mode = metadata.permissions().mode() & 0o777;
    let found = format!("{} has mode {mode:04o}: {fault}", path.display());
    (!is_well(mode)).then(|| Finding::failed(found, format!("chmod {right_mode} {}", path.display())))
}
