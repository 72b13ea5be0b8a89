//! The folder below a lazy disk: its files by their numbers, and what of each is not synced.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::synced::{self, Synced};
use crate::seeded::Seeded;

pub(super) type Done<T> = Result<T, Errno>;

pub(super) struct Folder {
    root: PathBuf,
    nodes: BTreeMap<u64, Node>,
    /// Where a name leads, below the root.
    numbers: BTreeMap<PathBuf, u64>,
    /// As they were when somebody began to read them.
    lists: BTreeMap<u64, Vec<Listed>>,
    last: u64,
    pub(super) is_cut: bool,
}

/// A file or a folder, which may have several names, or none any more.
#[derive(Default)]
struct Node {
    names: Vec<PathBuf>,
    /// As long as somebody has it open.
    file: Option<File>,
    opened: u64,
    synced: Synced,
}

#[derive(Clone)]
pub(super) struct Listed {
    pub(super) number: u64,
    pub(super) kind: FileType,
    pub(super) name: OsString,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Self {
        let mut folder = Self {
            root: root.to_path_buf(),
            nodes: BTreeMap::new(),
            numbers: BTreeMap::new(),
            lists: BTreeMap::new(),
            last: INodeNo::ROOT.0 - 1,
            is_cut: false,
        };
        folder.number_of(PathBuf::new());
        folder
    }

    pub(super) fn find(&mut self, parent: u64, name: &OsStr) -> Done<FileAttr> {
        let name = self.name_in(parent, name)?;
        let metadata = fs::symlink_metadata(self.root.join(&name))?;
        let number = self.number_of(name);
        described(number, &metadata)
    }

    pub(super) fn attributes(&self, number: u64) -> Done<FileAttr> {
        let node = self.node(number)?;
        match &node.file {
            Some(file) => described(number, &file.metadata()?),
            None => described(number, &fs::symlink_metadata(self.path_of(node)?)?),
        }
    }

    pub(super) fn create(&mut self, parent: u64, name: &OsStr, mode: u32, owner: (u32, u32)) -> Done<FileAttr> {
        let name = self.name_in(parent, name)?;
        let path = self.root.join(&name);
        File::options().read(true).write(true).create_new(true).open(&path)?;
        let number = self.number_of(name);
        self.own(number, Some(mode), (Some(owner.0), Some(owner.1)))?;
        self.open(number)?;
        self.attributes(number)
    }

    pub(super) fn make_folder(&mut self, parent: u64, name: &OsStr, mode: u32, owner: (u32, u32)) -> Done<FileAttr> {
        let name = self.name_in(parent, name)?;
        fs::create_dir(self.root.join(&name))?;
        let number = self.number_of(name);
        self.own(number, Some(mode), (Some(owner.0), Some(owner.1)))?;
        self.attributes(number)
    }

    /// What is given is set.
    pub(super) fn own(&self, number: u64, mode: Option<u32>, owner: (Option<u32>, Option<u32>)) -> Done<()> {
        if let Some(mode) = mode {
            fs::set_permissions(self.path_of(self.node(number)?)?, Permissions::from_mode(mode & 0o7777))?;
        }
        if owner != (None, None) {
            chown(self.path_of(self.node(number)?)?, owner.0, owner.1)?;
        }
        Ok(())
    }

    pub(super) fn open(&mut self, number: u64) -> Done<()> {
        if self.node(number)?.file.is_none() {
            let file = opened(&self.path_of(self.node(number)?)?)?;
            self.node_mut(number)?.file = Some(file);
        }
        self.node_mut(number)?.opened += 1;
        Ok(())
    }

    pub(super) fn close(&mut self, number: u64) -> Done<()> {
        let node = self.node_mut(number)?;
        node.opened = node.opened.saturating_sub(1);
        if node.opened == 0 {
            node.file = None;
            self.forget(number);
        }
        Ok(())
    }

