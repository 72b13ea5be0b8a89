//! The one way out: every call to an address that somebody else chose goes through here.
//!
//! A call is: check the URL, resolve the name once, check *every* address against the special-purpose registries,
//! connect to exactly those addresses under the original name. No redirects, no proxy from the environment, no
//! decompression, a ceiling on time and on what is read. The check is made at each connection, so a name that
//! changes its mind between saving and calling gains nothing. Retries, signatures and what an answer means are the
//! caller's part.
//!
//! Addresses as hosts are refused, since the client would connect to them without asking the resolver. The one
//! exception is this machine itself, in test mode and with [`EgressSettings::allow_loopback`].

mod address;
mod answer;
mod policy;
mod resolver;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::Semaphore;
use tower::util::MapResultLayer;
use url::Url;

use policy::Reach;
use resolver::CheckedResolver;

pub use address::is_public;
use answer::Connected;
pub use answer::{Answer, Failure, FailureKind, RetryAfter};
pub use policy::UrlFault;
pub use resolver::{Resolver, Resolving, SystemResolver};

pub const USER_AGENT: &str = "Dalasi-Webhooks/1.0";

const LONGEST_READ: usize = 64 * 1024;
const LONGEST_KEPT: usize = 1024;
/// Of a file that is fetched.
const LARGEST_FILE: usize = 2 * 1024 * 1024;
const LONGEST_HEADER_LIST: u32 = 16 * 1024;
const MOST_HEADERS: usize = 100;
/// A connection that is kept open was checked when it was made; it doesn't outlive its check by much.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);
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
    pub resolver: Arc<dyn Resolver>,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self { allow_loopback: false, timeout: Duration::from_secs(15), resolver: Arc::new(SystemResolver) }
    }
}

/// The client. Cheap to clone: clones share their connections.
#[derive(Clone)]
pub struct Egress {
    public: reqwest::Client,
    /// Only where the settings allow it.
    loopback: Option<reqwest::Client>,
    timeout: Duration,
    resolver: Arc<dyn Resolver>,
    looks: Arc<Semaphore>,
}

impl Egress {
    pub fn new(settings: EgressSettings) -> Self {
        let EgressSettings { allow_loopback, timeout, resolver } = settings;
        let client = |reach| build_client(reach, timeout, &resolver, |builder| builder);
        Self {
            public: client(Reach::Public),
            loopback: allow_loopback.then(|| client(Reach::Loopback)),
            timeout,
            resolver,
            looks: Arc::new(Semaphore::new(MOST_LOOKS)),
        }
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
        let client = self.client(url, live)?;
        let host = url.host_str().unwrap_or_default();
        let failed = |error: reqwest::Error| Failure::from_client(&error, host, self.timeout);

        let mut response = client.post(url.clone()).headers(headers).body(body).send().await.map_err(failed)?;
        let status = response.status();
        let retry_after = RetryAfter::read(response.headers());
        let (mut kept, mut read) = (Vec::new(), 0);
        while read < LONGEST_READ || domain::planted!(Defect::AnswerUncapped) {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let room = LONGEST_KEPT - kept.len();
                    kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    read += chunk.len();
                }
                Ok(None) => break,
                Err(error) if error.is_timeout() => return Err(failed(error)),
                // The status stands; only the body is cut short.
                Err(_) => break,
            }
        }
        Ok(Answer { status, retry_after, body_start: answer::printable(&kept) })
    }

    /// Fetches a file of up to 2 MiB. A larger one, and an answer that is not 200, is a failure of kind
    /// [`FailureKind::Other`]; a redirect is one too.
    pub async fn get(&self, url: &Url, live: bool) -> Result<Vec<u8>, Failure> {
        let client = self.client(url, live)?;
        let host = url.host_str().unwrap_or_default();
        let failed = |error: reqwest::Error| Failure::from_client(&error, host, self.timeout);
        let mut response = client.get(url.clone()).send().await.map_err(failed)?;
        if response.status() != http::StatusCode::OK {
            return Err(Failure::new(FailureKind::Other, format!("{host} answered {}.", response.status())));
        }
        let mut file = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if file.len() + chunk.len() > LARGEST_FILE {
                let most = LARGEST_FILE / 1024 / 1024;
                return Err(Failure::new(FailureKind::Other, format!("The file at {host} has more than {most} MiB.")));
            }
            file.extend_from_slice(&chunk);
        }
        Ok(file)
    }

    /// Connects as a call would, TLS included, and hangs up before anything is asked: whether a receiver can be reached.
    pub async fn connect(&self, url: &Url, live: bool) -> Result<(), Failure> {
        let hangs_up = |builder: reqwest::ClientBuilder| builder.connector_layer(MapResultLayer::new(answer::hang_up));
        // One of its own: a connection that was kept open would tell nothing.
        let client = build_client(self.reach(url, live)?, self.timeout, &self.resolver, hangs_up);
        match client.get(url.clone()).send().await {
            Err(error) if Connected::is_cause(&error) => Ok(()),
            Err(error) => Err(Failure::from_client(&error, url.host_str().unwrap_or_default(), self.timeout)),
            Ok(_) => Err(Failure::new(FailureKind::Other, "A connection that was to be closed was used.")),
        }
    }

    fn client(&self, url: &Url, live: bool) -> Result<&reqwest::Client, Failure> {
        Ok(match self.reach(url, live)? {
            Reach::Public => &self.public,
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

fn build_client(
    reach: Reach,
    timeout: Duration,
    resolver: &Arc<dyn Resolver>,
    change: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> reqwest::Client {
    #[expect(clippy::disallowed_methods, reason = "this is the client that all others would have to be")]
    let builder = || {
        let builder = reqwest::Client::builder()
            .dns_resolver(CheckedResolver { resolver: Arc::clone(resolver), reach })
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .https_only(reach == Reach::Public)
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .http1_max_headers(MOST_HEADERS)
            .http2_max_header_list_size(LONGEST_HEADER_LIST);
        change(builder)
    };
    builder().build().unwrap_or_else(|error| {
        // A machine without certificates of authorities. Better to start and to fail each secure call with a
        // sentence than not to start; nothing is trusted meanwhile.
        tracing::warn!(%error, "no certificate authorities found: webhooks over https will fail; install ca-certificates");
        builder().tls_certs_only([]).build().expect("a client that trusts nobody needs nothing from the machine")
    })
}
