//! The layers around a small router, called in process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Extension;
use axum::body::Body as HttpBody;
use axum::routing::{get, post};
use bytes::Bytes;
use domain::{Id, Mode, Scope, Timestamp};
use futures_util::StreamExt as _;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::sync::Notify;
use tower::ServiceExt;

use super::*;
use crate::error::Failure;
use crate::gate::{KeptAnyway, WhenFull};
use crate::http::answer::Answer;
use crate::http::body::{BodyRules, read_body};
use crate::http::fault::{Fault, FaultCode};
use crate::http::fields::Fields;
use crate::http::json::Body;
use crate::http::request_log::RequestLog;
use crate::listener::ClientAddress;

fn router() -> Router {
    let api = Router::new()
        .route("/things/{id}", get(async || Answer::ok(&"thing")).delete(async || Answer::no_content()))
        .route(
            "/things",
            post(async |id: RequestId, body: Body| {
                let mut f = Fields::new(&body);
                let name = f.text("name").max(5).required();
                let checked = f.finish()?;
                Ok::<_, Problem>(Answer::created(&(checked.of(name), id.as_str())))
            }),
        )
        .route("/panic", get(async || -> Answer { panic!("secret-value") }))
        .route("/broken", get(async || Err::<Answer, Problem>(Failure::Broken("the disk is gone".into()).into())))
        .layer(middleware::from_fn_with_state(BodyRules::JSON, read_body));
    wrap(api, EdgeSettings { is_https: true })
}

struct Reply {
    status: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Reply {
    fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.text).expect("JSON");
        assert_eq!(body["request_id"], self.headers["x-request-id"].to_str().expect("text"));
        assert!(body["error"].is_string());
        body["code"].as_str().expect("a code").to_owned()
    }
}

async fn send(request: http::request::Builder, body: impl Into<HttpBody>) -> Reply {
    let request = request.body(body.into()).expect("a request");
    let response = router().oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8(bytes.to_vec()).expect("text"),
    }
}

fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path)
}

#[tokio::test]
async fn every_answer_has_an_id_and_its_headers() {
    let reply = send(request("GET", "/things/1"), "").await;
    assert_eq!((reply.status, reply.text.as_str()), (200, r#"{"data":"thing"}"#));
    assert!(reply.headers["x-request-id"].to_str().expect("text").starts_with("req_"));
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers["x-content-type-options"], "nosniff");
    assert_eq!(reply.headers["cache-control"], "no-store");
    assert!(reply.headers["strict-transport-security"].to_str().expect("text").contains("63072000"));

    let reply = send(request("DELETE", "/things/1"), "").await;
    assert_eq!((reply.status, reply.text.as_str()), (204, ""));
    assert!(!reply.headers.contains_key("content-type"));
}

#[tokio::test]
async fn unknown_paths_and_verbs_are_in_the_envelope() {
    let reply = send(request("GET", "/nothing"), "").await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "route_not_found"));
    let reply = send(request("GET", "/things/"), "").await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "route_not_found"));
    let reply = send(request("PATCH", "/things/1"), "").await;
    assert_eq!((reply.status, reply.code().as_str()), (405, "method_not_allowed"));
    assert_eq!(reply.headers["allow"], "GET,HEAD,DELETE");
}

#[tokio::test]
async fn a_panic_is_a_500_that_says_nothing() {
    let reply = send(request("GET", "/panic"), "").await;
    assert_eq!((reply.status, reply.code().as_str()), (500, "internal_error"));
    assert!(!reply.text.contains("secret"));
}

