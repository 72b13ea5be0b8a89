//! `dalasi refunds`: money on its way back of which only a person can tell where it is.

use std::time::Duration;

use domain::payment::{Step, Transaction};
use domain::refund::Refund;
use domain::{Id, Mode, Refusal, Scope};
use serde::Serialize;
use store::queries::{locate, refunds as queries};
use store::{Store, Tx};

use super::installation::{self, Installation, Part};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::{keys, refunds};
use crate::config::{BesideArguments, StoreArguments};
use crate::error::Failure;
use crate::pages::text::plain;

const EXAMPLES: &str = "\
Examples:
  dalasi refunds list --unknown --live
  dalasi refunds list --live --json
  dalasi refunds resolve ref_01h455vc8r7t3q5n1k9m2p4s6w --as failed --reason 'not on the wallet statement'";

const RESOLVE_EXAMPLES: &str = "\
Examples:
  dalasi refunds resolve ref_01h455vc8r7t3q5n1k9m2p4s6w --as completed --reason 'the payer confirms that it came'
  dalasi refunds resolve ref_01h455vc8r7t3q5n1k9m2p4s6w --as failed --reason 'not on the wallet statement'
  dalasi refunds resolve ref_01h455vc8r7t3q5n1k9m2p4s6w --as failed --reason '…' --yes  in a script";

/// A rail that has been silent for so long is worth a look.
const LONG_OPEN: Duration = Duration::from_secs(10 * 60);
const PAGE: i64 = 500;
/// Longer lists help nobody.
const MOST_SHOWN: usize = 10_000;
const LONGEST_REASON: usize = 2000;

/// See refunds that are on their way, and decide those whose outcome is not known
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List what is on its way or waits for a person, oldest first
    List(List),
    /// Decide a refund whose outcome is not known, for good; asks first
    Resolve(Box<Resolve>),
}

#[derive(clap::Args)]
struct List {
    /// Only those whose outcome is lost, parked, or overdue
    #[arg(long)]
    unknown: bool,

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
    /// The refund, as `list` shows it
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
    /// The payer has it
    Completed,
    /// The merchant still has it
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
struct RefundRow {
    id: String,
    mode: &'static str,
    status: &'static str,
    /// Where it stands with its rail.
    step: &'static str,
    why: String,
    rail: Option<String>,
    rail_reference: Option<String>,
    amount: String,
    currency: &'static str,
    transaction_id: String,
    created_at: String,
    updated_at: String,
}

impl RefundRow {
    fn of(refund: &Refund) -> Self {
        Self {
            id: refund.id.to_string(),
            mode: refund.scope.mode.as_str(),
            status: refund.status().as_str(),
            step: refund.step().as_str(),
            why: why(refund),
            rail: refund.source.rail().map(str::to_owned),
            rail_reference: refund.rail_reference.clone(),
            amount: refund.amount.to_string(),
            currency: refund.amount.currency.code(),
            transaction_id: refund.transaction.to_string(),
            created_at: refund.created_at.to_text(),
            updated_at: refund.updated_at.to_text(),
        }
    }

    fn row(self) -> Vec<String> {
        let amount = format!("{} {}", self.amount, self.currency);
        vec![
            self.id,
            self.why,
            self.status.into(),
            self.rail.unwrap_or_default(),
            amount,
            self.transaction_id,
            self.created_at,
        ]
    }
}

fn why(refund: &Refund) -> String {
    match (&refund.parked, refund.step()) {
        (Some(why), _) => format!("parked: {why}"),
        (None, Step::Unknown) => "the rail's answer was lost".into(),
        (None, Step::Sending) => "not with the rail yet".into(),
        (None, Step::Waiting) => "with the rail".into(),
        (None, Step::Settled) => "decided".into(),
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
    let mode = if arguments.live { Mode::Live } else { Mode::Test };
    let found = collect(&store, mode, arguments.unknown).await;
    store.close().await;
    let found = found?;
    if found.len() >= MOST_SHOWN {
        output::message(&format!("There are more: these are the oldest {}.", found.len()));
    }
    if arguments.format.json {
        return output::json(&found);
    }
    if found.is_empty() {
        output::message(&format!("No refund waits for anything in {mode} mode."));
    }
    let rows: Vec<Vec<String>> = found.into_iter().map(RefundRow::row).collect();
    output::table(&["id", "why", "status", "rail", "amount", "transaction", "created"], &rows)
}

/// Page after page, so that no query holds everything.
async fn collect(store: &Store, mode: Mode, only_unknown: bool) -> Result<Vec<RefundRow>, Problem> {
    let scope = Scope { organization: installation::only_organization(store).await?, mode };
    let mut found: Vec<RefundRow> = Vec::new();
    while found.len() < MOST_SHOWN {
        let after = found.last().map(|last| last.id.clone()).unwrap_or_default();
        let query = move |tx: &mut Tx<'_>| {
            let overdue = tx.now().minus(if only_unknown { LONG_OPEN } else { Duration::ZERO });
            queries::undecided(tx, scope, overdue, &after, PAGE)
        };
        let page = store.read(query).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page.iter().map(RefundRow::of));
    }
    Ok(found)
}

