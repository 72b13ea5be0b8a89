//! The headers that every page carries, and those of the files beside it. They are the second lock:
//! should escaping ever fail, nothing foreign runs, loads, frames the page or learns its address.

use std::fmt::Write as _;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use super::assets::Asset;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// A value that allows one inline style sheet, for one answer: pass 16 fresh random bytes.
#[derive(Debug, Clone)]
pub struct Nonce(String);

impl Nonce {
    pub fn from_random(bytes: [u8; 16]) -> Self {
        let mut text = String::with_capacity(32);
        for byte in bytes {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// For HTML. `https` says whether the payer reached us by TLS (`--public-url`): over plain http a browser ignores HSTS,
/// and a shop's own network may have nothing else.
pub fn for_page(nonce: &Nonce, https: bool) -> HeaderMap {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; img-src 'self'; \
         connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        nonce.as_str()
    );
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).expect("a constant and hexadecimal digits"));
    if https {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=63072000"));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(
        PERMISSIONS_POLICY,
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    );
    headers
}

/// For a file under `/assets/`: its address holds its hash, so it never changes.
pub fn for_asset(asset: &Asset) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(5);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(ETAG, HeaderValue::from_str(&asset.etag()).expect("hexadecimal digits in quotes"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers
}

/// For a merchant's picture: its address holds its digest, so it never changes.
pub(super) fn for_picture(digest: &str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("image/png"));
    headers.insert(ETAG, HeaderValue::from_str(&format!("\"{digest}\"")).expect("hexadecimal digits in quotes"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_load_only_what_is_ours() {
        let headers = for_page(&Nonce::from_random([0xab; 16]), true);
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("ascii");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self' 'nonce-abababababababababababababababab'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        assert_eq!(headers[REFERRER_POLICY], "no-referrer");
        assert_eq!(headers[STRICT_TRANSPORT_SECURITY], "max-age=63072000");
    }

    #[test]
    fn plain_http_promises_no_tls() {
        let headers = for_page(&Nonce::from_random([0; 16]), false);
        assert!(!headers.contains_key(STRICT_TRANSPORT_SECURITY));
    }
}