#[tokio::test]
async fn an_outcome_that_nobody_knows_is_told_without_a_status() {
    let log = RequestLog::default();
    let at = Timestamp::from_micros(1_700_000_000_000_000);
    let scope = Scope { organization: Id::new(at, [1; 10]), mode: Mode::Test };
    let mut reader = log.follow(scope, Id::new(at, [2; 10])).expect("a place");
    let failing = |failure: Failure| {
        let log = log.clone();
        get(move |Extension(whose): Extension<Whose>| {
            log.note(scope, &whose);
            std::future::ready(Err::<Answer, Problem>(failure.into()))
        })
    };
    let router = Router::new()
        .route("/unknown", failing(Failure::Store(store::Error::UnknownCommit)))
        .route("/broken", failing(Failure::Broken("the disk is gone".into())));
    let router = wrap(router, EdgeSettings::default());
    for (path, told) in
        [("/unknown", serde_json::json!([null, null])), ("/broken", serde_json::json!([500, "internal_error"]))]
    {
        let request = request("GET", path).body(HttpBody::empty()).expect("a request");
        let response = router.clone().oneshot(request).await.expect("infallible");
        assert_eq!(response.extensions().get::<Unsayable>().is_some(), path == "/unknown");
        let line = reader.waiting().expect("a line");
        let line = line.strip_prefix(b"data: ").expect("its data");
        let line: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        assert_eq!(serde_json::json!([line["status"], line["code"]]), told);
    }
}

#[tokio::test]
async fn faults_are_details() {
    let reply = send(request("POST", "/things"), r#"{"name":"too long","b":1}"#).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "validation_failed"));
    let body: serde_json::Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(body["details"][0]["field"], "name");
    assert_eq!(body["details"][1]["code"], "unknown_field");
    let reply = send(request("POST", "/things"), r#"{"name":"#).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "invalid_json"));
}

#[tokio::test]
async fn an_empty_body_is_an_empty_object_whatever_its_label() {
    let empty = request("POST", "/things").header("content-type", "text/plain").header("content-length", "0");
    let reply = send(empty, "").await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "validation_failed"));
    assert!(reply.text.contains("`name` is required"));
}

#[tokio::test]
async fn the_media_type_is_json_or_missing() {
    for (header, value, status) in [
        ("content-type", "application/json", 201),
        ("content-type", "Application/JSON; charset=utf-8", 201),
        ("content-type", "application/problem+json", 201),
        ("accept", "*/*", 201),
        ("content-encoding", "identity", 201),
        ("content-type", "text/plain", 415),
        ("content-type", "application/x-www-form-urlencoded", 415),
        ("content-type", "application/jsonp", 415),
        ("content-encoding", "gzip", 415),
        ("content-encoding", "br", 415),
    ] {
        let reply = send(request("POST", "/things").header(header, value), r#"{"name":"a"}"#).await;
        assert_eq!(reply.status, status, "{header}: {value}");
        if status == 415 {
            assert_eq!(reply.code(), "unsupported_media_type");
        }
    }
}

/// `{"name":"a"}` with spaces up to a length.
fn padded(length: usize) -> String {
    let text = r#"{"name":"a"}"#;
    format!("{text}{}", " ".repeat(length - text.len()))
}

fn chunked(length: usize) -> HttpBody {
    let text = padded(length);
    let chunks: Vec<_> = text
        .as_bytes()
        .chunks(60_000)
        .map(|chunk| Ok::<_, std::io::Error>(Frame::data(Bytes::copy_from_slice(chunk))))
        .collect();
    HttpBody::new(StreamBody::new(futures_util::stream::iter(chunks)))
}

#[tokio::test]
async fn one_byte_over_the_limit_is_too_large_chunked_or_not() {
    let limit = BodyRules::JSON.most_bytes;
    for (body, status) in [
        (HttpBody::from(padded(limit)), 201),
        (HttpBody::from(padded(limit + 1)), 413),
        (chunked(limit), 201),
        (chunked(limit + 1), 413),
    ] {
        let reply = send(request("POST", "/things"), body).await;
        assert_eq!(reply.status, status);
        if status == 413 {
            assert_eq!(reply.code(), "body_too_large");
            assert!(!reply.headers.contains_key("retry-after"));
        }
    }
    // The length alone is enough; nothing is read.
    let claimed = request("POST", "/things").header("content-length", "99999999999");
    assert_eq!(send(claimed, "").await.status, 413);
}

#[tokio::test]
async fn a_connection_ends_where_a_body_was_not_read_to_its_end() {
    for (path, body, status, ends) in [
        ("/things", chunked(100), 201, false),
        ("/things", HttpBody::from("{"), 400, false),
        ("/things", chunked(3 << 20), 413, true),
        // Answered before anybody asked for the body.
        ("/nothing", chunked(100), 404, true),
        ("/nothing", HttpBody::empty(), 404, false),
    ] {
        let reply = send(request("POST", path), body).await;
        assert_eq!(reply.status, status);
        let ending = reply.headers.get("connection").map(|value| value.to_str().expect("text"));
        assert_eq!(ending, ends.then_some("close"), "{status}");
    }
    let stream = request("POST", "/nothing").version(http::Version::HTTP_2);
    assert!(!send(stream, chunked(100)).await.headers.contains_key("connection"), "HTTP/2 has no such header");
}

#[tokio::test]
async fn a_slow_body_is_a_timeout_and_a_broken_one_no_json() {
    for (kind, status, code) in [
        (std::io::ErrorKind::TimedOut, 408, "request_timeout"),
        (std::io::ErrorKind::ConnectionReset, 400, "invalid_json"),
    ] {
        let frames = futures_util::stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::from(kind))]);
        let reply = send(request("POST", "/things"), HttpBody::new(StreamBody::new(frames))).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code));
    }
}

