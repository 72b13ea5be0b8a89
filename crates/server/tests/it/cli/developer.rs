//! `listen`, `trigger` and `logs tail`: what a developer sees without a public address.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use dalasi::monotonic;
use serde_json::Value;
use tokio::net::TcpListener;

use super::on_both;
use super::place::{Place, Ran, text};
use super::server::{Receiver, Server};

on_both!(
    what_happens_is_forwarded_signed_and_in_order,
    what_happens_is_shown_without_a_receiver,
    an_event_is_sent_again,
    the_events_of_some_time_are_sent_again,
);

async fn what_happens_is_forwarded_signed_and_in_order(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    let endpoint = Receiver::start().await;
    let body = serde_json::json!({ "url": endpoint.url, "enabled_events": ["*"] });
    assert_eq!(server.call("POST", "/v1/webhook_endpoints", key, body).await.0, 201);
    // Before `listen` began: not forwarded.
    let before = trigger(place, &server, key, "checkout.cancelled");

    let forwarded = Receiver::start().await;
    let mut listen = place.command(&["listen", "--forward-to", &forwarded.url, "--json"]);
    listen.env("DALASI_API_KEY", key).env("DALASI_API_URL", &server.url);
    let mut listening = listen.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(listening.stderr.take().unwrap()).lines();
    let told = messages.next().unwrap().unwrap();
    let secret = told.strip_prefix("signing secret: ").unwrap();
    assert!(messages.next().unwrap().unwrap().starts_with("Forwarding test mode's events"), "and from now on");
    let printed = piped(place, &["listen", "--print-secret", "--key-file", "-"], key);
    assert_eq!((printed.code, printed.data.trim_end(), printed.messages.as_str()), (0, secret, ""), "{printed:?}");
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    // An event is on each, and nothing else is.
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };

    let mut events = Vec::new();
    for wanted in ["checkout.completed", "payment.failed", "checkout.cancelled"] {
        let told = trigger(place, &server, key, wanted);
        assert!(told.iter().any(|(_, kind)| kind == wanted), "{told:?}");
        events.extend(told);
    }
    let verifier = standardwebhooks::Webhook::new(secret).unwrap();
    let got = forwarded.until(events.len()).await;
    let delivered = endpoint.until(before.len() + events.len()).await;
    for ((headers, body), (id, kind)) in got.iter().zip(&events) {
        assert!(verifier.verify(body, headers).is_ok());
        assert_eq!(
            (headers["webhook-id"].to_str().unwrap(), headers["x-jokoor-event"].to_str().unwrap()),
            (&**id, &**kind)
        );
        // The same bytes as an endpoint gets.
        let same = delivered.iter().find(|(headers, _)| headers["webhook-id"] == **id).unwrap();
        assert_eq!(body, &same.1);
        let line = next();
        assert_eq!((text(&line, "/id"), &line["status"]), (&**id, &200.into()));
    }
    assert_eq!(got.len(), events.len());
    listening.kill().unwrap();
    listening.wait().unwrap();
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
}

async fn what_happens_is_shown_without_a_receiver(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let mut listen = place.command(&["listen", "--events", "checkout.*"]);
    listen.env("DALASI_API_KEY", key).env("DALASI_API_URL", &server.url);
    let mut listening = listen.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(listening.stderr.take().unwrap()).lines();
    assert!(messages.next().unwrap().unwrap().starts_with("Showing test mode's events"), "and from now on");
    let told = trigger(place, &server, key, "checkout.completed");
    let (id, _) = told.iter().find(|(_, kind)| kind == "checkout.completed").unwrap();
    let mut lines = BufReader::new(listening.stdout.take().unwrap()).lines();
    let shown = lines.next().unwrap().unwrap();
    assert!(
        shown.contains("  checkout.completed  cs_") && shown.ends_with(&**id),
        "nothing else was asked for: {shown}"
    );
    listening.kill().unwrap();
    listening.wait().unwrap();
    assert_eq!(server.stop(), 0);
}

