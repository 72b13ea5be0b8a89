//! What the operator wants: flags over environment over file, checked as a whole, every fault named at once.
//! Opens no file but the settings file and connects to nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use url::Url;

use crate::listener::{ListenerSettings, TlsFault, tls_config};
use crate::logging::LogFormat;
use crate::mail::MailSettings;
use crate::rate_limit::Rate;

mod arguments;

pub use arguments::{BesideArguments, MailArguments, ServeArguments, StoreArguments, WHERE_MAIL_IS_SEEN};

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";
const DEFAULT_DATA_DIR: &str = "./dalasi-data";
const DEFAULT_RATE_PER_SECOND: u32 = 100;
/// More than this a PostgreSQL as it comes does not grant to all its clients together.
const MOST_CONNECTIONS: usize = 90;

/// What is to be done where [`ServeSettings::unreachable_address`] has a reason.
pub const SET_PUBLIC_URL: &str = "Set public-url (and pay-url, where the pages have another) to the address by which they come, \
                                  such as https://pay.shop.example.";

/// Settings of `dalasi serve` that fit together.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub store: StoreSettings,
    pub tls: Option<TlsFiles>,
    pub trusted_proxies: usize,
    pub allow_loopback_webhooks: bool,
    /// Nothing: no limit.
    pub rate: Option<Rate>,
    pub roles: Roles,
    /// Database settings that can lose acknowledged writes are accepted.
    pub allow_unsafe_database: bool,
    /// How many connections are kept to PostgreSQL. Each carries one transaction at a time.
    pub database_connections: NonZeroUsize,
    pub log_format: LogFormat,
    /// Nothing: no mail is sent.
    pub mail: Option<MailSettings>,
    public_url: Option<String>,
    pay_url: Option<String>,
    donate_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    pub database: Database,
    pub key_file: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite { data_dir: PathBuf },
    Postgres { url: DatabaseUrl },
}

/// Holds a password, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    pub api: bool,
    pub worker: bool,
}

/// The addresses that clients and payers see, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    pub public_url: String,
    pub pay_url: String,
    pub donate_url: String,
}

/// Everything that is wrong with the settings, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFaults(pub Vec<String>);

impl fmt::Display for SettingsFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for SettingsFaults {}

impl ServeSettings {
    /// Reads the settings file that the arguments name, if any, and puts the layers together.
    pub fn load(arguments: ServeArguments) -> Result<Self, SettingsFaults> {
        let file = match &arguments.config {
            Some(path) => read_file(path)?,
            None => ServeArguments::default(),
        };
        Self::check(arguments.over_store(file)?)
    }

    /// The same for a command that looks at what the server has and may not see all of its settings. Whether there is a
    /// part of those for mail without the mail server's address, which stands where the unit alone reads it.
    pub fn load_as_seen(arguments: ServeArguments) -> Result<(Self, bool), SettingsFaults> {
        let file = match &arguments.config {
            Some(path) => read_file(path)?,
            None => ServeArguments::default(),
        };
        let mut given = arguments.over_store(file)?;
        let is_half = given.is_half_of_mail();
        if is_half {
            (given.mail_from, given.smtp_password_file) = (None, None);
        }
        Self::check(given).map(|settings| (settings, is_half))
    }

    fn check(given: ServeArguments) -> Result<Self, SettingsFaults> {
        let mut faults = Vec::new();
        let listen = given.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
        let listen = keep(&mut faults, parse_listen(listen));
        let public_url = web_address(&mut faults, "public-url", given.public_url);
        let pay_url = web_address(&mut faults, "pay-url", given.pay_url);
        let donate_url = web_address(&mut faults, "donate-url", given.donate_url);
        let tls = keep(&mut faults, tls_files(given.tls_cert, given.tls_key));
        let roles = keep(&mut faults, parse_roles(given.role.as_deref().unwrap_or("api,worker")));
        let is_split = roles.is_some_and(|roles| !(roles.api && roles.worker));
        if is_split && given.database_url.is_none() {
            faults.push(
                "role: the roles can be split with PostgreSQL only, because one process owns an embedded database. \
                 Leave `role` out, or set `database-url`."
                    .to_owned(),
            );
        }
        let store = StoreSettings::check(given.data_dir, given.database_url, given.key_file);
        let store = store.map_err(|SettingsFaults(more)| faults.extend(more)).ok();
        let mail = MailSettings::check(given.smtp_url, given.smtp_password_file, given.mail_from);
        let mail = mail.map_err(|more| faults.extend(more)).ok();
        let connections = keep(&mut faults, database_connections(given.database_connections));
        match (listen, store, tls, roles, mail, connections) {
            (Some(listen), Some(store), Some(tls), Some(roles), Some(mail), Some(database_connections))
                if faults.is_empty() =>
            {
                Ok(Self {
                    listen,
                    store,
                    tls,
                    trusted_proxies: given.trusted_proxies.unwrap_or(0).into(),
                    allow_loopback_webhooks: given.allow_loopback_webhooks.unwrap_or(false),
                    rate: Rate::new(given.rate_limit.unwrap_or(DEFAULT_RATE_PER_SECOND)),
                    roles,
                    allow_unsafe_database: given.allow_unsafe.unwrap_or(false),
                    database_connections,
                    log_format: given.log_format.unwrap_or_default(),
                    mail,
                    public_url,
                    pay_url,
                    donate_url,
                })
            }
            _ => Err(SettingsFaults(faults)),
        }
    }