#[tokio::test]
async fn long_addresses_and_large_headers_are_refused() {
    let long = format!("/things/{}", "x".repeat(8 * 1024));
    let reply = send(request("GET", &long), "").await;
    assert_eq!((reply.status, reply.code().as_str()), (414, "address_too_long"));
    let large = request("GET", "/things/1").header("x-large", "x".repeat(16 * 1024));
    let reply = send(large, "").await;
    assert_eq!((reply.status, reply.code().as_str()), (431, "headers_too_large"));
}

/// What is logged of a request, and its answer.
fn logged(request: http::request::Builder) -> (Reply, String) {
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl<'w> MakeWriter<'w> for Sink {
        type Writer = Self;
        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    let sink = Sink::default();
    let subscriber =
        tracing_subscriber::fmt().json().with_max_level(tracing::Level::TRACE).with_writer(sink.clone()).finish();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let reply = tracing::subscriber::with_default(subscriber, || runtime.block_on(send(request, "")));
    let text = String::from_utf8(sink.0.lock().expect("not poisoned").clone()).expect("text");
    (reply, text)
}

#[test]
fn the_access_line_has_the_template_and_no_token() {
    let (_, text) = logged(request("GET", "/things/secret-token?key=secret-key").header("authorization", "secret"));
    assert!(text.contains(r#""route":"/things/{id}""#), "{text}");
    assert!(text.contains(r#""status":200"#) && text.contains("req_"));
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn what_failed_is_logged_with_the_id_that_the_client_has() {
    let (reply, text) = logged(request("GET", "/broken"));
    assert_eq!((reply.status, reply.code().as_str()), (500, "internal_error"));
    assert!(!reply.text.contains("the disk"), "{}", reply.text);
    let line = text.lines().find(|line| line.contains("the disk is gone")).expect("why it failed is logged");
    assert!(line.contains(reply.headers["x-request-id"].to_str().expect("text")), "{line}");
}

#[tokio::test]
async fn more_than_can_be_worked_on_is_refused_and_payments_can_still_be_asked_for() {
    let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, waiting) = (Arc::clone(&begun), Arc::clone(&go_on));
    let slow = post(async move |_: Bytes| {
        counted.fetch_add(1, Ordering::Relaxed);
        waiting.notified().await;
        Answer::no_content()
    });
    let router = wrap(
        Router::new().route("/v1/slow", slow).route("/v1/read", get(async || Answer::no_content())),
        EdgeSettings::default(),
    );
    let ask = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(HttpBody::from("{}")).expect("a request");
        tokio::spawn(router.clone().oneshot(request))
    };
    let let_in: Vec<_> = (0..512).map(|_| ask("POST", "/v1/slow")).collect();
    while begun.load(Ordering::Relaxed) < let_in.len() {
        tokio::task::yield_now().await;
    }
    let refused = ask("POST", "/v1/slow").await.expect("no panic").expect("infallible");
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &HeaderValue::from_static("1")));
    assert_eq!(refused.headers()["access-control-allow-origin"], "*", "a shop's page may read that it is to wait");
    assert!(!refused.headers().contains_key("connection"), "its body was taken: the connection goes on");
    let slow_body = HttpBody::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let unfinished = Request::post("/v1/slow").body(slow_body).expect("a request");
    let cut_off = router.clone().oneshot(unfinished).await.expect("infallible");
    assert_eq!(
        (cut_off.status().as_u16(), &cut_off.headers()["connection"]),
        (503, &HeaderValue::from_static("close"))
    );
    let body: serde_json::Value =
        serde_json::from_slice(&refused.into_body().collect().await.expect("a body").to_bytes()).expect("JSON");
    assert_eq!(body["code"], "unavailable");
    assert_eq!(ask("GET", "/v1/read").await.expect("no panic").expect("infallible").status(), 204);
    go_on.notify_waiters();
    for answer in let_in {
        assert_eq!(answer.await.expect("no panic").expect("infallible").status(), 204);
    }
    let again = ask("POST", "/v1/slow");
    while begun.load(Ordering::Relaxed) < 513 {
        tokio::task::yield_now().await;
    }
    go_on.notify_waiters();
    assert_eq!(again.await.expect("no panic").expect("infallible").status(), 204);
}

#[tokio::test]
async fn a_slow_sender_keeps_no_other_out_and_holds_nothing_once_he_is_gone() {
    let api = Router::new().route("/v1/things", post(async || Answer::no_content()));
    let api = api.layer(middleware::from_fn_with_state(BodyRules::JSON, read_body));
    let router = wrap(api, EdgeSettings::default());
    let ask = |address: &str, body: HttpBody| {
        let mut request = Request::post("/v1/things").body(body).expect("a request");
        request.extensions_mut().insert(ClientAddress(address.parse().expect("an address")));
        tokio::spawn(router.clone().oneshot(request))
    };
    let large = || Bytes::from(vec![b' '; 1 << 20]);
    let status = async |address: &str| {
        let answer = ask(address, large().into()).await.expect("no panic").expect("infallible");
        answer.status().as_u16()
    };
    let sent = Arc::new(AtomicUsize::new(0));
    let unfinished = || {
        let sent = Arc::clone(&sent);
        let part = async move {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(large())
        };
        HttpBody::from_stream(futures_util::stream::once(part).chain(futures_util::stream::pending()))
    };
    let [slow, other] = ["192.0.2.1", "192.0.2.2"];
    let waiting: Vec<_> = (0..32).map(|_| ask(slow, unfinished())).collect();
    while sent.load(Ordering::Relaxed) < waiting.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(slow).await, 503, "half is taken, and it has more than its share");
    assert_eq!(status(other).await, 204, "who has nothing gets in");
    for request in waiting {
        assert!(!request.is_finished(), "what is there stays");
        request.abort();
        assert!(request.await.expect_err("it goes on").is_cancelled());
    }
    assert_eq!(status(slow).await, 204, "nothing is held of who has hung up");
}

#[tokio::test]
async fn who_takes_his_time_over_large_answers_leaves_memory_to_others() {
    let large = async || HttpBody::from(vec![b'x'; 40 << 20]);
    let router = wrap(
        Router::new().route("/v1/large", get(large).post(large)).route("/v1/small", get(async || Answer::no_content())),
        EdgeSettings::default(),
    );
    let ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(HttpBody::empty()).expect("a request");
        router.clone().oneshot(request).await.expect("infallible")
    };
    let unread = ask("GET", "/v1/large").await;
    assert_eq!(hyper::body::Body::size_hint(unread.body()).exact(), Some(40 << 20), "its length is told as before");
    let refused = ask("GET", "/v1/large").await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &HeaderValue::from_static("1")));
    assert_eq!(ask("GET", "/v1/small").await.status(), 204);
    let done = ask("POST", "/v1/large").await;
    assert_eq!(done.status(), 200, "what is done is told");
    assert_eq!(done.into_body().collect().await.expect("a body").to_bytes().len(), 40 << 20);
    let mut unwritten = unread.into_body().frame().await.expect("a frame").expect("data").into_data().expect("data");
    let last_byte = unwritten.split_off(unwritten.len() - 1);
    drop(unwritten);
    assert_eq!(ask("GET", "/v1/large").await.status(), 503, "a byte of it holds all of it");
    drop(last_byte);
    assert_eq!(ask("GET", "/v1/large").await.status(), 200);
}