/// As pages of large events are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_page_is_not_the_last() {
    const MANY: usize = 20;
    let one = async |uri: Uri| {
        let query = uri.query().unwrap_or_default();
        let after: usize = query.split_once("after=evt_").map_or(0, |(_, number)| number.parse().unwrap());
        let event = serde_json::json!({
            "id": format!("evt_{}", after + 1), "type": "checkout.cancelled", "data": {}, "livemode": false,
            "object_id": "cs_1", "sequence": after + 1, "created_at": "2026-11-22T08:00:00.000000Z"
        });
        // There was nothing before it began to listen.
        let is_before = query == "limit=1";
        let items = if is_before || after == MANY { Vec::new() } else { vec![event] };
        serde_json::json!({ "data": { "items": items, "has_more": !is_before && after + 1 < MANY } }).to_string()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(one)).await });
    let place = Place::sqlite();
    let (keys, forwarded) = (place.init(), Receiver::start().await);
    let mut listen = place.command(&["listen", "--forward-to", &forwarded.url, "--api-url", &url]);
    listen.env("DALASI_API_KEY", text(&keys, "/keys/test/secret"));
    let mut listening = listen.stdout(Stdio::null()).spawn().unwrap();
    forwarded.until(1).await;
    let since = monotonic::now();
    let got = forwarded.until(MANY).await.len();
    let took = monotonic::now() - since;
    listening.kill().unwrap();
    listening.wait().unwrap();
    assert_eq!(got, MANY, "each once");
    assert!(took < Duration::from_secs(3), "it rested between pages: {took:?}");
}

/// A clock ran ahead for a while: what happened since is older by its id than what happened then, and behind it in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_before_is_not_told_after_a_clock_ran_ahead() {
    let looks = Arc::new(AtomicUsize::new(0));
    let log = async move |uri: Uri| {
        let query = uri.query().unwrap_or_default();
        let (ids, has_more): (&[&str], bool) = match query.split_once("after=").map(|(_, after)| after) {
            None if query == "limit=1" => (&["evt_ahead"], true),
            None => (&["evt_ahead", "evt_before"], true),
            Some("evt_ahead") => (&["evt_before"], true),
            // There is nothing more when it begins to listen.
            Some("evt_before") if looks.fetch_add(1, Ordering::Relaxed) == 0 => (&[], false),
            Some("evt_before") => (&["evt_now"], false),
            Some(_) => (&[], false),
        };
        let event = |id: &&str| {
            serde_json::json!({
                "id": id, "type": "checkout.cancelled", "data": {}, "livemode": false, "object_id": "cs_1",
                "sequence": 1, "created_at": "2026-11-22T08:00:00.000000Z"
            })
        };
        let items: Vec<Value> = ids.iter().map(event).collect();
        serde_json::json!({ "data": { "items": items, "has_more": has_more } }).to_string()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(log)).await });
    let place = Place::sqlite();
    let (keys, forwarded) = (place.init(), Receiver::start().await);
    let mut listen = place.command(&["listen", "--forward-to", &forwarded.url, "--api-url", &url]);
    listen.env("DALASI_API_KEY", text(&keys, "/keys/test/secret"));
    let mut listening = listen.stdout(Stdio::null()).spawn().unwrap();
    let got = forwarded.until(1).await;
    listening.kill().unwrap();
    listening.wait().unwrap();
    let ids: Vec<&str> = got.iter().map(|(headers, _)| headers["webhook-id"].to_str().unwrap()).collect();
    assert_eq!(ids, ["evt_now"]);
}

