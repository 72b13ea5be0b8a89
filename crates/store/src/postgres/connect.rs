//! Where the database is, how to get there safely, and whether it keeps what it acknowledges.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection::begin;
use super::fault;
use crate::error::Error;

/// For one host.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Target {
    /// One for each host that was named.
    hosts: Vec<Config>,
    /// The host that answered last: after a failover only the first connection has to look for the new primary.
    latest: AtomicUsize,
    tls: Option<MakeRustlsConnect>,
}

const UNENCRYPTED: &str = "`sslmode` doesn't say whether the way to another machine is encrypted: write `sslmode=verify-full`, \
or `sslmode=disable` where that network is yours alone";

/// On this machine, where nobody is in between.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// An address decides where the connection goes, so it has to be here as well as the name.
fn is_all_here(config: &Config) -> bool {
    config.get_hosts().iter().all(is_here) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let unusable = |why: String| Error::Unusable(format!("the database URL can't be used: {why}"));
        let (url, asked) = TlsOptions::take_from(url);
        let mut config = Config::from_str(&url).map_err(|error| unusable(fault::describe(&error)))?;
        config.connect_timeout(CONNECT_LIMIT);
        config.keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("dalasi");
        }
        // Of several servers all but one are standbys, and which one isn't changes.
        if config.get_hosts().len() > 1 && !url.contains("target_session_attrs=") {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let tls = match asked.mode.as_deref() {
            // Encryption without a check of the certificate protects from nobody who could also be in between, so there is
            // only all or nothing.
            asked @ (None | Some("disable" | "allow" | "prefer")) => {
                if asked != Some("disable") && !is_all_here(&config) {
                    return Err(unusable(UNENCRYPTED.to_owned()));
                }
                config.ssl_mode(SslMode::Disable);
                None
            }
            Some("require" | "verify-ca" | "verify-full") => {
                config.ssl_mode(SslMode::Require);
                // A file that is being replaced is there again in a moment.
                let roots =
                    roots(asked.root_certificates.as_deref()).map_err(|error| Error::Unavailable(error.to_string()))?;
                Some(MakeRustlsConnect::new(client_config(roots)?))
            }
            Some(other) => return Err(unusable(format!("sslmode={other} is not known"))),
        };
        Ok(Self { hosts: each_host(&config).map_err(unusable)?, latest: AtomicUsize::new(0), tls })
    }

    /// To the first host that answers and is what is wanted, beginning with the one that was so last. The connection's own
    /// work is spawned on the current runtime and ends with the client.
    pub(crate) async fn connect(&self) -> Result<Link, Error> {
        let first = self.latest.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for index in (0..self.hosts.len()).map(|step| (first + step) % self.hosts.len()) {
            // A limit for each: a host that swallows everything must not use up the time of the next.
            match tokio::time::timeout(CONNECT_LIMIT, self.connect_to(&self.hosts[index])).await {
                Ok(Ok(link)) => {
                    self.latest.store(index, Ordering::Relaxed);
                    return Ok(link);
                }
                Ok(Err(error)) => failures.push(fault::describe(&error)),
                Err(_) => failures.push(format!("no connection within {} s", CONNECT_LIMIT.as_secs())),
            }
        }
        Err(Error::Unavailable(failures.join("; ")))
    }

    async fn connect_to(&self, config: &Config) -> Result<Link, tokio_postgres::Error> {
        let unconfirmed = Arc::new(AtomicBool::new(false));
        let client = match &self.tls {
            Some(tls) => {
                let (client, connection) = config.connect(tls.clone()).await?;
                tokio::spawn(attend(connection, Arc::clone(&unconfirmed)));
                client
            }
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                tokio::spawn(attend(connection, Arc::clone(&unconfirmed)));
                client
            }
        };
        Ok(Link { client, unconfirmed })
    }
}

/// A connection to the server that was found.
pub(crate) struct Link {
    pub(crate) client: Client,
    /// Set before the answer to a COMMIT that no standby has confirmed, though it was to wait for one
    /// ([`fault::is_unconfirmed_commit`]).
    pub(crate) unconfirmed: Arc<AtomicBool>,
}

/// Passes on what comes and goes, until either end leaves.
async fn attend<S, T>(mut connection: tokio_postgres::Connection<S, T>, unconfirmed: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) if fault::is_unconfirmed_commit(&notice) => {
                unconfirmed.store(true, Ordering::Relaxed);
                tracing::warn!(notice = notice.message(), "a commit was not confirmed by a standby");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = fault::describe(&error), "a database connection ended");
                return;
            }
        }
    }
}

