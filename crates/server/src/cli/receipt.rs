//! `dalasi receipt`: what a receipt's QR code holds, and whether that is what this service signed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::receipt::{Receipt, ValidationCode};
use domain::{Id, Mode, Refusal, Scope};
use serde::Serialize;
use store::queries::receipts;

use super::installation::Installation;
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::{look_up, receipt_statements};
use crate::config::{BesideArguments, StoreArguments};
use crate::error::Failure;
use crate::receipt_statement::{self, PayerProof, Signed, Statement, StatementFault};
use crate::tokens::{self, PublicKey};

const EXAMPLES: &str = "\
Examples:
  dalasi receipt verify 'https://pay.shop.example/verify#0615…'                 with the installation's own keys
  dalasi receipt verify 0615… --keys keys.json                                  anywhere, without a network
  dalasi receipt verify 0615… --payer 'Fatou Ceesay' --validation-code 0123…    whether this person paid
  dalasi receipt address RCT-2026-001                                           what its QR code holds
  curl https://pay.shop.example/.well-known/receipt-keys.json > keys.json       the keys to keep for that";

/// The statement in the QR code of receipts: check it, or print it
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what a statement says, if it is genuine; exit code 1 if it is not
    Verify(Verify),
    /// Print the address that the QR code of a receipt holds
    Address(AddressOf),
}

#[derive(clap::Args)]
struct AddressOf {
    /// Its number or its id
    #[arg(value_name = "RECEIPT")]
    receipt: String,

    /// A receipt of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    server: BesideArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct AddressView {
    receipt_number: String,
    address: String,
}

#[derive(clap::Args)]
struct Verify {
    /// The statement, or the address with it, as the QR code gives it
    statement: String,

    /// Public keys as /.well-known/receipt-keys.json gives them, `-` for standard input [default: the installation's]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Who paid, as the receipt prints it
    #[arg(long, value_name = "NAME", requires = "validation_code")]
    payer: Option<String>,

    /// The code that the receipt prints; blanks, hyphens and capitals don't count
    #[arg(long, value_name = "CODE", requires = "payer", value_parser = validation_code)]
    validation_code: Option<ValidationCode>,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

fn validation_code(text: &str) -> Result<ValidationCode, String> {
    let what = "a validation code has 32 digits of 0 to 9 and a to f; the receipt prints it";
    ValidationCode::typed(text).ok_or_else(|| what.to_owned())
}

#[derive(Serialize)]
struct Genuine<'a> {
    valid: bool,
    receipt_number: &'a str,
    amount: String,
    currency: &'static str,
    merchant: &'a str,
    payment_date: String,
    livemode: bool,
    key_id: &'a str,
    /// Null where no payer was given.
    payer_matches: Option<bool>,
}

#[derive(Serialize)]
struct Invalid {
    valid: bool,
    reason: &'static str,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Verify(arguments) => verify(arguments).await,
        Command::Address(arguments) => address(arguments).await,
    }
}

async fn address(arguments: AddressOf) -> Result<(), Problem> {
    let AddressOf { receipt: wanted, live, store, server, format } = arguments;
    let installation = Installation::open_beside(&store.check_beside(server)?).await?;
    let mode = if live { Mode::Live } else { Mode::Test };
    let scope = Scope { organization: installation.organization, mode };
    let context = Arc::clone(&installation.context);
    let found = installation.store.read(move |tx| {
        let by_number = receipts::by_number(tx, scope, &wanted)?;
        let receipt = match (by_number, wanted.parse::<Id<Receipt>>()) {
            (Some(receipt), _) => receipt,
            (None, Ok(id)) => look_up::<Receipt>(tx, scope, id)?,
            (None, Err(_)) => return Err(Refusal::not_found::<Receipt>().into()),
        };
        let address = receipt_statements::address_of(tx, &context, &receipt)?;
        Ok::<_, Failure>(AddressView { receipt_number: receipt.number, address })
    });
    let found = found.await.map_err(Problem::from);
    let view = installation.close(found).await.map_err(|problem| problem.or_look("Live receipts need --live."))?;
    if format.json { output::json(&view) } else { output::line(&view.address) }
}

async fn verify(arguments: Verify) -> Result<(), Problem> {
    let keys = match &arguments.keys {
        Some(file) => read_keys(file)?,
        None => own_keys(arguments.store).await?,
    };
    let json = arguments.format.json;
    let signed = match Statement::verify(receipt_statement::find(&arguments.statement), &keys) {
        Ok(signed) => signed,
        Err(fault) => return Err(refuse(fault, json)),
    };
    let proof = arguments.payer.zip(arguments.validation_code);
    let payer_matches =
        proof.map(|(payer, code)| PayerProof::of(&payer, code.as_str()) == signed.statement.payer_proof());
    // The verdict is said also where nobody reads what it rests on.
    let told = show(&signed, payer_matches, json);
    if signed.statement.mode() == Mode::Test {
        output::message("Test mode: no real money moved.");
    }
    match payer_matches {
        Some(false) => Err(Problem::failed(
            "the statement is genuine, but not with this payer and this code. Check both against the paper.",
        )),
        Some(true) | None => told,
    }
}

fn refuse(fault: StatementFault, json: bool) -> Problem {
    if json {
        // The exit code says it as well.
        let _ = output::json(&Invalid { valid: false, reason: fault.code() });
    }
    Problem::failed(format!("not valid: {fault}."))
}

fn show(Signed { statement, key_id }: &Signed, payer_matches: Option<bool>, json: bool) -> Result<(), Problem> {
    let amount = statement.amount();
    let view = Genuine {
        valid: true,
        receipt_number: statement.receipt_number(),
        amount: amount.to_string(),
        currency: amount.currency.code(),
        merchant: statement.merchant(),
        payment_date: statement.paid_at().to_text(),
        livemode: statement.mode().is_live(),
        key_id,
        payer_matches,
    };
    if json {
        return output::json(&view);
    }
    let row = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
    let mut rows = vec![
        row("receipt", view.receipt_number),
        row("amount", &format!("{} {}", view.amount, view.currency)),
        row("merchant", view.merchant),
        row("paid", &view.payment_date),
        row("mode", statement.mode().as_str()),
        row("key id", view.key_id),
    ];
    if let Some(matches) = payer_matches {
        rows.push(row("payer", if matches { "matches" } else { "does not match" }));
    }
    output::table(&["what", "signed"], &rows)
}

fn read_keys(file: &Path) -> Result<Vec<PublicKey>, Problem> {
    let text = if file == Path::new("-") {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(file)
    };
    let text =
        text.map_err(|error| Problem::usage(format!("the keys in {} can't be read: {error}", file.display())))?;
    let keys = tokens::parse_key_set(&text).filter(|keys| !keys.is_empty());
    keys.ok_or_else(|| {
        Problem::usage(format!(
            "{} is no key set with Ed25519 keys. The server gives it at /.well-known/receipt-keys.json.",
            file.display()
        ))
    })
}

async fn own_keys(store: StoreArguments) -> Result<Vec<PublicKey>, Problem> {
    let installation = Installation::open(&store.check()?).await?;
    let context = Arc::clone(&installation.context);
    let keys = installation.store.read(move |tx| receipt_statements::verifying_keys(tx, &context)).await;
    installation.close(keys.map_err(Problem::from)).await
}
