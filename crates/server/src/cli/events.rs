//! `dalasi events`: what the API has to say of an event, and sending it again.

use domain::Id;
use domain::event::Event;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, ClientArguments};
use super::output::{self, Format};
use super::problem::Problem;

const EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi events resend evt_01h455vb4pex5vsknk084sn02q
  dalasi events resend evt_01h455vb4pex5vsknk084sn02q --live --key-file live.key --json";

/// Send webhook events again
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Send an event again to every enabled endpoint that it was owed to, or that wants it now
    Resend(Resend),
}

#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
struct Resend {
    /// The event, as `webhook-id` or the list of events names it
    #[arg(value_name = "EVENT_ID")]
    id: String,

    /// An event of live mode, with a key of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    client: ClientArguments,

    #[command(flatten)]
    format: Format,
}

/// What a person is told of the answer.
#[derive(Deserialize)]
struct Resent {
    #[serde(rename = "type")]
    kind: String,
    deliveries: Vec<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    webhook_endpoint_id: String,
    status: String,
    attempts: i64,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Resend(arguments) => resend(arguments).await,
    }
}

async fn resend(arguments: Resend) -> Result<(), Problem> {
    let Resend { id, live, client, format } = arguments;
    let client = Client::new(client)?;
    match (client.mode().is_live(), live) {
        (true, false) => return Err(Problem::usage("this is a key of live mode: give --live to mean it.")),
        (false, true) => return Err(Problem::not_authorized("for --live a key of live mode is needed (sk_live_…).")),
        (true, true) | (false, false) => {}
    }
    let no_such_event = || Problem::not_found(format!("there is no event {id}. GET /v1/events lists them."));
    // Whatever else it is, it must not become a part of the address.
    let event: Id<Event> = id.parse().map_err(|_| no_such_event())?;
    let answer: Value = client.post(&format!("/v1/events/{event}/retry"), &json!({})).await?;
    if format.json {
        return output::json(&answer);
    }
    let resent: Resent = serde_json::from_value(answer)
        .map_err(|_| Problem::failed("the server's answer is of another version; --json shows it."))?;
    let row = |delivery: &Delivery| {
        vec![delivery.webhook_endpoint_id.clone(), delivery.status.clone(), delivery.attempts.to_string()]
    };
    output::table(&["endpoint", "status", "attempts so far"], &resent.deliveries.iter().map(row).collect::<Vec<_>>())?;
    output::message(&format!("{event} ({}) is sent again now.", resent.kind));
    Ok(())
}
