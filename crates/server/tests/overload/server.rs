//! The real server on a core of its own, and one that never refuses anybody.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::group::Group;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dalasi");

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// A secret key of test mode.
    pub(crate) key: String,
    process: Child,
    folder: PathBuf,
}

/// The load comes from the last core; the server gets the others, if there are any.
pub(crate) fn keep_apart() {
    if let Some((last, _)) = shares() {
        let _ = sched_setaffinity(None, &last);
    }
}

pub(crate) fn cores() -> u32 {
    sched_getaffinity(Pid::from_raw(1)).map_or(1, |all| all.count())
}

fn shares() -> Option<(CpuSet, CpuSet)> {
    let all = sched_getaffinity(Pid::from_raw(1)).ok().filter(|all| all.count() > 1)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&core| all.is_set(core))?;
    let (mut client, mut server) = (CpuSet::new(), all);
    client.set(last);
    server.unset(last);
    Some((client, server))
}

/// Nobody else's, in this process or in another.
pub(crate) fn new_name() -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    format!("dalasi-overload-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed))
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap()
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::run(Command::new(PROGRAM)).expect("it shows its key and listens")
    }

    /// Nothing when it ends before it listens, as it may for want of memory.
    pub(crate) fn start_in(group: &Group) -> Option<Self> {
        Self::run(group.command(PROGRAM))
    }

    fn run(mut command: Command) -> Option<Self> {
        // On a disk: of files that lie in memory, as those in `/tmp` may, a group keeps the pages.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(new_name());
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut process = command
            .args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--data-dir"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        if let Some((_, server)) = shares() {
            // The threads that it starts from now on; there is one before.
            let _ = sched_setaffinity(Some(pid(&process)), &server);
        }
        let (mut key, mut address) = (None, None);
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        for line in lines.by_ref() {
            let line = line.unwrap();
            key = key.or(line.trim().strip_prefix("secret key").map(|key| key.trim().to_owned()));
            if let Some((_, url)) = line.split_once("listening on http://") {
                address = url.trim().parse().ok();
                break;
            }
        }
        // Nobody listens to the rest; somebody has to take it.
        std::thread::spawn(move || lines.for_each(drop));
        let (Some(address), Some(key)) = (address, key) else {
            let _ = process.kill();
            let _ = process.wait();
            crate::say(&std::fs::read_to_string(folder.join("log")).unwrap_or_default());
            let _ = std::fs::remove_dir_all(&folder);
            return None;
        };
        Some(Self { address, key, process, folder })
    }

    pub(crate) fn is_in(&self, group: &Group) -> bool {
        group.members().contains(&pid(&self.process))
    }

    /// Bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
    }

    /// In good order; what was wrong with it.
    pub(crate) fn stop(mut self) -> Option<String> {
        kill_process(pid(&self.process), Signal::TERM).unwrap();
        let status = self.process.wait().unwrap();
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        std::fs::remove_dir_all(&self.folder).unwrap();
        let panicked = log.lines().find(|line| line.contains("panicked")).map(str::to_owned);
        panicked.or((!status.success()).then(|| format!("it ended with {status}")))
    }
}

/// It takes everything in and answers a hundred a second.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
}

impl Stub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (waiting, work) = channel::<std::net::TcpStream>();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let waiting = waiting.clone();
                std::thread::spawn(move || {
                    let mut request = [0; 4096];
                    while stream.read(&mut request).is_ok_and(|read| read > 0) {
                        if waiting.send(stream.try_clone().unwrap()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        std::thread::spawn(move || {
            for mut stream in work {
                std::thread::sleep(Duration::from_millis(10));
                let _ = stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self { address }
    }
}
