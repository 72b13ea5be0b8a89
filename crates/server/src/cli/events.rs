//! `dalasi events`: what the API has to say of events, and sending them again.

use std::time::Duration;

use domain::Id;
use domain::event::{Event, EventType};
use domain::webhook::EventFilter;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::client::{CallFault, Client, ClientArguments};
use super::output::{self, Format};
use super::problem::Problem;

const EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi events resend evt_01h455vb4pex5vsknk084sn02q
  dalasi events resend evt_01h455vb4pex5vsknk084sn02q --live --key-file live.key --json
  dalasi events resend --since 2026-01-30T18:00:00Z --until 2026-01-31 --missed";

/// Send webhook events again
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Send an event again, or those of some time, to every enabled endpoint that it was owed to or that wants it now
    Resend(Resend),
}

/// As many as the API lists at once.
const PAGE: usize = 100;
/// A call among many that brings no answer, or is one too many for a second, is made again.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
struct Resend {
    /// The event, as `webhook-id` or the list of events names it
    #[arg(value_name = "EVENT_ID", required_unless_present = "since", conflicts_with = "since")]
    id: Option<String>,

    #[command(flatten)]
    range: Range,

    /// Events of live mode, with a key of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    client: ClientArguments,

    #[command(flatten)]
    format: Format,
}

/// Which events, where it is more than one
#[derive(clap::Args)]
struct Range {
    /// All events from this date or time on, the oldest first: 2026-01-31, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Up to the end of this date, or to this time; without it, up to now
    #[arg(long, value_name = "TIME", requires = "since")]
    until: Option<String>,

    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE", requires = "since")]
    kind: Option<String>,

    /// Only events that an endpoint wants and has not got (all tries failed, or it was switched off), and only to that endpoint
    #[arg(long, requires = "since")]
    missed: bool,