    pub(super) fn read(&self, number: u64, offset: u64, size: u32) -> Done<Vec<u8>> {
        let file = self.node(number)?.file.as_ref().ok_or(Errno::EBADF)?;
        let mut bytes = vec![0; size as usize];
        let count = synced::read(file, &mut bytes, offset)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    pub(super) fn write(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Done<u32> {
        let node = self.node_mut(number)?;
        let file = node.file.as_ref().ok_or(Errno::EBADF)?;
        node.synced.before_write(file, offset, bytes.len() as u64)?;
        file.write_all_at(bytes, offset)?;
        u32::try_from(bytes.len()).map_err(|_| Errno::EINVAL)
    }

    pub(super) fn resize(&mut self, number: u64, size: u64) -> Done<()> {
        let file = match &self.node(number)?.file {
            Some(file) => file.try_clone()?,
            None => opened(&self.path_of(self.node(number)?)?)?,
        };
        self.node_mut(number)?.synced.before_resize(&file, size)?;
        Ok(file.set_len(size)?)
    }

    /// As far as a disk is concerned that may lose its power, which this machine's does not.
    pub(super) fn sync(&mut self, number: u64) -> Done<()> {
        self.node_mut(number)?.synced = Synced::default();
        Ok(())
    }

    pub(super) fn remove(&mut self, parent: u64, name: &OsStr) -> Done<()> {
        let name = self.name_in(parent, name)?;
        fs::remove_file(self.root.join(&name))?;
        self.unname(&name);
        Ok(())
    }

    pub(super) fn remove_folder(&mut self, parent: u64, name: &OsStr) -> Done<()> {
        let name = self.name_in(parent, name)?;
        fs::remove_dir(self.root.join(&name))?;
        self.unname(&name);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Done<()> {
        let (from, to) = (self.name_in(from.0, from.1)?, self.name_in(to.0, to.1)?);
        fs::rename(self.root.join(&from), self.root.join(&to))?;
        if from == to {
            return Ok(());
        }
        self.unname(&to);
        let is_moved = |name: &&PathBuf| name.starts_with(&from);
        let moved: Vec<PathBuf> = self.numbers.keys().filter(is_moved).cloned().collect();
        for old in moved {
            let new = match old.strip_prefix(&from) {
                Ok(rest) if rest != Path::new("") => to.join(rest),
                Ok(_) | Err(_) => to.clone(),
            };
            let Some(number) = self.numbers.remove(&old) else { continue };
            self.numbers.insert(new.clone(), number);
            let names = &mut self.node_mut(number)?.names;
            names.retain(|name| *name != old);
            names.push(new);
        }
        Ok(())
    }

    pub(super) fn link(&mut self, number: u64, parent: u64, name: &OsStr) -> Done<FileAttr> {
        let name = self.name_in(parent, name)?;
        fs::hard_link(self.path_of(self.node(number)?)?, self.root.join(&name))?;
        self.numbers.insert(name.clone(), number);
        self.node_mut(number)?.names.push(name);
        self.attributes(number)
    }

    /// What is in a folder now, by the number of the list. It stays, whatever is removed meanwhile.
    pub(super) fn list(&mut self, number: u64) -> Done<u64> {
        let entries = fs::read_dir(self.path_of(self.node(number)?)?)?;
        let listed = |entry: io::Result<fs::DirEntry>| -> io::Result<Listed> {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            Ok(Listed { number: entry.ino(), kind, name: entry.file_name() })
        };
        let list = entries.map(listed).collect::<io::Result<Vec<_>>>()?;
        self.last += 1;
        self.lists.insert(self.last, list);
        Ok(self.last)
    }

    /// From that place on.
    pub(super) fn listed(&self, list: u64, offset: u64) -> Done<Vec<Listed>> {
        let list = self.lists.get(&list).ok_or(Errno::EBADF)?;
        Ok(list.iter().skip(offset as usize).cloned().collect())
    }

    pub(super) fn close_list(&mut self, list: u64) -> Done<()> {
        self.lists.remove(&list);
        Ok(())
    }

    /// The power goes.
    pub(super) fn cut(&mut self, chance: usize, random: &mut Seeded) -> io::Result<()> {
        self.is_cut = true;
        for node in self.nodes.values_mut() {
            let synced = std::mem::take(&mut node.synced);
            // What has no name any more is gone.
            if let Some(name) = node.names.first().filter(|_| !synced.is_all()) {
                synced.restore(&opened(&self.root.join(name))?, chance, random)?;
            }
        }
        Ok(())
    }

    fn node(&self, number: u64) -> Done<&Node> {
        self.nodes.get(&number).ok_or(Errno::ESTALE)
    }

    fn node_mut(&mut self, number: u64) -> Done<&mut Node> {
        self.nodes.get_mut(&number).ok_or(Errno::ESTALE)
    }

    fn path_of(&self, node: &Node) -> Done<PathBuf> {
        Ok(self.root.join(node.names.first().ok_or(Errno::ESTALE)?))
    }

    fn name_in(&self, parent: u64, name: &OsStr) -> Done<PathBuf> {
        Ok(self.node(parent)?.names.first().ok_or(Errno::ESTALE)?.join(name))
    }

    fn number_of(&mut self, name: PathBuf) -> u64 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        self.last += 1;
        self.nodes.insert(self.last, Node { names: vec![name.clone()], ..Node::default() });
        self.numbers.insert(name, self.last);
        self.last
    }

    fn unname(&mut self, name: &Path) {
        let Some(number) = self.numbers.remove(name) else { return };
        if let Ok(node) = self.node_mut(number) {
            node.names.retain(|other| other != name);
        }
        self.forget(number);
    }

    /// Unless it has a name, or somebody has it open.
    fn forget(&mut self, number: u64) {
        if self.nodes.get(&number).is_some_and(|node| node.names.is_empty() && node.opened == 0) {
            self.nodes.remove(&number);
        }
    }
}

fn opened(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

fn described(number: u64, metadata: &Metadata) -> Done<FileAttr> {
    Ok(FileAttr {
        ino: INodeNo(number),
        size: metadata.len(),
        blocks: metadata.blocks(),
        atime: at(metadata.atime(), metadata.atime_nsec()),
        mtime: at(metadata.mtime(), metadata.mtime_nsec()),
        ctime: at(metadata.ctime(), metadata.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: FileType::from_std(metadata.file_type()).ok_or(Errno::EIO)?,
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: metadata.nlink() as u32,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4_096,
        flags: 0,
    })
}

fn at(seconds: i64, nanoseconds: i64) -> SystemTime {
    let since = |seconds: i64| u64::try_from(seconds).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since(seconds)) + Duration::from_nanos(since(nanoseconds))
}
