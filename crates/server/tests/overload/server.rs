//! The real server on a core of its own, and one that never refuses anybody.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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

impl Server {
    pub(crate) fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("dalasi-overload-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_dalasi"))
            .args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--data-dir"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        if let Some((_, server)) = shares() {
            // The threads that it starts from now on; there is one before.
            let _ = sched_setaffinity(Pid::from_raw(i32::try_from(process.id()).unwrap()), &server);
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
        Self { address: address.expect("it listens"), key: key.expect("it shows its key"), process, folder }
    }

    /// Bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
    }

    /// In good order; what was wrong with it.
    pub(crate) fn stop(mut self) -> Option<String> {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
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
