//! A disk whose power can go: the files of the driver that serves, and what may be left of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use power_cut::{Disk, Image, Recording, Step};
use store::{Database, Settings, Store};

use crate::world::{SimClock, SimEntropy};

const FILE: &str = "dalasi.sqlite";

/// A folder, which is free for another one when this one is gone.
pub(crate) struct PoweredDisk {
    // First of the two: a folder that is free is recorded by nobody.
    recording: Arc<Recording>,
    folder: Folder,
}

struct Folder(PathBuf);

impl PoweredDisk {
    /// One on which there is this and nothing else.
    pub(crate) fn holding(image: &Image) -> Self {
        let folder = scratch();
        power_cut::write(image, &folder.0).expect("an image can be written");
        Self { recording: Recording::start(&folder.0), folder }
    }

    /// By the driver that serves, with its threads, its shared commits and its log.
    pub(crate) async fn open(&self, clock: Arc<SimClock>, entropy: Arc<SimEntropy>) -> Store {
        let settings = Settings::new(Database::Sqlite { path: self.folder.0.join(FILE) });
        // A history does one thing at a time.
        let settings = Settings { connections: 1, ..settings };
        Store::open(settings, clock, entropy).await.expect("what a loss of power leaves can be opened")
    }

    /// How many steps it has done. What is acknowledged after so many is there whenever the power goes from here on.
    pub(crate) fn position(&self) -> usize {
        self.recording.position()
    }

    /// Behind how many steps it is known which files were there when it was opened.
    pub(crate) fn opened(&self) -> usize {
        let steps = self.recording.steps();
        steps.iter().rposition(|step| matches!(step, Step::Open { is_new: false, .. })).map_or(0, |last| last + 1)
    }

    /// What may be on it if the power goes after so many steps; `luck` decides about what was not synced.
    pub(crate) fn left_at(&self, position: usize, luck: u64) -> Image {
        let steps = self.recording.steps();
        let mut disk = Disk::new(&steps);
        disk.advance(position);
        disk.image(luck)
    }

    /// What is on it, when nobody has it open.
    pub(crate) fn content(&self) -> Image {
        let entries = std::fs::read_dir(&self.folder.0).expect("the folder is there");
        let read = entries.map(|entry| {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a file can be read"))
        });
        read.collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let entries = std::fs::read_dir(&self.0).expect("the folder is there");
        for entry in entries {
            std::fs::remove_file(entry.expect("an entry can be read").path()).expect("a file can be removed");
        }
        free_folders().push(std::mem::take(&mut self.0));
    }
}

/// Empty ones. They stay as long as there are histories: SQLite has one folder for the temporary files of a whole process, that of
/// the database that was opened last, whoever's it is.
fn free_folders() -> MutexGuard<'static, Vec<PathBuf>> {
    static FREE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Behind the last history.
pub(crate) fn remove_folders() {
    for folder in free_folders().drain(..) {
        std::fs::remove_dir(&folder).expect("an empty folder can be removed");
    }
}

/// An empty folder in memory, where there is one: the record says what a disk would hold.
fn scratch() -> Folder {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = free_folders().pop() {
        return Folder(folder);
    }
    let name = format!("dalasi-sim-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.join(name) } else { std::env::temp_dir().join(name) };
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    Folder(folder)
}
