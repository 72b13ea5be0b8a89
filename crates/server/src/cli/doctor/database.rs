//! The database: whether it opens, is set and follows as it should, and everything that only it knows.

use std::sync::Arc;
use std::time::Duration;

use domain::organization::Organization;
use domain::webhook::WebhookEndpoint;
use domain::{Mode, Timestamp};
use store::queries::{audit, endpoints as stored_endpoints, events, organizations};
use store::{Condition, Server, Store, Tx};

use super::clock::{Asked, Times};
use super::report::{Check, Finding};
use super::{books, endpoints, overdue, within};
use crate::app::Context;
use crate::cli::installation::{self, Part};
use crate::cli::serve;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Addresses, ServeSettings};
use crate::entropy::SystemEntropy;
use crate::rails::Rails;
use crate::secrets::load_key_file;
use crate::wire;

/// A check that has an end of its own gets this much longer.
const GRACE: Duration = Duration::from_secs(2);

/// What is inside an installation.
pub(super) struct Inside {
    pub(super) database: Check,
    pub(super) rails: Check,
    pub(super) webhooks: Check,
    pub(super) ledger: Check,
    pub(super) times: Times,
}

#[derive(Debug, Default)]
struct Known {
    organizations: Vec<Organization>,
    /// The enabled ones of both modes.
    endpoints: Vec<WebhookEndpoint>,
    /// By us.
    disabled: Vec<WebhookEndpoint>,
    newest: Option<Timestamp>,
}

pub(super) async fn look(settings: &ServeSettings, addresses: &Addresses, limit: Duration) -> Inside {
    let mut findings = Vec::new();
    let opened = tokio::time::timeout(limit, open(settings, &mut findings)).await;
    let Some(store) = opened.unwrap_or_else(|_| {
        findings.push(overdue(limit));
        None
    }) else {
        let unseen = |name| Check::of(name, unseen("the database does not open"));
        let database = Check::of("database", findings);
        return Inside {
            database,
            rails: unseen("rails"),
            webhooks: unseen("webhooks"),
            ledger: unseen("ledger"),
            times: Times::default(),
        };
    };
    let mut times = Times::default();
    let known = tokio::time::timeout(limit, known(settings, addresses, &store, &mut findings, &mut times)).await;
    let (known, rails) = known.unwrap_or_else(|_| {
        findings.push(overdue(limit));
        (Known::default(), unseen("the database is too slow"))
    });
    let endpoints = endpoints::look(known.endpoints, &known.disabled, settings.allow_loopback_webhooks, limit);
    let (webhooks, ledger) = tokio::join!(
        within(limit, "webhooks", endpoints),
        within(limit + GRACE, "ledger", books::look(&store, limit)),
    );
    // Whatever hangs has been told.
    let _ = tokio::time::timeout(GRACE, store.close()).await;
    Inside { database: Check::of("database", findings), rails: Check::of("rails", rails), webhooks, ledger, times }
}

fn unseen(why: &str) -> Vec<Finding> {
    vec![Finding::warning(format!("not looked at: {why}"), "")]
}

/// With the settings of the server's database if they are safe, and all the same if not.
async fn open(settings: &ServeSettings, findings: &mut Vec<Finding>) -> Option<Store> {
    let opened = installation::store_settings(&settings.store, Part::Guest).and_then(|opened| {
        installation::require(&opened)?;
        Ok(opened)
    });
    let mut opened = match opened {
        Ok(opened) => opened,
        Err(problem) => {
            findings.push(Finding::failed(problem.into_text(), ""));
            return None;
        }
    };
    opened.allow_unsafe = false;
    loop {
        let attempt = Store::open(opened.clone(), Arc::new(SystemClock::new()), Arc::new(SystemEntropy)).await;
        match attempt {
            Ok(store) => return Some(store),
            Err(store::Error::Unsafe(sentence)) if !opened.allow_unsafe => {
                findings.push(match settings.allow_unsafe_database {
                    true => {
                        Finding::warning(sentence, "`serve` starts because of --unsafe: mend it, and take that away.")
                    }
                    false => Finding::failed(sentence, "Until then `serve` starts with --unsafe only."),
                });
                opened.allow_unsafe = true;
            }
            Err(error) => {
                findings.push(Finding::failed(error.to_string(), what_next(&error)));
                return None;
            }
        }
    }
}

fn what_next(error: &store::Error) -> &'static str {
    match error {
        store::Error::Unavailable(_) => {
            "See whether the database server runs and lets this machine in, and whether the file and its folder belong to \
             the user of the service."
        }
        store::Error::Corrupt(_) => "Stop the service, keep a copy of the file, and restore the newest backup.",
        // These say it themselves.
        store::Error::Schema(_)
        | store::Error::NewerSchema { .. }
        | store::Error::Unsafe(_)
        | store::Error::Unusable(_)
        | store::Error::InUse(_) => "",
        store::Error::Conflict
        | store::Error::Busy
        | store::Error::UnknownCommit
        | store::Error::Backup(_)
        | store::Error::Sql { .. }
        | store::Error::Panic(_) => "Run it again; if it stays, see the log of `dalasi serve`.",
    }
}