#[tokio::test]
async fn errors_are_counted_as_they_are_sent_and_what_is_kept_anyway_is_not() {
    let refuse = async || -> Result<Answer, Problem> {
        Err(vec![Fault::new("name", FaultCode::TooLong, "x".repeat(20 << 20))].into())
    };
    let shared = async || (axum::Extension(KeptAnyway), vec![b'x'; 40 << 20]);
    let cors = tower_http::cors::CorsLayer::new().allow_origin(tower_http::cors::Any);
    let router = wrap(
        Router::new().route("/v1/refused", post(refuse)).route("/v1/shared", get(shared)).layer(cors),
        EdgeSettings::default(),
    );
    let ask = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).header("origin", "https://shop.example");
        router.clone().oneshot(request.body(HttpBody::empty()).expect("a request")).await.expect("infallible")
    };
    let unread = ask("POST", "/v1/refused").await;
    assert_eq!(unread.status(), 400);
    let later = ask("POST", "/v1/refused").await;
    assert_eq!((later.status().as_u16(), &later.headers()["retry-after"]), (503, &HeaderValue::from_static("1")));
    assert_eq!(later.headers()["access-control-allow-origin"], "*", "a shop's page may read that it is to wait");
    let body: serde_json::Value =
        serde_json::from_slice(&later.into_body().collect().await.expect("a body").to_bytes()).expect("JSON");
    assert_eq!(body["code"], "unavailable");
    let kept = [ask("GET", "/v1/shared").await, ask("GET", "/v1/shared").await];
    assert!(kept.iter().all(|answer| answer.status() == 200));
    drop(unread);
    assert_eq!(ask("POST", "/v1/refused").await.status(), 400);
}