    /// Don't ask before many are sent
    #[arg(long, requires = "since")]
    yes: bool,
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

#[derive(Deserialize)]
struct Listed<T> {
    items: Vec<T>,
    has_more: bool,
}

#[derive(Deserialize)]
struct ListedEvent {
    id: Id<Event>,
    #[serde(rename = "type")]
    kind: String,
    created_at: String,
    deliveries: Vec<Delivery>,
    /// `None`: it goes to whoever wants it.
    #[serde(skip)]
    missed_by: Option<Vec<String>>,
}

impl ListedEvent {
    /// What is asked for, so that it is sent again.
    fn requests(&self) -> Vec<Value> {
        match &self.missed_by {
            None => vec![json!({})],
            Some(endpoints) => endpoints.iter().map(|id| json!({ "webhook_endpoint_id": id })).collect(),
        }
    }
}

#[derive(Deserialize)]
struct ListedEndpoint {
    id: String,
    status: String,
    enabled_events: Vec<String>,
    created_at: String,
}

impl ListedEndpoint {
    /// Times are written alike and in UTC, so that their texts are in order.
    fn missed(&self, event: &ListedEvent) -> bool {
        let kind = EventType::parse(&event.kind);
        let filters = self.enabled_events.iter().filter_map(|filter| EventFilter::parse(filter));
        let wants = kind.is_some_and(|kind| filters.into_iter().any(|filter| filter.matches(kind)));
        let mut deliveries = event.deliveries.iter().filter(|delivery| delivery.webhook_endpoint_id == self.id);
        self.status == "active"
            && wants
            && self.created_at <= event.created_at
            && deliveries.all(|delivery| delivery.status == "failed")
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Resend(arguments) => resend(arguments).await,
    }
}

async fn resend(arguments: Resend) -> Result<(), Problem> {
    let Resend { id, range, live, client, format } = arguments;
    let client = Client::new(client)?;
    client.require_meant(live)?;
    match id {
        Some(id) => resend_one(&client, &id, &format).await,
        None => resend_range(&client, &range, &format).await,
    }
}

async fn resend_one(client: &Client, id: &str, format: &Format) -> Result<(), Problem> {
    let no_such_event = || Problem::not_found(format!("there is no event {id}. GET /v1/events lists them."));
    // Whatever else it is, it must not become a part of the address.
    let event: Id<Event> = id.parse().map_err(|_| no_such_event())?;
    let answer: Value = client.post(&retry(event), &json!({})).await?;
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

async fn resend_range(client: &Client, range: &Range, format: &Format) -> Result<(), Problem> {
    let found = found(client, range).await?;
    let count = found.len();
    if count > 0 && !range.yes {
        let whom = if range.missed { ", each to those endpoints that missed it" } else { "" };
        output::confirm(&format!("Send {} again{whom}?", events(count)))?;
    }
    let (mut resent, mut unwanted) = (Vec::with_capacity(count), 0_usize);
    for event in &found {
        let mut is_sent = false;
        for request in event.requests() {
            let call = async || client.post::<Value>(&retry(event.id), &request).await;
            match patiently(call).await {
                Ok(_) => is_sent = true,
                Err(CallFault::Refused { code: Some(code), .. }) if code == "no_active_endpoint" => {}
                // Deleted since it was listed; what the others missed is sent all the same.
                Err(CallFault::Refused { code: Some(code), .. }) if range.missed && code == "validation_failed" => {}
                Err(fault) => {
                    let before = format!("before {} of {}", event.id, event.created_at);
                    return Err(Problem::from(fault).and(&format!("{} sent again {before}", events(resent.len()))));
                }
            }
        }
        if is_sent {
            resent.push(event);
        } else {
            unwanted += 1;
        }
    }
    if count > 0 && resent.is_empty() {
        return Err(Problem::conflict(format!("no active endpoint wants any of {}.", events(count))));
    }
    if format.json {
        let resent: Vec<Value> =
            resent.iter().map(|event| json!({ "id": event.id.to_string(), "type": event.kind })).collect();
        return output::json(&json!({ "events": resent, "unwanted": unwanted }));
    }
    let row = |event: &&ListedEvent| vec![event.id.to_string(), event.kind.clone(), event.created_at.clone()];
    output::table(&["event", "type", "happened"], &resent.iter().map(row).collect::<Vec<_>>())?;
    output::message(&match unwanted {
        0 if count == 0 => "Nothing is there to be sent again.".to_owned(),
        0 => format!("{} sent again now.", events(resent.len())),
        _ => format!("{} sent again now; no active endpoint wants the other {unwanted}.", events(resent.len())),
    });
    Ok(())
}

fn retry(event: Id<Event>) -> String {
    format!("/v1/events/{event}/retry")
}

fn events(count: usize) -> String {
    output::counted(i128::try_from(count).unwrap_or(i128::MAX), "event", "events")
}

/// The oldest first, as far as there were any when it began.
async fn found(client: &Client, range: &Range) -> Result<Vec<ListedEvent>, Problem> {
    let filters = [("start_date", &range.since), ("end_date", &range.until), ("type", &range.kind)];
    let mut found: Vec<ListedEvent> =
        list(client, "/v1/events", &filters, |event: &ListedEvent| event.id.to_string()).await?;
    if range.missed {
        let endpoints: Vec<ListedEndpoint> =
            list(client, "/v1/webhook_endpoints", &[], |endpoint: &ListedEndpoint| endpoint.id.clone()).await?;
        for event in &mut found {
            let missed_by = endpoints.iter().filter(|endpoint| endpoint.missed(event));
            event.missed_by = Some(missed_by.map(|endpoint| endpoint.id.clone()).collect());
        }
        found.retain(|event| event.missed_by.as_ref().is_some_and(|endpoints| !endpoints.is_empty()));
    }
    found.reverse();
    Ok(found)
}

/// All pages of a list.
async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    filters: &[(&str, &Option<String>)],
    id: impl Fn(&T) -> String,
) -> Result<Vec<T>, Problem> {
    let mut all = Vec::new();
    loop {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &PAGE.to_string());
        let after = all.last().map(&id);
        for (name, value) in filters.iter().copied().chain([("after", &after)]) {
            query.extend_pairs(value.iter().map(|value| (name, value)));
        }
        let path = format!("{path}?{}", query.finish());
        let call = async || client.get::<Listed<T>>(&path).await;
        // Whoever has a wrong address or key hears of it at once.
        let Listed { items, has_more } = if all.is_empty() { call().await? } else { patiently(call).await? };
        let is_empty = items.is_empty();
        all.extend(items);
        if is_empty || !has_more {
            return Ok(all);
        }
    }
}

async fn patiently<T>(call: impl AsyncFn() -> Result<T, CallFault>) -> Result<T, CallFault> {
    for _ in 1..TRIES {
        match call().await {
            Err(CallFault::Away(_)) => tokio::time::sleep(PAUSE).await,
            answered => return answered,
        }
    }
    call().await
}
