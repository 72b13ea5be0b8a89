//! Opening an installation: its database, its master key, and whether the two belong together.

use std::fs::{DirBuilder, File};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::{Id, organization::Organization};
use store::queries::{organizations as stored_organizations, signing_keys};
use store::{EntropySource, Store, Tx};

use super::problem::Problem;
use crate::app::organizations::{self, Installed};
use crate::app::{Context, keys};
use crate::clock::SystemClock;
use crate::config::{BesideSettings, Database, StoreSettings};
use crate::entropy::SystemEntropy;
use crate::error::Failure;
use crate::monotonic;
use crate::secrets::{KeyFileFault, MasterKey, create_key_file, load_key_file};
use crate::wire::Addresses;

pub(super) const DATABASE_FILE: &str = "dalasi.db";
/// While a backup may be being loaded: before the next try, each of which waits by itself, and how long there is a next one.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How a process stands to a database that others may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It makes the database where it is missing, migrates it and, embedded, is the only one to serve it.
    Owner { allow_unsafe: bool },
    /// The same, and it serves: with so many connections to PostgreSQL.
    Server { allow_unsafe: bool, connections: NonZeroUsize },
    /// It looks or changes a little, beside a server or without one.
    Guest,
    /// A guest that copies everything as it is, also what an older version has left.
    Copier,
}

pub(super) fn store_settings(settings: &StoreSettings, part: Part) -> Result<store::Settings, Problem> {
    let database = match &settings.database {
        Database::Sqlite { data_dir } => {
            if !matches!(part, Part::Guest | Part::Copier) {
                create_folder(data_dir)?;
            }
            store::Database::Sqlite { path: data_dir.join(DATABASE_FILE) }
        }
        Database::Postgres { url } => store::Database::Postgres { url: url.expose().to_owned() },
    };
    let mut opened = store::Settings::new(database);
    match part {
        Part::Owner { allow_unsafe } => opened.allow_unsafe = allow_unsafe,
        Part::Server { allow_unsafe, connections } => {
            opened.allow_unsafe = allow_unsafe;
            if let Database::Postgres { .. } = settings.database {
                opened.connections = connections.get();
            }
        }
        Part::Guest | Part::Copier => {
            // The settings of the database are the server's concern: a guest must be able to repair and look.
            opened.allow_unsafe = true;
            opened.secondary = true;
            opened.takes_older = part == Part::Copier;
            opened.connections = 1;
        }
    }
    Ok(opened)
}