/// The same settings once for each host, because the library has one limit for all of them and always begins with the first.
fn each_host(all: &Config) -> Result<Vec<Config>, String> {
    let (hosts, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = hosts.len().max(addresses.len());
    if count < 2 {
        return Ok(vec![all.clone()]);
    }
    if !addresses.is_empty() && !hosts.is_empty() && addresses.len() != hosts.len() {
        return Err(format!("{} hosts and {} addresses do not go together", hosts.len(), addresses.len()));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("{count} hosts and {} ports do not go together", ports.len()));
    }
    if all.get_load_balance_hosts() != LoadBalanceHosts::Disable {
        return Err("load_balance_hosts is not for several hosts: only one of them can be written to".to_owned());
    }
    let one = |index: usize| {
        let mut one = without_host(all);
        match hosts.get(index) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(index).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    Ok((0..count).map(one).collect())
}

fn without_host(all: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .target_session_attrs(all.get_target_session_attrs());
    one
}

/// The part of the URL that tokio-postgres doesn't know all words of.
#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    root_certificates: Option<String>,
}

impl TlsOptions {
    fn take_from(url: &str) -> (String, Self) {
        let mut options = Self::default();
        let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), options) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", value)) => options.mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => options.root_certificates = Some(value.replace("%2F", "/")),
                _ => rest.push(pair),
            }
        }
        let separator = if rest.is_empty() { "" } else { "?" };
        (format!("{address}{separator}{}", rest.join("&")), options)
    }
}

fn roots(file: Option<&str>) -> io::Result<RootCertStore> {
    let certificates = match file {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| io::Error::other(format!("sslrootcert={path}: {error}")))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(io::Error::other("no root certificate was found, so that the server's can't be verified"));
    }
    Ok(roots)
}

