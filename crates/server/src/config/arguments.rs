//! The settings as they are given, by flag, environment variable or file. One struct serves all three, so that no
//! setting can be missing from one of them.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use serde::Deserialize;

use super::{BesideSettings, SettingsFaults, StoreSettings, host_of};
use crate::logging::LogFormat;
use crate::mail::MailSettings;

/// What to do about the address of a mail server that a command doesn't see: it holds a password, and the guides put it where
/// the unit alone reads it.
pub const WHERE_MAIL_IS_SEEN: &str = "Run this with the environment of the service, as docs/deploy/README.md shows with \
                                      systemd-run. Where it is nowhere set, `serve` does not start.";

#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServeArguments {
    /// A TOML file with any of these settings; flags and environment win over it
    #[arg(long, env = "DALASI_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "DALASI_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    /// The folder of the embedded database, made if missing [default: ./dalasi-data]
    #[arg(long, env = "DALASI_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// PostgreSQL instead of the embedded database; better given as a variable, it holds a password
    #[arg(long, env = "DALASI_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// How many connections to keep to PostgreSQL [default: two for each core, 4 to 16]
    #[arg(long, env = "DALASI_DATABASE_CONNECTIONS", value_name = "N")]
    pub database_connections: Option<u16>,

    /// The master key; required with PostgreSQL [default: FOLDER/master.key]
    #[arg(long, env = "DALASI_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// The address of the API as clients see it, without a path [default: the listen address]
    #[arg(long, env = "DALASI_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// The address of the hosted pages, without a path [default: the public URL]
    #[arg(long, env = "DALASI_PAY_URL", value_name = "URL")]
    pub pay_url: Option<String>,

    /// The address of donation pages, without a path; none is served there yet [default: the public URL]
    #[arg(long, env = "DALASI_DONATE_URL", value_name = "URL")]
    pub donate_url: Option<String>,

    /// How many proxies in front append to X-Forwarded-For [default: 0]
    #[arg(long, env = "DALASI_TRUSTED_PROXIES", value_name = "N")]
    pub trusted_proxies: Option<u8>,

    /// The certificate chain for TLS, as PEM
    #[arg(long, env = "DALASI_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// The private key for TLS, as PEM
    #[arg(long, env = "DALASI_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Let test mode send webhooks to http addresses on this machine
    #[arg(long, env = "DALASI_ALLOW_LOOPBACK_WEBHOOKS", value_parser = BoolishValueParser::new(),
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub allow_loopback_webhooks: Option<bool>,

    /// The mail server: smtp://user:password@host:587 or smtps://…:465; better given as a variable, it holds a password
    #[arg(long, env = "DALASI_SMTP_URL", value_name = "URL", hide_env_values = true)]
    pub smtp_url: Option<String>,

    /// The password for the mail server, in the first line of a file instead of the URL
    #[arg(long, env = "DALASI_SMTP_PASSWORD_FILE", value_name = "FILE")]
    pub smtp_password_file: Option<PathBuf>,

    /// Who mails to customers are from, such as "Kairaba Books <bills@shop.example>"
    #[arg(long, env = "DALASI_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,

    /// Requests a second per key and per address without one; 0 = off [default: 100]
    #[arg(long, env = "DALASI_RATE_LIMIT", value_name = "N")]
    pub rate_limit: Option<u32>,

    /// What this process does; split it with PostgreSQL only [default: api,worker]
    #[arg(long, env = "DALASI_ROLE", value_name = "ROLES")]
    pub role: Option<String>,

    /// Start on database settings that can lose acknowledged payments
    #[arg(long = "unsafe", env = "DALASI_UNSAFE", value_parser = BoolishValueParser::new(),
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(rename = "unsafe")]
    pub allow_unsafe: Option<bool>,

    /// How log lines look on standard error [default: text]
    #[arg(long, env = "DALASI_LOG_FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

impl ServeArguments {
    /// Over a settings file. One that names a key and no data is that of a server with PostgreSQL, whose address stands
    /// elsewhere: without it the default folder would be taken for the data.
    pub(super) fn over_store(self, file: Self) -> Result<Self, SettingsFaults> {
        let is_keyed = path(file.key_file.clone()).is_some();
        let given = self.over(file);
        if is_keyed && given.data_dir.is_none() && given.database_url.is_none() {
            return Err(SettingsFaults(vec![
                "data-dir, database-url: the settings file names a key-file and neither of them is set, so where the data is \
                 is not known here. Set data-dir, or database-url, which may be in the service's environment only."
                    .to_owned(),
            ]));
        }
        Ok(given)
    }

    /// Whether a part of the settings for mail is given without the mail server's address.
    pub(super) fn is_half_of_mail(&self) -> bool {
        self.smtp_url.is_none() && (self.mail_from.is_some() || self.smtp_password_file.is_some())
    }

    /// These settings, and for those that are not given the ones below. An empty text is as not given: that is how a
    /// variable is unset in many a deployment.
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            config: path(self.config).or(path(below.config)),
            listen: text(self.listen).or(text(below.listen)),
            data_dir: path(self.data_dir).or(path(below.data_dir)),
            database_url: text(self.database_url).or(text(below.database_url)),
            database_connections: self.database_connections.or(below.database_connections),
            key_file: path(self.key_file).or(path(below.key_file)),
            public_url: text(self.public_url).or(text(below.public_url)),
            pay_url: text(self.pay_url).or(text(below.pay_url)),
            donate_url: text(self.donate_url).or(text(below.donate_url)),
            trusted_proxies: self.trusted_proxies.or(below.trusted_proxies),
            tls_cert: path(self.tls_cert).or(path(below.tls_cert)),
            tls_key: path(self.tls_key).or(path(below.tls_key)),
            allow_loopback_webhooks: self.allow_loopback_webhooks.or(below.allow_loopback_webhooks),
            smtp_url: text(self.smtp_url).or(text(below.smtp_url)),
            smtp_password_file: path(self.smtp_password_file).or(path(below.smtp_password_file)),
            mail_from: text(self.mail_from).or(text(below.mail_from)),
            rate_limit: self.rate_limit.or(below.rate_limit),
            role: text(self.role).or(text(below.role)),
            allow_unsafe: self.allow_unsafe.or(below.allow_unsafe),
            log_format: self.log_format.or(below.log_format),
        }
    }
}

