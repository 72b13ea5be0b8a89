//! A clone of what is committed, below the target folder: for programs that write beside what they read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Machine;
use crate::{Result, command};

/// `folder`/tree, with the commit that is checked out and nothing that is changed since. What a program has left there that
/// is not of the commit stays.
pub(crate) fn of_commit(machine: &Machine, folder: &Path) -> Result<PathBuf> {
    let tree = folder.join("tree");
    if !tree.is_dir() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let from = machine.root().to_string_lossy();
        git(folder, &["clone", "--quiet", "--shared", "--no-checkout", &from, "tree"])?;
    }
    let commit = command::output(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(machine.root()))?;
    git(&tree, &["fetch", "--quiet", "origin", commit.trim()])?;
    git(&tree, &["checkout", "--quiet", "--force", "--detach", commit.trim()])?;
    Ok(tree)
}

fn git(folder: &Path, words: &[&str]) -> Result<()> {
    command::run(Command::new("git").args(words).current_dir(folder))
}
