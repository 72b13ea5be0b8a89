//! What is counted, for Prometheus. Labels are few and bounded: a route's template, never its address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::{
    Counter, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use domain::Timestamp;
use store::Store;

use crate::clock::CLOCK_JUMPS_METRIC;

const REQUESTS: &str = "dalasi_http_requests_total";
const DURATION: &str = "dalasi_http_request_duration_seconds";
const CONNECTIONS: &str = "dalasi_connections";
const CONNECTIONS_ACCEPTED: &str = "dalasi_connections_accepted_total";
const CONNECTIONS_REFUSED: &str = "dalasi_connections_refused_total";
const CONNECTIONS_CUT: &str = "dalasi_connections_cut_total";
const SHED: &str = "dalasi_requests_shed_total";
const RATE_LIMITED: &str = "dalasi_rate_limited_total";
const INVARIANT_FAULTS: &str = "dalasi_invariant_faults";
const INVARIANTS_CHECKED: &str = "dalasi_invariants_checked_timestamp_seconds";
const BACKLOG: &str = "dalasi_backlog_seconds";
const JOBS_FAILED: &str = "dalasi_jobs_failed_total";
const MAIL_SERVER_WORKED: &str = "dalasi_mail_server_worked_timestamp_seconds";
const MAIL_SERVER_FAILED: &str = "dalasi_mail_server_failed_timestamp_seconds";
const DATABASE_CALLS: &str = "dalasi_database_calls";
const LOG_LINES_DROPPED: &str = "dalasi_log_lines_dropped_total";

/// Why connections are refused or cut, and what is limited: each is counted from 0, so that the first one is an increase.
const REFUSALS: &[&str] = &["total", "address"];
const CUTS: &[&str] = &["tls_handshake", "first_byte", "header", "write", "unknown_outcome"];
const LIMITS: &[&str] = &["key", "visitor", "address", "endpoint_test"];
const FAILURES: &[&str] = &["500", "503"];
const SHED_KINDS: &[&str] = &["write", "other", "body", "answer", "stream"];

/// Seconds; from an answer out of memory to the longest that a client waits.
const DURATION_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Without anybody who asks for the figures, what was measured would pile up.
const UPKEEP: Duration = Duration::from_secs(5);

/// Sums up what was measured, now and then, for ever.
pub async fn keep_up() {
    loop {
        tokio::time::sleep(UPKEEP).await;
        install().0.run_upkeep();
    }
}

/// The process's one recorder; made on the first call.
pub fn install() -> &'static Metrics {
    static INSTALLED: OnceLock<Metrics> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let recorder = recorder();
        let metrics = Metrics(recorder.handle());
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed; ours stays empty");
        }
        describe();
        begin();
        metrics
    })
}

#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// The Prometheus text format, served as `text/plain; version=0.0.4`, with how things stand at the store.
    pub fn render(&self, store: &Store) -> String {
        database_calls(store.calls());
        self.text()
    }

    fn text(&self) -> String {
        self.0.run_upkeep();
        self.0.render()
    }
}

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(DURATION.into()), DURATION_BUCKETS)
        .expect("the list of buckets is not empty")
        .build_recorder()
}

fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by route template, method and status.");
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "Time from a request's headers to its answer's headers, by route template and method."
    );
    describe_gauge!(CONNECTIONS, "Connections open now.");
    describe_counter!(CONNECTIONS_ACCEPTED, "Connections accepted.");
    describe_counter!(
        CONNECTIONS_REFUSED,
        "Connections closed at once, by reason: total (too many in all) or address (too many from one address, or from the networks of one IPv6 /48)."
    );
    describe_counter!(
        CONNECTIONS_CUT,
        "Connections cut, by reason: tls_handshake, first_byte, header or write (the other side was too slow), or unknown_outcome (nobody knows whether what a request asked for was stored)."
    );
    describe_gauge!(
        INVARIANT_FAULTS,
        "Rows that the latest background check of the books found wrong, or merchants and modes whose refunds wait, if those are more; NaN until the first has ended or sees one, unless refunds wait. From workers only."
    );
    describe_gauge!(
        INVARIANTS_CHECKED,
        Unit::Seconds,
        "Unix time when the latest background check of the books ended; before the first, when the process started. From workers only."
    );
    describe_gauge!(
        BACKLOG,
        Unit::Seconds,
        "How long the oldest work that is due has been waiting, by queue: jobs, jobs_ahead (files that are made before somebody asks), jobs_aside (merchants' pictures, webhooks that are given up), jobs_timers (what runs out), jobs_test (what runs out, is paid and goes back in test mode), webhooks, mails, webhooks_test, mails_test (those of test mode), events (without a place in the log) or seals (ledger entries without a batch); while a worker can't look, as if nothing had been done since. From workers only."
    );
    describe_counter!(
        JOBS_FAILED,
        "Jobs that failed and are tried again later, at most an hour after each time; not those that only had to wait for the database. From workers only."
    );
    describe_gauge!(
        MAIL_SERVER_WORKED,
        Unit::Seconds,
        "Unix time when the mail server last took the sender of a mail, whatever it said of the recipient; 0 before the first. From workers only."
    );
    describe_gauge!(
        MAIL_SERVER_FAILED,
        Unit::Seconds,
        "Unix time when the mail server could last not be reached, or refused us; 0 before the first. From workers only."
    );
    describe_gauge!(DATABASE_CALLS, "Transactions that somebody waits for now, under way or in line for a connection.");
    describe_counter!(CLOCK_JUMPS_METRIC, "Jumps of the wall clock by more than a minute.");
    describe_counter!(
        LOG_LINES_DROPPED,
        "Log lines that were dropped because standard error took none for a while, or refused them."
    );
    describe_counter!(
        SHED,
        "Requests refused because as many were being worked on as can be, by kind: write (a program changes something), other, body (as many bytes of bodies were held as can be, in all or of one address), answer (as many of answers) or stream (as many requests were under way on connections of HTTP/2, in all or of one address)."
    );
    describe_counter!(
        RATE_LIMITED,
        "Requests refused for their rate, by what was limited: key, visitor (half of a publishable key, for one network), address or endpoint_test (too many tests of webhook endpoints at once)."
    );
}

/// What nothing has happened to yet is 0 and not absent.
fn begin() {
    counter!(CONNECTIONS_ACCEPTED).increment(0);
    gauge!(CONNECTIONS).increment(0.0);
    REFUSALS.iter().for_each(|reason| counter!(CONNECTIONS_REFUSED, "reason" => *reason).increment(0));
    CUTS.iter().for_each(|reason| counter!(CONNECTIONS_CUT, "reason" => *reason).increment(0));
    SHED_KINDS.iter().for_each(|kind| counter!(SHED, "kind" => *kind).increment(0));
    LIMITS.iter().for_each(|what| counter!(RATE_LIMITED, "limited" => *what).increment(0));
    counter!(CLOCK_JUMPS_METRIC).increment(0);
    counter!(LOG_LINES_DROPPED).increment(0);
    counter!(JOBS_FAILED).increment(0);
    // One that never worked is compared as well.
    gauge!(MAIL_SERVER_WORKED).set(0.0);
    gauge!(MAIL_SERVER_FAILED).set(0.0);
}

/// The counter and the times of the requests of one route that got one status.
struct Answered {
    method: &'static str,
    status: u16,
    count: Counter,
    duration: Histogram,
}

thread_local! {
    /// By route. To find them by their labels costs more than to count.
    static ANSWERED: RefCell<HashMap<String, Vec<Answered>>> = RefCell::default();
}

pub fn request_answered(route: &str, method: &http::Method, status: u16, elapsed: Duration) {
    let method = known(method);
    ANSWERED.with_borrow_mut(|routes| {
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Vec::new());
        }
        let answered = routes.get_mut(route).expect("it was inserted above");
        let place = answered.iter().position(|it| it.status == status && it.method == method).unwrap_or_else(|| {
            let count =
                counter!(REQUESTS, "route" => route.to_owned(), "method" => method, "status" => status.to_string());
            let duration = histogram!(DURATION, "route" => route.to_owned(), "method" => method);
            // So that the first failure of a route that has answered before is an increase.
            for failure in FAILURES.iter().filter(|_| answered.iter().all(|it| it.method != method)) {
                counter!(REQUESTS, "route" => route.to_owned(), "method" => method, "status" => *failure).increment(0);
            }
            answered.push(Answered { method, status, count, duration });
            answered.len() - 1
        });
        answered[place].count.increment(1);
        answered[place].duration.record(elapsed);
    });
}

