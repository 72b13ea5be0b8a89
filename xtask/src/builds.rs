//! Row D14.builds: whoever builds a commit, and wherever, gets the same bytes.
//!
//! What differs between two folders are the paths that a compiler writes into what it makes, Rust's for panics and C's for its own
//! messages. `cargo xtask release` gives them names that are the same everywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proof::Proof;

use crate::steps::Machine;
use crate::{Result, checkout, command};

const BUILDS: u64 = 2;
/// One inside the other and of another length, so that no path is a part of the other by chance.
const FOLDERS: [&str; 2] = ["builds/one", "builds/somewhere/else/entirely"];
/// It holds the path of its folder on purpose.
const CONTROL: &str = "says_where_it_lies";

/// Builds the program as anybody can build it again, and says where it is.
pub(crate) fn release() -> Result<()> {
    let machine = Machine::new()?;
    let mut cargo = machine.cargo();
    cargo.args(["build", "--locked", "--release", "--package", "dalasi"]);
    command::run(without_paths(&mut cargo, machine.root(), machine.target())?)?;
    println!("{}", machine.target().join("release/dalasi").display());
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    let mut proof = Proof::begin("D14.builds", None, BUILDS);
    let machine = Machine::new()?;
    let trees = [tree(&machine, FOLDERS[0])?, tree(&machine, FOLDERS[1])?];
    // The cheap one first: a comparison that sees nothing needs no long builds.
    let control = built(&trees, &["--package=dalasi-proof", "--example", CONTROL], &format!("examples/{CONTROL}"))?;
    proof.control("a_path_in_the_program", difference(&control)?.is_some());
    let programs = built(&trees, &["--package=dalasi"], "dalasi")?;
    if let Some(difference) = difference(&programs)? {
        proof.violation(difference);
    }
    proof.end(BUILDS)
}

/// A checkout whose target folder is empty.
fn tree(machine: &Machine, folder: &str) -> Result<PathBuf> {
    let tree = checkout::of_commit(machine, &machine.target().join(folder))?;
    let target = tree.join("target");
    if target.exists() {
        fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    Ok(tree)
}

/// The same in both, each in its own target folder.
fn built(trees: &[PathBuf; 2], words: &[&str], program: &str) -> Result<[PathBuf; 2]> {
    for tree in trees {
        let target = tree.join("target");
        let mut cargo = command::cargo(tree);
        cargo.args(["build", "--quiet", "--locked", "--release"]).args(words).env("CARGO_TARGET_DIR", &target);
        command::run(command::without_proofs(without_paths(&mut cargo, tree, &target)?))?;
    }
    Ok(trees.clone().map(|tree| tree.join("target/release").join(program)))
}

/// The first byte at which two programs differ, with what stands there.
fn difference([one, other]: &[PathBuf; 2]) -> Result<Option<String>> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let (ours, theirs) = (read(one)?, read(other)?);
    if ours == theirs {
        return Ok(None);
    }
    let at = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
    let around = |bytes: &[u8]| {
        let near = &bytes[at.saturating_sub(40).min(bytes.len())..(at + 40).min(bytes.len())];
        near.escape_ascii().to_string()
    };
    let lengths = format!("{} and {} bytes", ours.len(), theirs.len());
    Ok(Some(format!("{lengths}, from byte {at} on:\n  {}\n  {}", around(&ours), around(&theirs))))
}

/// The same names for what lies elsewhere on each machine.
fn without_paths<'c>(cargo: &'c mut Command, tree: &Path, target: &Path) -> Result<&'c mut Command> {
    let sysroot = command::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(tree))?;
    let home = match std::env::var_os("CARGO_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::home_dir().ok_or("there is no home folder, and CARGO_HOME is not set")?.join(".cargo"),
    };
    // The last one that fits counts.
    let names = [
        (home, "/cargo"),
        (PathBuf::from(sysroot.trim()), "/rust"),
        (tree.to_path_buf(), "/dalasi"),
        (target.to_path_buf(), "/target"),
    ];
    let (mut rust, mut c) = (Vec::new(), Vec::new());
    for (folder, name) in names {
        let folder = folder.to_str().ok_or_else(|| format!("{} is not UTF-8", folder.display()))?;
        if folder.contains(char::is_whitespace) {
            return Err(format!("{folder:?} has a space in it: C's compiler is told its flags without quotes"));
        }
        rust.push(format!("--remap-path-prefix={folder}={name}"));
        c.push(format!("-ffile-prefix-map={folder}={name}"));
    }
    Ok(cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}")).env("CFLAGS", c.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_changed_byte_is_seen() {
        let folder = std::env::temp_dir().join(format!("dalasi-builds-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let files = ["one", "other"].map(|name| folder.join(name));
        let write = |texts: [&str; 2]| {
            for (file, text) in files.iter().zip(texts) {
                fs::write(file, text).expect("a file");
            }
            difference(&files).expect("readable")
        };
        assert_eq!(write(["the same", "the same"]), None);
        assert!(write(["at /home/awa", "at /home/ebou"]).is_some_and(|told| told.contains("/home/awa")));
        assert!(write(["a part", "a part of it"]).is_some());
        fs::remove_dir_all(&folder).expect("it goes");
    }
}
