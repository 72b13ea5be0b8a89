//! The server that is soaked, with all there is around it: its store, who hears of what happens, and who reads the database.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::connection::once;
use crate::pin::Cores;
use crate::product::{Installation, succeed};
use crate::server::Server;

/// What is told rarely, because every failed delivery of it is tried again and again.
const RARE: &str = "payment.failed";
const LONGEST_STOP: Duration = Duration::from_secs(40);
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) struct Options {
    dalasi: PathBuf,
    /// A build that can have defects on purpose.
    planted: PathBuf,
    folder: PathBuf,
    pub(super) database: String,
    /// A cluster in which databases may be created, and the folder of its programs.
    postgres: Option<(String, PathBuf)>,
}

impl Options {
    /// `--dalasi FILE --planted FILE --folder FOLDER --database sqlite|postgres [--postgres URL --postgres-programs FOLDER]`
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut said = std::collections::BTreeMap::new();
        for pair in words.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} needs a value", pair.concat())) };
            said.insert(name.as_str(), value.clone());
        }
        let mut take = |name: &str| said.remove(name);
        let mut must = |name: &str| take(name).ok_or_else(|| format!("{name} is missing"));
        let options = Self {
            dalasi: must("--dalasi")?.into(),
            planted: must("--planted")?.into(),
            folder: must("--folder")?.into(),
            database: must("--database")?,
            postgres: take("--postgres").zip(take("--postgres-programs").map(PathBuf::from)),
        };
        match said.keys().next() {
            Some(unknown) => Err(format!("unknown option: {unknown}")),
            None => Ok(options),
        }
    }
}

pub(super) struct Place {
    pub(super) installation: Installation,
    pub(super) server: Server,
    receivers: Server,
    folder: PathBuf,
    /// With the program that asks it.
    postgres: Option<(String, PathBuf)>,
}

impl Place {
    /// On a store that is empty.
    pub(super) fn open(options: &Options, defect: Option<&str>, cores: &Cores) -> Result<Self> {
        let folder = options.folder.clone();
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let dalasi = if defect.is_some() { &options.planted } else { &options.dalasi };
        let (installation, postgres) = match &options.postgres {
            Some((url, programs)) if options.database == "postgres" => {
                let name = "bench_soak";
                let installation = Installation::postgres(dalasi, &folder, url, programs, name)?;
                let (server, _) = url.rsplit_once('/').ok_or("an address without a database")?;
                (installation, Some((format!("{server}/{name}"), programs.join("psql"))))
            }
            _ if options.database == "sqlite" => (Installation::sqlite(dalasi, &folder)?, None),
            _ => return Err(format!("nothing is known of a {} here", options.database)),
        };
        let receivers = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut receivers = Cores::command(cores.client.as_ref(), &receivers);
        receivers.arg("sink");
        let receivers = Server::start(receivers, &folder.join("receivers.log"))?;
        let server = installation.serve_with(cores.server.as_ref(), defect)?;
        Ok(Self { installation, server, receivers, folder, postgres })
    }

    /// One receiver is well and hears what is paid. Three fail, each in its way.
    pub(super) async fn subscribe(&self) -> Result<()> {
        for (number, (path, events)) in
            [("well", "checkout.completed"), ("broken", RARE), ("cut", RARE), ("dead", RARE)].into_iter().enumerate()
        {
            let url = format!("http://{}/{path}", self.receivers.address);
            let seed = u64::MAX - number as u64;
            self.installation.tell(self.server.address, &url, events, seed).await?;
        }
        Ok(())
    }

    /// Bytes.
    pub(super) fn stored(&self) -> f64 {
        match &self.postgres {
            None => files(&self.folder.join("data")).iter().map(|(_, bytes)| *bytes as f64).sum(),
            Some((url, psql)) => {
                let asked = succeed(
                    Command::new(psql)
                        .args(["--quiet", "--no-psqlrc", "--tuples-only", "--no-align", url, "--command"])
                        .arg("select pg_database_size(current_database())"),
                );
                asked.ok().and_then(|size| size.trim().parse().ok()).unwrap_or_default()
            }
        }
    }

    /// Bytes on the disk of the data.
    pub(super) fn free(&self) -> Result<f64> {
        let told = succeed(Command::new("df").args(["--output=avail", "--block-size=1"]).arg(&self.folder))?;
        let free = told.lines().last().and_then(|line| line.trim().parse().ok());
        free.ok_or_else(|| format!("df says {told:?}"))
    }

