//! The accept loop: who may connect, how slow they may be, and how the server stops.
//!
//! The usual default server waits for a slow client for ever; here every wait has an end: first byte, headers, body,
//! an answer that nobody takes, or takes for ever, idleness. It hands requests to a router and knows nothing of what they mean.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use self::activity::Activity;
use self::connection::{Protocol, Watched};
use self::places::{Place, Places};
use crate::metrics;

mod activity;
mod client_address;
mod connection;
mod places;
mod shares;
mod tls;

pub use client_address::{ClientAddress, network, site};
pub(crate) use shares::{NETWORKS_OF_SITE, Shares};
pub use tls::{TlsFault, tls_config};

/// On a response that is not to be sent: nobody knows what came of the request, so that any status would be a guess. The
/// connection ends instead (contract §1.8).
#[derive(Debug, Clone, Copy)]
pub struct Unsayable;

#[derive(Debug, Clone)]
pub struct ListenerSettings {
    /// From the connection to its first byte.
    pub first_byte_timeout: Duration,
    /// From a request's first byte to the end of its headers; also for a TLS handshake.
    pub header_timeout: Duration,
    /// From the end of the headers to the end of the body.
    pub body_timeout: Duration,
    /// How long a part of an answer may wait to be taken.
    pub write_timeout: Duration,
    /// How long an answer may take in all, beside what its length takes at the slowest rate.
    pub answer_timeout: Duration,
    /// In bytes a second: that of a telephone where there is hardly a network.
    pub slowest_answer: NonZeroU32,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// How long requests that run at shutdown may still take.
    pub drain_timeout: Duration,
    /// As many requests may be under way on connections of HTTP/2, counted apart: each takes as much as a connection of HTTP/1.
    pub most_connections: usize,
    /// An address is an IPv4 address or an IPv6 /64, and those of a /48 have four times as many together. Not applied to loopback, nor
    /// behind trusted proxies.
    pub most_connections_per_address: usize,
    /// How many proxies in front of us append to `X-Forwarded-For`.
    pub trusted_proxies: usize,
    pub tls: Option<Arc<ServerConfig>>,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            first_byte_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
            slowest_answer: const { NonZeroU32::new(8 * 1024).unwrap() },
            idle_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(25),
            most_connections: 16_384,
            most_connections_per_address: 1024,
            trusted_proxies: 0,
            tls: None,
        }
    }
}

/// What every connection is served with.
#[derive(Clone)]
struct Serving {
    router: Router,
    settings: Arc<ListenerSettings>,
    /// For the requests on connections of HTTP/2.
    streams: Arc<Places>,
}

impl Serving {
    fn new(router: Router, settings: Arc<ListenerSettings>) -> Self {
        let streams = Places::new(&settings);
        Self { router, settings, streams }
    }
}

/// One that is open.
struct Connection {
    _place: Place,
}

impl Connection {
    fn new(place: Place) -> Self {
        metrics::connection_opened();
        Self { _place: place }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        metrics::connection_closed();
    }
}

/// Serves until `shutdown` ends; then accepts no more, lets running requests finish, and returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenerSettings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let settings = Arc::new(settings);
    let tls = settings.tls.clone().map(TlsAcceptor::from);
    let places = Places::new(&settings);
    let serving = Serving::new(router, settings.clone());
    let (drain, draining) = watch::channel(false);
    let mut connections = JoinSet::new();

    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        // What has no place is closed at once.
        let connection = match places.take(peer.ip()) {
            Ok(place) => Connection::new(place),
            Err(crowded) => {
                metrics::connection_refused(crowded.as_str());
                continue;
            }
        };
        let (serving, tls, draining) = (serving.clone(), tls.clone(), draining.clone());
        connections.spawn(async move {
            // Held until it ends.
            let _connection = connection;
            serve_connection(stream, peer, tls, serving, draining).await;
        });
    }

    drop(listener);
    if domain::planted!(Defect::ListenerDroppedFirst) {
        connections.abort_all();
    }
    drain.send_replace(true);
    let all_done = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(settings.drain_timeout, all_done).await.is_err() {
        let left = connections.len();
        tracing::warn!(connections = left, "shutdown does not wait for them any longer");
        connections.shutdown().await;
    }
    Ok(())
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    serving: Serving,
    draining: watch::Receiver<bool>,
) {
    // Answers are written whole, so waiting for more only delays them.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    // Boxed, so that a connection takes the memory of what it is and not of all that it could be.
    match tls {
        None => Box::pin(serve_plain(stream, peer, serving, draining)).await,
        Some(tls) => Box::pin(serve_encrypted(stream, peer, tls, serving, draining)).await,
    }
}

async fn serve_plain(stream: TcpStream, peer: SocketAddr, serving: Serving, mut draining: watch::Receiver<bool>) {
    let settings = &serving.settings;
    let protocol = tokio::select! {
        biased;
        _ = draining.wait_for(|is_draining| *is_draining) => return,
        begun = tokio::time::timeout(settings.first_byte_timeout, Protocol::of(&stream)) => match begun {
            Ok(Ok(protocol)) => protocol,
            Ok(Err(_)) => return,
            Err(_) => return metrics::connection_cut("first_byte"),
        },
    };
    let activity = Activity::new(settings.clone());
    let stream = Watched::new(stream, activity.clone());
    connection::run(stream, activity, protocol, peer, serving, draining).await;
}

async fn serve_encrypted<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: I,
    peer: SocketAddr,
    tls: TlsAcceptor,
    serving: Serving,
    draining: watch::Receiver<bool>,
) {
    let settings = &serving.settings;
    let activity = Activity::new(settings.clone());
    let stream = Watched::new(stream, activity.clone());
    match Box::pin(tokio::time::timeout(settings.header_timeout, tls.accept(stream))).await {
        Ok(Ok(stream)) => {
            activity.handshake_ended();
            let protocol = Protocol::agreed(&stream);
            Box::pin(connection::run(stream, activity, protocol, peer, serving, draining)).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => metrics::connection_cut("tls_handshake"),
    }
}

/// Most accept errors are of one connection; without descriptors left, a short rest lets others end.
async fn pause_after(error: &io::Error) {
    let is_of_one_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !is_of_one_connection {
        tracing::error!(%error, "no connection can be accepted; trying again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests;
