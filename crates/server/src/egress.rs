//! The one way out: every call to an address that somebody else chose goes through here.
//!
//! A call is: check the URL, resolve the name once, check *every* address against the special-purpose registries,
//! connect to exactly those addresses under the original name. No redirects, no proxy from the environment, no
//! decompression, a ceiling on time and on what is read. The check is made at each connection, which is used for a minute at
//! most, so a name that changes its mind between saving and calling gains nothing. HTTP/1.1 alone: each call has a connection
//! for itself. Retries, signatures and what an answer means are the caller's part.
//!
//! Addresses as hosts are refused, since the client would connect to them without asking the resolver. The one
//! exception is this machine itself, in test mode and with [`EgressSettings::allow_loopback`].

mod address;
mod answer;
mod connection;
mod policy;
mod resolver;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT as NAMES_ITSELF};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use url::Url;

use crate::authorities;
use connection::{Connector, Means};
use policy::Reach;

pub use address::is_public;
pub use answer::{Answer, Failure, FailureKind, RetryAfter};
pub use policy::UrlFault;
pub use resolver::{Resolver, Resolving, SystemResolver};

pub const USER_AGENT: &str = "Dalasi-Webhooks/1.0";

const LONGEST_READ: usize = 64 * 1024;
const LONGEST_KEPT: usize = 1024;
/// Of a file that is fetched.
const LARGEST_FILE: usize = 2 * 1024 * 1024;
/// Of an answer, to the end of its headers.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 100;
/// Looked at as often, so that it is twice as long at most: calls that follow each other use it, and whoever waits for its place
/// does so for a small part of a call's time.
const IDLE_CONNECTION: Duration = Duration::from_secs(1);
/// As many as deliveries to one endpoint are under way, and end, together: the next use what these leave, and neither side makes and
/// secures a connection for each.
pub const IDLE_CONNECTIONS_PER_HOST: usize = 96;
/// Of a look before saving, for which somebody waits.
const LONGEST_LOOK: Duration = Duration::from_secs(3);
/// Such looks at a time: each may keep a thread of the system's resolver long after nobody waits for it any more.
const MOST_LOOKS: usize = 32;

