//! The name of one request, in its answer, in its error body and on every log line.

use std::sync::Arc;

use aws_lc_rs::rand;
use axum::extract::FromRequestParts;
use http::request::Parts;
use type_safe_id::{DynamicType, TypeSafeId};
use uuid::Builder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// `req_` and a new UUIDv7 as 26 characters.
    pub fn new() -> Self {
        let mut random = [0; 10];
        rand::fill(&mut random).expect("the system's random source does not fail once it has started");
        #[expect(clippy::disallowed_methods, reason = "an id sorts by its time and nothing is decided by it")]
        let now = jiff::Timestamp::now();
        let now_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let uuid = Builder::from_unix_timestamp_millis(now_ms, &random).into_uuid();
        let kind = DynamicType::new("req").expect("`req` is a valid prefix");
        Self(TypeSafeId::from_type_and_uuid(kind, uuid).to_string().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id that `envelope::close` has given to the request.
impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let id = parts.extensions.get::<Self>().cloned();
        Ok(id.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_type_id_and_never_the_same() {
        let (one, two) = (RequestId::new(), RequestId::new());
        assert_ne!(one, two);
        let parsed: TypeSafeId<DynamicType> = one.as_str().parse().expect("a TypeID");
        assert_eq!(parsed.type_prefix(), "req");
        assert_eq!(parsed.uuid().get_version_num(), 7);
    }
}