#[tokio::test]
async fn a_slow_reader_keeps_no_other_out_and_a_page_says_itself_that_there_is_no_place() {
    let large = async || HttpBody::from(vec![b'x'; 16 << 20]);
    let page = async || {
        let later = || (StatusCode::SERVICE_UNAVAILABLE, "Look again later.").into_response();
        (axum::Extension(WhenFull::new(later)), HttpBody::from(vec![b'x'; 16 << 20]))
    };
    let router = wrap(
        Router::new().route("/v1/large", get(large)).route("/v1/pay/status/{id}", get(large)).route("/page", get(page)),
        EdgeSettings::default(),
    );
    let ask = async |address: &str, path: &str| {
        let mut request = Request::get(path).body(HttpBody::empty()).expect("a request");
        request.extensions_mut().insert(ClientAddress(address.parse().expect("an address")));
        router.clone().oneshot(request).await.expect("infallible")
    };
    let [slow, other, payer] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    let unread = ask(slow, "/v1/large").await;
    assert_eq!(unread.status(), 200);
    assert_eq!(ask(slow, "/v1/large").await.status(), 503, "more than half is taken, and it has its share");
    let read = ask(other, "/v1/large").await;
    assert_eq!(read.status(), 200, "who has nothing gets it");
    assert_eq!(ask(payer, "/v1/large").await.status(), 503, "as long as there is any");
    assert_eq!(ask(payer, "/page").await.status(), 200, "and who pays, when there is none for programs");
    assert_eq!(ask(payer, "/v1/pay/status/ps_1").await.status(), 200);
    let refused = ask(slow, "/page").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.into_body().collect().await.expect("a body").to_bytes(), "Look again later.");
    drop((unread, read));
    assert_eq!(ask(slow, "/page").await.status(), 200);
}