/// Where the data is, for commands that open it without serving.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StoreArguments {
    /// The settings file of the server; flags and environment win over it
    #[arg(long, env = "DALASI_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The folder of the embedded database [default: ./dalasi-data]
    #[arg(long, env = "DALASI_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// PostgreSQL instead of the embedded database; better given as a variable, it holds a password
    #[arg(long, env = "DALASI_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// The master key; required with PostgreSQL [default: FOLDER/master.key]
    #[arg(long, env = "DALASI_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl StoreArguments {
    pub fn check(self) -> Result<StoreSettings, SettingsFaults> {
        let given = self.over_file(ServeArguments::default())?;
        StoreSettings::check(given.data_dir, given.database_url, given.key_file)
    }

    /// The same, with what has to be known of the server beside it.
    pub fn check_beside(self, server: BesideArguments) -> Result<BesideSettings, SettingsFaults> {
        let BesideArguments { listen, public_url, pay_url, tls_cert, tls_key, smtp_url, smtp_password_file, mail_from } =
            server;
        let given = ServeArguments {
            listen,
            public_url,
            pay_url,
            tls_cert,
            tls_key,
            smtp_url,
            smtp_password_file,
            mail_from,
            ..ServeArguments::default()
        };
        BesideSettings::check(self.over_file(given)?)
    }

    /// These and the others that are given, over the settings file that they name.
    fn over_file(self, others: ServeArguments) -> Result<ServeArguments, SettingsFaults> {
        let Self { config, data_dir, database_url, key_file } = self;
        let below = match path(config) {
            Some(file) => super::read_file(&file)?,
            None => ServeArguments::default(),
        };
        ServeArguments { data_dir, database_url, key_file, ..others }.over_store(below)
    }
}

/// How the server beside it is seen, and whether it sends mail, for commands that cause events, mails or answers with
/// addresses.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct BesideArguments {
    /// Where the server listens [default: 127.0.0.1:8080]
    #[arg(long, env = "DALASI_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    /// The address of the API as clients see it [default: the listen address]
    #[arg(long, env = "DALASI_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// The address of the hosted pages, without a path [default: the public URL]
    #[arg(long, env = "DALASI_PAY_URL", value_name = "URL")]
    pub pay_url: Option<String>,

    // Given where the server's are given, which is hardly ever by flag: whether there are any is all that counts.
    #[arg(long, env = "DALASI_TLS_CERT", hide = true)]
    pub tls_cert: Option<PathBuf>,

    #[arg(long, env = "DALASI_TLS_KEY", hide = true)]
    pub tls_key: Option<PathBuf>,

    #[arg(long, env = "DALASI_SMTP_URL", hide = true, hide_env_values = true)]
    pub smtp_url: Option<String>,

    #[arg(long, env = "DALASI_SMTP_PASSWORD_FILE", hide = true)]
    pub smtp_password_file: Option<PathBuf>,

    #[arg(long, env = "DALASI_MAIL_FROM", hide = true)]
    pub mail_from: Option<String>,
}

/// How mail gets out, for commands that send some without serving.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MailArguments {
    /// The settings file of the server; flags and environment win over it
    #[arg(long, env = "DALASI_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The mail server; better given as a variable, it holds a password
    #[arg(long, env = "DALASI_SMTP_URL", value_name = "URL", hide_env_values = true)]
    pub smtp_url: Option<String>,

    /// The password for the mail server, in the first line of a file instead of the URL
    #[arg(long, env = "DALASI_SMTP_PASSWORD_FILE", value_name = "FILE")]
    pub smtp_password_file: Option<PathBuf>,

    /// Who mails are from
    #[arg(long, env = "DALASI_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,
}

impl MailArguments {
    /// The settings, and the name of the host under which the server would introduce itself. Half of them says nothing against
    /// what the server has: who took that half out of the settings file would keep it from its next start.
    pub fn check(self) -> Result<Option<(MailSettings, Option<String>)>, SettingsFaults> {
        let below = match path(self.config.clone()) {
            Some(file) => super::read_file(&file)?,
            None => ServeArguments::default(),
        };
        let Self { smtp_url, smtp_password_file, mail_from, config: _ } = self;
        let given = ServeArguments { smtp_url, smtp_password_file, mail_from, ..Default::default() }.over(below);
        if given.is_half_of_mail() {
            return Err(SettingsFaults(vec![format!(
                "smtp-url: it is not seen here, and mail-from or smtp-password-file is set. {WHERE_MAIL_IS_SEEN}"
            )]));
        }
        let settings = MailSettings::check(given.smtp_url, given.smtp_password_file, given.mail_from);
        let host = given.public_url.as_deref().and_then(host_of);
        Ok(settings.map_err(SettingsFaults)?.map(|settings| (settings, host)))
    }
}

fn text(given: Option<String>) -> Option<String> {
    given.filter(|text| !text.is_empty())
}

fn path(given: Option<PathBuf>) -> Option<PathBuf> {
    given.filter(|path| !path.as_os_str().is_empty())
}
