//! `dalasi attempts`: payments that only a person can judge.

use std::time::Duration;

use domain::payment::{Step, Transaction};
use domain::{Id, Mode, Refusal, Scope};
use serde::Serialize;
use store::queries::{locate, transactions};
use store::{Store, Tx};

use super::installation::{self, Installation, Part};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::{attempts, keys, settlement};
use crate::config::{BesideArguments, StoreArguments};
use crate::error::Failure;
use crate::pages::text::plain;

const EXAMPLES: &str = "\
Examples:
  dalasi attempts list --unknown --live
  dalasi attempts list --duplicate --live --json
  dalasi attempts resolve txn_01h455vb4pex5vsknk084sn02q --as completed --reason 'seen on the wallet statement'";

const RESOLVE_EXAMPLES: &str = "\
Examples:
  dalasi attempts resolve txn_01h455vb4pex5vsknk084sn02q --as completed --reason 'on the wallet statement of 21 November'
  dalasi attempts resolve txn_01h455vb4pex5vsknk084sn02q --as failed --reason 'the wallet says in ticket 4711: not taken'
  dalasi attempts resolve txn_01h455vb4pex5vsknk084sn02q --as failed --reason '…' --yes  in a script
  dalasi attempts resolve txn_01h455vb4pex5vsknk084sn02q --as failed --reason '…' --config /etc/dalasi/dalasi.toml";

/// A rail that has been silent for so long is worth a look.
const LONG_PROCESSING: Duration = Duration::from_secs(10 * 60);
const PAGE: i64 = 500;
/// Longer lists help nobody.
const MOST_SHOWN: usize = 10_000;
const LONGEST_REASON: usize = 2000;

/// See and decide payments whose outcome is not known, or that came twice
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List what waits for a person, oldest first
    List(List),
    /// Decide an attempt whose outcome is not known, for good; asks first
    Resolve(Box<Resolve>),
}

#[derive(clap::Args)]
struct List {
    /// Only those whose outcome is lost, parked, or overdue
    #[arg(long, conflicts_with = "duplicate")]
    unknown: bool,

    /// Only money that came a second time
    #[arg(long)]
    duplicate: bool,

    /// Live mode: real money
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
#[command(before_help = RESOLVE_EXAMPLES, help_template = super::TEMPLATE)]
struct Resolve {
    /// The attempt, as `list` shows it
    id: String,

    /// What became of the money
    #[arg(long = "as", value_enum, value_name = "OUTCOME")]
    outcome: Outcome,

    /// How you know; kept in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Don't ask; needed where there is no terminal
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    server: BesideArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Outcome {
    Completed,
    Failed,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

#[derive(Serialize)]
struct AttemptView {
    id: String,
    mode: &'static str,
    status: &'static str,
    /// Where it stands with its rail.
    step: &'static str,
    why: String,
    duplicate: bool,
    late: bool,
    payment_method: &'static str,
    rail: String,
    rail_reference: Option<String>,
    amount: String,
    currency: &'static str,
    object_type: &'static str,
    object_id: String,
    payment_session_id: String,
    created_at: String,
    updated_at: String,
}

impl AttemptView {
    fn of(transaction: &Transaction) -> Self {
        Self {
            id: transaction.id.to_string(),
            mode: transaction.scope.mode.as_str(),
            status: transaction.status().as_str(),
            step: transaction.step().as_str(),
            why: why(transaction),
            duplicate: transaction.duplicate,
            late: transaction.late,
            payment_method: transaction.method().as_str(),
            rail: transaction.attempt().rail.clone(),
            rail_reference: transaction.rail_reference.clone(),
            amount: transaction.amount.to_string(),
            currency: transaction.amount.currency.code(),
            object_type: transaction.payable.kind(),
            object_id: transaction.payable.object_id(),
            payment_session_id: transaction.attempt().session.to_string(),
            created_at: transaction.created_at.to_text(),
            updated_at: transaction.updated_at.to_text(),
        }
    }

    fn row(self) -> Vec<String> {
        let amount = format!("{} {}", self.amount, self.currency);
        vec![self.id, self.why, self.status.into(), self.payment_method.into(), amount, self.object_id, self.created_at]
    }
}

fn why(transaction: &Transaction) -> String {
    match (transaction.duplicate, &transaction.parked, transaction.step()) {
        (true, _, _) => "came twice".into(),
        (false, Some(why), _) => format!("parked: {why}"),
        (false, None, Step::Unknown) => "the rail's answer was lost".into(),
        (false, None, Step::Sending) if transaction.is_outcome_unknown() => "its lost call is made once more".into(),
        (false, None, Step::Sending | Step::Waiting) => "the rail is silent".into(),
        (false, None, Step::Settled) => "decided".into(),
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::List(arguments) => list(arguments).await,
        Command::Resolve(arguments) => resolve(*arguments).await,
    }
}

async fn list(arguments: List) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, Part::Guest).await?;
    let both = arguments.unknown == arguments.duplicate;
    let mode = if arguments.live { Mode::Live } else { Mode::Test };
    let found = async {
        let scope = Scope { organization: installation::only_organization(&store).await?, mode };
        let mut found = Vec::new();
        if both || arguments.unknown {
            let query = move |tx: &mut Tx<'_>, after: &str| {
                let before = tx.now().minus(LONG_PROCESSING);
                transactions::undecided(tx, scope, before, after, PAGE)
            };
            collect(&store, query, &mut found).await?;
        }
        if both || arguments.duplicate {
            let query = move |tx: &mut Tx<'_>, after: &str| {
                transactions::for_attention(tx, scope, transactions::CAME_TWICE, after, PAGE)
            };
            collect(&store, query, &mut found).await?;
        }
        Ok(found)
    };
    let found: Result<Vec<AttemptView>, Problem> = found.await;
    store.close().await;
    let found = found?;
    if found.len() >= MOST_SHOWN {
        output::message(&format!("There are more: these are the oldest {}.", found.len()));
    }
    if arguments.format.json {
        return output::json(&found);
    }
    if found.is_empty() {
        output::message(&format!("No attempt waits for a person in {mode} mode."));
    }
    let rows: Vec<Vec<String>> = found.into_iter().map(AttemptView::row).collect();
    output::table(&["id", "why", "status", "method", "amount", "object", "created"], &rows)
}

