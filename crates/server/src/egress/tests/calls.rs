//! Real calls to real sockets.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A listener that gives every connection the same bytes and remembers what it was sent.
struct Listener {
    port: u16,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Listener {
    async fn start(answer: Vec<u8>) -> Self {
        Self::start_with(answer, false).await
    }

    /// With `stay`, the connection is neither closed nor reused after the answer.
    async fn start_with(answer: Vec<u8>, stay: bool) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (count, log) = (Arc::clone(&connections), Arc::clone(&received));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, log) = (answer.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    let mut request = vec![0; 16 * 1024];
                    let length = stream.read(&mut request).await.unwrap_or(0);
                    log.lock().expect("no panic").push(request[..length].to_vec());
                    let _ = stream.write_all(&answer).await;
                    if stay {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                });
            }
        });
        Self { port, connections, received }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn request(&self) -> String {
        let received = self.received.lock().expect("no panic");
        String::from_utf8_lossy(received.first().expect("a request")).into_owned()
    }
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

async fn post(egress: &Egress, url: &str) -> Result<Answer, Failure> {
    let url = Url::parse(url).expect("a URL");
    egress.post(&url, HeaderMap::new(), Bytes::from_static(b"{}"), false).await
}

fn local() -> Egress {
    let names = Arc::new(FakeNames::default());
    names.say("localhost", &[&["127.0.0.1"]]);
    names.say("shop.localhost", &[&["127.0.0.1"]]);
    egress(true, &names)
}

fn kind(result: Result<Answer, Failure>) -> FailureKind {
    result.expect_err("a failure").kind
}

