//! The conversation with the mail server, one connection for each message, every wait with an end.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::bounded::Bounded;
use super::fault::{Finality, MailFault, SendFault, Step, innermost};
use super::line_by_line::LineByLine;
use super::message::{Message, Written, is_beyond_ascii};
use super::settings::{From, Login, MailSettings, Password, Security, is_loopback};
use crate::authorities;

const CONNECT: Duration = Duration::from_secs(30);
const COMMAND: Duration = Duration::from_secs(60);
/// RFC 5321, 4.5.3.2.6: a server may look into a message for so long, and who hangs up early sends it twice.
const ANSWER: Duration = Duration::from_secs(600);
const GOODBYE: Duration = Duration::from_secs(5);
const LONGEST_PASSWORD: usize = 1024;

/// Whether a message's last line was said: from then on the server may have it, whatever becomes of the connection.
#[derive(Debug, Default)]
pub struct LastLine(AtomicBool);

impl LastLine {
    pub fn is_said(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn say(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Sends messages through the operator's mail server.
pub struct Mailer {
    host: String,
    port: u16,
    security: Security,
    tls: Tls,
    credentials: Option<Credentials>,
    /// How we introduce ourselves.
    name: ClientId,
    from: From,
}

/// A mail server that waits for the message.
pub struct Approached {
    connection: AsyncSmtpConnection,
    written: Written,
}

enum Tls {
    /// Ours, so that what comes under it is bounded too.
    FromTheStart(TlsConnector, ServerName<'static>),
    /// The client's, by STARTTLS.
    ByCommand(TlsParameters),
}

impl Mailer {
    /// Reads the password file and the system's certificates; connects to nothing. `host` is a name of this service.
    pub fn new(settings: MailSettings, host: Option<&str>) -> Result<Self, MailFault> {
        let MailSettings { host: server, port, security, login, from } = settings;
        let tls = match security {
            Security::Tls => from_the_start(&server)?,
            Security::StartTls | Security::StartTlsIfOffered | Security::Nothing => {
                let parameters = TlsParameters::builder(server.clone()).build_rustls();
                Tls::ByCommand(parameters.map_err(|error| no_tls(&error))?)
            }
        };
        let credentials = login.map(credentials).transpose()?;
        // A server may refuse a name that is none; an address literal is always right (RFC 5321, 4.1.4).
        let domain = host.filter(|host| host.contains('.') && host.parse::<std::net::IpAddr>().is_err());
        let name = domain.map_or_else(ClientId::default, |domain| ClientId::Domain(domain.to_owned()));
        Ok(Self { host: server, port, security, tls, credentials, name, from })
    }

    /// Where mails go to, for people.
    pub fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// As the header of the message says it.
    pub fn message_id(&self, message: &Message) -> String {
        message.message_id(&self.from)
    }

    pub fn security(&self) -> Security {
        self.security
    }

    /// The server has the message, or the fault says where it stopped.
    pub async fn send(&self, message: &Message) -> Result<(), SendFault> {
        self.approach(message).await?.hand_over(&LastLine::default()).await
    }

    /// As far as before the message itself: the server would take it from this sender, for this recipient.
    pub async fn approach(&self, message: &Message) -> Result<Approached, SendFault> {
        let written = message.write(&self.from)?;
        let mut connection = self.connect().await?;
        match introduce(&mut connection, &written).await {
            Ok(()) => Ok(Approached { connection, written }),
            Err(fault) => {
                let _ = tokio::time::timeout(GOODBYE, connection.abort()).await;
                Err(fault)
            }
        }
    }

    /// Whether it runs on this machine, so that nobody reads on the way.
    pub fn is_near(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Goes as far as before the first word about a message: greeting, encryption, login.
    pub async fn greet(&self) -> Result<(), SendFault> {
        let mut connection = self.connect().await?;
        let _ = tokio::time::timeout(GOODBYE, connection.abort()).await;
        Ok(())
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, SendFault> {
        let mut connection = in_time(Step::Connect, CONNECT * 2, self.reach()).await?;
        let wants_tls = match self.security {
            Security::Tls | Security::Nothing => false,
            Security::StartTls => true,
            Security::StartTlsIfOffered => connection.can_starttls(),
        };
        if let Tls::ByCommand(parameters) = &self.tls
            && wants_tls
        {
            if !connection.can_starttls() {
                let cause = "it offers no STARTTLS. Use smtps:// if it speaks TLS from the start";
                return Err(SendFault::new(Step::Encrypt, Finality::ForNow, None, cause));
            }
            step(Step::Encrypt, COMMAND, connection.starttls(parameters.clone(), &self.name)).await?;
        }
        if let Some(credentials) = &self.credentials {
            if connection.server_info().get_auth_mechanism(DEFAULT_MECHANISMS).is_none() {
                let cause = "it offers no login by PLAIN or LOGIN, at least not without TLS";
                return Err(SendFault::new(Step::LogIn, Finality::ForNow, None, cause));
            }
            step(Step::LogIn, COMMAND, connection.auth(DEFAULT_MECHANISMS, credentials)).await?;
        }
        Ok(connection)
    }

    /// Up to the server's first answer to our name.
    async fn reach(&self) -> Result<AsyncSmtpConnection, SendFault> {
        let stream = open(&self.host, self.port).await?;
        let stream: Box<dyn AsyncTokioStream> = match &self.tls {
            Tls::FromTheStart(connector, name) => {
                let encrypted = connector.connect(name.clone(), stream).await;
                Box::new(Bounded::new(encrypted.map_err(|error| SendFault::unencrypted(&error))?))
            }
            Tls::ByCommand(_) => Box::new(Bounded::new(LineByLine(stream))),
        };
        let connected = AsyncSmtpConnection::connect_with_transport(stream, &self.name).await;
        connected.map_err(|error| SendFault::answered(Step::Connect, &error))
    }
}

/// With the authorities that this system trusts, as the client has them.
fn from_the_start(host: &str) -> Result<Tls, MailFault> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| no_tls(&error))?
        .with_root_certificates(authorities::of_this_machine())
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| no_tls(&error))?;
    Ok(Tls::FromTheStart(TlsConnector::from(Arc::new(config)), name))
}

fn no_tls(error: &(dyn std::error::Error + 'static)) -> MailFault {
    MailFault { sentence: format!("smtp-url: TLS can't be set up: {}", innermost(error)), io: None }
}

/// The connection to the first address that takes one.
async fn open(host: &str, port: u16) -> Result<TcpStream, SendFault> {
    let fault = |cause: &str| SendFault::new(Step::Connect, Finality::ForNow, None, cause);
    let addresses = tokio::net::lookup_host((host, port)).await.map_err(|error| fault(&error.to_string()))?;
    let mut last = fault("its name has no address");
    for address in addresses {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = fault(&error.to_string()),
            Err(_) => last = fault("connection timed out"),
        }
    }
    Err(last)
}

impl Approached {
    /// It may be dropped before the last line was said: then the server has nothing.
    pub async fn hand_over(mut self, last_line: &LastLine) -> Result<(), SendFault> {
        let sent = hand_over(&mut self.connection, &self.written.bytes, last_line).await;
        // What follows changes nothing; a server that is gone is not waited for.
        let _ = tokio::time::timeout(GOODBYE, self.connection.abort()).await;
        sent
    }
}

async fn introduce(connection: &mut AsyncSmtpConnection, written: &Written) -> Result<(), SendFault> {
    let Written { from, to, .. } = written;
    let mut parameters = Vec::new();
    if is_beyond_ascii(from) || is_beyond_ascii(to) {
        if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            let cause = "the address has letters beyond ASCII, which this mail server does not take";
            return Err(SendFault::new(Step::Recipient, Finality::ForGood, None, cause));
        }
        // Whoever takes the first takes the second (RFC 6531, 3.1).
        parameters.extend([MailParameter::SmtpUtfEight, MailParameter::Body(MailBodyParameter::EightBitMime)]);
    }
    step(Step::Sender, COMMAND, connection.command(Mail::new(Some(from.clone()), parameters))).await?;
    step(Step::Recipient, COMMAND, connection.command(Rcpt::new(to.clone(), Vec::new()))).await.map(drop)
}

async fn hand_over(connection: &mut AsyncSmtpConnection, bytes: &[u8], last_line: &LastLine) -> Result<(), SendFault> {
    step(Step::Message, COMMAND, connection.command(Data)).await?;
    // Asked for when all before it is written, and just before the last line is.
    let no_more = std::iter::from_fn(|| {
        last_line.say();
        None
    });
    let parts = std::iter::once(bytes).chain(no_more);
    let answered = step(Step::Message, ANSWER, connection.message_iter(parts)).await;
    // After the last line and without the server's own no, the message may be on its way.
    answered.map(drop).map_err(|fault| match fault.code {
        None if last_line.is_said() => fault.at(Step::Answer),
        _ => fault,
    })
}

async fn step<T>(step: Step, limit: Duration, doing: impl Future<Output = Result<T, Error>>) -> Result<T, SendFault> {
    in_time(step, limit, async { doing.await.map_err(|error| SendFault::answered(step, &error)) }).await
}

async fn in_time<T>(
    step: Step,
    limit: Duration,
    doing: impl Future<Output = Result<T, SendFault>>,
) -> Result<T, SendFault> {
    match tokio::time::timeout(limit, doing).await {
        Ok(done) => done,
        Err(_) => {
            let cause = format!("no answer within {} seconds", limit.as_secs());
            Err(SendFault::new(step, Finality::ForNow, None, &cause))
        }
    }
}

fn credentials(login: Login) -> Result<Credentials, MailFault> {
    let password = match login.password {
        Password::Given(password) => password.expose().to_owned(),
        Password::File(path) => read_password(&path)?,
    };
    Ok(Credentials::new(login.user, password))
}

fn read_password(path: &Path) -> Result<String, MailFault> {
    let fault = |what: &str, io| MailFault { sentence: format!("smtp-password-file: {} {what}", path.display()), io };
    let unreadable = |error: std::io::Error| fault(&format!("can't be read: {error}"), Some(error.kind()));
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() || line.len() > LONGEST_PASSWORD {
        return Err(fault("must hold the password in its first line.", None));
    }
    Ok(line.to_owned())
}
