//! Where the database is, how to get there safely, and whether it keeps what it acknowledges.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault;
use crate::error::Error;

pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Target {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let unusable = |why: String| Error::Unavailable(format!("the database URL can't be used: {why}"));
        let (url, asked) = TlsOptions::take_from(url);
        let mut config = Config::from_str(&url).map_err(|error| unusable(fault::describe(&error)))?;
        config.connect_timeout(CONNECT_LIMIT);
        config.keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("dalasi");
        }
        let tls = match asked.mode.as_deref() {
            // Encryption without a check of the certificate protects from nobody who could also be in between, so there is
            // only all or nothing.
            None | Some("disable" | "allow" | "prefer") => {
                config.ssl_mode(SslMode::Disable);
                None
            }
            Some("require" | "verify-ca" | "verify-full") => {
                config.ssl_mode(SslMode::Require);
                let roots = roots(asked.root_certificates.as_deref()).map_err(|error| unusable(error.to_string()))?;
                Some(MakeRustlsConnect::new(client_config(roots)?))
            }
            Some(other) => return Err(unusable(format!("sslmode={other} is not known"))),
        };
        Ok(Self { config, tls })
    }

    /// The connection's own work is spawned on the current runtime and ends with the client.
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        let connecting = async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    tokio::spawn(async move { report(connection.await) });
                    Ok(client)
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    tokio::spawn(async move { report(connection.await) });
                    Ok(client)
                }
            }
        };
        match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
            Ok(connected) => {
                connected.map_err(|error: tokio_postgres::Error| Error::Unavailable(fault::describe(&error)))
            }
            Err(_) => Err(Error::Unavailable(format!("no connection within {} s", CONNECT_LIMIT.as_secs()))),
        }
    }
}

fn report(ended: Result<(), tokio_postgres::Error>) {
    if let Err(error) = ended {
        tracing::warn!(error = fault::describe(&error), "a database connection ended");
    }
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

const SETTINGS: &str = "
select
    current_setting('fsync'),
    current_setting('synchronous_commit'),
    current_setting('full_page_writes'),
    current_setting('server_encoding')";

pub(crate) async fn check_settings(target: &Target, allow_unsafe: bool) -> Result<(), Error> {
    let client = target.connect().await?;
    let rows = client.query_typed(SETTINGS, &[]).await.map_err(|error| Error::Unavailable(fault::describe(&error)))?;
    let row = rows.first().ok_or_else(|| Error::Corrupt("the server doesn't know its settings".to_owned()))?;
    let setting = |index| row.try_get::<_, &str>(index).map_err(|error| Error::Corrupt(fault::describe(&error)));
    let (fsync, synchronous_commit, full_page_writes) = (setting(0)?, setting(1)?, setting(2)?);
    if !allow_unsafe {
        judge(fsync, synchronous_commit, full_page_writes)?;
    }
    match setting(3)? {
        "UTF8" => Ok(()),
        encoding => Err(Error::Unsafe(format!(
            "the database's encoding is {encoding}: create it anew with `create database … encoding 'UTF8' template template0`"
        ))),
    }
}

fn judge(fsync: &str, synchronous_commit: &str, full_page_writes: &str) -> Result<(), Error> {
    let refuse = |name: &str, value: &str| {
        Err(Error::Unsafe(format!(
            "PostgreSQL runs with {name}={value}, so that acknowledged writes can be lost: set {name} to on, or start with --unsafe"
        )))
    };
    match (fsync, synchronous_commit, full_page_writes) {
        ("on", commit, "on") if commit != "off" => Ok(()),
        ("on", "off", _) => refuse("synchronous_commit", synchronous_commit),
        ("on", _, _) => refuse("full_page_writes", full_page_writes),
        _ => refuse("fsync", fsync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_writes_are_refused_by_name() {
        assert!(judge("on", "on", "on").is_ok());
        assert!(judge("on", "remote_apply", "on").is_ok());
        for (settings, named) in [
            (("off", "on", "on"), "fsync=off"),
            (("on", "off", "on"), "synchronous_commit=off"),
            (("on", "on", "off"), "full_page_writes=off"),
        ] {
            let Err(Error::Unsafe(sentence)) = judge(settings.0, settings.1, settings.2) else {
                panic!("{named} was accepted")
            };
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
        assert!(Target::parse("postgres://u@h/d").is_ok());
        assert!(Target::parse("postgres://u@h/d?sslmode=perhaps").is_err());
    }
}
