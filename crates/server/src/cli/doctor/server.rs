//! Whether this service answers at its public address, and which time it is there.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use http::header;
use jiff::fmt::rfc2822;
use serde_json::Value;

use super::clock::Asked;
use super::report::{Check, Finding};
use super::within;
use crate::cli::client::{cause, http_client};
use crate::clock::{Clock as _, SystemClock};
use crate::config::{SET_PUBLIC_URL, ServeSettings, host_of};

const NAME: &str = "server";
const SECOND_US: i64 = 1_000_000;
/// Nobody's answer to this question is longer.
const LONGEST_ANSWER: usize = 64 * 1024;

pub(super) async fn ask(settings: &ServeSettings, address: &str, limit: Duration) -> (Check, Option<Asked>) {
    let unreachable = settings.unreachable_address(settings.listen);
    let mut findings: Vec<Finding> = unreachable.into_iter().map(|why| Finding::warning(why, SET_PUBLIC_URL)).collect();
    // Port 0 is a free one, which only the server knows.
    if address.ends_with(":0") {
        findings.push(Finding::ok("where it listens is known only once it runs, so nobody was asked"));
        return (Check::of(NAME, findings), None);
    }
    let mut date = None;
    let asked = async {
        findings.push(health(address, &mut date).await);
        findings
    };
    let check = within(limit, NAME, asked).await;
    (check, date)
}

async fn health(address: &str, date: &mut Option<Asked>) -> Finding {
    let client = match http_client() {
        Ok(client) => client,
        Err(problem) => return Finding::failed(problem.into_text(), "Install ca-certificates."),
    };
    let clock = SystemClock::new();
    let before_us = clock.now_us();
    let mut answer = match client.get(format!("{address}/health")).send().await {
        Ok(answer) => answer,
        Err(error) => {
            let next = "Start `dalasi serve`, or set public-url to where it is found; see `tls` too. From some networks a \
                        machine can't reach its own public address.";
            return Finding::warning(format!("{address} can't be reached from here: {}", cause(&error)), next);
        }
    };
    let said = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let said = said.and_then(|text| rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
    // One that runs here, or a proxy that does, goes by this very clock.
    let is_another = answer.remote_addr().is_some_and(|peer| !is_of_this_machine(peer.ip()));
    *date = said.filter(|_| is_another).map(|said| Asked {
        whose: host_of(address).unwrap_or_default(),
        before_us,
        after_us: clock.now_us(),
        said_us: said.as_second().saturating_mul(SECOND_US),
        unit_us: SECOND_US,
    });
    let status = answer.status();
    let mut body = Vec::new();
    while let Ok(Some(part)) = answer.chunk().await {
        body.extend_from_slice(&part);
        if body.len() > LONGEST_ANSWER {
            break;
        }
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match body.pointer("/data/status").and_then(Value::as_str) {
        Some("ok") if status.is_success() => Finding::ok(format!("{address} answers, and is well")),
        _ if body["code"].is_string() => Finding::failed(
            format!("{address} answers {status}: {}", body["error"].as_str().unwrap_or_default()),
            "See the log of `dalasi serve`, and what `database` says.",
        ),
        _ => Finding::failed(
            format!("{address} answers {status}, and not as Dalasi does"),
            "Check public-url, and where the proxy in front of it sends requests.",
        ),
    }
}

/// Nobody else's address can be taken.
pub(super) fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}
