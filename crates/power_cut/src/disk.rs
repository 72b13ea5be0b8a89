//! The disk at the moment of the cut.
//!
//! Of each file there is what its last sync covers, and what came after it. The disk is free to have written any of the
//! latter, in any order, in sectors; a later sector may be there without an earlier one. Folder entries are kept in order,
//! as journals of file systems do, and a file's own first sync keeps its entry (SQLite syncs the folder with it).

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::record::{FileNo, Step};
use crate::seeded::Seeded;

const SECTOR: usize = 512;

/// Names and contents.
pub type Image = BTreeMap<String, Vec<u8>>;

/// Plays a record, forwards only.
pub struct Disk<'a> {
    steps: &'a [Step],
    position: usize,
    files: BTreeMap<FileNo, File>,
    /// Entries that are certainly there, and then changes that may be.
    entries: BTreeMap<String, FileNo>,
    changes: Vec<Change>,
}

#[derive(Default)]
struct File {
    synced: Vec<u8>,
    /// Positions of steps that no sync covers.
    pending: Vec<usize>,
}

enum Change {
    Made(String, FileNo),
    Gone(String),
}

/// How much of what was not synced is there.
#[derive(Clone, Copy)]
struct Luck {
    chance: usize,
    /// What was lost in the middle of a file that grew: zeros, or what happened to stand on the disk.
    is_garbage: bool,
}

impl<'a> Disk<'a> {
    #[must_use]
    pub fn new(steps: &'a [Step]) -> Self {
        Self { steps, position: 0, files: BTreeMap::new(), entries: BTreeMap::new(), changes: Vec::new() }
    }

    /// # Panics
    /// When that is behind it.
    pub fn advance(&mut self, position: usize) {
        assert!(self.position <= position, "a disk is played forwards");
        while self.position < position {
            self.step(self.position);
            self.position += 1;
        }
    }

    fn step(&mut self, at: usize) {
        match &self.steps[at] {
            Step::Open { file, name, is_new, content } => {
                self.files.insert(*file, File { synced: content.clone(), pending: Vec::new() });
                if *is_new {
                    self.changes.push(Change::Made(name.clone(), *file));
                } else {
                    self.entries.insert(name.clone(), *file);
                }
            }
            Step::Write { file, .. } | Step::Truncate { file, .. } => self.file(*file).pending.push(at),
            Step::Sync { file, began } => {
                let steps = self.steps;
                let known = self.file(*file);
                for step in std::mem::take(&mut known.pending) {
                    if step < *began {
                        apply(&mut known.synced, &steps[step]);
                    } else {
                        known.pending.push(step);
                    }
                }
                let made = |change: &Change| matches!(change, Change::Made(_, made) if made == file);
                if let Some(made) = self.changes.iter().position(made) {
                    self.settle(made + 1);
                }
            }
            Step::Delete { name, is_synced } => {
                self.changes.push(Change::Gone(name.clone()));
                if *is_synced {
                    self.settle(self.changes.len());
                }
            }
        }
    }

    fn file(&mut self, file: FileNo) -> &mut File {
        self.files.get_mut(&file).expect("a file is opened before anything is done with it")
    }

    /// The first `count` changes are on the disk.
    fn settle(&mut self, count: usize) {
        for change in self.changes.drain(..count) {
            change.make(&mut self.entries);
        }
    }

    /// What may be found when the power is back.
    #[must_use]
    pub fn image(&self, seed: u64) -> Image {
        let mut seeded = Seeded::new(seed);
        let luck = Luck { chance: [0, 100, 50, 5, 95][seeded.below(5)], is_garbage: seeded.in_hundred(25) };
        let mut entries = self.entries.clone();
        let kept = seeded.below(self.changes.len() + 1);
        for change in &self.changes[..kept] {
            change.make(&mut entries);
        }
        let content = |(name, file): (String, FileNo)| (name, self.content(&self.files[&file], luck, &mut seeded));
        entries.into_iter().map(content).collect()
    }

    fn content(&self, file: &File, luck: Luck, seeded: &mut Seeded) -> Vec<u8> {
        let mut content = file.synced.clone();
        for step in &file.pending {
            match &self.steps[*step] {
                Step::Truncate { size, .. } if seeded.in_hundred(luck.chance) => content.resize(*size, 0),
                Step::Write { offset, bytes, .. } => scatter(&mut content, *offset, bytes, luck, seeded),
                Step::Truncate { .. } | Step::Open { .. } | Step::Sync { .. } | Step::Delete { .. } => {}
            }
        }
        content
    }
}

impl Change {
    fn make(&self, entries: &mut BTreeMap<String, FileNo>) {
        match self {
            Self::Made(name, file) => drop(entries.insert(name.clone(), *file)),
            Self::Gone(name) => drop(entries.remove(name)),
        }
    }
}

fn apply(content: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write { offset, bytes, .. } => put(content, *offset, bytes),
        Step::Truncate { size, .. } => content.resize(*size, 0),
        Step::Open { .. } | Step::Sync { .. } | Step::Delete { .. } => {}
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// Those sectors of a write that luck has kept.
fn scatter(content: &mut Vec<u8>, offset: usize, bytes: &[u8], luck: Luck, seeded: &mut Seeded) {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done;
        let next = (SECTOR - at % SECTOR).min(bytes.len() - done);
        if seeded.in_hundred(luck.chance) {
            let hole = content.len()..at.max(content.len());
            put(content, at, &bytes[done..done + next]);
            if luck.is_garbage {
                content[hole].fill_with(|| seeded.number().to_le_bytes()[0]);
            }
        }
        done += next;
    }
}

/// Into a folder that holds nothing else.
pub fn write(image: &Image, folder: &Path) -> io::Result<()> {
    image.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))
}
