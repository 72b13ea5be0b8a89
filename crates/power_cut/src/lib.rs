//! What a disk may hold after a loss of power, for tests of whatever keeps its data in SQLite, or in files of another process.
//!
//! [`Recording::start`] notes every write, truncation, creation, deletion and sync below a folder, in this process; SQLite
//! works on its real files all the while. [`Disk`] plays the record up to any point and makes images of it: what was synced
//! is there, and of what was not, any subset of the 512-byte sectors, lengths and folder entries.
//!
//! [`LazyDisk`] is a file system, on Linux alone, below a process that is not ours, and loses its power while it runs.
//!
//! Not here: what an image must still hold. That is the test's.

mod disk;
#[cfg(target_os = "linux")]
mod lazy_disk;
mod record;
mod seeded;
#[expect(unsafe_code, reason = "SQLite's file system is a table of C functions")]
mod vfs;

pub use disk::{Disk, Image, write};
#[cfg(target_os = "linux")]
pub use lazy_disk::LazyDisk;
pub use record::{Recording, Step};
pub use seeded::Seeded;
