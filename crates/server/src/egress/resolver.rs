//! Names to addresses, with the check in between: whatever connects can only get addresses that passed it.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower::{BoxError, Service};

use super::address;
use super::policy::Reach;

pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Asks for all addresses of a name. Outside of tests, [`SystemResolver`].
pub trait Resolver: Send + Sync {
    fn resolve(&self, name: &str) -> Resolving;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> Resolving {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A name that can't be called.
#[derive(Debug)]
pub(super) enum ResolveFault {
    /// One of its addresses, at least, is off limits.
    Forbidden,
    /// It has no address, or the name server didn't say.
    Unknown(io::Error),
}

/// Resolves once, and gives addresses only if every one of them may be reached: a name with one good and one bad
/// address is an attack or a mistake, never a receiver.
pub(super) async fn resolve_checked(
    resolver: &dyn Resolver,
    name: &str,
    reach: Reach,
) -> Result<Vec<IpAddr>, ResolveFault> {
    let addresses = resolver.resolve(name).await.map_err(ResolveFault::Unknown)?;
    if addresses.is_empty() {
        return Err(ResolveFault::Unknown(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    let allowed = |address: &IpAddr| match reach {
        Reach::Public => address::is_public(*address),
        Reach::Loopback => address::is_loopback(*address),
    };
    if addresses.iter().all(allowed) { Ok(addresses) } else { Err(ResolveFault::Forbidden) }
}

/// What the HTTP client asks when it opens a connection. One per reach, and one client per reach, so that a
/// connection that is kept open was made to an address that was checked for the same reach.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) reach: Reach,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (resolver, reach) = (Arc::clone(&self.resolver), self.reach);
        Box::pin(async move {
            let addresses = match domain::planted!(Defect::RegistrationCheckOnly) {
                true => resolver.resolve(name.as_str()).await?,
                false => resolve_checked(&*resolver, name.as_str(), reach).await?,
            };
            // The client puts in the URL's port.
            let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(addresses.into_iter())
        })
    }
}

impl fmt::Display for ResolveFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => formatter.write_str("an address of the name is off limits"),
            Self::Unknown(error) => write!(formatter, "the name can't be resolved: {error}"),
        }
    }
}

impl std::error::Error for ResolveFault {}
