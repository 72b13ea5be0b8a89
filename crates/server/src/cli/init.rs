//! `dalasi init`: the first organization, its keys, the key file.

use std::sync::Arc;

use domain::Mode;
use domain::api_key::KeyKind;
use serde::Serialize;

use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::Context;
use crate::app::organizations::Installed;
use crate::config::StoreArguments;
use crate::names::composed;
use crate::plausible::is_visible;
use crate::wire::Addresses;

const EXAMPLES: &str = "\
Examples:
  dalasi init --organization 'Kairaba Books'
  dalasi init --data-dir /var/lib/dalasi --organization 'Kairaba Books' --json
  DALASI_DATABASE_URL=postgres://… dalasi init --key-file /var/lib/dalasi/master.key --organization 'Kairaba Books'";

/// Where nobody took what is shown only once.
pub(super) const LOST: &str =
    "the installation was made, and nobody has its keys. Make others with `dalasi keys create`, and revoke these.";

#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    /// The merchant's name, as payers will see it
    #[arg(long, value_name = "NAME")]
    organization: String,

    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Answer<'a> {
    organization_id: String,
    keys: Keys<'a>,
}

#[derive(Serialize)]
struct Keys<'a> {
    test: Pair<'a>,
    live: Pair<'a>,
}

#[derive(Serialize)]
pub(super) struct Pair<'a> {
    pub(super) secret: &'a str,
    pub(super) publishable: &'a str,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let name = &composed(arguments.organization.trim());
    if !is_visible(name) || name.chars().count() > 200 || name.chars().any(char::is_control) {
        return Err(Problem::usage("--organization: a name has 1 to 200 characters and no control characters."));
    }
    let settings = arguments.store.check()?;
    if installation::is_taken(&settings).await? {
        return Err(taken());
    }
    let store = installation::open_store(&settings, Part::Owner { allow_unsafe: true }).await?;
    let installed = async {
        // Somebody may have been faster.
        if installation::is_installed(&store).await? {
            return Ok(None);
        }
        let key = installation::master_key(&store, &settings).await?;
        // What is installed mentions no address.
        let nowhere = Addresses { public_url: String::new(), pay_url: String::new() };
        let context = Arc::new(Context::new(nowhere, key.key.clone(), Vec::new()));
        let goes_on = |why: &str| {
            output::message(&format!("Somebody may be loading a backup; waiting for the end of that ({why})."));
            true
        };
        installation::install(&store, &context, name, &key, goes_on).await
    };
    let installed = installed.await;
    store.close().await;
    let installed = installed?.ok_or_else(taken)?;
    tell(&installed, &arguments.format).map_err(|problem| problem.or_lost(LOST))?;
    if arguments.format.json {
        return Ok(());
    }
    output::message("The keys are shown only now: keep them where secrets are kept.");
    output::message(&format!(
        "Keep a copy of {} apart from the backups of the data: without it they can't be used.",
        settings.key_file.display()
    ));
    Ok(())
}

fn taken() -> Problem {
    Problem::conflict(
        "there is an organization here already; nothing was changed. \
         `dalasi keys create` makes new keys, `dalasi organization set --name` renames it.",
    )
}

fn tell(installed: &Installed, format: &Format) -> Result<(), Problem> {
    if format.json {
        let keys = Keys { test: pair(installed, Mode::Test), live: pair(installed, Mode::Live) };
        return output::json(&Answer { organization_id: installed.organization.to_string(), keys });
    }
    output::line(&format!("organization      {}", installed.organization))?;
    [(Mode::Test, "test"), (Mode::Live, "live")].into_iter().try_for_each(|(mode, words)| {
        let Pair { secret, publishable } = pair(installed, mode);
        output::line(&format!("{words} secret key   {secret}\n{words} publishable   {publishable}"))
    })
}

/// The two keys of a mode.
pub(super) fn pair(installed: &Installed, mode: Mode) -> Pair<'_> {
    let text = |kind: KeyKind| {
        let of_kind = installed.keys.iter().find(|created| created.key.scope.mode == mode && created.key.kind == kind);
        of_kind.expect("an installation begins with both kinds of keys in both modes").text.expose()
    };
    Pair { secret: text(KeyKind::Secret), publishable: text(KeyKind::Publishable) }
}
