//! The file that holds the master key: one line, `dalasi-master-key:v1:<base64 of 32 bytes>`, mode 0600.
//!
//! Creating never overwrites: the key is written and synced under a temporary name and then linked to its own,
//! which fails where a file exists. A loss of power leaves either no key file or a whole one.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::MasterKey;

const HEAD: &str = "dalasi-master-key:v1:";
const LONGEST_FILE: u64 = 1024;

/// Why a key file can't be used. The sentences are for the operator and hold no part of the key.
#[derive(Debug)]
pub enum KeyFileFault {
    /// There is no such file.
    Missing(PathBuf),
    /// There is one already; it is never replaced.
    Exists(PathBuf),
    /// Others than its owner may read or write it.
    Permissions { path: PathBuf, mode: u32 },
    /// It isn't a key file, or is damaged.
    Malformed(PathBuf),
    /// The file system said no.
    Io { path: PathBuf, error: io::Error },
}

/// Writes a new key file with `key` and returns the key. Refuses where a file exists.
pub fn create_key_file(path: &Path, key: [u8; 32]) -> Result<MasterKey, KeyFileFault> {
    let io_fault = |error| KeyFileFault::Io { path: path.to_owned(), error };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| KeyFileFault::Malformed(path.to_owned()))?;
    // Random, so that creators which share a process id (containers on one volume) don't share a file.
    let mut suffix = [0_u8; 8];
    aws_lc_rs::rand::fill(&mut suffix).expect("the operating system always has randomness to give");
    let suffix = u64::from_ne_bytes(suffix);
    let temporary = folder.join(format!(".{}.{suffix:016x}.new", name.to_string_lossy()));

    let line = Zeroizing::new(format!("{HEAD}{}\n", *Zeroizing::new(STANDARD.encode(key))));
    let written = write_synced(&temporary, line.as_bytes()).and_then(|()| fs::hard_link(&temporary, path));
    let removed = match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(KeyFileFault::Exists(path.to_owned()));
        }
        other => other.map_err(io_fault)?,
    }
    removed.map_err(io_fault)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_fault)?;
    Ok(MasterKey::from_bytes(key))
}

/// Reads a key file; refuses one that others than its owner can reach.
pub fn load_key_file(path: &Path) -> Result<MasterKey, KeyFileFault> {
    let io_fault = |error| KeyFileFault::Io { path: path.to_owned(), error };
    let malformed = || KeyFileFault::Malformed(path.to_owned());
    // Looked at by name first: opening a pipe would wait for a writer.
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeyFileFault::Missing(path.to_owned()));
        }
        Err(error) => return Err(io_fault(error)),
        Ok(metadata) if !metadata.is_file() => return Err(malformed()),
        Ok(_) => {}
    }
    let file = File::open(path).map_err(io_fault)?;
    // And again on what was opened, which is what is read.
    let metadata = file.metadata().map_err(io_fault)?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileFault::Permissions { path: path.to_owned(), mode });
    }
    let mut text = Zeroizing::new(String::with_capacity(LONGEST_FILE as usize));
    match file.take(LONGEST_FILE).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(malformed()),
        other => other.map_err(io_fault)?,
    };
    let encoded = text.trim_end_matches(['\r', '\n']).strip_prefix(HEAD).ok_or_else(malformed)?;
    let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| malformed())?);
    let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| malformed())?;
    Ok(MasterKey::from_bytes(key))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl fmt::Display for KeyFileFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(formatter, "there is no key file at {}", path.display()),
            Self::Exists(path) => write!(formatter, "{} exists already and is not replaced", path.display()),
            Self::Permissions { path, mode } => write!(
                formatter,
                "{} has mode {mode:04o}: only its owner may reach the key (chmod 600 {})",
                path.display(),
                path.display()
            ),
            Self::Malformed(path) => {
                write!(formatter, "{} is not a Dalasi key file", path.display())
            }
            Self::Io { path, error } => write!(formatter, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for KeyFileFault {}
