//! Where an installation under test lives, and the commands that are run on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dalasi::clock::SystemClock;
use dalasi::entropy::SystemEntropy;
use serde_json::Value;
use store::{Clock, Store};

use crate::before_checksums;

/// A folder of its own for each test, and with PostgreSQL a database.
pub(crate) struct Place {
    folder: PathBuf,
    database: Option<Database>,
}

struct Database {
    admin: String,
    name: String,
    url: String,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Place {
    pub(crate) fn sqlite() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dalasi-it-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, database: None }
    }

    /// One for each database that is there.
    pub(crate) async fn each(test: &str) -> impl Iterator<Item = Self> {
        [Some(Self::sqlite()), Self::postgres(test).await].into_iter().flatten()
    }

    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        let Ok(admin) = std::env::var("DALASI_TEST_POSTGRES_URL") else {
            #[expect(clippy::print_stderr, reason = "a test that does not run says so")]
            {
                eprintln!("NOT RUN: {test} on PostgreSQL (DALASI_TEST_POSTGRES_URL is not set)");
            }
            return None;
        };
        let mut place = Self::sqlite();
        let name = format!("it_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // A database that sorts text as people do, where it can be had: nothing may depend on that.
        let create = format!("create database {name} template template0 encoding 'UTF8'");
        let client = postgres_client(&admin).await;
        if client.batch_execute(&format!("{create} locale_provider icu icu_locale 'en-US'")).await.is_err() {
            client.batch_execute(&create).await.unwrap();
        }
        let (server, _) = admin.rsplit_once('/').unwrap();
        let url = format!("{server}/{name}");
        place.database = Some(Database { admin, name, url });
        Some(place)
    }

    /// Gives the database back; the folder goes by itself.
    pub(crate) async fn end(&self) {
        if let Some(Database { admin, name, .. }) = &self.database {
            let drop = format!("drop database {name} with (force)");
            postgres_client(admin).await.batch_execute(&drop).await.unwrap();
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.join("data/master.key")
    }

    /// The embedded database's file.
    pub(crate) fn file(&self) -> PathBuf {
        assert!(self.database.is_none(), "PostgreSQL has no file");
        self.folder.join("data/dalasi.db")
    }

    /// How PostgreSQL is reached by whoever may make databases.
    pub(crate) fn admin(&self) -> Option<&str> {
        self.database.as_ref().map(|database| database.admin.as_str())
    }

    /// For an installation in this process.
    pub(crate) fn settings(&self) -> store::Database {
        match &self.database {
            None => store::Database::Sqlite { path: self.folder.join("dalasi.db") },
            Some(Database { url, .. }) => store::Database::Postgres { url: url.clone() },
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.database.is_some()
    }

    /// A command on this installation, in its folder, with nobody at the keyboard.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dalasi"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DALASI_")) {
            command.env_remove(name);
        }
        match &self.database {
            None => command.env("DALASI_DATA_DIR", self.folder.join("data")),
            Some(Database { url, .. }) => {
                command.env("DALASI_DATABASE_URL", url).env("DALASI_KEY_FILE", self.key_file())
            }
        };
        command.args(arguments).current_dir(&self.folder).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// The same command as another program runs it: a shell, strace.
    pub(crate) fn command_by(&self, program: &[&str], arguments: &[&str]) -> Command {
        let direct = self.command(arguments);
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(direct.get_program()).args(direct.get_args());
        for (name, value) in direct.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// The same command with its system calls watched, or changed, as strace has it. Nothing where there is none.
    pub(crate) fn traced(&self, options: &[&str], arguments: &[&str]) -> Option<Command> {
        if Command::new("strace").arg("--version").output().is_err() {
            #[expect(clippy::print_stderr, reason = "a test that does not run says so")]
            {
                eprintln!("NOT RUN: {arguments:?} under strace, which is not installed");
            }
            return None;
        }
        Some(self.command_by(&[&["strace", "--follow-forks", "--quiet=all"], options].concat(), arguments))
    }

    /// A command that has to work; what it says in JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.messages);
        serde_json::from_str(&ran.data).unwrap()
    }

    /// What `init` prints.
    pub(crate) fn init(&self) -> Value {
        self.json(&["init", "--organization", "Kairaba Books"])
    }

    pub(crate) fn has_clean_books(&self) {
        let verified = self.run(&["verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }

    /// The same database, opened beside the server, so many days from now.
    pub(crate) async fn store_in(&self, days: i64) -> Store {
        let database = match &self.database {
            None => store::Database::Sqlite { path: self.file() },
            Some(Database { url, .. }) => store::Database::Postgres { url: url.clone() },
        };
        let settings = store::Settings { secondary: true, allow_unsafe: true, ..store::Settings::new(database) };
        Store::open(settings, Arc::new(InDays(days, SystemClock::new())), Arc::new(SystemEntropy)).await.unwrap()
    }

    pub(crate) async fn raw_postgres(&self) -> tokio_postgres::Client {
        let Some(Database { url, .. }) = &self.database else { panic!("that is a file") };
        postgres_client(url).await
    }

    pub(crate) fn raw_sqlite(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }

    /// The same, in which every row is as versions left it that kept no checksums.
    pub(crate) fn raw_sqlite_without_checksums(&self) -> rusqlite::Connection {
        let database = self.raw_sqlite();
        for statement in before_checksums::statements() {
            database.execute(&statement, []).unwrap();
        }
        database
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may be gone already; nothing of ours hangs on it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct InDays(i64, SystemClock);

impl Clock for InDays {
    fn now_us(&self) -> i64 {
        self.1.now_us() + self.0 * 24 * 3600 * 1_000_000
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) data: String,
    pub(crate) messages: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            data: String::from_utf8(output.stdout).unwrap(),
            messages: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} is no text in {value}"))
}

pub(crate) async fn postgres_client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