async fn an_event_is_sent_again(place: &Place) {
    let keys = place.init();
    let (key, live) = (text(&keys, "/keys/test/secret"), text(&keys, "/keys/live/secret"));
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    let told = trigger(place, &server, key, "checkout.cancelled");
    let (id, _) = &told[0];
    let resend = |key: &str, more: &[&str]| {
        let mut command = place.command(&[&["events", "resend"], more].concat());
        Ran::of(command.env("DALASI_API_KEY", key).env("DALASI_API_URL", &server.url).output().unwrap())
    };
    let nobody = resend(key, &[id]);
    assert_eq!((nobody.code, nobody.data.as_str()), (5, ""), "no endpoint wants it: {nobody:?}");
    assert!(nobody.messages.contains("endpoint"), "{nobody:?}");

    let endpoint = Receiver::start().await;
    let body = serde_json::json!({ "url": endpoint.url, "enabled_events": ["*"] });
    assert_eq!(server.call("POST", "/v1/webhook_endpoints", key, body).await.0, 201);
    let again = resend(key, &[id]);
    assert_eq!(again.code, 0, "{again:?}");
    let cells: Vec<&str> = again.data.trim_end().split('\t').collect();
    assert!(matches!(cells[..], [name, "pending", "0"] if name.starts_with("we_")), "{again:?}");
    endpoint.until(1).await;
    let again = resend(key, &[id, "--json"]);
    let answer: Value = serde_json::from_str(&again.data).unwrap();
    assert_eq!((text(&answer, "/id"), text(&answer, "/type")), (&**id, "checkout.cancelled"));
    let got = endpoint.until(2).await;
    assert!(got.iter().all(|(headers, _)| headers["webhook-id"] == **id), "the same event twice");

    for (key, arguments, code) in [
        (key, &["evt_01h455vb4pex5vsknk084sn02q"] as &[&str], 4),
        (key, &["../checkouts"], 4),
        (live, &[id], 2),
        (key, &[id, "--live"], 3),
        (live, &[id, "--live"], 4),
    ] {
        let refused = resend(key, arguments);
        assert_eq!((refused.code, refused.data.as_str()), (code, ""), "{arguments:?}: {refused:?}");
    }
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
}