async fn known(
    settings: &ServeSettings,
    addresses: &Addresses,
    store: &Store,
    findings: &mut Vec<Finding>,
    times: &mut Times,
) -> (Known, Vec<Finding>) {
    let clock = SystemClock::new();
    let before_us = clock.now_us();
    match store.read(Condition::of).await {
        Ok(Condition { product, schema, server }) => {
            findings.push(Finding::ok(format!("{product}, schema {schema}, opens")));
            findings.extend(server.iter().flat_map(of_server));
            times.server = server.map(|server| Asked {
                whose: "the database server".into(),
                before_us,
                after_us: clock.now_us(),
                said_us: server.clock_us,
                unit_us: 1,
            });
        }
        Err(error) => {
            findings.push(Finding::failed(format!("it does not tell about itself: {error}"), what_next(&error)))
        }
    }
    let known = match store.read(read).await {
        Ok(known) => known,
        Err(error) => {
            findings.push(Finding::failed(format!("it can't be read: {error}"), what_next(&error)));
            return (Known::default(), unseen("the database can't be read"));
        }
    };
    times.newest = known.newest.map(|newest| (newest, clock.now_us()));
    if known.organizations.is_empty() {
        let next = "`dalasi init` makes the organization and its keys, or the first `dalasi serve`.";
        findings.push(Finding::warning("it is empty: nothing is installed yet", next));
        return (known, unseen("nothing is installed"));
    }
    let Ok(key) = load_key_file(&settings.store.key_file) else {
        findings.push(Finding::warning("whether the master key belongs to it is not known", "See what `files` says."));
        return (known, unseen("there is no master key"));
    };
    let rails = serve::rails(store, &addresses.pay_url, &key);
    let nowhere = wire::Addresses { public_url: String::new(), pay_url: String::new() };
    let context = Arc::new(Context::new(nowhere, key, serve::offers(&rails)));
    findings.push(match installation::check_key(store, &context).await {
        Ok(()) => Finding::ok("the master key belongs to it"),
        Err(problem) => Finding::failed(problem.into_text(), "Name the key that it was made with by --key-file."),
    });
    let rails = of_rails(&rails, &context, &known.organizations);
    (known, rails)
}

fn read(tx: &mut Tx<'_>) -> Result<Known, store::Error> {
    let mut known = Known { organizations: organizations::all(tx)?, ..Known::default() };
    for scope in organizations::scopes(tx)? {
        // What can't be read is a fault of the books.
        known.endpoints.extend(stored_endpoints::active(tx, scope)?.endpoints);
        known.disabled.extend(stored_endpoints::disabled(tx, scope)?);
        let newest = events::newest_at(tx, scope)?.max(audit::newest_at(tx, scope)?);
        known.newest = known.newest.max(newest);
    }
    Ok(known)
}

/// Whether what it acknowledges is on a second machine, where there is one.
fn of_server(server: &Server) -> Vec<Finding> {
    let Server { synchronous_standby_names: names, synchronous_commit: commit, standbys, .. } = server;
    let mut findings = Vec::new();
    if server.is_standby || server.is_read_only {
        let found = "this server takes no writes: it is a standby, or set to read only";
        findings.push(Finding::failed(found, "Name every server in --database-url, or promote this one."));
    }
    let waits = matches!(commit.as_str(), "on" | "remote_write" | "remote_apply");
    findings.push(match (names.is_empty(), standbys) {
        (true, 0) => Finding::ok("no standby follows it: after its loss there are the backups"),
        (true, _) => Finding::warning(
            format!("{standbys} standbys follow it and no commit waits for them: a failover loses what was acknowledged last"),
            "Set synchronous_standby_names, as docs/deploy/postgresql.md says.",
        ),
        (false, _) if !waits => Finding::warning(
            format!("synchronous_commit={commit}: no commit waits for the standbys of synchronous_standby_names={names}"),
            "Set synchronous_commit to on.",
        ),
        (false, _) => of_waiting_commits(server),
    });
    findings
}

/// Commits that wait for a standby which is not there are never acknowledged.
fn of_waiting_commits(server: &Server) -> Finding {
    let Server { synchronous_standby_names: names, standbys, synchronous_standbys: synchronous, .. } = server;
    let awaited = awaited(names);
    if *synchronous >= awaited {
        return Finding::ok(format!("commits wait for {names}; {standbys} standbys follow"));
    }
    if *standbys >= awaited && server.unseen_standbys > 0 {
        return Finding::warning(
            format!("commits wait for {names}; {standbys} standbys follow, and whether they are those is not known"),
            "Let the role of --database-url see it: `grant pg_read_all_stats to ROLE`, as a superuser.",
        );
    }
    let who = match standbys {
        0 => "no standby follows".to_owned(),
        _ => format!("{standbys} standbys follow, {synchronous} of them for a commit to wait for"),
    };
    Finding::failed(
        format!("commits wait for {awaited} of synchronous_standby_names={names}, and {who}: nothing can be written"),
        "Bring a standby back, by the application_name that it has there, or take its name away.",
    )
}

