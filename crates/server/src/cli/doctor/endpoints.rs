//! Whether the receivers of webhooks can be reached, by the way that deliveries take, and what became of deliveries. Nothing is sent.

use std::time::Duration;

use domain::webhook::{DisableReason, WebhookEndpoint};
use futures_util::{StreamExt as _, stream};
use url::Url;

use super::report::{Finding, Status};
use crate::app::delivery_places::is_failing;
use crate::egress::{Egress, EgressSettings, Failure, FailureKind};

const AT_ONCE: usize = 16;
/// A receiver that takes longer to take a connection would be late with its answers as well.
const LONGEST: Duration = Duration::from_secs(5);

pub(super) async fn look(
    endpoints: Vec<WebhookEndpoint>,
    disabled: &[WebhookEndpoint],
    allow_loopback: bool,
    limit: Duration,
) -> Vec<Finding> {
    let of_disabled_ones = disabled.iter().map(of_disabled);
    if endpoints.is_empty() {
        return std::iter::once(Finding::ok("no webhook endpoint is enabled")).chain(of_disabled_ones).collect();
    }
    let told: Vec<Finding> =
        endpoints.iter().filter(|it| is_failing(it)).map(of_failing).chain(of_disabled_ones).collect();
    let timeout = LONGEST.min(limit);
    let egress = Egress::new(EgressSettings { allow_loopback, timeout, ..EgressSettings::default() });
    let all = endpoints.len();
    let reached = stream::iter(endpoints).map(|endpoint| reach(&egress, endpoint)).buffer_unordered(AT_ONCE);
    // A little earlier than the check's end, so that what was found is told.
    let looked: Vec<Result<(), Finding>> = reached.take_until(tokio::time::sleep(limit.mul_f32(0.9))).collect().await;
    let (in_time, reachable) = (looked.len(), looked.iter().filter(|reached| reached.is_ok()).count());
    let mut findings: Vec<Finding> = looked.into_iter().filter_map(Result::err).collect();
    if reachable > 0 {
        findings.insert(0, Finding::ok(format!("{reachable} of {all} enabled endpoints take a connection")));
    }
    if in_time < all {
        let found = format!("in part: there was no time for {} of {all} endpoints", all - in_time);
        findings.push(Finding::warning(found, "--time-limit looks longer."));
    }
    findings.extend(told);
    findings
}

/// Mail tells their merchant, where there is an address and a mail server; a look is never too late.
fn of_disabled(endpoint: &WebhookEndpoint) -> Finding {
    let why = match endpoint.disable_reason {
        Some(DisableReason::Gone) => "its receiver answered 410",
        Some(DisableReason::Failing) | None => "nothing had arrived for five days",
    };
    let since = endpoint.disabled_at.map(|at| format!(" on {}", at.to_text())).unwrap_or_default();
    Finding::warning(
        format!("{}: switched off{since}, because {why}; it is told of nothing", name(endpoint)),
        "When its receiver is mended, make the endpoint active and retry the events that failed; or delete it.",
    )
}

fn of_failing(endpoint: &WebhookEndpoint) -> Finding {
    let since = endpoint.failing_since.map(|at| format!(" since {}", at.to_text())).unwrap_or_default();
    Finding::warning(
        format!("{}: nothing has arrived{since}, in {} tries", name(endpoint), endpoint.consecutive_failures),
        "What its receiver answered is `last_error` of its events' deliveries. After five days it is switched off.",
    )
}

/// Its host only: what stands behind may be a password of the merchant's.
fn name(endpoint: &WebhookEndpoint) -> String {
    let host = Url::parse(&endpoint.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    format!("{} ({}, {host})", endpoint.id, endpoint.scope.mode)
}

async fn reach(egress: &Egress, endpoint: WebhookEndpoint) -> Result<(), Finding> {
    let mode = endpoint.scope.mode;
    let connected = async {
        let url: Url = egress
            .check_url(&endpoint.url, mode.is_live())
            .map_err(|fault| Failure { kind: FailureKind::Forbidden, message: fault.message })?;
        egress.connect(&url, mode.is_live()).await
    };
    connected.await.map_err(|failure: Failure| {
        let found = format!("{}: {}", name(&endpoint), failure.message);
        let status = match failure.kind {
            // No waiting mends it.
            FailureKind::Forbidden => Status::Failed,
            // A developer's receiver is there when it is needed.
            _ if !mode.is_live() => Status::Warning,
            _ => Status::Failed,
        };
        Finding::of(status, found, next(failure.kind))
    })
}

fn next(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Forbidden => {
            "Give the endpoint a public https address, or disable it. A receiver on this machine, in test mode: \
             --allow-loopback-webhooks."
        }
        FailureKind::Dns => "Check the name, and whether this machine's name server answers.",
        FailureKind::Tls => {
            "The receiver needs a certificate for its name, with the chain that leads to a public authority."
        }
        FailureKind::Timeout | FailureKind::Refused | FailureKind::Other => {
            "See whether the receiver runs and lets this machine in; what it is owed is tried for about three days."
        }
    }
}
