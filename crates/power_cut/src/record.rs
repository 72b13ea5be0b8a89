//! The record: what SQLite asked of its files, in the order in which it was answered.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::vfs;

/// A file from its creation to its deletion. One that is made anew under the same name is another file.
pub(crate) type FileNo = usize;

#[derive(Clone, Debug)]
pub enum Step {
    /// It is there, with this content. The product itself has synced the entry of a file that was there before SQLite came.
    Open {
        file: usize,
        name: String,
        is_new: bool,
        content: Vec<u8>,
    },
    Write {
        file: usize,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: usize,
        size: usize,
    },
    /// What stands before step `began` is on the disk; what was written meanwhile may be.
    Sync {
        file: usize,
        began: usize,
    },
    Delete {
        name: String,
        is_synced: bool,
    },
}

/// Ends when it is dropped.
pub struct Recording {
    folder: PathBuf,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    steps: Vec<Step>,
    files: usize,
    present: Vec<(String, FileNo)>,
}

static RECORDINGS: Mutex<Vec<Weak<Recording>>> = Mutex::new(Vec::new());

impl Recording {
    /// Of what SQLite does in this process with the files of `folder` that it opens from now on.
    #[must_use]
    pub fn start(folder: &Path) -> Arc<Self> {
        vfs::register();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let recording = Arc::new(Self { folder, notes: Mutex::default() });
        let mut recordings = RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner);
        recordings.retain(|known| known.strong_count() > 0);
        recordings.push(Arc::downgrade(&recording));
        recording
    }

    /// How many steps there are. What is acknowledged after this many must be in every image from here on.
    #[must_use]
    pub fn position(&self) -> usize {
        self.notes().steps.len()
    }

    /// The steps so far.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.notes().steps.clone()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(path: &Path) -> Option<(Arc<Self>, String)> {
        let recordings = RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = recordings.iter().filter_map(Weak::upgrade).find(|known| path.parent() == Some(&*known.folder))?;
        Some((found, path.file_name()?.to_string_lossy().into_owned()))
    }

    pub(crate) fn opened(&self, name: &str, before: Option<Vec<u8>>) -> FileNo {
        let mut notes = self.notes();
        if let Some((_, file)) = notes.present.iter().find(|(present, _)| present == name) {
            return *file;
        }
        let file = notes.files;
        notes.files += 1;
        notes.present.push((name.to_owned(), file));
        let is_new = before.is_none();
        notes.steps.push(Step::Open { file, name: name.to_owned(), is_new, content: before.unwrap_or_default() });
        file
    }

    pub(crate) fn deleted(&self, name: &str, is_synced: bool) {
        let mut notes = self.notes();
        notes.present.retain(|(present, _)| present != name);
        notes.steps.push(Step::Delete { name: name.to_owned(), is_synced });
    }

    pub(crate) fn wrote(&self, file: FileNo, offset: usize, bytes: &[u8]) {
        self.notes().steps.push(Step::Write { file, offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn truncated(&self, file: FileNo, size: usize) {
        self.notes().steps.push(Step::Truncate { file, size });
    }

    pub(crate) fn synced(&self, file: FileNo, began: usize) {
        self.notes().steps.push(Step::Sync { file, began });
    }
}
