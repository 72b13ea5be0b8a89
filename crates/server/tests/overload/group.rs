//! A control group of Linux, of either version, that gives what is in it so much memory and no more.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::server::new_name;

/// How a version calls what is asked of it.
struct Version {
    root: &'static str,
    /// As `/proc/self/cgroup` names it.
    controller: &'static str,
    /// The file in which a group is told that those below it have a limit, where it has to be.
    handed_on: Option<&'static str>,
    limit: &'static str,
    /// So that nothing goes to a disk instead, where there is this file.
    swap: &'static str,
    most_swap: fn(u64) -> u64,
    /// Whoever was killed for want of memory is counted in it.
    kills: &'static str,
    most_used: &'static str,
}

static FIRST: Version = Version {
    root: "/sys/fs/cgroup/memory",
    controller: "memory",
    handed_on: None,
    limit: "memory.limit_in_bytes",
    // Together with the memory.
    swap: "memory.memsw.limit_in_bytes",
    most_swap: |limit| limit,
    kills: "memory.oom_control",
    most_used: "memory.max_usage_in_bytes",
};
static SECOND: Version = Version {
    root: "/sys/fs/cgroup",
    controller: "",
    handed_on: Some("cgroup.subtree_control"),
    limit: "memory.max",
    swap: "memory.swap.max",
    most_swap: |_| 0,
    kills: "memory.events",
    most_used: "memory.peak",
};

/// The shell joins, and then becomes the program: nothing of the program is outside.
const JOIN: &str = r#"echo $$ > "$0" && exec "$@""#;
/// Longer than anybody who was killed takes to be gone.
const GONE: Duration = Duration::from_secs(10);

/// Whoever is still in it at its end is killed.
pub(crate) struct Group {
    version: &'static Version,
    folder: PathBuf,
}

impl Group {
    /// For so many bytes, as near to this process's own as one can be made; nothing where none can.
    pub(crate) fn new(limit: u64) -> Option<Self> {
        [&FIRST, &SECOND]
            .into_iter()
            .find_map(|version| version.parents().iter().find_map(|parent| Self::below(parent, version, limit)))
    }

    fn below(parent: &Path, version: &'static Version, limit: u64) -> Option<Self> {
        if !version.hands_on(parent) {
            return None;
        }
        let folder = parent.join(new_name());
        fs::create_dir(&folder).ok()?;
        // From now on it is removed again.
        let group = Self { version, folder };
        set(&group.folder.join(version.limit), &limit.to_string()).ok()?;
        let swap = set(&group.folder.join(version.swap), &(version.most_swap)(limit).to_string());
        if swap.is_err() && has_swap() {
            return None;
        }
        let tried = group.command("true").stdin(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success()).then_some(group)
    }

    /// A program that is in it from its beginning; its arguments are the caller's.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", JOIN]).arg(self.folder.join("cgroup.procs")).arg(program);
        shell
    }

    pub(crate) fn members(&self) -> Vec<Pid> {
        members_of(&self.folder)
    }

    /// Whoever is in it so long from now is killed, unless what is returned is dropped before.
    pub(crate) fn killed_after(&self, patience: Duration) -> Sender<()> {
        let (end, is_over) = channel();
        let folder = self.folder.clone();
        std::thread::spawn(move || {
            if is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                kill(&folder);
            }
        });
        end
    }

    /// How many of its members wanted more than there is.
    pub(crate) fn kills(&self) -> u64 {
        let counts = self.read(self.version.kills);
        let count = counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        count.unwrap_or(0)
    }

    /// In bytes, with the pages of files that it read and wrote; nothing where the kernel doesn't note it.
    pub(crate) fn most_used(&self) -> Option<u64> {
        self.read(self.version.most_used).trim().parse().ok()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let end = Instant::now() + GONE;
        loop {
            kill(&self.folder);
            if fs::remove_dir(&self.folder).is_ok() || Instant::now() >= end {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Version {
    /// The groups below which one may be made: that of this process first, and at last the root.
    fn parents(&self) -> Vec<PathBuf> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|it| it == self.controller).then_some(path)
        });
        let Some(own) = own else { return Vec::new() };
        let root = Path::new(self.root);
        let own = root.join(own.trim_start_matches('/'));
        own.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_path_buf).collect()
    }

    fn hands_on(&self, folder: &Path) -> bool {
        let Some(file) = self.handed_on.map(|file| folder.join(file)) else { return true };
        let is_done = || fs::read_to_string(&file).is_ok_and(|list| list.split_whitespace().any(|it| it == "memory"));
        is_done() || (set(&file, "+memory").is_ok() && is_done())
    }
}

fn members_of(folder: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn kill(folder: &Path) {
    for member in members_of(folder) {
        let _ = kill_process(member, Signal::KILL);
    }
}

/// Behind its heading there is a line for each place to swap to.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|list| list.lines().count() > 1)
}

/// Only what is there: it is the kernel that has these files.
fn set(file: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}
