//! `dalasi doctor`: looks at everything that an installation stands on, and says of each what it found and what to do next.
//!
//! It changes nothing and sends nobody an event or a mail, beside a running server or without one. Every check has an end,
//! also where what it asks never answers. What is wrong is found by the code that serves; here it is only asked and told.

mod books;
mod clock;
mod database;
mod disk;
mod endpoints;
mod files;
mod report;
mod server;
mod tls;

use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;

use super::mail::{hint, manner};
use super::output::{self, Format};
use super::problem::Problem;
use super::stop::{PATIENCE, Stop};
use crate::config::{Addresses, Database, ServeArguments, ServeSettings, WHERE_MAIL_IS_SEEN, host_of};
use crate::mail::{Mailer, Security};

use report::{Check, Finding, Report};

const EXAMPLES: &str = "\
Examples:
  dalasi doctor                                     of ./dalasi-data, with the settings of DALASI_* variables
  dalasi doctor --config /etc/dalasi/dalasi.toml    beside the server that has these settings
  dalasi doctor --json | jq '.checks[] | select(.status != \"ok\")'";

/// Look at clock, disk, database, TLS, mail, rails, webhooks and books, and say what to mend
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// The longest that a check may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    time_limit: u64,

    // Those of the server: what it would start with is what is looked at.
    #[command(flatten)]
    settings: ServeArguments,

    #[command(flatten)]
    format: Format,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let config = arguments.settings.config.clone();
    let (settings, is_half_of_mail_seen) = ServeSettings::load_as_seen(arguments.settings)?;
    let limit = Duration::from_secs(arguments.time_limit);
    let addresses = settings.addresses(settings.listen);
    let data_dir = match &settings.store.database {
        Database::Sqlite { data_dir } => Some(data_dir.clone()),
        Database::Postgres { .. } => None,
    };
    let (disk_ended, ended) = oneshot::channel::<()>();
    let look_at_disk = move || {
        let found = disk::look(data_dir.as_deref());
        drop(disk_ended);
        found
    };
    let looks = async {
        tokio::join!(
            within(limit, "disk", blocking(look_at_disk)),
            within(limit, "files", blocking(files::Files::of(&settings, config).look())),
            server::ask(&settings, &addresses.public_url, limit),
            within(limit, "tls", tls::look(&settings, &addresses)),
            within(limit, "smtp", mail(&settings, &addresses, is_half_of_mail_seen)),
            database::look(&settings, &addresses, limit),
        )
    };
    let mut stop = Stop::new()?;
    let (disk, files, (server, date), tls, smtp, inside) = tokio::select! {
        looked = looks => looked,
        () = stop.asked() => {
            // What it writes to see whether it can goes with the check.
            let _ = tokio::time::timeout(PATIENCE, ended).await;
            return Err(Problem::failed("interrupted."));
        }
    };
    let clock = Check::of("clock", clock::judge(&inside.times, date));
    let database::Inside { database, rails, webhooks, ledger, times: _ } = inside;
    let report = Report::of(vec![clock, disk, files, database, server, tls, smtp, rails, webhooks, ledger]);
    // The verdict is said also where nobody reads what it rests on.
    let told = if arguments.format.json { output::json(&report) } else { report.show() };
    match report.failed() {
        names if names.is_empty() => told,
        names => Err(Problem::failed(format!("not well: {}.", names.join(", ")))),
    }
}

/// What is found in time. That there was no end is a finding too.
async fn within(limit: Duration, name: &'static str, look: impl Future<Output = Vec<Finding>>) -> Check {
    let found = tokio::time::timeout(limit, look).await;
    Check::of(name, found.unwrap_or_else(|_| vec![overdue(limit)]))
}

fn overdue(limit: Duration) -> Finding {
    let found = format!("there was no end to it within {} s", limit.as_secs());
    Finding::failed(
        found,
        "See whether the disk, the database server or the name server hangs; --time-limit waits longer.",
    )
}

/// On a thread of its own: a disk or a file system may hang.
async fn blocking(look: impl FnOnce() -> Vec<Finding> + Send + 'static) -> Vec<Finding> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|error| vec![Finding::failed(format!("the check broke: {error}"), "Report this as a fault.")])
}

async fn mail(settings: &ServeSettings, addresses: &Addresses, is_half_seen: bool) -> Vec<Finding> {
    if is_half_seen {
        return vec![Finding::warning(
            "mail-from or smtp-password-file is set, and smtp-url is not seen here: the mail server was not looked at",
            WHERE_MAIL_IS_SEEN,
        )];
    }
    let Some(mail) = settings.mail.clone() else {
        return vec![Finding::ok("no mail server is configured: invoices and receipts are not mailed")];
    };
    let mailer = match Mailer::new(mail, host_of(&addresses.public_url).as_deref()) {
        Ok(mailer) => mailer,
        Err(fault) => {
            return vec![Finding::failed(fault.to_string(), "Mend this setting; `serve` does not start with it.")];
        }
    };
    let server = mailer.server();
    match mailer.greet().await {
        Ok(()) => {
            let found = format!("{server} is ready for mail {}", manner(mailer.security()));
            match mailer.security() {
                Security::Tls | Security::StartTls => vec![Finding::ok(found)],
                Security::StartTlsIfOffered | Security::Nothing if mailer.is_near() => vec![Finding::ok(found)],
                Security::StartTlsIfOffered | Security::Nothing => {
                    vec![Finding::warning(
                        found,
                        "Leave `tls` out of smtp-url, so that mails are never sent in the clear.",
                    )]
                }
            }
        }
        Err(fault) => vec![Finding::failed(format!("{server}: {fault}"), hint(fault.step))],
    }
}

#[cfg(test)]
mod tests;
