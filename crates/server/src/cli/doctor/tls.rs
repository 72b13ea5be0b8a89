//! Whether payers and programs come by TLS, and for how long the certificate that they see holds.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::report::{Finding, Status};
use crate::authorities;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Addresses, ServeSettings};

/// What renews by itself has done so before.
const FEW_DAYS: u64 = 14;
/// No public authority signs for longer, and no search has to go further.
const MANY_DAYS: u64 = 4000;
const DAY: Duration = Duration::from_secs(24 * 3600);

const SERVE_BY_TLS: &str = "Serve by TLS (tls-cert and tls-key, or a proxy in front) and set public-url to https://….";
const RENEW: &str = "Put a certificate for this name in place, with its chain, from an authority that clients know; restart \
                     `dalasi serve` if it holds the files.";

pub(super) async fn look(settings: &ServeSettings, addresses: &Addresses) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(fault) = settings.listener() {
        findings
            .push(Finding::failed(fault.to_string(), "Mend tls-cert and tls-key; `serve` does not start with them."));
    }
    let Addresses { public_url, pay_url, donate_url } = addresses;
    let mut seen: Vec<(String, u16)> = Vec::new();
    for (name, address) in [("public-url", public_url), ("pay-url", pay_url), ("donate-url", donate_url)] {
        // The settings were checked.
        let Ok(url) = Url::parse(address) else { continue };
        let place = (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(443));
        if seen.contains(&place) {
            continue;
        }
        seen.push(place.clone());
        findings.push(match url.scheme() {
            _ if name == "donate-url" => Finding::ok(format!("{name} is {address}: no page is served there yet")),
            "https" => certificate(address, &place).await,
            _ if !is_near(&url) => {
                let found = format!("{name} is {address}: keys, names and payments go over the network in the clear");
                Finding::failed(found, SERVE_BY_TLS)
            }
            _ if !settings.listen.ip().is_loopback() => {
                let found = format!("{name} is {address}, but others can reach this machine at {}", settings.listen);
                Finding::warning(found, SERVE_BY_TLS)
            }
            _ => Finding::ok(format!("{name} is {address}: on this machine nothing has to be encrypted")),
        });
    }
    findings
}

fn is_near(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

async fn certificate(address: &str, (host, port): &(String, u16)) -> Finding {
    let failed = |why: String| Finding::failed(format!("{address}: {why}"), RENEW);
    let verifier = match verifier() {
        Ok(verifier) => verifier,
        Err(why) => return Finding::failed(why, "Install ca-certificates."),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(name) = ServerName::try_from(host.to_owned()) else {
        return failed("no certificate can be for this name".into());
    };
    let stream = match TcpStream::connect((host, *port)).await {
        Ok(stream) => stream,
        Err(error) => {
            let found = format!("{address} can't be reached from here: {error}");
            return Finding::warning(found, "See whether it can be from outside; its certificate was not looked at.");
        }
    };
    let chain = match handshake(stream, &verifier, name.clone()).await {
        Ok(chain) => chain,
        Err(why) => return failed(format!("its certificate does not verify: {why}")),
    };
    let now = Duration::from_micros(SystemClock::new().now_us().unsigned_abs());
    let holds = |days: u64| {
        let Some((end_entity, intermediates)) = chain.split_first() else { return false };
        let at = UnixTime::since_unix_epoch(now + DAY * u32::try_from(days).unwrap_or(u32::MAX));
        verifier.verify_server_cert(end_entity, intermediates, &name, &[], at).is_ok()
    };
    let days = days_left(holds);
    let found = format!("{address}: its certificate verifies, and does for {days} days more");
    let status = if days < FEW_DAYS { Status::Warning } else { Status::Ok };
    Finding::of(status, found, "Renew it; see why that did not happen by itself.")
}

/// The last day on which the chain still holds: asked of the verifier, as a client will.
fn days_left(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut holding, mut over) = (0, MANY_DAYS);
    while over - holding > 1 {
        let middle = holding.midpoint(over);
        if holds(middle) {
            holding = middle;
        } else {
            over = middle;
        }
    }
    holding
}

/// By the authorities that this system trusts.
fn verifier() -> Result<Arc<WebPkiServerVerifier>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities::of_this_machine()), provider).build();
    verifier.map_err(|error| format!("certificates can't be verified on this machine: {error}"))
}

async fn handshake(
    stream: TcpStream,
    verifier: &Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_webpki_verifier(Arc::clone(verifier))
        .with_no_client_auth();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())?;
    let (_, session) = stream.get_ref();
    Ok(session.peer_certificates().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServeArguments;

    /// Whatever answers there, payers lose nothing by it.
    #[tokio::test]
    async fn where_no_page_is_served_nothing_is_looked_at() {
        let settings = ServeSettings::load(ServeArguments::default()).expect("sound");
        let here = || "http://localhost:8080".to_owned();
        let donate_url = "https://give.invalid".to_owned();
        let addresses = Addresses { public_url: here(), pay_url: here(), donate_url };
        let found = look(&settings, &addresses).await;
        let told = Finding::ok("donate-url is https://give.invalid: no page is served there yet");
        assert_eq!((found.len(), found.last()), (2, Some(&told)));
    }

    #[test]
    fn the_last_day_is_found() {
        for last in [0, 1, 13, 14, 89, 397, 3999] {
            assert_eq!(days_left(|days| days <= last), last);
        }
        assert_eq!(days_left(|_| false), 0);
        assert_eq!(days_left(|_| true), MANY_DAYS - 1);
    }
}
