//! `dalasi mail`: whether mail gets out.

use serde::Serialize;
use store::EntropySource as _;

use super::output::{self, Format};
use super::problem::Problem;
use crate::clock::{Clock as _, SystemClock};
use crate::config::MailArguments;
use crate::entropy::SystemEntropy;
use crate::mail::{Mailer, Message, Security, Step, is_mailable};

const EXAMPLES: &str = "\
Examples:
  dalasi mail test --to me@shop.example                                  with the settings of DALASI_* variables
  dalasi mail test --to me@shop.example --config /etc/dalasi/dalasi.toml";

/// Try out the mail server
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Send a short message and say at which step it failed, if it did
    Test(Test),
}

#[derive(clap::Args)]
struct Test {
    /// Who gets the message
    #[arg(long, value_name = "ADDRESS")]
    to: String,

    #[command(flatten)]
    mail: MailArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Sent<'a> {
    server: &'a str,
    to: &'a str,
    message_id: String,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Test(test) => test_mail(test).await,
    }
}

async fn test_mail(test: Test) -> Result<(), Problem> {
    let Test { to, mail, format } = test;
    let Some((settings, host)) = mail.check()? else {
        return Err(Problem::usage(
            "no mail server is configured. Set smtp-url and mail-from, see `dalasi serve --help`.",
        ));
    };
    if !is_mailable(&to) {
        return Err(Problem::usage(format!("--to: {to:?} is no address to which mail can be sent.")));
    }
    let mailer = Mailer::new(settings, host.as_deref())?;
    let message = message(&to);
    let server = mailer.server();
    if !format.json {
        output::message(&format!("{server} {}", manner(mailer.security())));
    }
    mailer.send(&message).await.map_err(|fault| {
        let hint = hint(fault.step);
        Problem::failed(format!("{server}: {fault}.{}{hint}", if hint.is_empty() { "" } else { "\n" }))
    })?;
    if format.json {
        return output::json(&Sent { server: &server, to: &to, message_id: mailer.message_id(&message) });
    }
    output::line(&format!(
        "{server} has taken the message. Look for it in the mailbox of {to}, and in its spam folder."
    ))
}

pub(super) fn manner(security: Security) -> &'static str {
    match security {
        Security::Tls => "by TLS",
        Security::StartTls => "by STARTTLS",
        Security::StartTlsIfOffered => "by STARTTLS, if it offers that",
        Security::Nothing => "in the clear",
    }
}

/// What an operator looks at next.
pub(super) fn hint(step: Step) -> &'static str {
    match step {
        Step::Connect => "Check host and port of smtp-url, and whether a firewall lets them through.",
        Step::Encrypt => {
            "Check that the certificate names the host of smtp-url and that this system trusts its issuer. Port 465 wants \
             smtps://, port 587 smtp://. A server on this machine without a proper certificate can be reached with ?tls=none."
        }
        Step::LogIn => "Check user and password. Many providers want a password made for applications.",
        Step::Sender => "Check that this user may send from the address of mail-from.",
        Step::Compose | Step::Recipient | Step::Message | Step::Answer => "",
    }
}

fn message(to: &str) -> Message {
    let now = domain::Timestamp::from_micros(SystemClock::new().now_us());
    let mut seed = [0; 32];
    SystemEntropy.fill(&mut seed);
    let id: domain::Id<domain::mail::Mail> = domain::Entropy::from_seed(seed).id(now);
    let words =
        "This message was sent by `dalasi mail test`. Invoices and receipts will reach your customers the same way.";
    Message {
        id: id.to_string(),
        from_name: None,
        reply_to: None,
        to: to.to_owned(),
        to_name: None,
        subject: "Dalasi can send mail".into(),
        text: format!("{words}\n"),
        html: format!("<!doctype html>\n<html lang=\"en\"><body><p>{words}</p></body></html>\n"),
        language: "en",
        date: now,
        attachments: Vec::new(),
    }
}
