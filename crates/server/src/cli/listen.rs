//! `dalasi listen`: follows the events from now on, shows each, and hands it to an address on the developer's machine, signed as
//! a webhook is, if there is one. It is no endpoint: nothing is owed to it, and what could not be handed over is not sent again.

use std::time::Duration;

use aws_lc_rs::hmac;
use bytes::Bytes;
use domain::event::EventType;
use domain::webhook::EventFilter;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::Clock;
use url::Url;

use super::client::{CallFault, Client, ClientArguments};
use super::output::{self, Format};
use super::problem::Problem;
use crate::clock::SystemClock;
use crate::plausible::is_web_address;
use crate::signing::{self, Attempt, WebhookSecret};

const EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi listen                                    show what happens
  DALASI_API_KEY=sk_test_… dalasi listen --forward-to http://localhost:3000/webhooks
  dalasi listen --forward-to http://localhost:3000 --events checkout.completed,payment.* --key-file test.key
  SECRET=$(dalasi listen --print-secret --key-file test.key)                what your receiver checks signatures with";

const PAGE: usize = 100;
/// Between two looks, while nothing happens.
const PAUSE: Duration = Duration::from_millis(300);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// Show events, and forward them to an address, while you develop
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// Where to send each event [default: nowhere]
    #[arg(long, value_name = "URL")]
    forward_to: Option<String>,

    /// Only these, such as checkout.completed,payment.* [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = filter)]
    events: Vec<EventFilter>,

    /// Print the secret that forwarded events are signed with, and end
    #[arg(long, conflicts_with_all = ["forward_to", "events"])]
    print_secret: bool,

    /// Events of live mode, with a key of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    client: ClientArguments,

    #[command(flatten)]
    format: Format,
}

fn filter(text: &str) -> Result<EventFilter, String> {
    EventFilter::parse(text.trim())
        .ok_or_else(|| format!("{text:?} is no event; one is written as checkout.completed, payment.* or *"))
}

#[derive(Deserialize)]
pub(super) struct List {
    pub(super) items: Vec<FollowedEvent>,
    has_more: bool,
}

/// An event as the API lists it.
#[derive(Deserialize)]
pub(super) struct FollowedEvent {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    data: Box<RawValue>,
    livemode: bool,
    pub(super) object_id: String,
    pub(super) sequence: i64,
    created_at: String,
}

/// The same event as an endpoint gets it (contract §6), member for member.
#[derive(Serialize)]
struct Envelope<'e> {
    id: &'e str,
    #[serde(rename = "type")]
    kind: &'e str,
    api_version: &'static str,
    created_at: &'e str,
    created: &'e str,
    livemode: bool,
    object_id: &'e str,
    sequence: i64,
    data: &'e RawValue,
}

