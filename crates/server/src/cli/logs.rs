//! `dalasi logs tail`: shows API requests as they are answered, while a developer integrates. Nothing of them is kept anywhere: what is
//! answered while nobody looks is not shown later.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::client::{CallFault, Client, ClientArguments, cause};
use super::output::{self, Format};
use super::problem::Problem;

const EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi logs tail                                  show each request
  DALASI_API_KEY=sk_test_… dalasi logs tail --filter-status-code 4xx,5xx     those that went wrong
  dalasi logs tail --filter-http-method POST --filter-request-path /v1/checkouts --json --key-file test.key";

const TAIL_EXAMPLES: &str = "\
Examples:
  DALASI_API_KEY=sk_test_… dalasi logs tail                                  show each request
  DALASI_API_KEY=sk_test_… dalasi logs tail --filter-status-code 4xx,5xx     those that went wrong
  dalasi logs tail --filter-http-method POST --filter-request-path /v1/checkouts --json --key-file test.key

Shown are requests with a key of the same organization and mode, or a token made with one: time, status, method, the route's path
without ids and query, duration, request id, and the code of a refusal. A path that no route has is 'unmatched'. In the place of the
status stands 'no answer' where the connection was ended, because what came of the request is not known. A request without such a key
is not shown, nor are hosted pages, nor what is beyond the rate of a publishable key, nor what is refused before anybody looks at its
key: by a server at its limit (503), or because its address or its headers are too long (414, 431). The process that is asked shows
what it answers itself: where several serve, ask each by its own address (--api-url).
The key needs the scope 'read:webhooks', as for `listen`.";

const ADDRESS: &str = "/v1/requests";
/// The server ends it before that.
const LONGEST: Duration = Duration::from_secs(2 * 3600);
/// The server says something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
const LONGEST_LINE: usize = 64 << 10;
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Show API requests as they are answered, while you develop
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show each request that the asked process answers, from now on
    Tail(Tail),
}

#[derive(clap::Args)]
#[command(before_help = TAIL_EXAMPLES, help_template = super::TEMPLATE)]
struct Tail {
    #[command(flatten)]
    filters: Filters,

    /// Requests of live mode, with a key of live mode
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    client: ClientArguments,

    #[command(flatten)]
    format: Format,
}

/// Which requests are shown; of each kind of filter one has to match
#[derive(clap::Args)]
struct Filters {
    /// Only these, such as 404 or 4xx,5xx [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = statuses)]
    filter_status_code: Vec<Statuses>,

    /// Only these, such as POST,DELETE [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = method)]
    filter_http_method: Vec<String>,

