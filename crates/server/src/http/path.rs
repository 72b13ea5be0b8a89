//! The variable part of an address.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

/// An id or a name out of an address, whatever it is: what is no UTF-8 is no id either, and is not found as such.
pub(super) struct InPath(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for InPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let text = Path::<String>::from_request_parts(parts, state).await.map(|Path(text)| text);
        Ok(Self(text.unwrap_or_default()))
    }
}