    /// What was not set follows from the address that is really listened on.
    pub fn addresses(&self, listening_on: SocketAddr) -> Addresses {
        let public_url = self.public_url.clone().unwrap_or_else(|| web_origin(self.tls.is_some(), listening_on));
        Addresses {
            pay_url: self.pay_url.clone().unwrap_or_else(|| public_url.clone()),
            donate_url: self.donate_url.clone().unwrap_or_else(|| public_url.clone()),
            public_url,
        }
    }

    /// Why payers and programs are probably sent to an address that leads them nowhere, where that is so; without a full stop.
    pub fn unreachable_address(&self, listening_on: SocketAddr) -> Option<String> {
        let is_split = !(self.roles.api && self.roles.worker);
        let why = if self.public_url.is_some() {
            return None;
        } else if self.trusted_proxies > 0 {
            "there is a proxy in front (trusted-proxies)"
        } else if self.listen.ip().is_unspecified() {
            "others can come by any address of this machine (listen)"
        } else if is_split {
            "there are other processes (role)"
        } else {
            return None;
        };
        let Addresses { public_url, .. } = self.addresses(listening_on);
        Some(format!("public-url is not set, and {why}: payers and programs are sent to {public_url}"))
    }

    /// Reads the TLS files, if there are any.
    pub fn listener(&self) -> Result<ListenerSettings, TlsFault> {
        let tls = self.tls.as_ref().map(|files| tls_config(&files.certificates, &files.key));
        Ok(ListenerSettings {
            trusted_proxies: self.trusted_proxies,
            tls: tls.transpose()?,
            ..ListenerSettings::default()
        })
    }
}

/// What a command takes from the settings of the server that it works beside. The rest is the server's to check, and may
/// stand where the command doesn't see it: in the unit's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideSettings {
    pub store: StoreSettings,
    pub public_url: String,
    pub pay_url: String,
    /// Whether the server sends mail, so that some may be owed to it.
    pub sends_mail: bool,
}

impl BesideSettings {
    fn check(given: ServeArguments) -> Result<Self, SettingsFaults> {
        let mut faults = Vec::new();
        let listen = keep(&mut faults, parse_listen(given.listen.as_deref().unwrap_or(DEFAULT_LISTEN)));
        let public_url = web_address(&mut faults, "public-url", given.public_url);
        let pay_url = web_address(&mut faults, "pay-url", given.pay_url);
        let store = StoreSettings::check(given.data_dir, given.database_url, given.key_file);
        let store = store.map_err(|SettingsFaults(more)| faults.extend(more)).ok();
        // The server takes those of TLS and those of mail together only, so that one of them says enough.
        let is_tls = given.tls_cert.is_some() || given.tls_key.is_some();
        let sends_mail = given.smtp_url.is_some() || given.smtp_password_file.is_some() || given.mail_from.is_some();
        match (listen, store) {
            (Some(listen), Some(store)) if faults.is_empty() => {
                let public_url = public_url.unwrap_or_else(|| web_origin(is_tls, listen));
                Ok(Self { store, pay_url: pay_url.unwrap_or_else(|| public_url.clone()), public_url, sends_mail })
            }
            _ => Err(SettingsFaults(faults)),
        }
    }
}

