//! Looking for inputs that reach something new, by libFuzzer, in a build of its own whose code counts where it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Target, escaped, folder, stored};

/// What the compiler adds so that libFuzzer sees which code ran and what was compared.
const COUNTERS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// An input that takes so many seconds hangs.
const HANGS: u32 = 20;
/// Of the stored inputs of a target.
const MOST_KEPT: usize = 100;
const LONGEST_KEPT: usize = 1024;

/// The program, and where it keeps what it found.
pub struct Campaign {
    program: PathBuf,
    folder: PathBuf,
}

/// What came of a target's turn.
#[derive(Debug)]
pub struct Turn {
    pub executions: u64,
    /// Inputs that broke a promise, with what libFuzzer said.
    pub found: Vec<String>,
}

impl Campaign {
    /// Builds it: the first time that takes as long as building the service.
    pub fn build() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = root.join("target/fuzz");
        let host = host()?;
        let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        cargo.args(["build", "--locked", "--profile=sim", "--package=dalasi-fuzz", "--bin=campaign"]);
        // With a target named, build scripts go without the counters.
        cargo.args(["--features=campaign", "--target", &host]).arg("--target-dir").arg(&folder);
        let status = cargo.env("RUSTFLAGS", COUNTERS).current_dir(&root).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => return Err("libFuzzer could not be built; it takes a C++ compiler (Debian: g++)".into()),
            Err(error) => return Err(format!("cargo: {error}")),
        }
        Ok(Self { program: folder.join(host).join("sim/campaign"), folder })
    }

    /// So many seconds for one target, from the inputs that are stored and those that earlier turns found.
    pub fn turn(&self, target: &Target, seconds: u64, seed: u64) -> Result<Turn, String> {
        let inputs = self.inputs(target)?;
        let artifacts = self.made("found")?.join(format!("{}-", target.name));
        let output = self
            .command(target)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={}", target.longest))
            .arg(format!("-timeout={HANGS}"))
            // Zero would be drawn from the clock.
            .arg(format!("-seed={}", seed % u64::from(u32::MAX) + 1))
            .args(["-print_final_stats=1", "-rss_limit_mb=2048"])
            .arg(format!("-artifact_prefix={}", artifacts.display()))
            .arg(&inputs)
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let executions = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let executions = executions.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        let found = if output.status.success() { Vec::new() } else { vec![self.broken(target, &said)] };
        Ok(Turn { executions, found })
    }

    /// The smallest inputs that together reach what all of them do, as they are stored.
    pub fn keep(&self, target: &Target) -> Result<usize, String> {
        let (all, few) = (self.inputs(target)?, self.made(&format!("few/{}", target.name))?);
        fs::remove_dir_all(&few).and_then(|()| fs::create_dir(&few)).map_err(|error| error.to_string())?;
        let merged = self.command(target).args(["-merge=1", "-timeout=20"]).args([&few, &all]).output();
        let merged = merged.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !merged.status.success() {
            return Err(String::from_utf8_lossy(&merged.stderr).into_owned());
        }
        let mut kept: Vec<Vec<u8>> = files(&few)?.into_iter().filter(|input| input.len() <= LONGEST_KEPT).collect();
        kept.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
        // Not only short ones: one of every so many.
        let every = kept.len().div_ceil(MOST_KEPT).max(1);
        let lines: Vec<String> = kept.iter().step_by(every).map(|input| escaped(input) + "\n").collect();
        let path = folder().join(format!("{}.txt", target.name));
        fs::write(&path, lines.concat()).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(lines.len())
    }

    fn command(&self, target: &Target) -> Command {
        let mut command = Command::new(&self.program);
        command.env("DALASI_FUZZ_TARGET", target.name).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn inputs(&self, target: &Target) -> Result<PathBuf, String> {
        let inputs = self.made(&format!("inputs/{}", target.name))?;
        for (number, input) in stored(target.name).iter().enumerate() {
            fs::write(inputs.join(format!("stored-{number}")), input).map_err(|error| error.to_string())?;
        }
        Ok(inputs)
    }

    fn broken(&self, target: &Target, said: &str) -> String {
        let written = said.lines().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        let input = written.and_then(|path| fs::read(path).ok()).map(|input| escaped(&input)).unwrap_or_default();
        let panic = said.lines().skip_while(|line| !line.contains("panicked at")).take(3).collect::<Vec<_>>().join(" ");
        let why = said.lines().find(|line| line.starts_with("SUMMARY")).unwrap_or("it ended without a word");
        format!("{}: {input:?}: {panic} {why}", target.name)
    }

    fn made(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        std::path::absolute(path).map_err(|error| error.to_string())
    }
}

fn files(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    entries.map(|entry| fs::read(entry?.path())).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// The machine that the compiler builds for.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc names no host: {said}"))
}
