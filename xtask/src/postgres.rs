//! A PostgreSQL cluster for one run: in a temporary folder, on a free port, gone afterwards.
//!
//! It must vanish however this process ends, SIGKILL included, and no signal handler can promise that. So a small shell
//! process in a process group of its own holds the other end of a pipe: when our end closes, for whatever reason, it
//! stops the cluster and removes the folder. An orderly stop takes the same way.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{self, find};
use crate::{Result, install};

/// `$1` is the folder; the rest is the command that stops the cluster.
const WATCHDOG: &str = r#"
trap '' INT TERM HUP
cat
folder=$1
shift
if [ -e "$folder/data/postmaster.pid" ]; then "$@"; fi
rm -rf "$folder"
"#;

/// The port is free when it is chosen, but another process may take it before the cluster does.
const STARTS: u32 = 3;

/// Where a cluster keeps its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// As in use: for whoever measures.
    Disk,
    /// In memory, where there is enough: nearly each test makes a database of its own and drops it, hundreds of files each, which
    /// took a third of the time of the store's. Nobody who looks into it can tell, and nobody loses power.
    Memory,
}

/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// What all tests together write, several times over.
const ENOUGH_MEMORY: u64 = 6 << 30;

pub(crate) struct Cluster {
    url: String,
    watchdog: Child,
}

impl Cluster {
    pub(crate) fn start(storage: Storage) -> Result<Self> {
        let programs = install::postgresql()?;
        let account = Account::choose()?;
        let folder = temporary_folder(&account, storage)?;
        // From here on the folder has an owner that removes it.
        let watchdog = watchdog(&programs, &account, &folder)?;
        let mut cluster = Self { url: String::new(), watchdog };

        let data = folder.join("data");
        command::output(
            account
                .command(&programs.join("initdb"), &folder)
                .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
                .args(["--no-locale", "--no-instructions", "--pgdata"])
                .arg(&data),
        )?;
        let mut failure = String::new();
        for _ in 0..STARTS {
            let port = free_port()?;
            // fsync stays on: the product refuses to start on a database that may forget what it acknowledged.
            let settings = format!(
                "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={} \
                 -c max_connections=200 -c fsync=on -c synchronous_commit=on",
                folder.display()
            );
            let log = folder.join("log");
            let started = command::output(
                account
                    .command(&programs.join("pg_ctl"), &folder)
                    .args(["start", "--silent", "--wait", "--pgdata"])
                    .arg(&data)
                    .arg("--log")
                    .arg(&log)
                    .args(["--options", &settings]),
            );
            match started {
                Ok(_) => {
                    cluster.url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
                    return Ok(cluster);
                }
                Err(error) => {
                    let log = fs::read_to_string(&log).unwrap_or_default();
                    failure = format!("{error}\n{log}");
                }
            }
        }
        Err(failure)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // Waiting only makes the end visible; the watchdog does its work whether we see it or not.
        let _ = self.watchdog.wait();
    }
}

/// `cargo xtask postgres`: prints the address and stays until it is interrupted.
pub(crate) fn foreground() -> Result<()> {
    let cluster = Cluster::start(Storage::Disk)?;
    println!("{}", cluster.url());
    eprintln!("DALASI_TEST_POSTGRES_URL={} · Ctrl-C stops it and removes its data", cluster.url());
    loop {
        std::thread::park();
    }
}

/// Whether somebody listens at a cluster's address: hundreds of tests would each say that nobody does.
pub(crate) fn answers(url: &str) -> Result<()> {
    let Some(address) = address(url) else { return Ok(()) };
    TcpStream::connect(&address).map(drop).map_err(|error| format!("nobody answers at {address} ({error})"))
}

/// Host and port, where a URL names one of each.
fn address(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // A folder of sockets is written with `%2F`.
    if host.is_empty() || host.contains(['%', ',']) {
        return None;
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port { host.to_owned() } else { format!("{host}:5432") })
}

/// Who runs the cluster: PostgreSQL refuses root.
enum Account {
    Ourselves,
    Other { user: u32, group: u32 },
}

