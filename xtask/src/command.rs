//! Running other programs: found on the path, with their output on the terminal or captured.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// Runs to the end with its output on our terminal; anything but exit code 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// The same with its standard output in a file.
pub(crate) fn run_into(file: &Path, command: &mut Command) -> Result<()> {
    let output = File::create(file).map_err(|error| format!("{}: {error}", file.display()))?;
    run(command.stdout(output))
}

/// Standard output of a command that must succeed; what it says on standard error stands in the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// Whether it ended well, and all that it said.
pub(crate) fn heard(command: &mut Command) -> Result<(bool, String)> {
    let shown = shown(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{shown}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// Runs all commands at once, each to its end, and prints what each said when its turn comes. The error names all that
/// failed.
pub(crate) fn run_together(commands: Vec<Command>) -> Result<()> {
    let running: Vec<_> = commands
        .into_iter()
        .map(|mut command| {
            let shown = shown(&command);
            let output = std::thread::spawn(move || command.stdin(Stdio::null()).output());
            (shown, output)
        })
        .collect();
    let mut faults = Vec::new();
    for (shown, output) in running {
        println!("\n$ {shown}");
        match output.join() {
            Ok(Ok(output)) => {
                print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                if !output.status.success() {
                    faults.push(format!("{shown}: {}", output.status));
                }
            }
            Ok(Err(error)) => faults.push(format!("{shown}: {error}")),
            Err(_) => faults.push(format!("{shown}: nobody waited for it")),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// True when the command starts and exits with 0; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The first of `names` that stands on the path.
pub(crate) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|candidate| candidate.is_file()))
}

/// The cargo that runs us, without what it tells *this* package in the environment: build scripts that watch those
/// variables would otherwise run again at every change between a direct call and ours.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        if let Some(name) = name.to_str()
            && (name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// What it runs proves nothing of its own for the row that runs it.
pub(crate) fn without_proofs(command: &mut Command) -> &mut Command {
    ["TIER", "PROOF_COUNT", "PROOF_LEAST", "PROOF_SEED", "PROOF_COMMIT", "PROOF_FILE"]
        .into_iter()
        .fold(command, |command, name| command.env_remove(format!("DALASI_{name}")))
}

/// Where our own files are concerned, without the folder that somebody put them in.
fn shown(command: &Command) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(""));
    let program = Path::new(command.get_program());
    let mut words = vec![program.strip_prefix(root).unwrap_or(program).to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