async fn the_events_of_some_time_are_sent_again(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    // More than one page of the list, and than a key may ask for in a second.
    const MANY: usize = 130;
    let mut cancelled = BTreeSet::new();
    for _ in 0..MANY {
        let (_, made) = server.call("POST", "/v1/checkouts", key, serde_json::json!({ "amount": "1.00" })).await;
        let path = format!("/v1/checkouts/{}/cancel", text(&made, "/data/id"));
        assert_eq!(server.call("POST", &path, key, Value::Null).await.0, 200);
        cancelled.insert(text(&made, "/data/id").to_owned());
        tokio::time::sleep(Duration::from_millis(12)).await;
    }
    let url = server.url.clone();
    let resend = |more: &[&str]| {
        let mut command = place.command(&[&["events", "resend"], more].concat());
        Ran::of(command.env("DALASI_API_KEY", key).env("DALASI_API_URL", &url).output().unwrap())
    };
    let all: &[&str] = &["--since", "2020-01-01", "--yes"];
    let nobody = resend(all);
    assert_eq!((nobody.code, nobody.data.as_str()), (5, ""), "{nobody:?}");
    assert!(nobody.messages.contains("no active endpoint wants any of 130 events"), "{nobody:?}");

    // What happened before an endpoint was there is nothing that it missed; times are told to the second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let endpoint = Receiver::start().await;
    let body = serde_json::json!({ "url": endpoint.url, "enabled_events": ["checkout.*"] });
    let (status, made) = server.call("POST", "/v1/webhook_endpoints", key, body).await;
    assert_eq!(status, 201);
    let endpoint_path = format!("/v1/webhook_endpoints/{}", text(&made, "/data/id"));
    for (arguments, code) in [
        (&["--since", "2020-01-01"] as &[&str], 2),
        (&["--since", "yesterday", "--yes"], 2),
        (&["--since", "2020-01-01", "--until", "soon", "--yes"], 2),
        (&["--since", "2020-01-01", "--type", "checkout.lost", "--yes"], 2),
        (&["--until", "2020-01-01", "--yes"], 2),
        (&["evt_01h455vb4pex5vsknk084sn02q", "--since", "2020-01-01"], 2),
        (&[], 2),
        (&["--since", "2020-01-01", "--until", "2020-01-31", "--yes"], 0),
        (&["--since", "2020-01-01", "--missed", "--yes"], 0),
        (&["--since", "2020-01-01", "--type", "checkout.completed", "--yes"], 0),
    ] {
        let ran = resend(arguments);
        assert_eq!((ran.code, ran.data.as_str()), (code, ""), "{arguments:?}: {ran:?}");
    }
    assert_eq!(endpoint.until(0).await.len(), 0, "none of those sent anything");

    let again = resend(&[all, &["--type", "checkout.cancelled"]].concat());
    assert_eq!(again.code, 0, "{again:?}");
    let rows: Vec<Vec<&str>> = again.data.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), MANY, "{again:?}");
    assert!(rows.is_sorted_by_key(|row| row[2]), "the oldest first: {again:?}");
    let got = endpoint.until(MANY).await;
    let told: BTreeSet<String> = got
        .iter()
        .map(|(_, body)| {
            let body: Value = serde_json::from_slice(body).unwrap();
            text(&body, "/data/id").to_owned()
        })
        .collect();
    assert_eq!(told, cancelled);
    let again = resend(&[all, &["--json"]].concat());
    let answer: Value = serde_json::from_str(&again.data).unwrap_or_else(|_| panic!("{again:?}"));
    assert_eq!((answer["events"].as_array().map(Vec::len), &answer["unwanted"]), (Some(MANY), &0.into()));
    endpoint.until(2 * MANY).await;

    let switch = async |status: &str| {
        assert_eq!(server.call("PATCH", &endpoint_path, key, serde_json::json!({ "status": status })).await.0, 200);
    };
    switch("inactive").await;
    let missed: BTreeSet<String> =
        (0..3).map(|_| trigger(place, &server, key, "checkout.cancelled")[0].0.clone()).collect();
    switch("active").await;
    let told = trigger(place, &server, key, "checkout.cancelled");
    endpoint.until(2 * MANY + 1).await;
    let again = resend(&["--since", "2020-01-01", "--missed", "--yes"]);
    assert_eq!(again.code, 0, "{again:?}");
    let sent: BTreeSet<String> = again.data.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(sent, missed, "and not {told:?}");
    endpoint.until(2 * MANY + 4).await;
    assert_eq!(resend(&["--since", "2020-01-01", "--missed", "--yes"]).data, "", "now it has them");
    assert_eq!(server.stop(), 0);
    assert_eq!(endpoint.got().len(), 2 * MANY + 4, "and nothing was sent that nobody asked for");
    let begun = monotonic::now();
    let away = resend(all);
    assert_eq!((away.code, away.data.as_str()), (1, ""), "{away:?}");
    assert!(away.messages.contains("can't be reached") && begun.elapsed() < Duration::from_secs(15), "{away:?}");
    place.has_clean_books();
}

/// The ids and types that `trigger` tells.
fn trigger(place: &Place, server: &Server, key: &str, wanted: &str) -> Vec<(String, String)> {
    let ran = piped(place, &["trigger", wanted, "--json", "--api-url", &server.url], key);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.data).unwrap();
    let events = answer["events"].as_array().unwrap().clone();
    events.iter().map(|event| (text(event, "/id").to_owned(), text(event, "/type").to_owned())).collect()
}