/// A client may invent verbs; a label may not.
pub(crate) fn known(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// One more, of those that are counted from 0.
fn count(what: &'static str, label: &'static str, known: &[&str], value: &'static str) {
    debug_assert!(known.contains(&value), "{what} is not counted from 0 where {label} is {value}");
    counter!(what, label => value).increment(1);
}

pub fn connection_opened() {
    counter!(CONNECTIONS_ACCEPTED).increment(1);
    gauge!(CONNECTIONS).increment(1.0);
}

pub fn connection_closed() {
    gauge!(CONNECTIONS).decrement(1.0);
}

pub fn connection_refused(reason: &'static str) {
    count(CONNECTIONS_REFUSED, "reason", REFUSALS, reason);
}

pub fn connection_cut(reason: &'static str) {
    count(CONNECTIONS_CUT, "reason", CUTS, reason);
}

/// There will be a background check, and none has ended: how many faults there are is not known, which is not 0.
pub fn invariants_unknown(now: Timestamp) {
    gauge!(INVARIANT_FAULTS).set(f64::NAN);
    invariants_ended(now);
}

/// A background check has come to its end.
pub fn invariants_ended(now: Timestamp) {
    gauge!(INVARIANTS_CHECKED).set(unix_time(now));
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float, which holds seconds of any year")]
fn unix_time(now: Timestamp) -> f64 {
    now.seconds() as f64
}

/// The background check has found so many faults, to its end or so far.
pub fn invariants_checked(faults: u64) {
    // A count beyond 2^53 loses its last digits, and nobody counts them.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    gauge!(INVARIANT_FAULTS).set(faults as f64);
}

/// The oldest work of a queue that is due has waited so long.
pub fn backlog(queue: &'static str, late: Duration) {
    gauge!(BACKLOG, "queue" => queue).set(late.as_secs_f64());
}

/// A job failed in a way that does not pass by itself.
pub fn job_failed() {
    counter!(JOBS_FAILED).increment(1);
}

/// A conversation with the mail server came as far as a recipient, or ended before that.
pub fn mail_server_spoken_to(now: Timestamp, has_worked: bool) {
    gauge!(if has_worked { MAIL_SERVER_WORKED } else { MAIL_SERVER_FAILED }).set(unix_time(now));
}

/// So many transactions are waited for.
fn database_calls(calls: usize) {
    // There are never so many that a float would not hold their number.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    gauge!(DATABASE_CALLS).set(calls as f64);
}

pub fn request_shed(kind: &'static str) {
    count(SHED, "kind", SHED_KINDS, kind);
}

pub fn rate_limited(what: &'static str) {
    count(RATE_LIMITED, "limited", LIMITS, what);
}

pub fn log_lines_dropped(count: u64) {
    counter!(LOG_LINES_DROPPED).increment(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_what_happened_with_help_texts() {
        let recorder = recorder();
        let metrics = Metrics(recorder.handle());
        metrics::with_local_recorder(&recorder, || {
            describe();
            let verb = http::Method::from_bytes(b"BREW").expect("a token");
            request_answered("/v1/checkouts/{id}", &http::Method::GET, 200, Duration::from_millis(3));
            request_answered("unmatched", &verb, 404, Duration::ZERO);
            connection_opened();
            connection_refused("total");
            connection_cut("header");
            rate_limited("key");
            request_shed("write");
            log_lines_dropped(1);
            job_failed();
            mail_server_spoken_to(Timestamp::from_micros(1_800_000_000_000_000), false);
            connection_closed();
        });
        let text = metrics.text();
        for line in [
            "dalasi_http_requests_total{route=\"/v1/checkouts/{id}\",method=\"GET\",status=\"200\"} 1",
            "dalasi_http_requests_total{route=\"/v1/checkouts/{id}\",method=\"GET\",status=\"500\"} 0",
            "dalasi_http_requests_total{route=\"/v1/checkouts/{id}\",method=\"GET\",status=\"503\"} 0",
            "dalasi_http_requests_total{route=\"unmatched\",method=\"other\",status=\"404\"} 1",
            "dalasi_http_request_duration_seconds_bucket{route=\"/v1/checkouts/{id}\",method=\"GET\",le=\"0.005\"} 1",
            "dalasi_connections 0",
            "dalasi_rate_limited_total{limited=\"key\"} 1",
            "dalasi_jobs_failed_total 1",
            "dalasi_mail_server_failed_timestamp_seconds 1800000000",
            "dalasi_connections_cut_total{reason=\"header\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        for name in [
            REQUESTS,
            DURATION,
            CONNECTIONS,
            CONNECTIONS_ACCEPTED,
            CONNECTIONS_REFUSED,
            CONNECTIONS_CUT,
            RATE_LIMITED,
            SHED,
            LOG_LINES_DROPPED,
            JOBS_FAILED,
            MAIL_SERVER_FAILED,
        ] {
            assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help text");
        }
    }
}