/// One event on standard output.
#[derive(Serialize)]
struct Told<'e> {
    id: &'e str,
    #[serde(rename = "type")]
    kind: &'e str,
    object_id: &'e str,
    sequence: i64,
    status: Option<u16>,
    error: Option<&'e str>,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let target = arguments.forward_to.as_deref().map(target).transpose()?;
    let client = Client::new(arguments.client)?;
    client.require_meant(arguments.live)?;
    let secret = secret_of(&client);
    if arguments.print_secret {
        return match arguments.format.json {
            true => output::json(&serde_json::json!({ "secret": secret.expose() })),
            false => output::line(secret.expose()),
        };
    }
    let mut after = last(&client).await?;
    match &target {
        Some(target) => {
            output::message(&format!("signing secret: {}", secret.expose()));
            output::message(&format!("Forwarding {} mode's events to {target}; stop with Ctrl-C.", client.mode()));
        }
        None => {
            let mode = client.mode();
            output::message(&format!("Showing {mode} mode's events; --forward-to sends them on. Stop with Ctrl-C."));
        }
    }

    let clock = SystemClock::new();
    let mut retry = FIRST_RETRY;
    loop {
        let page = match follow(&client, after.as_deref()).await {
            Ok(page) => page,
            Err(CallFault::Refused { problem, .. }) => return Err(problem),
            Err(CallFault::Away(why)) => {
                if retry == FIRST_RETRY {
                    output::message(&format!("{why}; trying again."));
                }
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(LONGEST_RETRY);
                continue;
            }
        };
        if retry > FIRST_RETRY {
            output::message("The server is back.");
            retry = FIRST_RETRY;
        }
        for event in &page.items {
            if wants(&arguments.events, &event.kind) {
                let result = match &target {
                    Some(target) => Some(forward(&client, target, &secret, event, clock.now_us() / 1_000_000).await),
                    None => None,
                };
                tell(event, result.as_ref(), &arguments.format)?;
            }
            after = Some(event.id.clone());
        }
        // One of large events is shorter than what was asked for, and not the last.
        if page.items.is_empty() || !page.has_more {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn target(text: &str) -> Result<Url, Problem> {
    Url::parse(text).ok().filter(|_| is_web_address(text)).ok_or_else(|| {
        Problem::usage("--forward-to: an http or https address, such as http://localhost:3000/webhooks.")
    })
}

/// The same for the same key, so that it survives a restart of this command.
fn secret_of(client: &Client) -> WebhookSecret {
    let key = hmac::Key::new(hmac::HMAC_SHA256, client.key().expose().as_bytes());
    let tag = hmac::sign(&key, b"dalasi listen");
    WebhookSecret::generate(tag.as_ref().try_into().expect("HMAC-SHA256 has 32 bytes"))
}

/// Where "from now on" begins: with the last event of the log. The newest by its id may stand far before that, where the clock that
/// gave it ran ahead; what is behind it is passed over.
pub(super) async fn last(client: &Client) -> Result<Option<String>, Problem> {
    let newest: List = client.get("/v1/events?limit=1").await?;
    if newest.items.is_empty() && !newest.has_more {
        return Ok(None);
    }
    let mut last = newest.items.into_iter().next().map(|event| event.id);
    loop {
        let page = follow(client, last.as_deref()).await?;
        let is_end = page.items.is_empty() || !page.has_more;
        last = page.items.into_iter().next_back().map(|event| event.id).or(last);
        if is_end {
            return Ok(last);
        }
    }
}

/// What is behind it in the log, as far as one answer holds.
pub(super) async fn follow(client: &Client, after: Option<&str>) -> Result<List, CallFault> {
    let behind = after.map_or_else(String::new, |after| format!("&after={after}"));
    client.get(&format!("/v1/events?order=asc&limit={PAGE}{behind}")).await
}

fn wants(filters: &[EventFilter], kind: &str) -> bool {
    let matches = |filter: &EventFilter| EventType::parse(kind).is_some_and(|kind| filter.matches(kind));
    filters.is_empty() || filters.iter().any(matches)
}

async fn forward(
    client: &Client,
    target: &Url,
    secret: &WebhookSecret,
    event: &FollowedEvent,
    timestamp_s: i64,
) -> Result<u16, String> {
    let body = envelope(event);
    let signatures = signing::sign(&Attempt { event_id: &event.id, timestamp_s, body: body.as_bytes() }, secret, &[]);
    let headers = headers(&[
        ("content-type", "application/json"),
        (signing::ID_HEADER, &event.id),
        (signing::TIMESTAMP_HEADER, &timestamp_s.to_string()),
        (signing::SIGNATURE_HEADER, &signatures.standard),
        (signing::COMPATIBILITY_HEADER, &signatures.compatibility),
        ("x-jokoor-event", &event.kind),
        ("x-jokoor-event-id", &event.id),
    ])?;
    client.forward(target, headers, Bytes::from(body)).await.map(|status| status.as_u16())
}

fn envelope(event: &FollowedEvent) -> String {
    let envelope = Envelope {
        id: &event.id,
        kind: &event.kind,
        api_version: "v1",
        created_at: &event.created_at,
        created: &event.created_at,
        livemode: event.livemode,
        object_id: &event.object_id,
        sequence: event.sequence,
        data: &event.data,
    };
    serde_json::to_string(&envelope).expect("texts and numbers are always JSON")
}

fn headers(pairs: &[(&'static str, &str)]) -> Result<HeaderMap, String> {
    let pair = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).map_err(|_| format!("{name} can't be sent as a header"))?;
        Ok((HeaderName::from_static(name), value))
    };
    pairs.iter().map(pair).collect()
}

/// `result` is how its receiver took it, if it was forwarded.
fn tell(event: &FollowedEvent, result: Option<&Result<u16, String>>, format: &Format) -> Result<(), Problem> {
    let FollowedEvent { id, kind, object_id, sequence, created_at, .. } = event;
    let status = result.and_then(|result| result.as_ref().ok()).copied();
    let error = result.and_then(|result| result.as_ref().err()).map(String::as_str);
    if format.json {
        return output::json(&Told { id, kind, object_id, sequence: *sequence, status, error });
    }
    let outcome = match status {
        Some(status) => format!("  {status}"),
        None => error.map(|error| format!("  {error}")).unwrap_or_default(),
    };
    output::line(&format!("{created_at}  {kind}  {object_id}  {id}{outcome}"))
}

#[cfg(test)]
mod tests {
    use domain::{Id, Mode, Timestamp};

    use super::*;
    use crate::wire::webhooks;

    #[test]
    fn what_is_forwarded_is_what_an_endpoint_gets() {
        let now = Timestamp::from_micros(1_700_000_000_123_456);
        let id: Id<domain::event::Event> = Id::new(now, [7; 10]);
        let data = serde_json::json!({ "id": "cs_1", "amount": "1.00", "metadata": { "b": 1, "a": 2 } });
        let sent = webhooks::envelope(id, EventType::CheckoutCompleted, Mode::Test, "cs_1", 3, now, &data);
        let listed = FollowedEvent {
            id: id.to_string(),
            kind: "checkout.completed".into(),
            data: serde_json::value::to_raw_value(&data).unwrap(),
            livemode: false,
            object_id: "cs_1".into(),
            sequence: 3,
            created_at: now.to_text(),
        };
        assert_eq!(envelope(&listed), sent);
    }

    #[test]
    fn filters_choose() {
        let filters = [filter("payment.*").unwrap(), filter("checkout.completed").unwrap()];
        assert!(
            wants(&filters, "payment.failed") && wants(&filters, "checkout.completed") && wants(&[], "anything.new")
        );
        assert!(!wants(&filters, "checkout.expired"));
        assert!(filter("checkout.finished").is_err());
    }
}