    /// Only paths that begin so, as they are shown: /v1/checkouts, /v1/pay/invoices/{id} [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = path)]
    filter_request_path: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statuses {
    One(u16),
    Hundred(u16),
}

fn statuses(text: &str) -> Result<Statuses, String> {
    let text = text.trim();
    let hundred =
        text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")).and_then(|digit| digit.parse::<u16>().ok());
    match (hundred, text.parse::<u16>()) {
        (Some(hundred @ 1..=5), _) => Ok(Statuses::Hundred(hundred)),
        (None, Ok(status @ 100..=599)) => Ok(Statuses::One(status)),
        _ => Err(format!("{text:?} is no status; one is written as 404 or 4xx")),
    }
}

fn method(text: &str) -> Result<String, String> {
    let method = text.trim().to_ascii_uppercase();
    match METHODS.contains(&method.as_str()) {
        true => Ok(method),
        false => Err(format!("{text:?} is no method; there are {}", METHODS.join(", "))),
    }
}

fn path(text: &str) -> Result<String, String> {
    let path = text.trim();
    match path.starts_with('/') && !path.contains('?') {
        true => Ok(path.to_owned()),
        false => Err(format!("{text:?} is no path; one is written as /v1/checkouts")),
    }
}

impl Filters {
    fn want(&self, request: &Request) -> bool {
        let Self { filter_status_code, filter_http_method, filter_request_path } = self;
        let is_status = |wanted: &Statuses| match *wanted {
            Statuses::One(status) => request.status == Some(status),
            Statuses::Hundred(hundred) => request.status.is_some_and(|status| status / 100 == hundred),
        };
        (filter_status_code.is_empty() || filter_status_code.iter().any(is_status))
            && (filter_http_method.is_empty() || filter_http_method.contains(&request.method))
            && (filter_request_path.is_empty()
                || filter_request_path.iter().any(|wanted| request.path.starts_with(wanted.as_str())))
    }
}

/// What the server says of a request, and what `--json` repeats.
#[derive(Deserialize, Serialize)]
struct Request {
    answered_at: String,
    /// None where the connection was ended, because what came of the request is not known.
    status: Option<u16>,
    method: String,
    path: String,
    duration_ms: f64,
    request_id: String,
    code: Option<String>,
}

impl Request {
    fn line(&self) -> String {
        let Self { answered_at, status, method, path, duration_ms, request_id, code } = self;
        let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let code = code.as_ref().map(|code| format!("  {code}")).unwrap_or_default();
        format!("{answered_at}  {status}  {method}  {path}  {duration_ms} ms  {request_id}{code}")
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Request(Request),
    /// We read too slowly: so many are not told.
    LeftOut {
        left_out: u64,
    },
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Tail(arguments) => tail(arguments).await,
    }
}

async fn tail(arguments: Tail) -> Result<(), Problem> {
    let Tail { filters, live, client, format } = arguments;
    let client = Client::new(client)?;
    client.require_meant(live)?;
    let mut answer = client.open(ADDRESS, LONGEST).await?;
    output::message(&format!("Showing {} mode's requests as they are answered. Stop with Ctrl-C.", client.mode()));
    loop {
        let why = show(answer, &filters, &format).await?;
        output::message(&format!("{why}; trying again."));
        answer = again(&client).await?;
        output::message("The server is back. What was answered meanwhile is not shown.");
    }
}

/// Shows what is wanted until the answer ends; why it did.
async fn show(mut answer: reqwest::Response, filters: &Filters, format: &Format) -> Result<String, Problem> {
    let mut unread = Vec::new();
    loop {
        match tokio::time::timeout(SILENCE, answer.chunk()).await {
            Ok(Ok(Some(part))) => unread.extend_from_slice(&part),
            Ok(Ok(None)) => return Ok("The server ended its answer".to_owned()),
            Ok(Err(error)) => return Ok(format!("The server broke off its answer: {}", cause(&error))),
            Err(_) => return Ok("The server says nothing any more".to_owned()),
        }
        for line in whole_lines(&mut unread) {
            // The others are empty, or keep the connection awake.
            if let Some(data) = line.strip_prefix("data:") {
                tell(data, filters, format)?;
            }
        }
        if unread.len() > LONGEST_LINE {
            return Err(of_another_version());
        }
    }
}

/// Nobody has asked while it was away: it is asked as long as it takes, less and less often.
async fn again(client: &Client) -> Result<reqwest::Response, Problem> {
    let mut pause = FIRST_RETRY;
    loop {
        tokio::time::sleep(pause).await;
        match client.open(ADDRESS, LONGEST).await {
            Ok(answer) => return Ok(answer),
            Err(CallFault::Refused { problem, .. }) => return Err(problem),
            Err(CallFault::Away(_)) => pause = (pause * 2).min(LONGEST_RETRY),
        }
    }
}

/// As far as there is an end to them.
fn whole_lines(unread: &mut Vec<u8>) -> Vec<String> {
    let end = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let whole: Vec<u8> = unread.drain(..end).collect();
    String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
}

fn tell(data: &str, filters: &Filters, format: &Format) -> Result<(), Problem> {
    let request = match serde_json::from_str::<Said>(data).map_err(|_| of_another_version())? {
        Said::Request(request) => request,
        Said::LeftOut { left_out } if format.json => return output::json(&serde_json::json!({ "left_out": left_out })),
        Said::LeftOut { left_out } => {
            let requests = output::counted(left_out, "request was", "requests were");
            output::message(&format!("… {requests} left out: they came faster than they are read here."));
            return Ok(());
        }
    };
    if !filters.want(&request) {
        return Ok(());
    }
    if format.json {
        return output::json(&request);
    }
    output::line(&request.line())
}

fn of_another_version() -> Problem {
    Problem::failed("the server's answer is of another version.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: Option<u16>, code: Option<&str>) -> Request {
        Request {
            answered_at: "2026-11-21T03:45:58.000123Z".into(),
            status,
            method: "GET".into(),
            path: "/v1/checkouts/{id}".into(),
            duration_ms: 1.5,
            request_id: "req_1".into(),
            code: code.map(str::to_owned),
        }
    }

    #[test]
    fn filters_choose() {
        let (found, unknown) = (request(Some(404), Some("checkout_not_found")), request(None, None));
        let filters = |status: &[&str], methods: &[&str], paths: &[&str]| Filters {
            filter_status_code: status.iter().map(|text| statuses(text).unwrap()).collect(),
            filter_http_method: methods.iter().map(|text| method(text).unwrap()).collect(),
            filter_request_path: paths.iter().map(|text| path(text).unwrap()).collect(),
        };
        for (request, wanted, is_shown) in [
            (&found, filters(&[], &[], &[]), true),
            (&found, filters(&["4xx"], &["get"], &["/v1/checkouts"]), true),
            (&found, filters(&["500", "404"], &["POST", "GET"], &["/v1/pay", "/v1/checkouts/{id}"]), true),
            (&found, filters(&["5XX"], &[], &[]), false),
            (&found, filters(&["400"], &[], &[]), false),
            (&found, filters(&["4xx"], &["POST"], &[]), false),
            (&found, filters(&["4xx"], &["GET"], &["/v1/pay"]), false),
            (&unknown, filters(&[], &["GET"], &["/v1/checkouts"]), true),
            (&unknown, filters(&["1xx", "2xx", "3xx", "4xx", "5xx", "500"], &[], &[]), false),
        ] {
            assert_eq!(wanted.want(request), is_shown);
        }
        for text in ["", "xx", "6xx", "44x", "99", "600", "0xx", "4xx5", "all"] {
            assert!(statuses(text).is_err(), "{text:?}");
        }
        assert!(method("BREW").is_err() && path("v1").is_err() && path("/v1?limit=1").is_err());
    }

    #[test]
    fn an_outcome_that_nobody_knows_has_no_status() {
        let said = r#"{"answered_at":"2026-11-21T03:45:58.000123Z","method":"GET","path":"/v1/checkouts/{id}","status":null,
            "duration_ms":1.5,"request_id":"req_1","code":null}"#;
        let Said::Request(unknown) = serde_json::from_str::<Said>(said).unwrap() else { panic!("a request") };
        let line = "2026-11-21T03:45:58.000123Z  no answer  GET  /v1/checkouts/{id}  1.5 ms  req_1";
        assert_eq!(unknown.line(), line);
        assert_eq!(serde_json::to_value(&unknown).unwrap()["status"], serde_json::Value::Null);
        let found = request(Some(404), Some("checkout_not_found")).line();
        assert_eq!(found, line.replace("no answer", "404") + "  checkout_not_found");
    }

    #[test]
    fn lines_are_whole() {
        let mut unread = b"data: {\"left_out\":".to_vec();
        assert!(whole_lines(&mut unread).is_empty());
        unread.extend_from_slice(b"3}\n\n:\n\nda");
        assert_eq!(whole_lines(&mut unread), ["data: {\"left_out\":3}", "", ":", ""]);
        assert_eq!(unread, b"da");
    }
}