/// Page after page, so that no query holds everything.
async fn collect<Q>(store: &Store, query: Q, found: &mut Vec<AttemptView>) -> Result<(), Problem>
where
    Q: Fn(&mut Tx<'_>, &str) -> Result<Vec<Transaction>, store::Error> + Send + Sync + Clone + 'static,
{
    let mut after = String::new();
    while found.len() < MOST_SHOWN {
        let (query, from) = (query.clone(), after.clone());
        let page = store.read(move |tx| query(tx, &from)).await?;
        let Some(last) = page.last() else { break };
        after = last.id.to_string();
        found.extend(page.iter().map(AttemptView::of));
    }
    Ok(())
}

async fn resolve(arguments: Resolve) -> Result<(), Problem> {
    let resolved = resolve_named(arguments).await;
    resolved.map_err(|problem| problem.or_look("`dalasi attempts list [--live]` shows what can be decided."))
}

async fn resolve_named(arguments: Resolve) -> Result<(), Problem> {
    let missing = || Problem::from(Failure::from(Refusal::not_found::<Transaction>()));
    let id: Id<Transaction> = arguments.id.parse().map_err(|_| missing())?;
    let reason = arguments.reason.trim().to_owned();
    if reason.is_empty() || reason.chars().count() > LONGEST_REASON || reason.contains('\0') {
        return Err(Problem::usage(format!("--reason: say in 1 to {LONGEST_REASON} characters how you know.")));
    }
    let (outcome, is_meant) = (arguments.outcome, arguments.yes);
    let installation = Installation::open_beside(&arguments.store.check_beside(arguments.server)?).await?;
    let decided = async {
        if !is_meant {
            output::confirm(&question(&installation.store, id, outcome).await?)?;
        }
        decide(&installation, id, outcome, reason).await
    };
    let decided = decided.await;
    let transaction = installation.close(decided).await?;
    if arguments.format.json {
        return output::json(&AttemptView::of(&transaction));
    }
    output::message(&format!(
        "{id} ({}) is {} now, and written to the audit log.",
        named(&transaction),
        transaction.status().as_str()
    ));
    Ok(())
}

/// Which money it is, and whether somebody else may still say what became of it.
async fn question(store: &Store, id: Id<Transaction>, outcome: Outcome) -> Result<String, Problem> {
    let looked = store.read(move |tx| {
        let scope = locate::transaction(tx, id)?.ok_or_else(Refusal::not_found::<Transaction>)?;
        let transaction = tx.peek::<Transaction>(scope, id)?.ok_or_else(Refusal::not_found::<Transaction>)?;
        Ok::<_, Failure>((transaction, tx.now()))
    });
    let (transaction, now) = looked.await?;
    transaction.refuse_unless_undecided(now).map_err(Failure::from)?;
    let age = now.since(transaction.created_at);
    let is_in_doubt = transaction.step() == Step::Unknown || transaction.parked.is_some() || age > LONG_PROCESSING;
    let warning = match is_in_doubt {
        true => "",
        false => " Its payer may still be paying, and the rail may still say what came of it.",
    };
    Ok(format!(
        "{}, begun {} ago: {}.{warning} Decide it as {}, for good?",
        named(&transaction),
        output::lasting(age),
        plain(&why(&transaction)),
        outcome.as_str()
    ))
}

fn named(transaction: &Transaction) -> String {
    format!(
        "{} {}, {} mode, {}, {}",
        transaction.amount,
        transaction.amount.currency.code(),
        transaction.scope.mode,
        transaction.method().as_str(),
        transaction.payable.object_id()
    )
}

async fn decide(
    installation: &Installation,
    id: Id<Transaction>,
    outcome: Outcome,
    reason: String,
) -> Result<Transaction, Problem> {
    let (paid, actor) = (outcome == Outcome::Completed, installation::actor());
    let decided = installation.write(move |tx, context| {
        let scope = locate::transaction(tx, id)?.ok_or_else(Refusal::not_found::<Transaction>)?;
        let mut payment = settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
            Ok(session.resolved(transaction, paid, now)?)
        })?;
        attempts::decided(tx, context, &mut payment)?;
        keys::record(tx, scope, "attempt.resolved", id.to_string(), &actor, Some(reason.clone()))?;
        payment.transaction.ok_or_else(|| Failure::Broken("a settled session has lost its transaction".into()))
    });
    decided.await
}