/// For how many of those that it names: `ANY 1 (b, c)`, `FIRST 2 (b, c)`, `2 (b, c)`, `b, c`.
fn awaited(names: &str) -> i64 {
    let names = names.trim_start().to_ascii_lowercase();
    let behind = ["first", "any"].iter().find_map(|word| names.strip_prefix(word)).unwrap_or(&names).trim_start();
    let number = behind.split_once('(').map(|(number, _)| number.trim().parse());
    // Without a number it is the first of them.
    number.and_then(Result::ok).unwrap_or(1)
}

/// What payers were promised, and which rail stands behind it.
fn of_rails(rails: &Rails, context: &Context, organizations: &[Organization]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (mode, rail) in rails.iter() {
        let methods: Vec<&str> = rail.capabilities().iter().map(|(method, _)| method.as_str()).collect();
        findings.push(Finding::ok(format!("{mode}: {} stands behind {}", rail.name(), methods.join(", "))));
    }
    for organization in organizations {
        let mode: Mode = organization.mode;
        let enabled = organization.payments.enabled_methods.iter();
        let orphans: Vec<&str> =
            enabled.filter(|method| context.offer(mode, **method).is_none()).map(|method| method.as_str()).collect();
        if !orphans.is_empty() {
            let found = format!("{mode}: no rail stands behind {}, so nobody can pay by that", orphans.join(", "));
            findings.push(Finding::warning(found, "The README says which rails there are for which mode."));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::report::Status;

    fn status(change: impl FnOnce(&mut Server)) -> Status {
        let mut server = Server {
            clock_us: 0,
            is_standby: false,
            is_read_only: false,
            synchronous_commit: "on".into(),
            synchronous_standby_names: "ANY 1 (b, c)".into(),
            standbys: 2,
            synchronous_standbys: 2,
            unseen_standbys: 0,
        };
        change(&mut server);
        of_server(&server).iter().map(|finding| finding.status).max().expect("something is said")
    }

    #[test]
    fn a_server_is_judged_by_whom_its_commits_wait_for() {
        assert_eq!(status(|_| ()), Status::Ok);
        assert_eq!(status(|server| server.is_standby = true), Status::Failed);
        assert_eq!(status(|server| server.is_read_only = true), Status::Failed);
        assert_eq!(status(|server| server.synchronous_commit = "local".into()), Status::Warning);
        assert_eq!(status(|server| server.synchronous_standby_names = String::new()), Status::Warning);
        let alone = |server: &mut Server| (server.synchronous_standby_names, server.standbys) = (String::new(), 0);
        assert_eq!(status(alone), Status::Ok);
    }

    #[test]
    fn whether_those_follow_whom_commits_wait_for_is_seen_or_not_known() {
        let following = |names: &str, standbys, synchronous, unseen| {
            status(|server| {
                server.synchronous_standby_names = names.into();
                (server.standbys, server.synchronous_standbys, server.unseen_standbys) =
                    (standbys, synchronous, unseen);
            })
        };
        for (names, standbys, synchronous, unseen, wanted) in [
            ("ANY 1 (b, c)", 1, 1, 0, Status::Ok),
            ("ANY 1 (b, c)", 0, 0, 0, Status::Failed),
            ("ANY 1 (b, c)", 2, 0, 0, Status::Failed),
            ("ANY 2 (b, c)", 2, 1, 0, Status::Failed),
            ("ANY 2 (b, c)", 2, 2, 0, Status::Ok),
            ("ANY 1 (b, c)", 1, 0, 1, Status::Warning),
            ("ANY 2 (b, c)", 1, 0, 1, Status::Failed),
        ] {
            assert_eq!(
                following(names, standbys, synchronous, unseen),
                wanted,
                "{names} {standbys} {synchronous} {unseen}"
            );
        }
    }

    #[test]
    fn it_is_read_how_many_commits_wait_for() {
        for (names, wanted) in [
            ("b", 1),
            ("*", 1),
            ("b, c", 1),
            ("any1", 1),
            ("firsthand, b", 1),
            ("ANY 2 (b, c, d)", 2),
            (" any 2(b,c,d)", 2),
            ("FIRST 3 (b, c, d)", 3),
            ("2 (b, c, d)", 2),
            ("\"b (2)\"", 1),
        ] {
            assert_eq!(awaited(names), wanted, "{names}");
        }
    }
}