#[tokio::test]
async fn a_call_arrives_as_it_was_made() {
    let listener = Listener::start(ok("thank you")).await;
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "evt_01".parse().expect("a header"));
    let url = Url::parse(&format!("http://shop.localhost:{}/hook?a=b#c", listener.port)).expect("a URL");
    let answer = local().post(&url, headers, Bytes::from_static(b"{\"a\":1}"), false).await.expect("an answer");
    assert_eq!((answer.status.as_u16(), answer.body_start.as_str(), answer.retry_after), (200, "thank you", None));
    let request = listener.request();
    assert!(request.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nhost: shop.localhost:{}\r\n", listener.port)), "{request}");
    assert!(request.contains("\r\nuser-agent: Dalasi-Webhooks/1.0\r\n"), "{request}");
    assert!(request.contains("\r\nwebhook-id: evt_01\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
    for absent in ["referer", "accept-encoding", "cookie", "authorization"] {
        assert!(!request.contains(absent), "{request}");
    }
}

#[tokio::test]
async fn this_machine_is_called_in_test_mode_with_the_flag_only() {
    let listener = Listener::start(ok("")).await;
    for host in ["127.0.0.1", "localhost", "shop.localhost"] {
        let text = format!("http://{host}:{}/", listener.port);
        let url = Url::parse(&text).expect("a URL");
        let live = local().post(&url, HeaderMap::new(), Bytes::new(), true).await;
        assert_eq!(kind(live), FailureKind::Forbidden, "{text}");
        let names = Arc::new(FakeNames::default());
        names.say(host, &[&["127.0.0.1"]]);
        assert_eq!(kind(post(&egress(false, &names), &text).await), FailureKind::Forbidden, "{text}");
        assert_eq!(listener.connections(), 0, "a connection was made all the same");
    }
    assert!(post(&local(), &format!("http://127.0.0.1:{}/", listener.port)).await.is_ok());
}

#[tokio::test]
async fn a_connection_is_made_under_the_same_rules_and_nothing_is_sent() {
    let listener = Listener::start(ok("")).await;
    let connect = async |egress: &Egress, text: &str, live: bool| {
        egress.connect(&Url::parse(text).expect("a URL"), live).await.map_err(|failure| failure.kind)
    };
    let here = format!("http://shop.localhost:{}/hook?token=a", listener.port);
    assert_eq!(connect(&local(), &here, false).await, Ok(()));
    for _ in 0..100 {
        if !listener.received.lock().expect("no panic").is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(*listener.received.lock().expect("no panic"), [b""], "it was hung up without a word");

    assert_eq!(connect(&local(), &here, true).await, Err(FailureKind::Forbidden));
    let names = Arc::new(FakeNames::default());
    names.say("inner.example", &[&["10.0.0.1"]]);
    names.say("shop.localhost", &[&["127.0.0.1"]]);
    assert_eq!(connect(&egress(true, &names), "https://inner.example/", false).await, Err(FailureKind::Forbidden));
    assert_eq!(connect(&egress(true, &names), "https://nowhere.example/", false).await, Err(FailureKind::Dns));
    assert_eq!(connect(&egress(false, &names), &here, false).await, Err(FailureKind::Forbidden));
    assert_eq!(listener.connections(), 1);
    // It speaks no TLS.
    let secure = format!("https://shop.localhost:{}/", listener.port);
    assert_eq!(connect(&local(), &secure, false).await, Err(FailureKind::Tls));
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    drop(taken);
    assert_eq!(connect(&local(), &format!("http://localhost:{port}/"), false).await, Err(FailureKind::Refused));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let target = Listener::start(ok("secret")).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let moved = format!(
            "HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:{}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            target.port
        );
        let listener = Listener::start(moved.into_bytes()).await;
        let answer = post(&local(), &format!("http://localhost:{}/", listener.port)).await.expect("an answer");
        assert_eq!(answer.status.as_str(), &status[..3]);
    }
    assert_eq!(target.connections(), 0, "a redirect was followed");
}

#[tokio::test]
async fn a_long_body_is_cut() {
    let listener = Listener::start(ok(&"x".repeat(1 << 20))).await;
    let answer = post(&local(), &format!("http://localhost:{}/", listener.port)).await.expect("an answer");
    assert_eq!(answer.body_start, "x".repeat(1_024));
    // An endless one too, long before the timeout.
    let endless =
        Listener::start_with(b"HTTP/1.1 200 OK\r\n\r\n".iter().copied().chain(vec![b'y'; 100_000]).collect(), true)
            .await;
    let begun = crate::monotonic::now();
    let answer = post(&local(), &format!("http://localhost:{}/", endless.port)).await.expect("an answer");
    assert_eq!(answer.body_start.len(), 1_024);
    assert!(begun.elapsed() < Duration::from_secs(3), "it read on");
}

/// Says the same to every request until nobody listens, and counts what was taken.
async fn who_goes_on_saying(what: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("bound").port();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let _request = stream.read(&mut [0; 4096]).await;
            let said = what.repeat(1_000);
            while stream.write_all(&said).await.is_ok() {
                count.fetch_add(said.len(), Ordering::SeqCst);
            }
        }
    });
    (port, taken)
}

#[tokio::test]
async fn who_only_says_that_an_answer_is_to_come_is_not_listened_to_for_long() {
    let (port, taken) = who_goes_on_saying(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    let begun = crate::monotonic::now();
    let failure = post(&local(), &format!("http://localhost:{port}/")).await.expect_err("a failure");
    assert_eq!(failure.kind, FailureKind::Other);
    assert!(failure.message.contains("4 MiB"), "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(4), "it listened for {:?}", begun.elapsed());
    // What lies in the system's buffers was sent and not read.
    let taken = taken.load(Ordering::SeqCst);
    assert!(taken < connection::MOST_SAID + (12 << 20), "{taken}");
    let few = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(20);
    let listener = Listener::start([few, ok("thank you")].concat()).await;
    let answer = post(&local(), &format!("http://localhost:{}/", listener.port)).await.expect("an answer");
    assert_eq!((answer.status.as_u16(), answer.body_start.as_str()), (200, "thank you"));
}

#[tokio::test]
async fn each_request_on_a_connection_has_room_for_its_answer() {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("bound").port();
    tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.expect("a connection");
        let mut request = [0; 4096];
        let file = vec![b'x'; LARGEST_FILE];
        while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
            stream.write_all(head.as_bytes()).await.expect("written");
            stream.write_all(&file).await.expect("written");
        }
    });
    let (egress, url) = (local(), Url::parse(&format!("http://localhost:{port}/logo.png")).expect("a URL"));
    for _ in 0..4 {
        assert_eq!(egress.get(&url, false).await.expect("a file").len(), LARGEST_FILE);
    }
}