pub struct EgressSettings {
    /// Lets test mode call this machine, over http too and on any port.
    pub allow_loopback: bool,
    /// For a whole call, from resolving to the last byte read.
    pub timeout: Duration,
    /// No call begins on a connection that was begun longer ago: its address was checked then, and the name may lead elsewhere by now.
    pub reuse: Duration,
    pub resolver: Arc<dyn Resolver>,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self {
            allow_loopback: false,
            timeout: Duration::from_secs(15),
            reuse: Duration::from_secs(60),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// The client. Cheap to clone: clones share their connections.
#[derive(Clone)]
pub struct Egress {
    /// Apart, so that receivers that somebody tries out take no place of those of live mode.
    live: Way,
    test: Way,
    /// Only where the settings allow it.
    loopback: Option<Way>,
    timeout: Duration,
    reuse: Duration,
    resolver: Arc<dyn Resolver>,
    looks: Arc<Semaphore>,
}

/// To where one reach leads.
#[derive(Clone)]
struct Way {
    connector: Connector,
    client: Client<Connector, Full<Bytes>>,
}

impl Egress {
    pub fn new(settings: EgressSettings) -> Self {
        Self::trusting(settings, authorities::of_this_machine())
    }

    fn trusting(settings: EgressSettings, authorities: RootCertStore) -> Self {
        let EgressSettings { allow_loopback, timeout, reuse, resolver } = settings;
        if authorities.is_empty() {
            // Better to start and to fail each secure call with a sentence than not to start; nothing is trusted meanwhile.
            tracing::warn!("no certificate authorities found: webhooks over https will fail; install ca-certificates");
        }
        let means = Means {
            resolver: Arc::clone(&resolver),
            tls: tls_trusting(authorities),
            most: connection::MOST_CONNECTIONS,
            // No call is under way then: see `answer`.
            life: reuse + 2 * timeout,
        };
        let way = |reach| Way::new(Connector::new(reach, means.clone()));
        Self {
            live: way(Reach::Public),
            test: way(Reach::Public),
            loopback: allow_loopback.then(|| way(Reach::Loopback)),
            timeout,
            reuse,
            resolver,
            looks: Arc::new(Semaphore::new(MOST_LOOKS)),
        }
    }

    /// A call has ended by then, whatever the other side does.
    pub fn longest_call(&self) -> Duration {
        self.timeout
    }

    /// Says whether a URL may be called at all; asks no name server. For saving.
    pub fn check_url(&self, text: &str, live: bool) -> Result<Url, UrlFault> {
        policy::check_text(text, self.loopback_allowed(live))
    }

    /// Says whether the name behind a URL leads to where it may. For saving; every call checks again.
    ///
    /// A failure of kind [`FailureKind::Dns`] or [`FailureKind::Timeout`] says nothing against the URL: a name server that is
    /// slow, or many others who ask at the same time, keep nobody waiting.
    pub async fn check_destination(&self, url: &Url, live: bool) -> Result<(), Failure> {
        let reach = self.reach(url, live)?;
        let name = match url.host() {
            Some(url::Host::Domain(name)) => name.to_owned(),
            // The policy lets through no address but a loopback one.
            _ => return Ok(()),
        };
        let Ok(place) = Arc::clone(&self.looks).try_acquire_owned() else {
            return Err(Failure::new(FailureKind::Dns, format!("{name} was not looked up: many others are.")));
        };
        let resolver = Arc::clone(&self.resolver);
        // To its end, whoever waits for it: that is when its place is free.
        let look = tokio::spawn(async move {
            let found = resolver::resolve_checked(&*resolver, &name, reach).await;
            drop(place);
            found.map(drop).map_err(|fault| Failure::from_resolving(&fault, &name))
        });
        let longest = self.timeout.min(LONGEST_LOOK);
        match tokio::time::timeout(longest, look).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(Failure::new(FailureKind::Dns, "The look for the name broke off.")),
            Err(_) => Err(Failure::timeout(longest)),
        }
    }

    /// Sends one POST and reads the beginning of the answer.
    pub async fn post(&self, url: &Url, headers: HeaderMap, body: Bytes, live: bool) -> Result<Answer, Failure> {
        self.in_time(async {
            let mut response = self.answer(Method::POST, url, headers, body, live).await?;
            let status = response.status();
            let retry_after = RetryAfter::read(response.headers());
            let (mut kept, mut read) = (Vec::new(), 0);
            while read < LONGEST_READ || domain::planted!(Defect::AnswerUncapped) {
                // Where it breaks off the status stands; only the body is cut short.
                let Some(Ok(frame)) = response.frame().await else { break };
                let Ok(chunk) = frame.into_data() else { continue };
                let room = LONGEST_KEPT - kept.len();
                kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
                read += chunk.len();
            }
            Ok(Answer { status, retry_after, body_start: answer::printable(&kept) })
        })
        .await
    }

    /// Fetches a file of up to 2 MiB. A larger one, and an answer that is not 200, is a failure of kind
    /// [`FailureKind::Other`]; a redirect is one too.
    pub async fn get(&self, url: &Url, live: bool) -> Result<Vec<u8>, Failure> {
        self.in_time(async {
            let host = url.host_str().unwrap_or_default();
            let mut response = self.answer(Method::GET, url, HeaderMap::new(), Bytes::new(), live).await?;
            if response.status() != http::StatusCode::OK {
                return Err(Failure::new(FailureKind::Other, format!("{host} answered {}.", response.status())));
            }
            let mut file = Vec::new();
            while let Some(frame) = response.frame().await {
                let frame = frame.map_err(|error| Failure::from_client(&error, false, host))?;
                let Ok(chunk) = frame.into_data() else { continue };
                if file.len() + chunk.len() > LARGEST_FILE {
                    let most = LARGEST_FILE >> 20;
                    return Err(Failure::new(
                        FailureKind::Other,
                        format!("The file at {host} has more than {most} MiB."),
                    ));
                }
                file.extend_from_slice(&chunk);
            }
            Ok(file)
        })
        .await
    }

    /// Connects as a call would, TLS included, and hangs up before anything is asked: whether a receiver can be reached.
    pub async fn connect(&self, url: &Url, live: bool) -> Result<(), Failure> {
        self.in_time(async {
            // One of its own: a connection that was kept open would tell nothing.
            let connector = self.way(url, live)?.connector.clone();
            let made = connector.oneshot(address_of(url)?).await;
            made.map(drop).map_err(|error| Failure::from_client(&*error, true, url.host_str().unwrap_or_default()))
        })
        .await
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let call = tokio::time::timeout(self.timeout, connection::during(call));
        call.await.unwrap_or_else(|_| Err(Failure::timeout(self.timeout)))
    }

    /// The head of the answer to one request.
    async fn answer(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        live: bool,
    ) -> Result<Response<Incoming>, Failure> {
        let way = self.way(url, live)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = address_of(url)?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        request.headers_mut().insert(NAMES_ITSELF, HeaderValue::from_static(USER_AGENT));
        let used = capture_connection(&mut request);
        let answer = way.client.request(request).await;
        if let Some(connected) = used.connection_metadata().as_ref()
            && connection::age(connected) + self.timeout + 2 * IDLE_CONNECTION > self.reuse
        {
            // This call ends as it may; none follows it there that might begin too late.
            connected.poison();
        }
        answer.map_err(|error| Failure::from_client(&error, error.is_connect(), url.host_str().unwrap_or_default()))
    }

    fn way(&self, url: &Url, live: bool) -> Result<&Way, Failure> {
        Ok(match self.reach(url, live)? {
            Reach::Public if live => &self.live,
            Reach::Public => &self.test,
            Reach::Loopback => self.loopback.as_ref().expect("the policy grants loopback only where it is set up"),
        })
    }

    fn loopback_allowed(&self, live: bool) -> bool {
        self.loopback.is_some() && !live
    }

    fn reach(&self, url: &Url, live: bool) -> Result<Reach, Failure> {
        policy::reach(url, self.loopback_allowed(live))
            .map_err(|fault| Failure::new(FailureKind::Forbidden, fault.message))
    }
}

impl Way {
    fn new(connector: Connector) -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the client that all others would have to be")]
        let mut builder = Client::builder(TokioExecutor::new());
        let client = builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .http1_max_headers(MOST_HEADERS)
            .http1_max_buf_size(LONGEST_HEAD)
            .build(connector.clone());
        Self { connector, client }
    }
}

fn tls_trusting(authorities: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has what the versions need")
        .with_root_certificates(authorities)
        .with_no_client_auth()
}

fn address_of(url: &Url) -> Result<Uri, Failure> {
    let malformed = |_| Failure::new(FailureKind::Other, "The URL has characters that can't be sent.");
    url.as_str().parse().map_err(malformed)
}
