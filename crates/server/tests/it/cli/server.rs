//! `dalasi serve` as a child process, a client of its API, and a receiver of webhooks.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::place::Place;

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    child: Child,
    /// Standard output up to the line that says where it listens.
    pub(crate) said: String,
    pub(crate) url: String,
    log: Option<ChildStderr>,
}

impl Server {
    pub(crate) fn start(place: &Place) -> Self {
        Self::start_with(place, &[])
    }

    pub(crate) fn start_with(place: &Place, options: &[&str]) -> Self {
        let mut server = Self::start_unread(place, options);
        let log = BufReader::new(server.log.take().unwrap());
        std::thread::spawn(move || log.lines().map_while(Result::ok).for_each(drop));
        server
    }

    /// Nobody reads its log until somebody takes [`Self::log`].
    pub(crate) fn start_unread(place: &Place, options: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"], options].concat();
        let child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Self { child, said: String::new(), url: String::new(), log: None };
        server.log = server.child.stderr.take();
        let (lines, said) = mpsc::channel();
        let stdout = BufReader::new(server.child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        loop {
            let Ok(line) = said.recv_timeout(PATIENCE) else {
                let _ = server.child.kill();
                let log = server.whole_log();
                panic!("the server did not start:\n{}\n{log}", server.said);
            };
            if let Some(url) = line.strip_prefix("listening on ") {
                server.url = url.to_owned();
                // Whatever it says later has to be read as well.
                std::thread::spawn(move || while said.recv().is_ok() {});
                return server;
            }
            server.said.push_str(&line);
            server.said.push('\n');
        }
    }

    /// Until it has ended.
    fn whole_log(&mut self) -> String {
        let mut log = String::new();
        if let Some(mut unread) = self.log.take() {
            let _ = unread.read_to_string(&mut log);
        }
        log
    }

    /// The exit code after SIGTERM, and a log that nobody has read.
    pub(crate) fn stop_and_read(mut self) -> (i32, String) {
        self.terminate();
        let log = self.whole_log();
        (self.child.wait().unwrap().code().unwrap_or(-1), log)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Its exit code after SIGTERM.
    pub(crate) fn stop(mut self) -> i32 {
        self.terminate();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub(crate) async fn call(&self, method: &str, path: &str, key: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = client().request(method, format!("{}{path}", self.url)).bearer_auth(key);
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
    }

    /// A checkout and an attempt to pay it by a test number.
    pub(crate) async fn pay(&self, key: &str, method: &str, phone: &str) -> String {
        let order = serde_json::json!({ "amount": "100.00", "items": null });
        let (status, checkout) = self.call("POST", "/v1/checkouts", key, order).await;
        assert_eq!(status, 201, "{checkout}");
        let id = checkout["data"]["id"].as_str().unwrap().to_owned();
        let payment = serde_json::json!({
            "client_secret": checkout["data"]["client_secret"], "payment_method": method, "customer_phone": phone
        });
        let (status, session) = self.call("POST", "/v1/pay/initialize", key, payment).await;
        assert_eq!(status, 200, "{session}");
        id
    }

    /// Waits until the checkout shows what is wanted.
    pub(crate) async fn until(&self, key: &str, checkout: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..200 {
            let (_, answer) = self.call("GET", &format!("/v1/checkouts/{checkout}"), key, Value::Null).await;
            last = answer["data"].clone();
            if wanted(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{checkout} did not become what was waited for: {last}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn client() -> reqwest::Client {
    #[expect(clippy::disallowed_methods, reason = "the server under test is on this machine")]
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

/// Accepts webhooks and keeps them.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    status: Arc<AtomicU16>,
}

/// As long as a no takes.
const UNWELL: Duration = Duration::from_millis(1_100);

impl Receiver {
    pub(crate) async fn start() -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let status = Arc::new(AtomicU16::new(200));
        let (kept, says) = (Arc::clone(&got), Arc::clone(&status));
        let router = Router::new().fallback(async move |headers: HeaderMap, body: Bytes| {
            kept.lock().unwrap().push((headers, body));
            let status = StatusCode::from_u16(says.load(Ordering::Relaxed)).unwrap();
            if !status.is_success() {
                tokio::time::sleep(UNWELL).await;
            }
            status
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, got, status }
    }

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn got(&self) -> Vec<(HeaderMap, Bytes)> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) async fn until(&self, count: usize) -> Vec<(HeaderMap, Bytes)> {
        for _ in 0..200 {
            let got = self.got.lock().unwrap().clone();
            if got.len() >= count {
                return got;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} webhooks came, {count} were waited for", self.got.lock().unwrap().len());
    }
}
