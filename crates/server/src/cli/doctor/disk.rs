//! The disk below the data folder: room, whether it can be written, and what a sync takes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::report::{Finding, Status};
use crate::cli::backup::Unfinished;
use crate::monotonic;

const MIB: u64 = 1024 * 1024;
const LITTLE_ROOM: u64 = 2048 * MIB;
const NO_ROOM: u64 = 256 * MIB;
const FEW_FILES: u64 = 1000;
/// Each acknowledged write waits for one.
const SLOW_SYNC: Duration = Duration::from_millis(50);
const SYNCS: usize = 9;

const MAKE_ROOM: &str = "Make room, or move the data to a larger disk: when none is left, nothing is taken any more.";

pub(super) fn look(data_dir: Option<&Path>) -> Vec<Finding> {
    let Some(folder) = data_dir else {
        return vec![Finding::ok("PostgreSQL keeps the data: its disk is for its own machine to watch")];
    };
    if !folder.is_dir() {
        let found = format!("there is no folder {}", folder.display());
        return vec![Finding::failed(
            found,
            "Name the folder with --data-dir, or make an installation with `dalasi init`.",
        )];
    }
    let mut findings = vec![room(folder)];
    findings.extend(kind(folder));
    findings.push(syncs(folder));
    findings
}

fn room(folder: &Path) -> Finding {
    let there = match rustix::fs::statvfs(folder) {
        Ok(there) => there,
        Err(error) => {
            return Finding::failed(format!("{}: {error}", folder.display()), "See whether its disk is there.");
        }
    };
    let free = there.f_bavail.saturating_mul(there.f_frsize);
    // Not every file system counts files.
    if there.f_files > 0 && there.f_favail < FEW_FILES {
        let found = format!("{}: there is room for {} more files only", folder.display(), there.f_favail);
        return Finding::warning(found, MAKE_ROOM);
    }
    Finding::of(of_room(free), format!("{}: {} MB are free", folder.display(), free / 1_000_000), MAKE_ROOM)
}

fn of_room(free: u64) -> Status {
    match free {
        free if free < NO_ROOM => Status::Failed,
        free if free < LITTLE_ROOM => Status::Warning,
        _ => Status::Ok,
    }
}

/// File systems on which an embedded database is not safe.
#[cfg(target_os = "linux")]
fn kind(folder: &Path) -> Option<Finding> {
    const NETWORK: [(i128, &str); 5] =
        [(0x6969, "NFS"), (0x517b, "SMB"), (0xff53_4d42, "SMB"), (0xfe53_4d42, "SMB"), (0x0102_1997, "9P")];
    const MEMORY: [(i128, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];
    // Its type differs from one system to the next; the numbers have 32 bits.
    let number = i128::from(rustix::fs::statfs(folder).ok()?.f_type) & 0xffff_ffff;
    let named = |list: &[(i128, &'static str)]| list.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
    if let Some(name) = named(&NETWORK) {
        let found = format!("the data folder is on a network ({name}), where an embedded database can be damaged");
        return Some(Finding::failed(found, "Move it to a local disk, or use PostgreSQL."));
    }
    let name = named(&MEMORY)?;
    let found = format!("the data folder is in memory ({name}): everything is gone with the power");
    Some(Finding::warning(found, "Move it to a disk."))
}

#[cfg(not(target_os = "linux"))]
fn kind(_folder: &Path) -> Option<Finding> {
    None
}

fn syncs(folder: &Path) -> Finding {
    match sync(folder) {
        Ok(took) => {
            let status = if took > SLOW_SYNC { Status::Warning } else { Status::Ok };
            let found = format!("it can be written, and a sync takes {:.1} ms", took.as_secs_f64() * 1000.0);
            Finding::of(
                status,
                found,
                "Each acknowledged payment waits for a sync: take a faster disk, or one with less to do.",
            )
        }
        Err(error) => Finding::failed(
            format!("{} can't be written: {error}", folder.display()),
            "Run this as the user of the service; see whether the disk is mounted read-only, or full.",
        ),
    }
}

/// The usual one of several.
fn sync(folder: &Path) -> io::Result<Duration> {
    let name = Unfinished::beside(&folder.join("doctor"))?;
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(name.path())?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = monotonic::now();
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok(took[SYNCS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_is_told() {
        assert_eq!([0, NO_ROOM, LITTLE_ROOM].map(of_room), [Status::Failed, Status::Warning, Status::Ok]);
    }
}
