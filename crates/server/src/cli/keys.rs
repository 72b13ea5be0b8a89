//! `dalasi keys`: API keys are made, listed and revoked by the operator.

use domain::api_key::{ApiKey, KeyKind, Rights};
use domain::{Id, Mode, Refusal, Scope, Timestamp};
use serde::Serialize;
use store::Store;
use store::queries::api_keys::{self, ListedKey};

use super::installation::{self, Installation};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::keys::{self, CreatedKey};
use crate::config::StoreArguments;

const EXAMPLES: &str = "\
Examples:
  dalasi keys create --name shop                                       a secret key for test mode
  dalasi keys create --live --scopes 'read:checkouts write:checkouts'  one for live mode that may do less
  dalasi keys create --kind publishable                                for pages in a browser
  dalasi keys list --live
  dalasi keys revoke key_01h455vb4pex5vsknk084sn02q                    asks first
  dalasi keys revoke key_01h455vb4pex5vsknk084sn02q --yes              in a script";

const CREATE_EXAMPLES: &str = "\
Examples:
  dalasi keys create --name shop
  dalasi keys create --name reports --scopes 'read:checkouts read:transactions'  one that may only look
  dalasi keys create --live --name shop --json                                   for live mode, as a program reads it
  dalasi keys create --kind publishable                                          for pages in a browser

Events hold the objects that they tell of: who has 'read:webhooks' reads all of them by /v1/events, and who has
'write:webhooks' can have all of them sent to an address of their choice. Who writes is answered with what was written:
'write:customers' is given the customer who has an e-mail address or a phone already, and 'write:checkouts',
'write:payments' and 'write:invoices' are shown name, e-mail address and phone of the customer whom they name.";

/// Longer lists help nobody.
const MOST_SHOWN: usize = 10_000;

/// Make, list and revoke API keys
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a key; it is shown this once
    Create(Create),
    /// List the keys of a mode, newest first, with their last use, to within an hour; revoked ones included
    List(List),
    /// End a key of either mode, and its access tokens
    Revoke(Revoke),
}

#[derive(clap::Args)]
#[command(before_help = CREATE_EXAMPLES, help_template = super::TEMPLATE)]
struct Create {
    /// For live mode: real money
    #[arg(long)]
    live: bool,

    /// A secret key belongs on a server, a publishable one in a page
    #[arg(long, value_enum, default_value_t = Kind::Secret)]
    kind: Kind,

    /// What a secret key may do, such as 'read:checkouts write:checkouts' [default: everything]
    #[arg(long, value_name = "SCOPES")]
    scopes: Option<String>,

    /// What you will know it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
struct List {
    /// The keys of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
struct Revoke {
    /// The key's id, as `list` shows it
    id: String,

