//! A PostgreSQL server of a test's own: made, crashed, killed, copied as a standby, promoted and removed by the test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where one server keeps its data, its socket and its log.
pub(crate) struct Cluster {
    folder: PathBuf,
    pub(crate) port: u16,
    programs: PathBuf,
    options: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Every connection is told and ended, and everything is written.
    Fast,
    /// As if the machine had gone.
    Immediate,
}

/// The folder of `initdb`, or why there is nothing to run.
pub(crate) fn programs() -> Result<PathBuf, &'static str> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| folder.join("initdb").is_file())
        .max();
    let elsewhere = || fs::canonicalize(on_path("initdb")?).ok()?.parent().map(Path::to_path_buf);
    let asked = std::env::var_os("DALASI_TEST_POSTGRES_PROGRAMS").map(PathBuf::from);
    let found = asked.or(newest.map(|(_, folder)| folder)).or_else(elsewhere);
    found.ok_or_else(|| missing("there is no initdb (Debian: postgresql)"))
}

pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Whoever runs one test may lack what it needs. `cargo xtask test` installs it all, and passes nothing that did not run.
pub(crate) fn missing(why: &'static str) -> &'static str {
    assert!(std::env::var_os("DALASI_TEST_ALL").is_none(), "{why}");
    why
}

impl Cluster {
    /// An empty server. The settings come after those that keep what is acknowledged.
    pub(crate) fn start(programs: &Path, settings: &str) -> Self {
        let cluster = Self::make(programs, settings);
        cluster.begin();
        cluster
    }

    /// The same, and it does not run yet.
    pub(crate) fn make(programs: &Path, settings: &str) -> Self {
        let cluster = Self::new(programs, settings, free_port());
        let made = cluster.run("initdb", &["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]);
        assert!(made.status.success(), "{made:?}");
        cluster
    }

    /// A copy of this server that follows it, at this port.
    pub(crate) fn standby(&self, port: u16) -> Self {
        let standby = Self::new(&self.programs, "", port);
        let _ = fs::remove_dir(standby.data());
        let from = format!("host=127.0.0.1 port={} user=postgres application_name=standby", self.port);
        let copied = standby
            .run("pg_basebackup", &["--dbname", &from, "--write-recovery-conf", "--checkpoint=fast", "--pgdata"]);
        assert!(copied.status.success(), "{copied:?}");
        standby.begin();
        standby
    }

    fn new(programs: &Path, settings: &str, port: u16) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dalasi-cluster-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        if let Some((user, group)) = account() {
            chown(&folder, Some(user), Some(group)).unwrap();
        }
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={} -c max_connections=200 \
             -c fsync=on -c synchronous_commit=on {settings}",
            folder.display()
        );
        Self { folder, port, programs: programs.to_path_buf(), options }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(crate) fn begin(&self) {
        self.try_to_begin().unwrap_or_else(|why| panic!("{why}"));
    }

    /// Or what it says.
    pub(crate) fn try_to_begin(&self) -> Result<(), String> {
        let log = self.folder.join("log");
        let started =
            self.run("pg_ctl", &["start", "-w", "-t", "60", "-l", log.to_str().unwrap(), "-o", &self.options, "-D"]);
        if started.status.success() {
            return Ok(());
        }
        Err(format!("{started:?}\n{}", fs::read_to_string(&log).unwrap_or_default()))
    }

    pub(crate) fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let stopped = self.run("pg_ctl", &["stop", "-w", "-t", "60", "-m", mode, "-D"]);
        assert!(stopped.status.success(), "{stopped:?}");
    }

    /// SIGKILL to every process of it, whatever it is doing: each has a session of its own, and the data folder for its home.
    /// Whether all have ended.
    pub(crate) fn kill(&self) -> bool {
        let home = fs::canonicalize(&self.folder).unwrap().join("data");
        for _ in 0..500 {
            let alive = at_home_in(&home);
            if alive.is_empty() {
                return true;
            }
            // One may have ended by itself.
            let _ = Command::new("kill").arg("-KILL").args(&alive).stderr(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Unless it does not run.
    pub(crate) fn halt(&self) {
        if self.data().join("postmaster.pid").exists() {
            let _ = self.run("pg_ctl", &["stop", "-w", "-m", "immediate", "-D"]);
        }
    }

    /// Comes back as a standby of nobody: it takes no writes until it is promoted.
    pub(crate) fn demote(&self) {
        self.stop(Stop::Fast);
        fs::write(self.data().join("standby.signal"), "").unwrap();
        self.begin();
    }

    pub(crate) fn promote(&self) {
        let promoted = self.run("pg_ctl", &["promote", "-w", "-t", "60", "-D"]);
        assert!(promoted.status.success(), "{promoted:?}");
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The data folder is the last argument. PostgreSQL refuses root, so another account runs it then.
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = as_account(&self.programs.join(program));
        command.args(arguments);
        if program == "initdb" {
            command.arg("--pgdata");
        }
        command.arg(self.data()).current_dir(&self.folder);
        // A server inherits what it is started with: a pipe would never end.
        let (out, error) = (self.folder.join("out"), self.folder.join("error"));
        let status = command
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&error).unwrap())
            .status()
            .unwrap();
        Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(error).unwrap() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.halt();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Numbers of processes. One that has ended has no home.
fn at_home_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let at_home =
        processes.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|home| home == folder));
    let numbers = at_home.filter_map(|process| process.file_name().into_string().ok());
    numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The program as root can't run it itself.
pub(crate) fn as_account(program: &Path) -> Command {
    match account() {
        None => Command::new(program),
        Some((user, group)) => {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups").arg(program);
            command
        }
    }
}

/// Who is not root, when we are.
pub(crate) fn account() -> Option<(u32, u32)> {
    let number = |arguments: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(arguments).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if number(&["-u"]) != Some(0) {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|name| Some((number(&["-u", name])?, number(&["-g", name])?)))
}

/// Free while its server is down, too: none that the kernel gives to whoever connects somewhere, and each test begins elsewhere.
pub(crate) fn free_port() -> u16 {
    const FIRST: u64 = 10_000;
    const OF_A_TEST: u64 = 8;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let end: u64 = range.split_whitespace().next().unwrap().parse().unwrap();
    let begin = u64::from(std::process::id()) * OF_A_TEST;
    (0..end - FIRST)
        .map(|_| FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % (end - FIRST))
        .map(|port| u16::try_from(port).unwrap())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