impl Account {
    fn choose() -> Result<Self> {
        if !install::is_root() {
            return Ok(Self::Ourselves);
        }
        if find(&["setpriv"]).is_none() {
            return Err(
                "PostgreSQL refuses to run as root, and setpriv (Debian: util-linux) is not there to change the user"
                    .to_owned(),
            );
        }
        let number = |option: &str, name: &str| -> Option<u32> {
            let id = command::output(Command::new("id").args([option, name])).ok()?;
            id.trim().parse().ok()
        };
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| Some(Self::Other { user: number("-u", name)?, group: number("-g", name)? }))
            .ok_or_else(|| {
                "PostgreSQL refuses to run as root, and there is neither a user `postgres` nor `nobody`".to_owned()
            })
    }

    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = match self {
            Self::Ourselves => Command::new(program),
            Self::Other { user, group } => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={user}"))
                    .arg(format!("--regid={group}"))
                    .arg("--clear-groups")
                    .arg(program);
                command
            }
        };
        command.current_dir(folder);
        command
    }
}

fn temporary_folder(account: &Account, storage: Storage) -> Result<PathBuf> {
    let parent = match storage {
        Storage::Memory if free_memory().is_some_and(|free| free >= ENOUGH_MEMORY) => PathBuf::from(MEMORY),
        Storage::Memory | Storage::Disk => std::env::temp_dir(),
    };
    let folder = parent.join(format!("dalasi-postgres-{}", std::process::id()));
    let prepare = || {
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        if let Account::Other { user, group } = account {
            chown(&folder, Some(*user), Some(*group))?;
        }
        Ok::<(), std::io::Error>(())
    };
    prepare().map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Bytes that files in memory may take; nothing where there is no such file system.
fn free_memory() -> Option<u64> {
    let told = command::output(Command::new("df").args(["--output=fstype,avail", "--block-size=1", MEMORY])).ok()?;
    free_of(&told)
}

/// By what `df` says of it, below its header.
fn free_of(told: &str) -> Option<u64> {
    let (kind, free) = told.lines().nth(1)?.trim().split_once(' ')?;
    if kind == "tmpfs" { free.trim().parse().ok() } else { None }
}

fn watchdog(programs: &Path, account: &Account, folder: &Path) -> Result<Child> {
    let stop = {
        let mut stop = account.command(&programs.join("pg_ctl"), folder);
        stop.args(["stop", "--silent", "--wait", "--mode=immediate", "--pgdata"]).arg(folder.join("data"));
        stop
    };
    Command::new("sh")
        .args(["-c", WATCHDOG, "dalasi-postgres-watchdog"])
        .arg(folder)
        .arg(stop.get_program())
        .args(stop.get_args())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("sh: {error}"))
}

fn free_port() -> Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port on 127.0.0.1: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_from_a_url() {
        for (url, wanted) in [
            ("postgres://postgres@127.0.0.1:34319/postgres", Some("127.0.0.1:34319")),
            ("postgresql://me:se@cret@db.example/shop?sslmode=require", Some("db.example:5432")),
            ("postgres://[::1]/shop", Some("[::1]:5432")),
            ("postgres://[::1]:6000", Some("[::1]:6000")),
            ("postgres://me@%2Frun%2Fpostgresql/shop", None),
            ("postgres:///shop?host=/run", None),
            ("postgres://a:1,b:2/shop", None),
            ("host=localhost", None),
        ] {
            assert_eq!(address(url).as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn only_what_is_in_memory_is_taken_for_it() {
        assert_eq!(free_of("Type        Avail\ntmpfs 25274920960\n"), Some(25_274_920_960));
        assert_eq!(free_of("Type        Avail\next4  25274920960\n"), None);
        assert_eq!(free_of(""), None);
    }

    #[test]
    fn who_is_gone_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://postgres@{}/postgres", listener.local_addr().unwrap());
        assert_eq!(answers(&url), Ok(()));
        drop(listener);
        assert!(answers(&url).is_err_and(|why| why.contains("nobody answers at 127.0.0.1:")));
    }
}