#[tokio::test]
async fn what_a_stranger_answers_is_made_printable() {
    let mut answer = b"HTTP/1.1 500 Oops\r\nContent-Length: 9\r\nConnection: close\r\n\r\n".to_vec();
    answer.extend_from_slice(b"a\0b\x1b[1m\xff\n");
    let listener = Listener::start(answer).await;
    let answer = post(&local(), &format!("http://localhost:{}/", listener.port)).await.expect("an answer");
    assert_eq!((answer.status.as_u16(), answer.body_start.as_str()), (500, "a\u{fffd}b\u{fffd}[1m\u{fffd}\n"));
}

#[tokio::test]
async fn the_timeout_covers_the_whole_call() {
    let names = Arc::new(FakeNames::default());
    names.say("localhost", &[&["127.0.0.1"]]);
    let silent = Listener::start_with(Vec::new(), true).await;
    let half = Listener::start_with(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec(), true).await;
    let resolver: Arc<dyn Resolver> = Arc::<FakeNames>::clone(&names);
    let egress = Egress::new(EgressSettings {
        allow_loopback: true,
        timeout: Duration::from_millis(300),
        resolver,
        ..EgressSettings::default()
    });
    for listener in [silent, half] {
        let begun = crate::monotonic::now();
        let result = post(&egress, &format!("http://localhost:{}/", listener.port)).await;
        assert_eq!(kind(result), FailureKind::Timeout);
        assert!((Duration::from_millis(250)..Duration::from_secs(3)).contains(&begun.elapsed()));
    }
    struct Slow;
    impl Resolver for Slow {
        fn resolve(&self, _: &str) -> Resolving {
            Box::pin(std::future::pending())
        }
    }
    let egress = Egress::new(EgressSettings {
        allow_loopback: false,
        timeout: Duration::from_millis(300),
        resolver: Arc::new(Slow),
        ..EgressSettings::default()
    });
    assert_eq!(kind(post(&egress, "https://example.com/").await), FailureKind::Timeout);
    let url = Url::parse("https://example.com/").expect("a URL");
    assert_eq!(egress.check_destination(&url, true).await.expect_err("a failure").kind, FailureKind::Timeout);
}

/// Answers a question when it is told to, and then for ever.
struct Held {
    questions: AtomicUsize,
    answers: Arc<tokio::sync::Semaphore>,
}

impl Resolver for Held {
    fn resolve(&self, _: &str) -> Resolving {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let answers = Arc::clone(&self.answers);
        Box::pin(async move {
            let _released = answers.acquire().await.expect("it is never closed");
            Ok(vec![IpAddr::from([10, 0, 0, 1])])
        })
    }
}