fn client_config(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unavailable(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// What is asked of a new connection: whoever has accepted it may never answer.
pub(crate) async fn answered<T>(asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let unanswered = |_| Error::Unavailable("the new connection gave no answer".to_owned());
    tokio::time::timeout(CONNECT_LIMIT, asking).await.map_err(unanswered)?
}

const SETTINGS: &str = "
select
    current_setting('fsync'),
    current_setting('synchronous_commit'),
    current_setting('full_page_writes'),
    current_setting('server_encoding'),
    current_setting('data_sync_retry')";

/// Of the server that is found now. After a failover it is another one, and what is set for the role or the database holds for
/// connections that are made later.
pub(crate) async fn check_settings(client: &Client, allow_unsafe: bool) -> Result<(), Error> {
    let rows = client.query_typed(SETTINGS, &[]).await.map_err(|error| Error::Unavailable(fault::describe(&error)))?;
    let row = rows.first().ok_or_else(|| Error::Corrupt("the server doesn't know its settings".to_owned()))?;
    let setting = |index| row.try_get::<_, &str>(index).map_err(|error| Error::Corrupt(fault::describe(&error)));
    let (fsync, synchronous_commit, full_page_writes) = (setting(0)?, setting(1)?, setting(2)?);
    if !allow_unsafe {
        judge(fsync, synchronous_commit, full_page_writes, setting(4)?)?;
    }
    match setting(3)? {
        "UTF8" => Ok(()),
        encoding => Err(Error::Unusable(format!(
            "the database's encoding is {encoding}: create it anew with `create database … encoding 'UTF8' template template0`"
        ))),
    }
}

/// For as long as the session lasts.
pub(crate) async fn limit(client: &Client) -> Result<(), Error> {
    let told = client.batch_execute(begin::LIMITS).await;
    told.map_err(|error| Error::Unavailable(fault::describe(&error)))
}

fn judge(fsync: &str, synchronous_commit: &str, full_page_writes: &str, data_sync_retry: &str) -> Result<(), Error> {
    let refuse_for = |name: &str, value: &str, wanted: &str| {
        Err(Error::Unsafe(format!(
            "PostgreSQL runs with {name}={value}, so that acknowledged writes can be lost: set {name} to {wanted}, or start with --unsafe"
        )))
    };
    let refuse = |name: &str, value: &str| refuse_for(name, value, "on");
    match (fsync, synchronous_commit, full_page_writes) {
        // A sync that failed is tried again, and the second says that all is well.
        ("on", "on" | "remote_apply", "on") if data_sync_retry != "off" => {
            refuse_for("data_sync_retry", data_sync_retry, "off")
        }
        ("on", "on" | "remote_apply", "on") => Ok(()),
        ("on", "on" | "remote_apply", _) => refuse("full_page_writes", full_page_writes),
        // `local` and `remote_write` don't wait until the standby that takes over has it on its disk.
        ("on", _, _) => refuse("synchronous_commit", synchronous_commit),
        _ => refuse("fsync", fsync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_not_spoken_to_in_the_clear_by_mistake() {
        for (address, is_taken) in [
            ("postgres://db.internal/dalasi", false),
            ("postgres://db.internal/dalasi?sslmode=prefer", false),
            ("postgres://127.0.0.1,db.internal/dalasi", false),
            ("postgres://db.internal/dalasi?sslmode=disable", true),
            ("postgres://localhost/dalasi", true),
            ("postgres://127.0.0.1:5433/dalasi?sslmode=allow", true),
            ("postgres://[::1]/dalasi", true),
            ("postgres:///dalasi?host=/run/postgresql", true),
            ("postgres:///dalasi?hostaddr=10.0.0.5", false),
            ("postgres://localhost/dalasi?hostaddr=10.0.0.5", false),
            ("postgres://localhost,localhost/dalasi?hostaddr=127.0.0.1,10.0.0.5", false),
            ("postgres://localhost/dalasi?hostaddr=127.0.0.1", true),
            ("postgres://db.internal/dalasi?hostaddr=10.0.0.5&sslmode=disable", true),
        ] {
            assert_eq!(Target::parse(address).is_ok(), is_taken, "{address}");
        }
    }

    #[test]
    fn settings_that_lose_writes_are_refused_by_name() {
        assert!(judge("on", "on", "on", "off").is_ok());
        assert!(judge("on", "remote_apply", "on", "off").is_ok());
        for ([fsync, synchronous_commit, full_page_writes, data_sync_retry], named) in [
            (["off", "on", "on", "off"], "fsync=off"),
            (["on", "off", "on", "off"], "synchronous_commit=off"),
            (["on", "local", "on", "off"], "synchronous_commit=local"),
            (["on", "remote_write", "on", "off"], "synchronous_commit=remote_write"),
            (["on", "on", "off", "off"], "full_page_writes=off"),
            (["on", "on", "on", "on"], "data_sync_retry=on"),
        ] {
            let judged = judge(fsync, synchronous_commit, full_page_writes, data_sync_retry);
            let Err(Error::Unsafe(sentence)) = judged else { panic!("{named} was accepted") };
            assert!(sentence.contains(named), "{sentence}");
        }
    }

    #[test]
    fn the_words_of_libpq_are_understood() {
        let (url, options) =
            TlsOptions::take_from("postgres://u@h/d?sslmode=verify-full&connect_timeout=3&sslrootcert=/a.pem");
        assert_eq!(url, "postgres://u@h/d?connect_timeout=3");
        assert_eq!(options.mode.as_deref(), Some("verify-full"));
        assert_eq!(options.root_certificates.as_deref(), Some("/a.pem"));
        assert!(Target::parse("postgres://u@localhost/d").is_ok());
        assert!(Target::parse("postgres://u@h/d?sslmode=perhaps").is_err());
    }

    #[test]
    fn each_of_several_hosts_is_tried_and_only_the_primary_is_right() {
        let target = Target::parse("postgres://u:secret@one:1,two:2/d?application_name=shop&sslmode=disable").unwrap();
        let seen: Vec<_> = target.hosts.iter().map(|host| (host.get_hosts().to_vec(), host.get_ports()[0])).collect();
        assert_eq!(seen, [(vec![Host::Tcp("one".into())], 1), (vec![Host::Tcp("two".into())], 2)]);
        for host in &target.hosts {
            assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
            assert_eq!((host.get_user(), host.get_password()), (Some("u"), Some(&b"secret"[..])));
            assert_eq!((host.get_dbname(), host.get_application_name()), (Some("d"), Some("shop")));
        }
        let one = Target::parse("postgres://u@localhost/d").unwrap();
        assert_eq!(one.hosts[0].get_target_session_attrs(), TargetSessionAttrs::Any);
        let asked = Target::parse("postgres://u@one,two/d?target_session_attrs=any&sslmode=disable").unwrap();
        assert_eq!(asked.hosts[1].get_target_session_attrs(), TargetSessionAttrs::Any);
        for wrong in ["postgres://u@one:1,two:2,three/d?port=1,2", "postgres://u@one,two/d?load_balance_hosts=random"] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// A host that takes the connection and never says anything costs its own time and not that of the next.
    #[tokio::test]
    async fn a_silent_host_does_not_hide_the_next() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ports = [silent.local_addr().unwrap().port(), gone.local_addr().unwrap().port()];
        drop(gone);
        let url = format!("postgres://u@127.0.0.1:{},127.0.0.1:{}/d", ports[0], ports[1]);
        let Err(Error::Unavailable(why)) = Target::parse(&url).unwrap().connect().await else { panic!("it connected") };
        let (first, second) = why.split_once("; ").unwrap();
        assert!(first.contains("within 5 s") && second.contains("refused"), "{why}");
    }
}