/// The key comes by standard input.
fn piped(place: &Place, arguments: &[&str], key: &str) -> Ran {
    let mut command = place.command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// As under a supervisor or in a shell's loop, where nobody types anything and nothing ends.
#[test]
fn a_key_that_is_waited_for_is_asked_for() {
    let place = Place::sqlite();
    let mut command = place.command(&["listen"]);
    let mut waiting = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let input = waiting.stdin.take();
    let (lines, said) = mpsc::channel();
    let messages = BufReader::new(waiting.stderr.take().unwrap());
    std::thread::spawn(move || messages.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let first = said.recv_timeout(Duration::from_secs(20));
    drop(input);
    assert_eq!(waiting.wait().unwrap().code(), Some(3));
    let first = first.expect("it says what it waits for");
    assert!(first.contains("from standard input") && first.contains("DALASI_API_KEY"), "{first}");

    let mut unreadable = place.command(&["listen"]);
    let unreadable = Ran::of(unreadable.env("DALASI_API_KEY", OsStr::from_bytes(b"sk_test_\xff")).output().unwrap());
    assert_eq!((unreadable.code, unreadable.data.as_str()), (3, ""), "{unreadable:?}");
    assert!(unreadable.messages.contains("DALASI_API_KEY holds"), "{unreadable:?}");
}

#[test]
fn a_caller_who_may_not_is_told_so() {
    let place = Place::sqlite();
    let keys = place.init();
    let server = Server::start(&place);
    let ask = |key: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        Ran::of(command.env("DALASI_API_KEY", key).env("DALASI_API_URL", &server.url).output().unwrap())
    };
    let narrow = place.json(&["keys", "create", "--scopes", "read:checkouts"]);
    let trigger: &[&str] = &["trigger", "checkout.completed"];
    let listen: &[&str] = &["listen", "--forward-to", "http://127.0.0.1:9"];
    let tail: &[&str] = &["logs", "tail"];
    for (key, arguments) in [
        ("", trigger),
        ("sk_test_nonsense", trigger),
        (text(&keys, "/keys/test/publishable"), trigger),
        (text(&keys, "/keys/live/secret"), trigger),
        (text(&narrow, "/secret"), trigger),
        (text(&narrow, "/secret"), listen),
        (text(&narrow, "/secret"), tail),
        (text(&keys, "/keys/test/publishable"), tail),
    ] {
        let refused = ask(key, arguments);
        assert_eq!((refused.code, refused.data.as_str()), (3, ""), "{refused:?}");
        assert!(key.is_empty() || !refused.messages.contains(key), "{refused:?}");
    }
    let key = text(&keys, "/keys/test/secret");
    // Live mode is meant with the key and the flag, or not at all.
    let narrow_live = place.json(&["keys", "create", "--live", "--scopes", "read:checkouts"]);
    let unmeant = ask(text(&narrow_live, "/secret"), listen);
    assert_eq!((unmeant.code, unmeant.data.as_str()), (2, ""), "{unmeant:?}");
    assert_eq!(ask(text(&narrow_live, "/secret"), tail).code, 2);
    let listen_live = &[listen, &["--live"]].concat();
    assert_eq!(ask(key, listen_live).code, 3);
    let refused = ask(text(&narrow_live, "/secret"), listen_live);
    assert!(refused.code == 3 && !refused.messages.contains("--live"), "the server refuses that key: {refused:?}");
    assert_eq!(ask(key, &["trigger", "invoice.paid"]).code, 2);
    for filter in ["--filter-status-code=wrong", "--filter-http-method=BREW", "--filter-request-path=checkouts"] {
        assert_eq!(ask(key, &[tail, &[filter]].concat()).code, 2, "{filter}");
    }
    assert_eq!(ask(key, &["listen", "--forward-to", "localhost:3000"]).code, 2);
    assert_eq!(ask(key, &["listen", "--forward-to", "http://localhost", "--print-secret"]).code, 2);
    assert_eq!(ask(key, &["listen", "--forward-to", "http://localhost", "--events", "all"]).code, 2);
    let url = server.url.clone();
    assert_eq!(server.stop(), 0);
    let mut gone = place.command(&["trigger", "checkout.completed", "--api-url", &url]);
    let gone = Ran::of(gone.env("DALASI_API_KEY", key).output().unwrap());
    assert_eq!(gone.code, 1);
    assert!(gone.messages.contains("dalasi serve"), "{gone:?}");
}