pub(super) async fn open_store(settings: &StoreSettings, part: Part) -> Result<Store, Problem> {
    let opened = store_settings(settings, part)?;
    require(&opened)?;
    Ok(Store::open(opened, Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await?)
}

/// A guest's, for commands whose answer about a database that holds no installation would mislead.
pub(super) async fn open_installed(settings: &StoreSettings, part: Part) -> Result<Store, Problem> {
    let store = open_store(settings, part).await?;
    match is_installed(&store).await {
        Ok(true) => Ok(store),
        other => {
            store.close().await;
            other?;
            Err(match &settings.database {
                Database::Sqlite { data_dir } => nothing_installed(Some(&data_dir.join(DATABASE_FILE))),
                Database::Postgres { .. } => nothing_installed(None),
            })
        }
    }
}

/// Whether the key file's key is the one that the installation was made with; `false` where there is no key file.
pub(super) async fn check_key_file(store: &Store, settings: &StoreSettings) -> Result<bool, Problem> {
    let key = match load_key_file(&settings.key_file) {
        Ok(key) => key,
        Err(KeyFileFault::Missing(_)) => return Ok(false),
        Err(fault) => return Err(Problem::failed(fault.to_string())),
    };
    let nowhere = Addresses { public_url: String::new(), pay_url: String::new() };
    let context = Arc::new(Context::new(nowhere, key, Vec::new()));
    let checked = check_key(store, &context).await;
    // Here it is what was looked for, and no setting that keeps the command from its work.
    let failed = |problem: Problem| Problem::failed(problem.into_text());
    let place = format!("it was read from {}", settings.key_file.display());
    checked.map(|()| true).map_err(|problem| failed(problem).and(&place))
}

/// A guest finds a database or nothing: it makes none.
pub(super) fn require(opened: &store::Settings) -> Result<(), Problem> {
    match &opened.database {
        store::Database::Sqlite { path } if opened.secondary => match std::fs::metadata(path) {
            Ok(file) if file.len() > 0 => Ok(()),
            Ok(_) => Err(nothing_installed(Some(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(nothing_installed(Some(path))),
            Err(error) => Err(unreachable(path, &error)),
        },
        store::Database::Sqlite { .. } | store::Database::SqliteMemory | store::Database::Postgres { .. } => Ok(()),
    }
}

fn unreachable(path: &Path, error: &io::Error) -> Problem {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => " It belongs to another user: run this as the user of the service.",
        _ => "",
    };
    Problem::failed(format!("{} can't be reached: {error}.{next}", path.display()))
}

fn create_folder(folder: &Path) -> Result<(), Problem> {
    let made: Vec<&Path> = folder.ancestors().take_while(|folder| !is_there(folder)).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| unreachable(folder, &error))?;
    // A folder whose entry in the one above was never synced is lost with the power, and all that was put into it.
    for folder in made {
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(above).and_then(|above| above.sync_all()).map_err(|error| unreachable(above, &error))?;
    }
    Ok(())
}

fn is_there(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || folder.exists()
}

fn nothing_installed(path: Option<&Path>) -> Problem {
    let place = path.map_or_else(|| "in this database".to_owned(), |path| format!("at {}", path.display()));
    Problem::not_found(format!(
        "there is no installation {place}. Name its folder with --data-dir (or --database-url), or make one with `dalasi init`."
    ))
}

pub(super) async fn is_installed(store: &Store) -> Result<bool, Problem> {
    Ok(store.read(organizations::is_installed).await?)
}

/// Whether there is an organization already, also one of an older version, whose database stays as it is.
pub(super) async fn is_taken(settings: &StoreSettings) -> Result<bool, Problem> {
    let opened = store_settings(settings, Part::Copier)?;
    // Where none can be found, whoever makes one says why.
    if require(&opened).is_err() {
        return Ok(false);
    }
    let store = match Store::open(opened, Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await {
        Ok(store) => store,
        Err(store::Error::Schema(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let found = store.read(organizations::is_installed).await;
    store.close().await;
    match found {
        // What made the database was killed before it had made the tables.
        Err(Failure::Store(store::Error::Sql { .. })) => Ok(false),
        found => Ok(found?),
    }
}

/// The master key, and the file that this call had to make for it.
pub(super) struct FoundKey {
    pub(super) key: MasterKey,
    made: Option<PathBuf>,
}

/// Refuses a file that is no key file before anything is done. Whether it may be missing, the database says.
pub(super) fn require_key_file(settings: &StoreSettings) -> Result<(), Problem> {
    match load_key_file(&settings.key_file) {
        Err(fault @ (KeyFileFault::Permissions { .. } | KeyFileFault::Malformed(_))) => Err(fault.into()),
        Ok(_) | Err(KeyFileFault::Missing(_) | KeyFileFault::Exists(_) | KeyFileFault::Io { .. }) => Ok(()),
    }
}

/// Reads the key file. Where nothing is installed yet it may be missing, and is made.
pub(super) async fn master_key(store: &Store, settings: &StoreSettings) -> Result<FoundKey, Problem> {
    let path = &settings.key_file;
    match load_key_file(path) {
        Ok(key) => return Ok(FoundKey { key, made: None }),
        Err(KeyFileFault::Missing(_)) => {}
        Err(fault) => return Err(fault.into()),
    }
    if is_installed(store).await? {
        return Err(Problem::usage(format!(
            "the master key {} is missing, and this installation's secrets open with no other. \
             Put the file back (backups of the database leave it out), or name it with --key-file.",
            path.display()
        )));
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder)?;
    }
    let mut random = [0; 32];
    SystemEntropy.fill(&mut random);
    match create_key_file(path, random) {
        Ok(key) => Ok(FoundKey { key, made: Some(path.clone()) }),
        // Another process was faster; its key is the one.
        Err(KeyFileFault::Exists(_)) => Ok(FoundKey { key: load_key_file(path)?, made: None }),
        Err(fault) => Err(fault.into()),
    }
}

/// The first organization, or nothing where there is one: then the key has to be the one that it was made with. Whoever loads a
/// backup is waited for, as long as `goes_on` says so of a try that failed.
pub(super) async fn install(
    store: &Store,
    context: &Arc<Context>,
    name: &str,
    key: &FoundKey,
    goes_on: impl Fn(&str) -> bool,
) -> Result<Option<Installed>, Problem> {
    let (command_context, name) = (Arc::clone(context), name.to_owned());
    let install = Arc::new(move |tx: &mut Tx<'_>| organizations::install(tx, &command_context, &name));
    let until = monotonic::now() + LONGEST_WAIT;
    let installed = loop {
        let again = Arc::clone(&install);
        match store.write(move |tx| again(tx)).await {
            // A backup is being loaded: each try waits for a while by itself.
            Err(Failure::Store(store::Error::Unavailable(why))) if monotonic::now() < until && goes_on(&why) => {
                tokio::time::sleep(PAUSE).await;
            }
            ended => break ended?,
        }
    };
    if installed.is_none() {
        if let Some(made) = &key.made {
            withdraw_foreign(store, context, made).await;
        }
        check_key(store, context).await?;
    }
    Ok(installed)
}

/// Another node installed meanwhile. If it was with a key of its own, this second one would only mislead. Only where that is
/// certain: a process beside us may have installed with the key that we made, and a file that is gone has no copy.
async fn withdraw_foreign(store: &Store, context: &Context, made: &Path) {
    let Ok(stored) = store.read(signing_keys::all).await else { return };
    let is_as_made = load_key_file(made).is_ok_and(|there| there.id() == context.master.id());
    if is_as_made && keys::are_of_another_master(context, &stored) {
        let _ = std::fs::remove_file(made);
    }
}

/// Digests made under another master key would match nothing, and no stored secret would open.
pub(super) async fn check_key(store: &Store, context: &Arc<Context>) -> Result<(), Problem> {
    let context = Arc::clone(context);
    let checked = store.read(move |tx| {
        let stored = signing_keys::all(tx)?;
        keys::signing_keys_at(&context, &stored, tx.now()).map(drop)
    });
    checked.await.map_err(|failure: Failure| match failure {
        Failure::Store(error) => error.into(),
        failure => Problem::usage(format!("the master key does not belong to this database: {failure}")),
    })
}

/// An installation as the operator's commands see it: beside the server, or without one.
pub(super) struct Installation {
    pub(super) store: Store,
    pub(super) context: Arc<Context>,
    pub(super) organization: Id<Organization>,
}

impl Installation {
    /// For commands that cause no event and answer with no address.
    pub(super) async fn open(settings: &StoreSettings) -> Result<Self, Problem> {
        let nowhere = Addresses { public_url: String::new(), pay_url: String::new() };
        Self::with(settings, nowhere, false).await
    }

    /// For commands that do what the server would do, and as that would: with its addresses, and its mails owed.
    pub(super) async fn open_beside(settings: &BesideSettings) -> Result<Self, Problem> {
        let BesideSettings { store, public_url, pay_url, sends_mail } = settings.clone();
        Self::with(&store, Addresses { public_url, pay_url }, sends_mail).await
    }

    async fn with(settings: &StoreSettings, addresses: Addresses, sends_mail: bool) -> Result<Self, Problem> {
        let store = open_store(settings, Part::Guest).await?;
        let opened = Self::complete(&store, settings, addresses, sends_mail).await;
        match opened {
            Ok((context, organization)) => Ok(Self { store, context, organization }),
            Err(problem) => {
                store.close().await;
                Err(problem)
            }
        }
    }

    async fn complete(
        store: &Store,
        settings: &StoreSettings,
        addresses: Addresses,
        sends_mail: bool,
    ) -> Result<(Arc<Context>, Id<Organization>), Problem> {
        let organization = only_organization(store).await?;
        let FoundKey { key, .. } = master_key(store, settings).await?;
        let context = Context::new(addresses, key, Vec::new());
        let context = Arc::new(if sends_mail { context.sending_mail() } else { context });
        check_key(store, &context).await?;
        Ok((context, organization))
    }

    /// One transaction; the server beside us sees it within a second.
    pub(super) async fn write<T, E, F>(&self, command: F) -> Result<T, Problem>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<store::Error> + Into<Problem> + Send + 'static,
    {
        let context = Arc::clone(&self.context);
        self.store.write(move |tx| command(tx, &context)).await.map_err(Into::into)
    }

    /// Gives the database back, whatever the command came to.
    pub(super) async fn close<T>(self, result: Result<T, Problem>) -> Result<T, Problem> {
        self.store.close().await;
        result
    }
}

/// There is one organization in an installation so far.
pub(super) async fn only_organization(store: &Store) -> Result<Id<Organization>, Problem> {
    let scopes = store.read(stored_organizations::scopes).await?;
    scopes.first().map(|scope| scope.organization).ok_or_else(|| nothing_installed(None))
}

/// Who is at the keyboard, for the audit log.
pub(super) fn actor() -> String {
    let name = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let name: String = name.unwrap_or_else(|| "unknown".into()).chars().filter(|c| !c.is_control()).take(64).collect();
    format!("cli:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn rename(table: &'static str, to: &'static str, store: &Store) {
        let renamed = store.write(move |tx| tx.execute(&format!("alter table {table} rename to {to}"), &[]));
        renamed.await.unwrap();
    }

    #[tokio::test]
    async fn a_key_that_was_made_is_withdrawn_only_where_another_was_installed() {
        let settings = store::Settings::new(store::Database::SqliteMemory);
        let store = Store::open(settings, Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await.unwrap();
        let folder = std::env::temp_dir().join(format!("dalasi-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("master.key");
        let with = |key: &MasterKey| {
            let nowhere = Addresses { public_url: String::new(), pay_url: String::new() };
            Arc::new(Context::new(nowhere, key.clone(), Vec::new()))
        };
        let ours = create_key_file(&path, [1; 32]).unwrap();
        let made = FoundKey { key: ours.clone(), made: Some(path.clone()) };
        // A process beside us found our key, and was faster.
        let beside = FoundKey { key: ours.clone(), made: None };
        assert!(install(&store, &with(&ours), "Shop", &beside, |_| false).await.unwrap().is_some());
        assert!(install(&store, &with(&ours), "Shop", &made, |_| false).await.unwrap().is_none());
        assert!(path.exists());

        // The database answers the first question and not the second.
        rename("signing_keys", "signing_keys_away", &store).await;
        assert!(install(&store, &with(&ours), "Shop", &made, |_| false).await.is_err());
        assert!(path.exists(), "nobody knows whose the key is");
        rename("signing_keys_away", "signing_keys", &store).await;
        assert!(install(&store, &with(&ours), "Shop", &made, |_| false).await.unwrap().is_none());

        // A node with another disk made one, too late.
        let another = folder.join("another.key");
        let late = FoundKey { key: create_key_file(&another, [2; 32]).unwrap(), made: Some(another.clone()) };
        std::fs::rename(&another, folder.join("kept")).unwrap();
        std::fs::copy(&path, &another).unwrap();
        assert!(install(&store, &with(&late.key), "Shop", &late, |_| false).await.is_err());
        assert!(another.exists(), "somebody has put the right one in its place");
        std::fs::rename(folder.join("kept"), &another).unwrap();
        assert!(install(&store, &with(&late.key), "Shop", &late, |_| false).await.is_err());
        assert!(!another.exists() && path.exists());
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