    /// The embedded database's log, MiB.
    pub(super) fn log(&self) -> f64 {
        if self.postgres.is_some() {
            return 0.0;
        }
        let files = files(&self.folder.join("data"));
        files.iter().find(|(name, _)| name.ends_with("-wal")).map_or(0.0, |(_, bytes)| *bytes as f64 / MIB)
    }

    /// Somebody who reads what the database holds now and goes on for so long, whatever is written meanwhile.
    pub(super) fn reader(&self, length: Duration) -> Result<Reader> {
        let Some((url, psql)) = &self.postgres else {
            let data = self.folder.join("data");
            let files = files(&data);
            let (log, _) = files.iter().find(|(name, _)| name.ends_with("-wal")).ok_or("there is no log")?;
            let file = data.join(log.trim_end_matches("-wal"));
            let failed = |error: rusqlite::Error| format!("{} can't be read: {error}", file.display());
            let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let reader = rusqlite::Connection::open_with_flags(&file, flags).map_err(failed)?;
            reader.execute_batch("begin; select count(*) from leases;").map_err(failed)?;
            return Ok(Reader::OfFile { _snapshot: reader });
        };
        let reads = format!(
            "begin isolation level repeatable read; select count(*) from leases; select pg_sleep({})",
            length.as_secs()
        );
        let mut psql = Command::new(psql);
        psql.args(["--quiet", "--no-psqlrc", url, "--command", &reads]);
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        psql.spawn().map(Reader::OfServer).map_err(|error| format!("psql: {error}"))
    }

    /// What is wrong with the books by the server's own word, now.
    pub(super) async fn wrong_books(&self) -> Result<Option<String>> {
        let mut request = Vec::new();
        self.installation.caller(0).get("/v1/ledger/accounts", &mut request);
        let (status, answer) = once(self.server.address, &request).await?;
        let accounts = answer["data"]["accounts"].as_array().ok_or(format!("the ledger is answered {status}"))?;
        let sum: Option<i128> = accounts.iter().map(|account| hundredths(account["balance"].as_str()?)).sum();
        if sum != Some(0) {
            return Ok(Some(format!("the accounts sum to {sum:?}: {answer}")));
        }
        request.clear();
        self.installation.caller(0).get("/health/invariants", &mut request);
        let (_, answer) = once(self.server.address, &request).await?;
        let is_wrong = answer["data"]["status"] == "faults";
        Ok(is_wrong.then(|| format!("the server's own check of its books: {answer}")))
    }

    /// Stops in good order, and all that was stored is looked through.
    pub(super) async fn end(self) -> Result<Vec<String>> {
        let Self { installation, server, .. } = self;
        let mut faults = Vec::new();
        faults.extend(server.stop(LONGEST_STOP).await);
        faults.extend(installation.verify().err());
        Ok(faults)
    }
}

pub(super) enum Reader {
    /// Until it is closed with its transaction.
    OfFile {
        _snapshot: rusqlite::Connection,
    },
    OfServer(Child),
}

impl Drop for Reader {
    fn drop(&mut self) {
        match self {
            Self::OfFile { .. } => {}
            Self::OfServer(psql) => {
                let _ = psql.kill();
                let _ = psql.wait();
            }
        }
    }
}

/// Name and size.
fn files(folder: &std::path::Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of =
        |entry: fs::DirEntry| Some((entry.file_name().to_string_lossy().into_owned(), entry.metadata().ok()?.len()));
    entries.filter_map(of).collect()
}

/// Of an amount with two decimals.
fn hundredths(amount: &str) -> Option<i128> {
    let (whole, part) = amount.split_once('.')?;
    (part.len() == 2).then(|| format!("{whole}{part}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_are_read_to_the_last_digit() {
        assert_eq!(hundredths("-0.05"), Some(-5));
        assert_eq!(hundredths("1450.00"), Some(145_000));
        assert_eq!(hundredths("1450"), None);
    }

    #[test]
    fn a_wrong_line_is_refused() {
        let parse = |line: &str| Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(parse("--dalasi d --planted p --folder f --database sqlite").is_ok());
        for line in ["", "--dalasi", "--dalasi d --planted p --folder f --database sqlite --fast yes"] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }
}
