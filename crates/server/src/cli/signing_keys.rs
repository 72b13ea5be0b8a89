//! `dalasi signing-keys`: the keys that sign access tokens and receipt statements.

use domain::signing_key::SigningKey;
use domain::{Mode, Scope, Timestamp};
use serde::Serialize;
use store::queries::signing_keys;

use super::installation::{self, Installation};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::keys::{self, Rotation};
use crate::config::StoreArguments;

const EXAMPLES: &str = "\
Examples:
  dalasi signing-keys list
  dalasi signing-keys rotate   publish the next key now; it signs from tomorrow on";

/// List and rotate the keys that sign access tokens and receipt statements
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Publish a new key; after a day it signs, and the one before retires
    Rotate(Common),
    /// List the keys, oldest first
    List(Common),
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct SigningKeyView {
    kid: String,
    state: &'static str,
    created_at: String,
    active_from: String,
    retired_at: Option<String>,
}

impl SigningKeyView {
    fn of(key: &SigningKey, now: Timestamp) -> Self {
        let state = match key {
            SigningKey { active_from, .. } if *active_from > now => "published",
            SigningKey { retired_at: Some(at), .. } if *at <= now => "retired",
            SigningKey { .. } => "signing",
        };
        Self {
            kid: key.kid.clone(),
            state,
            created_at: key.created_at.to_text(),
            active_from: key.active_from.to_text(),
            retired_at: key.retired_at.map(Timestamp::to_text),
        }
    }

    fn row(self) -> Vec<String> {
        let retired_at = self.retired_at.unwrap_or_default();
        vec![self.kid, self.state.into(), self.created_at, self.active_from, retired_at]
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Rotate(arguments) => rotate(arguments).await,
        Command::List(arguments) => list(arguments).await,
    }
}

async fn rotate(arguments: Common) -> Result<(), Problem> {
    let installation = Installation::open(&arguments.store.check()?).await?;
    let actor = installation::actor();
    // The keys serve both modes; the log has to name one.
    let scope = Scope { organization: installation.organization, mode: Mode::Live };
    let rotated = installation
        .write(move |tx, context| {
            let key = match keys::rotate_signing_key(tx, context)? {
                Rotation::Published(key) => key,
                Rotation::Waits(next) => {
                    return Err(Problem::conflict(format!(
                        "the key {} is published already and signs from {} on; rotate again after that.",
                        next.kid,
                        next.active_from.to_text()
                    )));
                }
            };
            keys::record(tx, scope, "signing_key.rotated", key.kid.clone(), &actor, None)?;
            Ok(SigningKeyView::of(&key, tx.now()))
        })
        .await;
    let view = installation.close(rotated).await?;
    if arguments.format.json {
        return output::json(&view);
    }
    output::line(&view.kid)?;
    output::message(&format!("Published now; signs from {} on.", view.active_from));
    Ok(())
}

async fn list(arguments: Common) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, installation::Part::Guest).await?;
    let known = store.read(|tx| Ok::<_, store::Error>((signing_keys::all(tx)?, tx.now()))).await;
    store.close().await;
    let (known, now) = known?;
    let views: Vec<SigningKeyView> = known.iter().map(|key| SigningKeyView::of(key, now)).collect();
    if arguments.format.json {
        return output::json(&views);
    }
    let rows: Vec<Vec<String>> = views.into_iter().map(SigningKeyView::row).collect();
    output::table(&["key id", "state", "created", "signs from", "retires"], &rows)
}