#[tokio::test]
async fn looks_before_saving_have_few_places_and_a_short_time() {
    let answers = Arc::new(tokio::sync::Semaphore::new(0));
    let held = Arc::new(Held { questions: AtomicUsize::new(0), answers: Arc::clone(&answers) });
    let resolver: Arc<dyn Resolver> = Arc::<Held>::clone(&held);
    let egress = Egress::new(EgressSettings { resolver, ..EgressSettings::default() });
    let url = Url::parse("https://example.com/").expect("a URL");
    let begun = crate::monotonic::now();
    let all = futures_util::future::join_all((0..100).map(|_| egress.check_destination(&url, true))).await;
    assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let of_kind = |kind| all.iter().filter(|one| one.as_ref().is_err_and(|failure| failure.kind == kind)).count();
    assert_eq!((of_kind(FailureKind::Timeout), of_kind(FailureKind::Dns)), (32, 68));
    // Nobody waits any more, but the name server is still being asked: no place is free, and none is waited for.
    let begun = crate::monotonic::now();
    assert_eq!(egress.check_destination(&url, true).await.expect_err("a failure").kind, FailureKind::Dns);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(held.questions.load(Ordering::SeqCst), 32);
    // A call isn't kept from its own question, and is refused by its answer.
    answers.add_permits(1);
    assert_eq!(kind(post(&egress, "https://example.com/").await), FailureKind::Forbidden);
    // And the places are free again.
    while egress.check_destination(&url, true).await.expect_err("a failure").kind != FailureKind::Forbidden {
        assert!(begun.elapsed() < Duration::from_secs(10), "they are kept");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn failures_have_their_kinds_and_tell_no_address() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    let refused = post(&local(), &format!("http://localhost:{port}/")).await.expect_err("a failure");
    assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    let unknown = post(&local(), "https://nowhere.example/").await.expect_err("a failure");
    assert_eq!(unknown.kind, FailureKind::Dns, "{unknown}");
    let nonsense = Listener::start(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()).await;
    let other =
        post(&local(), &format!("http://localhost:{}/secret-path", nonsense.port)).await.expect_err("a failure");
    assert_eq!(other.kind, FailureKind::Other, "{other}");
    let tls = post(&local(), &format!("https://shop.localhost:{}/", nonsense.port)).await.expect_err("a failure");
    assert_eq!(tls.kind, FailureKind::Tls, "{tls}");
    for failure in [refused, unknown, other, tls] {
        assert!(!failure.message.contains("127.0") && !failure.message.contains("secret"), "{failure}");
    }
}

#[tokio::test]
async fn the_handshake_names_the_original_host() {
    let listener = Listener::start(Vec::new()).await;
    let result = post(&local(), &format!("https://shop.localhost:{}/", listener.port)).await;
    assert!(result.is_err());
    // A ClientHello carries the name in the clear.
    assert!(listener.request().contains("shop.localhost"));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_however_it_is_mixed() {
    let names = Arc::new(FakeNames::default());
    let egress = egress(true, &names);
    let url = Url::parse("https://example.com/").expect("a URL");
    for addresses in [
        &["127.0.0.1"][..],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["100.64.0.1"],
        &["0.0.0.0"],
        &["::1"],
        &["fd00:ec2::254"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::1"],
        &["fe80::1"],
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["2606:2800:220:1::1", "10.0.0.1"],
        &["93.184.216.34", "::1"],
        &["93.184.216.34", "93.184.216.35", "192.168.0.1"],
        &["::ffff:93.184.216.34"],
    ] {
        names.say("example.com", &[addresses]);
        let failure = egress.check_destination(&url, false).await.expect_err("a failure");
        assert_eq!(failure.kind, FailureKind::Forbidden, "{addresses:?}");
        assert_eq!(kind(post(&egress, "https://example.com/").await), FailureKind::Forbidden, "{addresses:?}");
    }
    names.say("example.com", &[&["93.184.216.34", "2606:2800:220:1::1"]]);
    assert!(egress.check_destination(&url, false).await.is_ok());
    names.say("example.com", &[&[]]);
    assert_eq!(egress.check_destination(&url, false).await.expect_err("a failure").kind, FailureKind::Dns);
}

#[tokio::test]
async fn a_local_name_that_leads_elsewhere_is_refused() {
    let names = Arc::new(FakeNames::default());
    let egress = egress(true, &names);
    for address in ["10.0.0.1", "93.184.216.34", "::ffff:127.0.0.1", "169.254.169.254"] {
        names.say("shop.localhost", &[&[address]]);
        assert_eq!(kind(post(&egress, "http://shop.localhost:9000/").await), FailureKind::Forbidden, "{address}");
    }
}

#[tokio::test]
async fn rebinding_between_saving_and_calling_gains_nothing() {
    let inner = Listener::start(ok("secret")).await;
    let names = Arc::new(FakeNames::default());
    let egress = egress(true, &names);
    let text = format!("https://example.com:{}/", inner.port);
    let url = egress.check_url(&text, false).expect("a good text");
    for round in 0..100 {
        // Public when it is saved; inside, or half inside, when it is called.
        let later: &[&str] = if round % 2 == 0 { &["127.0.0.1"] } else { &["93.184.216.34", "127.0.0.1"] };
        names.say("example.com", &[&["93.184.216.34"], later]);
        let asked = names.questions();
        assert!(egress.check_destination(&url, false).await.is_ok());
        assert_eq!(kind(post(&egress, &text).await), FailureKind::Forbidden);
        assert_eq!(names.questions(), asked + 2, "a call resolves exactly once");
    }
    assert_eq!(inner.connections(), 0, "a connection was made all the same");
}

#[tokio::test]
async fn a_connection_is_kept_and_made_to_a_checked_address() {
    // Keep-alive: three answers on one connection, and one question to the name server.
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("bound").port();
    let reused = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&reused);
    tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.expect("a connection");
        let mut request = [0; 4096];
        for call in 0..3 {
            let length = stream.read(&mut request).await.unwrap_or(0);
            assert!(length > 0, "closed after {call} calls");
            seen.store(call == 2, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.expect("written");
        }
    });
    let names = Arc::new(FakeNames::default());
    names.say("localhost", &[&["127.0.0.1"], &["10.0.0.1"]]);
    let egress = egress(true, &names);
    for _ in 0..3 {
        assert!(post(&egress, &format!("http://localhost:{port}/")).await.is_ok());
    }
    assert!(reused.load(Ordering::SeqCst));
    assert_eq!(names.questions(), 1);
    // The live side doesn't see that connection.
    let url = Url::parse(&format!("http://localhost:{port}/")).expect("a URL");
    assert_eq!(kind(egress.post(&url, HeaderMap::new(), Bytes::new(), true).await), FailureKind::Forbidden);
}

/// As deliveries to one endpoint do.
#[tokio::test]
async fn calls_that_come_and_end_together_leave_their_connections_to_the_next() {
    const TOGETHER: usize = 32;
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("bound").port();
    let (made, all_are_here) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Barrier::new(TOGETHER)));
    let count = Arc::clone(&made);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let all_are_here = Arc::clone(&all_are_here);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                    all_are_here.wait().await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                }
            });
        }
    });
    let (egress, url) = (local(), format!("http://localhost:{port}/"));
    for _ in 0..3 {
        let calls = (0..TOGETHER).map(|_| post(&egress, &url));
        assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let made = made.load(Ordering::SeqCst);
    assert!(made < TOGETHER * 3 / 2, "{made} connections for {} calls", TOGETHER * 3);
}

