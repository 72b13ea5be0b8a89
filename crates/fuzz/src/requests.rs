//! Requests: to the router, with a key that may do everything; and raw bytes to the listener.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use axum::routing::any;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::listener::{ListenerSettings, serve};
use sim::world::{Template, World};
use tokio::runtime::{Builder, Runtime};

struct Service {
    runtime: Runtime,
    template: Template,
}

thread_local! {
    static SERVICE: RefCell<Option<Service>> = const { RefCell::new(None) };
}

/// `VERB PATH`, headers, an empty line, a body. Each input meets a fresh installation.
pub(crate) fn request(input: &[u8]) {
    let Some((request, is_api)) = parse(input) else { return };
    SERVICE.with_borrow_mut(|service| {
        let Service { runtime, template } = service.get_or_insert_with(Service::start);
        runtime.block_on(async {
            let world = World::begin(template).await;
            let answer = world.ask(request(world.key(0))).await;
            world.end().await;
            // Nobody answers what asks a name server or waits for an event.
            let Some(answer) = answer else { return };
            assert!(answer.status < 500, "answered {}: {}", answer.status, answer.body);
            let is_empty = answer.body.is_empty();
            assert!(!is_api || is_empty || !answer.json().is_null(), "answered {}: {}", answer.status, answer.body);
        });
    });
}

impl Service {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let template = runtime.block_on(Template::build());
        Self { runtime, template }
    }
}

/// The request for a key, and whether its answer is JSON.
fn parse(input: &[u8]) -> Option<(impl FnOnce(&str) -> Request<Body>, bool)> {
    let end = input.windows(2).position(|two| two == b"\n\n");
    let (head, body) = end.map_or((input, &[][..]), |at| (&input[..at], &input[at + 2..]));
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (verb, path) = lines.next()?.split_once(' ')?;
    let verb = Method::from_bytes(verb.as_bytes()).ok()?;
    let uri: Uri = path.parse().ok().filter(|_| path.starts_with('/'))?;
    let is_api = uri.path().starts_with("/v1/") && verb != Method::HEAD && !uri.path().contains("pdf");
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        headers.push((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?));
    }
    let body = body.to_vec();
    let request = move |key: &str| {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = verb;
        *request.uri_mut() = uri;
        let own = [(header::AUTHORIZATION, format!("Bearer {key}")), (header::CONTENT_TYPE, "application/json".into())];
        for (name, value) in own {
            if headers.iter().all(|(given, _)| *given != name) {
                request.headers_mut().append(name, value.parse().expect("a header of ours"));
            }
        }
        for (name, value) in headers {
            request.headers_mut().append(name, value);
        }
        request
    };
    Some((request, is_api))
}

/// Whatever comes in, the connection ends, and a request behind it is answered as before.
pub(crate) fn connection(input: &[u8]) {
    static SERVER: LazyLock<SocketAddr> = LazyLock::new(start_listener);
    let mut stream = TcpStream::connect(*SERVER).expect("the listener listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    // The server may have heard enough.
    let _ = stream.write_all(input).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert!(error.kind() != std::io::ErrorKind::WouldBlock, "the connection stays open");
    }
    assert!(!answer.starts_with(b"HTTP/1.1 5"), "{}", String::from_utf8_lossy(&answer));
}

fn start_listener() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has an address");
    listener.set_nonblocking(true).expect("it can be waited for");
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let echo = Router::new().fallback(any(async |body: String| body));
            let router = envelope::wrap(echo, EdgeSettings { is_https: false });
            let _ = serve(listener, router, ListenerSettings::default(), std::future::pending()).await;
        });
    });
    address
}
