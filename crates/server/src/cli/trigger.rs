//! `dalasi trigger`: makes something happen in test mode, as a merchant and a payer would, so that its events arrive.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Client, ClientArguments};
use super::listen::{FollowedEvent, follow, last};
use super::output::{self, Format};
use super::problem::Problem;
use crate::monotonic;

const EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi trigger checkout.completed
  dalasi trigger payment.failed --key-file test.key --json";

/// The simulator's payers (README): one approves, one lacks the money.
const APPROVES: &str = "+2207000000";
const LACKS_MONEY: &str = "+2207000001";
const LOOK_EVERY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(20);

/// Make an event happen in test mode
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// What shall happen
    #[arg(value_enum)]
    event: Wanted,

    #[command(flatten)]
    client: ClientArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Wanted {
    #[value(name = "checkout.completed")]
    CheckoutCompleted,
    #[value(name = "payment.failed")]
    PaymentFailed,
    #[value(name = "checkout.cancelled")]
    CheckoutCancelled,
}

impl Wanted {
    fn as_str(self) -> &'static str {
        match self {
            Wanted::CheckoutCompleted => "checkout.completed",
            Wanted::PaymentFailed => "payment.failed",
            Wanted::CheckoutCancelled => "checkout.cancelled",
        }
    }
}

#[derive(Deserialize)]
struct Checkout {
    id: String,
    client_secret: String,
    available_payment_methods: Vec<String>,
}

#[derive(Serialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    object_id: String,
    sequence: i64,
}

#[derive(Serialize)]
struct Answer {
    checkout_id: String,
    events: Vec<Event>,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let client = Client::new(arguments.client)?;
    if client.mode().is_live() {
        return Err(Problem::not_authorized(
            "a key of test mode is needed (sk_test_…): in live mode only a real payer makes things happen.",
        ));
    }
    let wanted = arguments.event;
    let before = last(&client).await?;
    let order = json!({ "amount": "100.00", "description": format!("dalasi trigger {}", wanted.as_str()) });
    let checkout: Checkout = client.post("/v1/checkouts", &order).await?;
    match wanted {
        Wanted::CheckoutCompleted => pay(&client, &checkout, APPROVES).await?,
        Wanted::PaymentFailed => pay(&client, &checkout, LACKS_MONEY).await?,
        Wanted::CheckoutCancelled => {
            let path = format!("/v1/checkouts/{}/cancel", checkout.id);
            let _: serde_json::Value = client.post(&path, &json!({})).await?;
        }
    }
    let events = wait_for(&client, before, &checkout.id, wanted).await?;
    let answer = Answer { checkout_id: checkout.id, events };
    if arguments.format.json {
        return output::json(&answer);
    }
    let row = |event: &Event| vec![event.id.clone(), event.kind.clone(), event.object_id.clone()];
    let rows: Vec<Vec<String>> = answer.events.iter().map(row).collect();
    output::table(&["event", "type", "object"], &rows)
}

/// By a wallet: with a test number the phone alone decides.
async fn pay(client: &Client, checkout: &Checkout, phone: &str) -> Result<(), Problem> {
    let offered = |method: &&str| checkout.available_payment_methods.iter().any(|offered| offered == method);
    let method = ["wave", "afrimoney"].into_iter().find(offered).ok_or_else(|| {
        Problem::conflict("neither wave nor afrimoney is enabled in test mode; `dalasi organization set --test --enabled-methods` enables them.")
    })?;
    let payment = json!({ "client_secret": checkout.client_secret, "payment_method": method, "customer_phone": phone });
    let _: serde_json::Value = client.post("/v1/pay/initialize", &payment).await?;
    Ok(())
}

/// The events of the checkout, once the wanted one is among them: they stand in the log behind what was there before.
async fn wait_for(
    client: &Client,
    mut after: Option<String>,
    checkout: &str,
    wanted: Wanted,
) -> Result<Vec<Event>, Problem> {
    let until = monotonic::now() + PATIENCE;
    let mut events: Vec<Event> = Vec::new();
    loop {
        let page = follow(client, after.as_deref()).await?;
        for event in page.items {
            after = Some(event.id.clone());
            if event.object_id == checkout {
                let FollowedEvent { id, kind, object_id, sequence, .. } = event;
                events.push(Event { id, kind, object_id, sequence });
            }
        }
        if events.iter().any(|event| event.kind == wanted.as_str()) {
            return Ok(events);
        }
        if monotonic::now() >= until {
            return Err(Problem::failed(format!(
                "{checkout} was made, but {} did not happen within {} s. Does a worker run?",
                wanted.as_str(),
                PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