#[tokio::test]
async fn retry_after_is_read_in_both_forms() {
    for (header, expected) in [
        ("120", Some(RetryAfter::Seconds(120))),
        ("0", Some(RetryAfter::Seconds(0))),
        ("99999999999999999999999", Some(RetryAfter::Seconds(u64::MAX))),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(RetryAfter::At(784_111_777))),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ] {
        let answer =
            format!("HTTP/1.1 503 Busy\r\nRetry-After: {header}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let listener = Listener::start(answer.into_bytes()).await;
        let answer = post(&local(), &format!("http://localhost:{}/", listener.port)).await.expect("an answer");
        assert_eq!(answer.retry_after, expected, "{header:?}");
    }
    assert_eq!(RetryAfter::At(100).wait_s(40), 60);
    assert_eq!(RetryAfter::At(100).wait_s(140), 0);
    assert_eq!(RetryAfter::Seconds(7).wait_s(0), 7);
}

/// Runs one of the tests here again in a process with other variables: they can't be set within one.
fn passes_with(test: &str, variables: &[(&str, &str)]) {
    let program = std::env::current_exe().expect("this program");
    let run = Command::new(program).args(["--exact", test]).envs(variables.iter().copied()).output().expect("runs");
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
fn a_proxy_from_the_environment_is_ignored() {
    let nowhere = "http://127.0.0.1:9";
    let variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
        .map(|name| (name, nowhere));
    passes_with("egress::tests::calls::a_call_arrives_as_it_was_made", &variables);
}

#[test]
fn a_machine_without_certificate_authorities_still_calls_over_http_and_trusts_nobody() {
    let variables = [("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/var/empty")];
    passes_with("egress::tests::calls::a_call_arrives_as_it_was_made", &variables);
    passes_with("egress::tests::calls::failures_have_their_kinds_and_tell_no_address", &variables);
}
