//! A disk that can lose its power below a process that is not ours: a file system (FUSE) over a folder.
//!
//! What is written is in the folder at once; beside it is remembered, sector by sector, what the last sync of a file covers and
//! something newer has replaced. When the power goes, the folder becomes what such a disk may hold: of each sector and each length
//! that no sync covers the newest or the synced. From then on every call fails.
//!
//! Simpler than a disk: names are made, changed and removed at once and in order, a sector is never one of the versions between,
//! and where a file has grown, what is lost is zeros. `O_SYNC` and `O_DSYNC` are not obeyed, times that somebody sets are not kept,
//! and there are no symbolic links.

mod folder;
mod synced;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use self::folder::{Done, Folder};
use crate::seeded::Seeded;

/// How long the system need not ask again what it was told of a name or a file: nobody else changes any.
const FRESH: Duration = Duration::from_secs(1);
/// A file of a process that was killed is let go a little after its end.
const LETTING_GO: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file system over a folder, while it lives.
pub struct LazyDisk {
    folder: Arc<Mutex<Folder>>,
    mounted_at: PathBuf,
    /// Ends when it is dropped.
    _session: BackgroundSession,
}

impl LazyDisk {
    /// All that is in the folder is synced.
    ///
    /// # Errors
    ///
    /// There is no FUSE here, or we may not mount; `at` is no empty folder.
    pub fn mount(folder: &Path, at: &Path) -> io::Result<Self> {
        // What others have open is open here.
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
        let folder = Arc::new(Mutex::new(Folder::new(folder)));
        let mut config = Config::default();
        // Some programs, PostgreSQL among them, refuse to be root's, so that another account comes in then.
        config.acl = if getuid().is_root() { SessionACL::All } else { SessionACL::Owner };
        let session = fuser::spawn_mount(Files(Arc::clone(&folder)), at, &config)?;
        Ok(Self { folder, mounted_at: at.to_path_buf(), _session: session })
    }

    /// Tries it.
    ///
    /// # Errors
    ///
    /// Why there is none to be had here.
    pub fn can_be_had() -> Result<(), &'static str> {
        let [place, folder, at] = folders();
        let mounted = Self::mount(&folder, &at).map(drop);
        // Nothing of ours hangs on it.
        let _ = fs::remove_dir_all(&place);
        mounted.map_err(|_| "it takes a file system of our own: /dev/fuse, and root or fusermount3")
    }

    /// The power goes: so many in a hundred of the sectors and lengths that no sync covers were written all the same.
    ///
    /// # Errors
    ///
    /// What is below could not be made what it is to be.
    pub fn cut(&self, chance: usize, random: &mut Seeded) -> io::Result<()> {
        locked(&self.folder).cut(chance, random)
    }
}

impl Drop for LazyDisk {
    #[expect(
        clippy::disallowed_methods,
        reason = "who has the disk waits for it to be let go, and nobody else is there"
    )]
    fn drop(&mut self) {
        for _ in 0..LETTING_GO {
            match unmount(&self.mounted_at, UnmountFlags::empty()) {
                Err(rustix::io::Errno::BUSY) => std::thread::sleep(PAUSE),
                // Done, or not ours to do: then the session asks who may.
                Ok(()) | Err(_) => return,
            }
        }
        // Whoever still holds it keeps what answers nothing.
        let _ = unmount(&self.mounted_at, UnmountFlags::DETACH);
    }
}

/// A place for a disk: the folder below it, and where it is mounted.
fn folders() -> [PathBuf; 3] {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let place = std::env::temp_dir().join(format!("dalasi-lazy-disk-{}-{number}", std::process::id()));
    let (folder, at) = (place.join("folder"), place.join("at"));
    fs::create_dir_all(&folder).and_then(|()| fs::create_dir(&at)).expect("a folder of our own");
    [place, folder, at]
}

fn locked(folder: &Mutex<Folder>) -> MutexGuard<'_, Folder> {
    folder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the system asks. Nothing in here may panic: whoever waits for an answer would wait for ever.
struct Files(Arc<Mutex<Folder>>);

impl Files {
    /// Without power nothing works.
    fn with<T>(&self, act: impl FnOnce(&mut Folder) -> Done<T>) -> Done<T> {
        let mut folder = locked(&self.0);
        if folder.is_cut { Err(Errno::EIO) } else { act(&mut folder) }
    }
}