impl StoreSettings {
    fn check(
        data_dir: Option<PathBuf>,
        database_url: Option<String>,
        key_file: Option<PathBuf>,
    ) -> Result<Self, SettingsFaults> {
        let mut faults = Vec::new();
        if data_dir.is_some() && database_url.is_some() {
            faults.push(
                "data-dir, database-url: both are set; the data is either in a folder or in PostgreSQL. Set one."
                    .to_owned(),
            );
        }
        let (database, key_file) = match database_url {
            None => {
                let data_dir = data_dir.unwrap_or_else(|| DEFAULT_DATA_DIR.into());
                let key_file = key_file.unwrap_or_else(|| data_dir.join("master.key"));
                (Database::Sqlite { data_dir }, key_file)
            }
            Some(url) => {
                let scheme = url.split_once("://").map(|(scheme, _)| scheme);
                if !matches!(scheme, Some("postgres" | "postgresql")) {
                    // The value holds a password: it is not repeated.
                    faults.push("database-url: it must begin with postgres:// or postgresql://.".to_owned());
                }
                if key_file.is_none() {
                    faults.push(
                        "key-file: it is required with PostgreSQL; name a file for the master key \
                         (`dalasi init` makes it where it is missing)."
                            .to_owned(),
                    );
                }
                (Database::Postgres { url: DatabaseUrl(url) }, key_file.unwrap_or_default())
            }
        };
        if faults.is_empty() { Ok(Self { database, key_file }) } else { Err(SettingsFaults(faults)) }
    }
}

fn read_file(path: &Path) -> Result<ServeArguments, SettingsFaults> {
    let fault = |sentence: String| SettingsFaults(vec![sentence]);
    let text = std::fs::read_to_string(path)
        .map_err(|error| fault(format!("config: {} can't be read: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        // The error's own text quotes the line, which may hold a password.
        fault(format!("config: {} line {line}: {}", path.display(), error.message()))
    })
}

/// Whether a settings file holds a password, so that nobody but the service may read it.
pub fn holds_password(path: &Path) -> bool {
    let with_password = |url: &String| {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (_, authority) = address.split_once("://").unwrap_or_default();
        let (user, _) = authority.rsplit_once('@').unwrap_or_default();
        user.contains(':') || query.split('&').any(|pair| pair.starts_with("password="))
    };
    read_file(path).is_ok_and(|given| given.database_url.iter().chain(&given.smtp_url).any(with_password))
}

fn keep<T>(faults: &mut Vec<String>, checked: Result<T, String>) -> Option<T> {
    checked.map_err(|fault| faults.push(fault)).ok()
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("listen: {text:?} is not an address and a port, such as 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080.")
    })
}

/// By default as many as keep every core busy while half of them wait for the disk.
fn database_connections(given: Option<u16>) -> Result<NonZeroUsize, String> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = given.map_or_else(|| (2 * cores()).clamp(4, 16), usize::from);
    NonZeroUsize::new(wanted)
        .filter(|wanted| wanted.get() <= MOST_CONNECTIONS)
        .ok_or_else(|| format!("database-connections: it must be 1 to {MOST_CONNECTIONS}; {wanted} was given."))
}

/// Where a browser on this machine finds what listens there.
fn web_origin(is_tls: bool, listening_on: SocketAddr) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let host = match listening_on.ip() {
        ip if ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("{scheme}://{host}:{}", listening_on.port())
}

/// An absolute http or https address; without the slash at its end. A fault leaves nothing behind but its sentence. Whatever
/// is served there has its address at the root, the forms and files of pages too, so that none of it is below a path.
fn web_address(faults: &mut Vec<String>, name: &str, given: Option<String>) -> Option<String> {
    let given = given?;
    let sound = Url::parse(&given).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    let Some(url) = sound else {
        faults.push(format!(
            "{name}: it must be an absolute address without user, query and fragment, such as https://pay.shop.example."
        ));
        return None;
    };
    if url.path() != "/" {
        faults.push(format!(
            "{name}: it must not have a path, because everything there has its address at the root; use {}.",
            url.origin().ascii_serialization()
        ));
        return None;
    }
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// The host of a web address.
pub(crate) fn host_of(address: &str) -> Option<String> {
    Url::parse(address).ok()?.host_str().map(str::to_owned)
}

fn tls_files(certificates: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>, String> {
    match (certificates, key) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(TlsFiles { certificates, key })),
        (Some(_), None) => Err("tls-key: it is missing; TLS needs tls-cert and tls-key.".to_owned()),
        (None, Some(_)) => Err("tls-cert: it is missing; TLS needs tls-cert and tls-key.".to_owned()),
    }
}

fn parse_roles(text: &str) -> Result<Roles, String> {
    let mut roles = Roles { api: false, worker: false };
    for role in text.split(',').map(str::trim) {
        match role {
            "api" => roles.api = true,
            "worker" => roles.worker = true,
            other => return Err(format!("role: {other:?} is no role; it is api, worker, or both as api,worker.")),
        }
    }
    Ok(roles)
}

#[cfg(test)]
mod tests;
