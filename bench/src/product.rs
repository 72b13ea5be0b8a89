//! The real binary on a store of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::Result;
use crate::connection::once;
use crate::pin::Cores;
use crate::server::Server;
use crate::work::Caller;

/// In the data folder.
const DATABASE_FILE: &str = "dalasi.db";

/// An installation: its data and its key. Servers come and go on it.
pub(crate) struct Installation {
    dalasi: PathBuf,
    folder: PathBuf,
    kept_in: KeptIn,
    location: Vec<String>,
    secret_key: String,
}

enum KeptIn {
    Folder(PathBuf),
    /// Its address, and the folder of PostgreSQL's programs.
    Database(String, PathBuf),
}

impl Installation {
    /// An embedded store in `folder`, made anew unless it is there.
    pub(crate) fn sqlite(dalasi: &Path, folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        let location = vec!["--data-dir".to_owned(), data.display().to_string()];
        Self::make(dalasi, folder, KeptIn::Folder(data), location)
    }

    /// A fresh database in the cluster.
    pub(crate) fn postgres(dalasi: &Path, folder: &Path, url: &str, programs: &Path, name: &str) -> Result<Self> {
        let url = fresh_database(url, programs, name)?;
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let key_file = folder.join("master.key").display().to_string();
        let kept_in = KeptIn::Database(url.clone(), programs.to_path_buf());
        let location = vec!["--database-url".to_owned(), url, "--key-file".to_owned(), key_file];
        Self::make(dalasi, folder, kept_in, location)
    }

    fn make(dalasi: &Path, folder: &Path, kept_in: KeptIn, location: Vec<String>) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let kept = folder.join("secret-key");
        let secret_key = match fs::read_to_string(&kept) {
            Ok(key) => key,
            Err(_) => {
                let answer = succeed(
                    Command::new(dalasi).args(["init", "--organization", "Kairaba Books", "--json"]).args(&location),
                )?;
                let answer: serde_json::Value =
                    serde_json::from_str(&answer).map_err(|error| format!("init said {answer:?}: {error}"))?;
                let key = answer["keys"]["test"]["secret"].as_str().ok_or("init named no secret key")?.to_owned();
                fs::write(&kept, &key).map_err(|error| format!("{}: {error}", kept.display()))?;
                key
            }
        };
        Ok(Self { dalasi: dalasi.to_path_buf(), folder: folder.to_path_buf(), kept_in, location, secret_key })
    }

    pub(crate) fn serve(&self, cores: Option<&String>) -> Result<Server> {
        self.serve_with(cores, None)
    }

    /// A build for tests can have a defect on purpose.
    pub(crate) fn serve_with(&self, cores: Option<&String>, defect: Option<&str>) -> Result<Server> {
        let mut command = Cores::command(cores, &self.dalasi);
        if let Some(defect) = defect {
            command.env("DALASI_PLANTED", defect);
        }
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-loopback-webhooks", "--rate-limit", "0"])
            .args(&self.location);
        Server::start(command, &self.folder.join("log"))
    }

    pub(crate) fn caller(&self, seed: u64) -> Caller {
        Caller::new(&self.secret_key, seed)
    }

    /// What a list says of its length.
    pub(crate) async fn total(&self, address: SocketAddr, path: &str) -> Result<u64> {
        let mut request = Vec::new();
        self.caller(0).get(path, &mut request);
        let (status, answer) = once(address, &request).await?;
        answer["data"]["total"].as_u64().ok_or_else(|| format!("{path} answered {status}: {answer}"))
    }

    /// What is stored, looked through by a program of its own.
    pub(crate) fn verify(&self) -> Result<()> {
        succeed(Command::new(&self.dalasi).arg("verify").args(&self.location)).map(drop)
    }

    /// What is stored takes so many bytes of the disk, with no server on it. The room of rows that are gone, until something new takes
    /// it, hangs on what came before and on when PostgreSQL was last tidied up, and is left out.
    pub(crate) fn size(&self) -> Result<f64> {
        match &self.kept_in {
            KeptIn::Folder(data) => {
                let files = fs::read_dir(data).and_then(|files| {
                    files.map(|file| file?.metadata()).map(|file| file.map(|file| file.len())).sum::<io::Result<u64>>()
                });
                let bytes = files.map_err(|error| format!("{}: {error}", data.display()))?;
                Ok(bytes as f64 - free(&data.join(DATABASE_FILE))?)
            }
            KeptIn::Database(url, programs) => {
                let said = psql(url, programs, &["vacuum full", "select pg_database_size(current_database())"])?;
                said.trim().parse().map_err(|_| format!("the database says that its size is {said:?}"))
            }
        }
    }

    /// What PostgreSQL does by itself within minutes, for a store that was filled a moment ago.
    pub(crate) fn vacuum(&self) -> Result<()> {
        match &self.kept_in {
            KeptIn::Folder(_) => Ok(()),
            KeptIn::Database(url, programs) => psql(url, programs, &["vacuum analyze"]).map(drop),
        }
    }

    /// A receiver of some events.
    pub(crate) async fn tell(&self, address: SocketAddr, url: &str, events: &str, seed: u64) -> Result<()> {
        let body = format!(r#"{{"url":"{url}","enabled_events":["{events}"]}}"#);
        let mut request = Vec::new();
        self.caller(seed).write("POST", "/v1/webhook_endpoints", &body, &mut request);
        match once(address, &request).await? {
            (201, _) => Ok(()),
            (status, answer) => Err(format!("an endpoint was refused with {status}: {answer}")),
        }
    }
}

/// Bytes of an embedded database's pages that hold nothing any more.
fn free(file: &Path) -> Result<f64> {
    let ask = || -> rusqlite::Result<f64> {
        let database = rusqlite::Connection::open_with_flags(file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let number = |name: &str| database.pragma_query_value(None, name, |row| row.get::<_, f64>(0));
        Ok(number("freelist_count")? * number("page_size")?)
    };
    ask().map_err(|error| format!("{} can't be read: {error}", file.display()))
}

/// What a database answers, a line for each row.
pub(crate) fn psql(url: &str, programs: &Path, statements: &[&str]) -> Result<String> {
    let mut psql = Command::new(programs.join("psql"));
    psql.args(["--quiet", "--no-psqlrc", "--tuples-only", "--no-align", url]);
    succeed(psql.args(statements.iter().flat_map(|statement| ["--command", *statement])))
}

/// An empty database; gives its address.
pub(crate) fn fresh_database(cluster: &str, programs: &Path, name: &str) -> Result<String> {
    for what in ["drop database if exists", "create database"] {
        succeed(
            Command::new(programs.join("psql"))
                .args(["--quiet", "--no-psqlrc", cluster, "--command"])
                .arg(format!("{what} {name}")),
        )?;
    }
    let (server, _) = cluster.rsplit_once('/').ok_or("an address without a database")?;
    Ok(format!("{server}/{name}"))
}

/// Standard output of a program that must end well.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::free;

    #[test]
    fn room_that_waits_for_new_rows_is_told() {
        let file = std::env::temp_dir().join(format!("dalasi-bench-free-{}", std::process::id()));
        let database = rusqlite::Connection::open(&file).expect("opened");
        let change = |sql: &str| database.execute_batch(sql).expect("changed");
        change("create table kept (bytes blob); insert into kept values (zeroblob(1000000))");
        let before = free(&file);
        change("delete from kept");
        let after = free(&file);
        drop(database);
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(before, Ok(0.0));
        assert!(after.as_ref().is_ok_and(|bytes| *bytes > 900_000.0), "{after:?}");
    }
}
