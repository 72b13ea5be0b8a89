//! SQLite's own file system with a look over its shoulder: each call goes on to the one that was there, and what changes a
//! recorded file is noted once it has succeeded. Locks, shared memory and everything else stay as they are.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use crate::record::{FileNo, Recording};

/// What SQLite allocates for an open file: this, and behind it the underlying file system's own.
#[repr(C)]
struct RecordedFile {
    methods: *const ffi::sqlite3_io_methods,
    noted: *mut Noted,
}

struct Noted {
    recording: Arc<Recording>,
    file: FileNo,
    delete_on_close: Option<String>,
}

/// The address of the underlying file system, which SQLite never frees.
static UNDERLYING: OnceLock<usize> = OnceLock::new();

pub(crate) fn register() {
    UNDERLYING.get_or_init(|| {
        // SAFETY: asked for no name, SQLite returns its default file system, which lives as long as the process.
        let underlying = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        assert!(!underlying.is_null(), "SQLite has a file system");
        // SAFETY: it is not null and nobody changes it after SQLite has set it up.
        let copied = unsafe { *underlying };
        let size = c_int::try_from(size_of::<RecordedFile>()).expect("two pointers are small");
        let ours = Box::leak(Box::new(ffi::sqlite3_vfs {
            szOsFile: copied.szOsFile + size,
            zName: c"recorded".as_ptr(),
            pNext: std::ptr::null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            ..copied
        }));
        // SAFETY: it lives for ever, and so does its name.
        let registered = unsafe { ffi::sqlite3_vfs_register(ours, 1) };
        assert_eq!(registered, ffi::SQLITE_OK, "SQLite takes a file system");
        underlying as usize
    });
}

fn underlying() -> *mut ffi::sqlite3_vfs {
    *UNDERLYING.get().expect("these functions are reached through what `register` has registered") as *mut _
}

/// # Safety
/// `name` is null or a C string that outlives the result.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: the caller's promise.
    (!name.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let below = underlying();
    // SAFETY: SQLite passes null or a C string that outlives the open file.
    let path = unsafe { path(name) };
    let recorded = path.and_then(|path| Recording::of(path).map(|(recording, name)| (path, recording, name)));
    let before = recorded.as_ref().and_then(|(path, ..)| std::fs::read(path).ok());
    // SAFETY: it has one, and the arguments are those that it expects; the room that SQLite has made is larger than it needs.
    let open = unsafe { (*below).xOpen.expect("a file system opens files") };
    let Some((_, recording, name_noted)) = recorded else {
        // SAFETY: as above.
        return unsafe { open(below, name, file, flags, out_flags) };
    };
    let ours = file.cast::<RecordedFile>();
    // SAFETY: `szOsFile` makes room for both.
    let answer = unsafe { open(below, name, behind(file), flags, out_flags) };
    if answer != ffi::SQLITE_OK {
        // SAFETY: SQLite looks whether there is something to close.
        unsafe { (*ours).methods = std::ptr::null() };
        return answer;
    }
    let file_no = recording.opened(&name_noted, before);
    let delete_on_close = (flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0).then_some(name_noted);
    let noted = Box::into_raw(Box::new(Noted { recording, file: file_no, delete_on_close }));
    // SAFETY: `file` has room for it.
    unsafe { ours.write(RecordedFile { methods: &raw const METHODS, noted }) };
    answer
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let below = underlying();
    // SAFETY: SQLite passes what the underlying file system expects.
    let (answer, path) = unsafe { ((*below).xDelete.expect("a file system deletes")(below, name, sync), path(name)) };
    if answer == ffi::SQLITE_OK
        && let Some((recording, name)) = path.and_then(Recording::of)
    {
        recording.deleted(&name, sync != 0);
    }
    answer
}

/// The underlying file system's part of an open file.
///
/// # Safety
/// `file` is one that `open` has opened, or is opening.
unsafe fn behind(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: the room behind ours belongs to the same allocation.
    unsafe { file.cast::<RecordedFile>().add(1).cast() }
}

/// # Safety
/// As of [`behind`], and it is open.
unsafe fn noted<'a>(file: *mut ffi::sqlite3_file) -> &'a Noted {
    // SAFETY: `open` has set it, and `close` alone frees it.
    unsafe { &*(*file.cast::<RecordedFile>()).noted }
}

/// Calls the underlying method of the same name.
macro_rules! below {
    ($method:ident, $file:expr $(, $argument:expr)*) => {{
        // SAFETY: SQLite calls the methods of files that `open` has opened, with arguments that it has made for them.
        unsafe {
            let inner = behind($file);
            (*(*inner).pMethods).$method.expect("the underlying file system has all methods")(inner $(, $argument)*)
        }
    }};
}

macro_rules! passed_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        $(unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $type)*) $(-> $result)? {
            below!($method, file $(, $argument)*)
        })+
    };
}

passed_on! {
    read = xRead(into: *mut c_void, count: c_int, offset: i64) -> c_int;
    file_size = xFileSize(size: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(answer: *mut c_int) -> c_int;
    file_control = xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(region: c_int, size: c_int, extend: c_int, address: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
    fetch = xFetch(offset: i64, count: c_int, address: *mut *mut c_void) -> c_int;
    unfetch = xUnfetch(offset: i64, address: *mut c_void) -> c_int;
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let answer = below!(xClose, file);
    // SAFETY: SQLite closes a file once, and `open` made the box.
    let noted = unsafe { Box::from_raw((*file.cast::<RecordedFile>()).noted) };
    if let Some(name) = noted.delete_on_close {
        noted.recording.deleted(&name, false);
    }
    answer
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, count: c_int, offset: i64) -> c_int {
    let answer = below!(xWrite, file, from, count, offset);
    if answer == ffi::SQLITE_OK {
        let (count, offset) = (usize::try_from(count), usize::try_from(offset));
        let (count, offset) = (count.expect("a count is positive"), offset.expect("an offset is positive"));
        // SAFETY: SQLite's buffer has `count` bytes, and the file is open.
        unsafe {
            noted(file).recording.wrote(noted(file).file, offset, std::slice::from_raw_parts(from.cast(), count))
        };
    }
    answer
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    let answer = below!(xTruncate, file, size);
    if answer == ffi::SQLITE_OK {
        // SAFETY: the file is open.
        let noted = unsafe { noted(file) };
        noted.recording.truncated(noted.file, usize::try_from(size).expect("a size is positive"));
    }
    answer
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: the file is open.
    let noted = unsafe { noted(file) };
    let began = noted.recording.position();
    let answer = below!(xSync, file, flags);
    if answer == ffi::SQLITE_OK {
        noted.recording.synced(noted.file, began);
    }
    answer
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};