async fn resolve(arguments: Resolve) -> Result<(), Problem> {
    let resolved = resolve_named(arguments).await;
    resolved.map_err(|problem| problem.or_look("`dalasi refunds list [--live]` shows what can be decided."))
}

async fn resolve_named(arguments: Resolve) -> Result<(), Problem> {
    let missing = || Problem::from(Failure::from(Refusal::not_found::<Refund>()));
    let id: Id<Refund> = arguments.id.parse().map_err(|_| missing())?;
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
    let (refund, transaction) = installation.close(decided).await?;
    if arguments.format.json {
        return output::json(&RefundRow::of(&refund));
    }
    output::message(&format!(
        "{id} ({}) is {} now, and written to the audit log.",
        named(&refund, &transaction),
        refund.status().as_str()
    ));
    Ok(())
}

/// Which money it is, and whether somebody else may still say what became of it.
async fn question(store: &Store, id: Id<Refund>, outcome: Outcome) -> Result<String, Problem> {
    let looked = store.read(move |tx| {
        let scope = locate::refund(tx, id)?.ok_or_else(Refusal::not_found::<Refund>)?;
        let refund = tx.peek::<Refund>(scope, id)?.ok_or_else(Refusal::not_found::<Refund>)?;
        let transaction = refunded(tx, scope, &refund)?;
        Ok::<_, Failure>((refund, transaction, tx.now()))
    });
    let (refund, transaction, now) = looked.await?;
    if !refund.is_undecided() {
        return Err(Failure::from(Refusal::RefundNotUnknown { status: refund.status().as_str() }).into());
    }
    let age = now.since(refund.created_at);
    let is_in_doubt = refund.step() == Step::Unknown || refund.parked.is_some() || age >= LONG_OPEN;
    let warning = match is_in_doubt {
        true => "",
        false => " It may still be on its way, and the rail may still say what came of it.",
    };
    Ok(format!(
        "{}, asked for {} ago: {}.{warning} Decide it as {}, for good?",
        named(&refund, &transaction),
        output::lasting(age),
        plain(&why(&refund)),
        outcome.as_str()
    ))
}

fn refunded(tx: &mut Tx<'_>, scope: Scope, refund: &Refund) -> Result<Transaction, Failure> {
    let transaction = tx.peek::<Transaction>(scope, refund.transaction)?;
    transaction.ok_or_else(|| Failure::Broken(format!("{} has lost its transaction", refund.id)))
}

fn named(refund: &Refund, transaction: &Transaction) -> String {
    format!(
        "{} {} back, {} mode, {}, {} of {}",
        refund.amount,
        refund.amount.currency.code(),
        refund.scope.mode,
        transaction.method().as_str(),
        transaction.id,
        transaction.payable.object_id()
    )
}

async fn decide(
    installation: &Installation,
    id: Id<Refund>,
    outcome: Outcome,
    reason: String,
) -> Result<(Refund, Transaction), Problem> {
    let (is_completed, actor) = (outcome == Outcome::Completed, installation::actor());
    let decided = installation.write(move |tx, _| {
        let scope = locate::refund(tx, id)?.ok_or_else(Refusal::not_found::<Refund>)?;
        let refund = refunds::settle(tx, scope, id, None, |_, refund, transaction, now| {
            Ok(refund.resolved(transaction, is_completed, now)?)
        })?;
        keys::record(tx, scope, "refund.resolved", id.to_string(), &actor, Some(reason.clone()))?;
        let transaction = refunded(tx, scope, &refund)?;
        Ok::<_, Failure>((refund, transaction))
    });
    decided.await
}