fn entry(reply: ReplyEntry, found: Done<FileAttr>) {
    match found {
        Ok(attributes) => reply.entry(&FRESH, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn attributes(reply: ReplyAttr, found: Done<FileAttr>) {
    match found {
        Ok(attributes) => reply.attr(&FRESH, &attributes),
        Err(error) => reply.error(error),
    }
}

fn done(reply: ReplyEmpty, done: Done<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// A number that belongs to nobody: a file is known by its node.
const NO_HANDLE: FileHandle = FileHandle(0);
/// Every write comes here before it returns, and none is kept elsewhere.
const AT_ONCE: FopenFlags = FopenFlags::FOPEN_DIRECT_IO;

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.with(|folder| folder.find(parent.0, name)));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.with(|folder| folder.attributes(node.0)));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = self.with(|folder| {
            if let Some(size) = size {
                folder.resize(node.0, size)?;
            }
            folder.own(node.0, mode, (user, group))?;
            folder.attributes(node.0)
        });
        attributes(reply, changed);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let owner = (request.uid(), request.gid());
        entry(reply, self.with(|folder| folder.make_folder(parent.0, name, mode & !umask, owner)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.with(|folder| folder.remove(parent.0, name)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.with(|folder| folder.remove_folder(parent.0, name)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.with(|folder| {
            if flags.is_empty() {
                folder.rename((parent.0, name), (new_parent.0, new_name))
            } else {
                Err(Errno::EINVAL)
            }
        });
        done(reply, renamed);
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.with(|folder| folder.link(node.0, parent.0, name)));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        match self.with(|folder| folder.create(parent.0, name, mode & !umask, owner)) {
            Ok(attributes) => reply.created(&FRESH, &attributes, Generation(0), NO_HANDLE, AT_ONCE),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.with(|folder| folder.open(node.0)) {
            Ok(()) => reply.opened(NO_HANDLE, AT_ONCE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.with(|folder| folder.read(node.0, offset, size)) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.with(|folder| folder.write(node.0, offset, bytes)) {
            Ok(count) => reply.written(count),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.with(|folder| folder.sync(node.0)));
    }

    fn release(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.with(|folder| folder.close(node.0)));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.with(|folder| folder.list(node.0)) {
            Ok(list) => reply.opened(FileHandle(list), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, list: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.with(|folder| folder.listed(list.0, offset)) {
            Ok(rest) => {
                for (next, listed) in (offset + 1..).zip(rest) {
                    if reply.add(INodeNo(listed.number), next, listed.kind, &listed.name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, list: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        done(reply, self.with(|folder| folder.close_list(list.0)));
    }

    /// Names are there at once.
    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(reply, self.with(|_| Ok(())));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_no_sync_covers_goes_with_the_power() {
        if let Err(why) = LazyDisk::can_be_had() {
            let line = format!("NOT RUN: a disk that loses its power: {why}\n");
            return io::stderr().write_all(line.as_bytes()).unwrap();
        }
        let [place, folder, at] = folders();
        let disk = LazyDisk::mount(&folder, &at).unwrap();
        fs::create_dir(at.join("inner")).unwrap();
        let mut file = fs::File::create_new(at.join("inner/first")).unwrap();
        file.write_all(b"synced").unwrap();
        file.sync_data().unwrap();
        file.write_all(b" and not").unwrap();
        fs::rename(at.join("inner"), at.join("outer")).unwrap();
        fs::rename(at.join("outer/first"), at.join("outer/second")).unwrap();
        assert_eq!(fs::read_to_string(at.join("outer/second")).unwrap(), "synced and not");
        fs::hard_link(at.join("outer/second"), at.join("third")).unwrap();
        fs::remove_file(at.join("outer/second")).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 14);
        let names: Vec<_> = fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");

        disk.cut(0, &mut Seeded::new(1)).unwrap();
        assert!(file.write_all(b" more").is_err());
        assert!(file.sync_data().is_err());
        drop(file);
        drop(disk);
        assert_eq!(fs::read_to_string(folder.join("third")).unwrap(), "synced");
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "it is mounted no more");
        fs::remove_dir_all(place).unwrap();
    }
}
