//! What a command does about a disk that fails, that is slow, or that others than its user own.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::place::{Place, Ran};

/// Nobody, who has a number and owns nothing.
const NOBODY: u32 = 65534;

#[test]
fn a_sync_that_fails_is_told_by_a_command_too() {
    let place = Place::sqlite();
    let fails = ["--output=/dev/null", "--trace=fdatasync", "--inject=fdatasync:error=EIO"];
    let Some(mut command) = place.traced(&fails, &["init", "--organization", "Kairaba Books"]) else { return };
    let ended = Ran::of(command.output().unwrap());
    assert_eq!((ended.code, ended.data.as_str()), (74, ""), "{ended:?}");
    assert!(ended.messages.contains("dalasi: the disk failed to sync"), "{ended:?}");
}

#[test]
fn the_folders_that_are_made_outlive_a_loss_of_power() {
    let place = Place::sqlite();
    let trace = place.folder().join("trace");
    let watched = ["--decode-fds=path", "--trace=fsync", "--output", trace.to_str().unwrap()];
    let made = ["init", "--organization", "Kairaba Books", "--data-dir", "var/lib/dalasi"];
    let Some(mut command) = place.traced(&watched, &made) else { return };
    let ran = Ran::of(command.env_remove("DALASI_DATA_DIR").output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let synced = std::fs::read_to_string(trace).unwrap();
    // The innermost has files; of the others each has a new entry.
    let folder = place.folder().canonicalize().unwrap();
    for folder in [folder.clone(), folder.join("var"), folder.join("var/lib"), folder.join("var/lib/dalasi")] {
        assert!(synced.contains(&format!("<{}>", folder.display())), "{}: {synced}", folder.display());
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// As a user who owns none of it.
fn by_nobody(mut command: Command) -> Ran {
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ran::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap())
}

#[test]
fn what_belongs_to_another_user_is_not_called_absent() {
    let place = Place::sqlite();
    place.init();
    let data = place.folder().join("data");
    let told = |arguments: &[&str]| {
        let refused = by_nobody(place.command(arguments));
        assert_eq!((refused.code, refused.data.as_str()), (1, ""), "{arguments:?}: {refused:?}");
        assert!(refused.messages.contains("as the user of the service"), "{arguments:?}: {refused:?}");
        assert!(!refused.messages.contains("no installation"), "{arguments:?}: {refused:?}");
    };
    // The folder can't be looked into.
    set_mode(&data, 0o000);
    told(&["verify"]);
    told(&["serve", "--listen", "127.0.0.1:0"]);
    // The file can't be opened.
    set_mode(&data, 0o755);
    set_mode(&place.file(), 0o000);
    told(&["verify"]);
    told(&["serve", "--listen", "127.0.0.1:0"]);
    // The folder takes no other.
    set_mode(place.folder(), 0o555);
    told(&["init", "--organization", "Kairaba Books", "--data-dir", "new/data"]);
    set_mode(place.folder(), 0o755);
}
