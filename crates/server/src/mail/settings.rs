//! How to reach the mail server, read from one address, and who mails are from. Every fault is a sentence that says what
//! to change and never repeats the address, which may hold a password.

use std::path::{Path, PathBuf};

use lettre::message::Mailboxes;
use percent_encoding::percent_decode_str;
use rustls::pki_types::ServerName;
use url::Url;

use super::message::in_dns;
use crate::secrets::SecretText;

const SUBMISSION_PORT: u16 = 587;
const SUBMISSIONS_PORT: u16 = 465;

const SHAPE: &str = "smtp-url: it must look like smtp://user:password@mail.example:587 (STARTTLS) or \
                     smtps://user:password@mail.example:465 (TLS from the start); a special character in user or password is \
                     written as in any address, @ as %40.";

#[derive(Debug, Clone)]
pub struct MailSettings {
    /// A name, or an address without brackets.
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub login: Option<Login>,
    pub from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS before the first word.
    Tls,
    /// STARTTLS, or nothing is sent.
    StartTls,
    /// STARTTLS where the server offers it.
    StartTlsIfOffered,
    /// In the clear.
    Nothing,
}

#[derive(Debug, Clone)]
pub struct Login {
    pub user: String,
    pub password: Password,
}

#[derive(Debug, Clone)]
pub enum Password {
    Given(SecretText),
    /// Its first line is the password.
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct From {
    pub name: Option<String>,
    pub address: lettre::Address,
}

impl MailSettings {
    /// `None` where no mail is configured. All faults at once.
    pub fn check(
        smtp_url: Option<String>,
        password_file: Option<PathBuf>,
        mail_from: Option<String>,
    ) -> Result<Option<Self>, Vec<String>> {
        let mut faults = Vec::new();
        let from = mail_from.as_deref().and_then(|text| {
            let from = parse_from(text);
            if from.is_none() {
                faults.push(format!(
                    "mail-from: {text:?} is not one mail address, such as bills@shop.example or \
                     \"Kairaba Books <bills@shop.example>\"."
                ));
            }
            from
        });
        let Some(smtp_url) = smtp_url else {
            let needless = [("mail-from", mail_from.is_some()), ("smtp-password-file", password_file.is_some())];
            let given = needless.into_iter().filter(|(_, is_given)| *is_given);
            faults.extend(given.map(|(name, _)| {
                format!("{name}: it is of no use without smtp-url. Set `smtp-url`, or leave `{name}` out.")
            }));
            return if faults.is_empty() { Ok(None) } else { Err(faults) };
        };
        if mail_from.is_none() {
            faults.push(
                "mail-from: it is missing; customers have to see who writes to them. Set it to an address of yours that \
                 this mail server may send from."
                    .to_owned(),
            );
        }
        let server = parse_server(&smtp_url, password_file).map_err(|fault| faults.push(fault)).ok();
        match (server, from) {
            (Some((host, port, security, login)), Some(from)) if faults.is_empty() => {
                Ok(Some(Self { host, port, security, login, from }))
            }
            _ => Err(faults),
        }
    }

    /// Where the password is, unless it was given.
    pub fn password_file(&self) -> Option<&Path> {
        match &self.login.as_ref()?.password {
            Password::File(file) => Some(file),
            Password::Given(_) => None,
        }
    }
}

type Server = (String, u16, Security, Option<Login>);

fn parse_server(text: &str, password_file: Option<PathBuf>) -> Result<Server, String> {
    let shape = || SHAPE.to_owned();
    let url = Url::parse(text).map_err(|_| shape())?;
    if !matches!(url.scheme(), "smtp" | "smtps") {
        return Err(shape());
    }
    if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err(shape());
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(shape)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
    // The certificate is checked against it.
    ServerName::try_from(host.clone()).map_err(|_| shape())?;
    let is_near = is_loopback(&host);
    let security = parse_security(&url, is_near)?;
    let login = parse_login(&url, password_file)?;
    if login.is_some() && !is_near && matches!(security, Security::StartTlsIfOffered | Security::Nothing) {
        return Err(
            "smtp-url: this choice of `tls` could send the password in the clear. Leave `tls` out (STARTTLS is \
                    then required), or use smtps://."
                .to_owned(),
        );
    }
    let default_port = if security == Security::Tls { SUBMISSIONS_PORT } else { SUBMISSION_PORT };
    Ok((host, url.port().unwrap_or(default_port), security, login))
}

/// What is sent to this machine itself can't be read on the way.
pub(super) fn is_loopback(host: &str) -> bool {
    let is_local_name = host.eq_ignore_ascii_case("localhost");
    is_local_name || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn parse_security(url: &Url, is_near: bool) -> Result<Security, String> {
    let mut chosen = None;
    for (name, value) in url.query_pairs() {
        if name != "tls" || chosen.is_some() {
            return Err("smtp-url: the only thing that may stand behind the ? is one `tls`.".to_owned());
        }
        chosen = Some(value.into_owned());
    }
    match (url.scheme(), chosen.as_deref()) {
        ("smtps", None) => Ok(Security::Tls),
        ("smtps", Some(_)) => {
            Err("smtp-url: smtps:// is TLS from the start; leave `tls` out, or use smtp:// for STARTTLS.".to_owned())
        }
        (_, None) if is_near => Ok(Security::StartTlsIfOffered),
        (_, None | Some("required")) => Ok(Security::StartTls),
        (_, Some("opportunistic")) => Ok(Security::StartTlsIfOffered),
        (_, Some("none")) => Ok(Security::Nothing),
        (_, Some(_)) => Err("smtp-url: `tls` is required, opportunistic or none.".to_owned()),
    }
}

fn parse_login(url: &Url, password_file: Option<PathBuf>) -> Result<Option<Login>, String> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map_err(|_| SHAPE.to_owned())?;
        if text.contains('\0') { Err(SHAPE.to_owned()) } else { Ok(text.into_owned()) }
    };
    let user = decoded(url.username())?;
    match (url.password(), password_file) {
        (Some(_), Some(_)) => {
            Err("smtp-password-file: smtp-url holds a password already. Give it in one of the two.".to_owned())
        }
        (None, None) if user.is_empty() => Ok(None),
        (_, _) if user.is_empty() => {
            Err("smtp-url: there is a password, but no user. Write smtp://user@… before the host.".to_owned())
        }
        (None, None) => Err("smtp-url: there is a user without a password. Write user:password, or name a file with \
                             smtp-password-file."
            .to_owned()),
        (Some(password), None) => {
            let password = Password::Given(SecretText::new(decoded(password)?));
            Ok(Some(Login { user, password }))
        }
        (None, Some(file)) => Ok(Some(Login { user, password: Password::File(file) })),
    }
}

fn parse_from(text: &str) -> Option<From> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let mailboxes: Mailboxes = text.trim().parse().ok()?;
    let mut all = mailboxes.into_iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let name = only.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Some(From { name, address: in_dns(only.email)? })
}