    /// Don't ask; needed where there is no terminal
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    Secret,
    Publishable,
}

/// A key as it is shown; `secret` only in the answer that makes it.
#[derive(Serialize)]
struct KeyView {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    kind: &'static str,
    mode: &'static str,
    scopes: String,
    name: Option<String>,
    last4: String,
    created_at: String,
    /// To within an hour.
    last_used_at: Option<String>,
    revoked_at: Option<String>,
}

impl KeyView {
    fn of(key: &ApiKey, last_used_at: Option<Timestamp>) -> Self {
        Self {
            id: key.id.to_string(),
            secret: None,
            kind: key.kind.as_str(),
            mode: key.scope.mode.as_str(),
            scopes: key.rights.to_string(),
            name: key.name.clone(),
            last4: key.last4.clone(),
            created_at: key.created_at.to_text(),
            last_used_at: last_used_at.map(Timestamp::to_text),
            revoked_at: key.revoked_at.map(|at| at.to_text()),
        }
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Create(arguments) => create(arguments).await,
        Command::List(arguments) => list(arguments).await,
        Command::Revoke(arguments) => revoke(arguments).await,
    }
}

async fn create(arguments: Create) -> Result<(), Problem> {
    let kind = match arguments.kind {
        Kind::Secret => KeyKind::Secret,
        Kind::Publishable => KeyKind::Publishable,
    };
    let rights = match (&arguments.scopes, kind) {
        (None, _) => Rights::all(),
        (Some(_), KeyKind::Publishable) => {
            return Err(Problem::usage("--scopes: a publishable key has none; leave it out, or make a secret key."));
        }
        (Some(text), KeyKind::Secret) => rights(text)?,
    };
    let name = arguments.name.filter(|name| !name.is_empty());
    if name.as_ref().is_some_and(|name| name.chars().count() > 200 || name.chars().any(char::is_control)) {
        return Err(Problem::usage("--name: at most 200 characters and no control characters."));
    }
    let installation = open(arguments.store).await?;
    let scope = Scope { organization: installation.organization, mode: mode(arguments.live) };
    let actor = installation::actor();
    let created = installation
        .write(move |tx, context| {
            let created = keys::create(tx, context, scope, kind, rights.clone(), name.clone())?;
            keys::record(tx, scope, "key.created", created.key.id.to_string(), &actor, None)?;
            Ok::<_, crate::error::Failure>(created)
        })
        .await;
    let CreatedKey { key, text } = installation.close(created).await?;
    let told = match arguments.format.json {
        true => output::json(&KeyView { secret: Some(text.expose().to_owned()), ..KeyView::of(&key, None) }),
        false => output::line(text.expose()),
    };
    told.map_err(|problem| {
        problem.or_lost(&format!("the key {} was made and nobody has it. Revoke it, and make another.", key.id))
    })?;
    if arguments.format.json {
        return Ok(());
    }
    output::message(&format!("{} {} key {}: shown only now.", key.scope.mode, key.kind.as_str(), key.id));
    Ok(())
}

fn rights(text: &str) -> Result<Rights, Problem> {
    let rights = Rights::parse(text)
        .map_err(|word| Problem::usage(format!("--scopes: {word:?} is none. All there are: {}", Rights::all())))?;
    if rights.is_empty() {
        return Err(Problem::usage("--scopes: name at least one, or leave it out for everything."));
    }
    Ok(rights)
}

async fn list(arguments: List) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, installation::Part::Guest).await?;
    let known = collect(&store, mode(arguments.live)).await;
    store.close().await;
    let views: Vec<KeyView> = known?.iter().map(|listed| KeyView::of(&listed.key, listed.last_used_at)).collect();
    if views.len() >= MOST_SHOWN {
        output::message(&format!("There are more: these are the newest {}.", views.len()));
    }
    if arguments.format.json {
        return output::json(&views);
    }
    let all = Rights::all().to_string();
    let row = |view: KeyView| {
        let scopes = if view.scopes == all { "all".to_owned() } else { view.scopes };
        let state = view.revoked_at.map_or_else(|| "active".to_owned(), |at| format!("revoked {at}"));
        vec![
            view.id,
            view.kind.into(),
            view.mode.into(),
            format!("…{}", view.last4),
            view.name.unwrap_or_default(),
            view.created_at,
            view.last_used_at.unwrap_or_else(|| "never".into()),
            state,
            scopes,
        ]
    };
    let rows: Vec<Vec<String>> = views.into_iter().map(row).collect();
    output::table(&["id", "kind", "mode", "ends in", "name", "created", "last used", "state", "scopes"], &rows)
}

/// Page after page, so that no query holds everything.
async fn collect(store: &Store, mode: Mode) -> Result<Vec<ListedKey>, Problem> {
    let scope = Scope { organization: installation::only_organization(store).await?, mode };
    let (mut known, mut before) = (Vec::new(), None);
    while known.len() < MOST_SHOWN {
        let page = store.read(move |tx| api_keys::list(tx, scope, before)).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.key.id);
        known.extend(page);
    }
    Ok(known)
}

async fn revoke(arguments: Revoke) -> Result<(), Problem> {
    revoke_named(arguments).await.map_err(|problem| problem.or_look("`dalasi keys list [--live]` shows what there is."))
}

async fn revoke_named(arguments: Revoke) -> Result<(), Problem> {
    let id: Id<ApiKey> =
        arguments.id.parse().map_err(|_| Problem::from(crate::error::Failure::from(Refusal::not_found::<ApiKey>())))?;
    if !arguments.yes {
        output::confirm(&format!("Revoke {id}? Whoever uses it is refused from then on."))?;
    }
    let installation = open(arguments.store).await?;
    let (organization, actor) = (installation.organization, installation::actor());
    let revoked = installation
        .write(move |tx, _| {
            let find = |tx: &mut store::Tx<'_>, mode| tx.peek::<ApiKey>(Scope { organization, mode }, id);
            let key = match find(tx, Mode::Test)? {
                Some(key) => Some(key),
                None => find(tx, Mode::Live)?,
            };
            let key = key.ok_or_else(Refusal::not_found::<ApiKey>)?;
            let key = keys::revoke(tx, key.scope, id)?;
            keys::record(tx, key.scope, "key.revoked", id.to_string(), &actor, None)?;
            let last_used_at = api_keys::last_used(tx, key.scope, id)?;
            Ok::<_, crate::error::Failure>((key, last_used_at))
        })
        .await;
    let (key, last_used_at) = installation.close(revoked).await?;
    if arguments.format.json {
        return output::json(&KeyView::of(&key, last_used_at));
    }
    output::message(&format!("{id} is revoked; a running server refuses it within a second."));
    Ok(())
}

async fn open(arguments: StoreArguments) -> Result<Installation, Problem> {
    Installation::open(&arguments.check()?).await
}

fn mode(live: bool) -> Mode {
    if live { Mode::Live } else { Mode::Test }
}
