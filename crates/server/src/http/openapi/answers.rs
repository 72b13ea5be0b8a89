//! The responses of an operation: its success with headers and example, and each refusal with its codes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::examples::Example;
use crate::http::answer::{LONGEST_RATE_RETRY_S, LONGEST_RETRY_S, Problem};
use crate::http::request_id::RequestId;

/// Adds to the success of an operation what its annotation can't say.
pub(super) fn success(answer: &mut Value, is_authenticated: bool, replays: bool, examples: Vec<Example>) {
    let mut headers = headers_of(is_authenticated);
    if replays {
        headers.insert("Idempotent-Replayed".into(), header("Idempotent-Replayed"));
    }
    answer["headers"] = headers.into();
    if let Some(content) = answer.pointer_mut("/content/application~1json") {
        content["examples"] = named(examples);
    }
}

pub(super) fn named(examples: Vec<Example>) -> Value {
    let entries = examples
        .into_iter()
        .map(|example| (example.name.to_owned(), json!({ "summary": example.summary, "value": example.value })));
    Value::Object(entries.collect())
}

/// All that an operation may refuse, by status.
pub(super) fn refusals(problems: &[Problem], is_authenticated: bool, replays: bool) -> BTreeMap<u16, Value> {
    let mut by_status: BTreeMap<u16, Vec<&Problem>> = BTreeMap::new();
    for problem in problems {
        by_status.entry(problem.status.as_u16()).or_default().push(problem);
    }
    let response =
        |(status, problems): (u16, Vec<&Problem>)| (status, refusal(status, &problems, is_authenticated, replays));
    by_status.into_iter().map(response).collect()
}

/// The name of a refusal that is the same wherever it is given; the others tell of one operation.
pub(super) fn shared_name(status: u16, is_authenticated: bool, replays: bool) -> Option<String> {
    let name = match status {
        401 => "Unauthorized",
        408 => "BodyTimedOut",
        413 => "BodyTooLarge",
        415 => "BodyNotJson",
        429 if replays => "TooManyRequestsOrKeyInUse",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "Unavailable",
        _ => return None,
    };
    Some(if is_authenticated { name.to_owned() } else { format!("{name}WithoutKey") })
}

fn refusal(status: u16, problems: &[&Problem], is_authenticated: bool, replays: bool) -> Value {
    let mut codes: Vec<&str> = Vec::new();
    for problem in problems {
        if !codes.contains(&&*problem.code) {
            codes.push(&problem.code);
        }
    }
    let examples: Map<String, Value> = problems
        .iter()
        .map(|problem| (problem.code.to_string(), json!({ "summary": problem.code, "value": envelope(problem) })))
        .collect();
    let mut headers = headers_of(is_authenticated && status != 401);
    match status {
        401 => drop(headers.insert("WWW-Authenticate".into(), header("WWW-Authenticate"))),
        429 => drop(headers.insert("Retry-After".into(), header("Retry-After-429"))),
        503 => drop(headers.insert("Retry-After".into(), header("Retry-After-503"))),
        400 | 404 if replays => drop(headers.insert("Idempotent-Replayed".into(), header("Idempotent-Replayed"))),
        _ => {}
    }
    json!({
        "description": meaning(status),
        "headers": headers,
        "content": { "application/json": {
            "schema": { "allOf": [
                { "$ref": "#/components/schemas/Error" },
                { "type": "object", "properties": { "code": { "type": "string", "enum": codes } } },
            ] },
            "examples": examples,
        } },
    })
}

/// The very answer, with a request id that stays the same.
fn envelope(problem: &Problem) -> Value {
    let answer = problem.answer(&RequestId::new());
    let mut envelope: Value = serde_json::from_slice(&answer.body).expect("an envelope is JSON");
    envelope["request_id"] = "req_01h455vb4pex5vsknk084sn02q".into();
    envelope
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request is invalid, or the state of the object forbids it.",
        401 => "No valid credential.",
        403 => "The credential may not do this.",
        404 => "Nothing here by that id. Objects of another organization or mode answer the same.",
        408 => "The body did not arrive in time.",
        413 => "The body is larger than 1 MB.",
        415 => "The body is not JSON.",
        429 => "Too many requests: wait as long as `Retry-After` says.",
        500 => "Something broke on our side. Safe to repeat with an idempotency key.",
        503 => "The service can't answer or write right now; nothing was changed. Try again.",
        other => unreachable!("no operation answers {other}"),
    }
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn headers_of(is_authenticated: bool) -> Map<String, Value> {
    let budget: &[&str] = match is_authenticated {
        true => &["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        false => &[],
    };
    ["X-Request-Id"].iter().chain(budget).map(|name| ((*name).to_owned(), header(name))).collect()
}

/// Each header once, for all responses.
pub(super) fn headers() -> Value {
    let whole = json!({ "type": "integer", "minimum": 0 });
    let wait = |longest: u64| {
        json!({
            "description": "Seconds to wait before the next try.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1, "maximum": longest },
        })
    };
    json!({
        "X-Request-Id": {
            "description": "Names this request, in our log too. Quote it when you ask.",
            "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9a-hjkmnp-tv-z]{26}$" },
        },
        "Idempotent-Replayed": {
            "description": "`true`: this answer was given before, to the first request with this idempotency key.",
            "schema": { "type": "string", "enum": ["true"] },
        },
        "RateLimit-Limit": { "description": "How many requests may come at once. Absent where no limit is set.", "schema": whole },
        "RateLimit-Remaining": { "description": "How many may come right now.", "schema": whole },
        "RateLimit-Reset": { "description": "Seconds until the whole limit is there again.", "schema": whole },
        "Retry-After-429": wait(LONGEST_RATE_RETRY_S),
        "Retry-After-503": wait(LONGEST_RETRY_S),
        "WWW-Authenticate": { "description": "How to authenticate.", "schema": { "type": "string", "enum": ["Bearer"] } },
    })
}
