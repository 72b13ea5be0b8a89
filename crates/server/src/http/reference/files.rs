//! Files of the reference, inside the binary: each compressed once, answered compressed to whoever takes it, and not at
//! all to whoever has it already.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use crate::gate::KeptAnyway;

pub(super) struct File {
    /// The last part of its address; with the content's hash in it, if it is an asset.
    pub(super) name: String,
    media: &'static str,
    plain: Bytes,
    compressed: Bytes,
    hash: String,
}

/// Kept compressed in the tree: see `assets/reference/VENDORED.md`.
static RAPIDOC_GZ: &[u8] = include_bytes!("../../../assets/reference/rapidoc-9.3.8.min.js.gz");

pub(super) static RAPIDOC: LazyLock<File> = LazyLock::new(|| {
    let mut plain = Vec::new();
    GzDecoder::new(RAPIDOC_GZ).read_to_end(&mut plain).expect("the vendored file was compressed by gzip");
    let file = File { compressed: Bytes::from_static(RAPIDOC_GZ), ..File::of("rapidoc.js", JAVASCRIPT, plain) };
    file.hashed()
});
pub(super) static SCRIPT: LazyLock<File> = LazyLock::new(|| asset("docs.js", JAVASCRIPT, DOCS_JS));
pub(super) static STYLE: LazyLock<File> = LazyLock::new(|| asset("docs.css", "text/css; charset=utf-8", DOCS_CSS));
pub(super) static ICON: LazyLock<File> = LazyLock::new(|| asset("icon.svg", "image/svg+xml", ICON_SVG));

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const DOCS_JS: &str = include_str!("../../../assets/reference/docs.js");
const DOCS_CSS: &str = include_str!("../../../assets/reference/docs.css");
const ICON_SVG: &str = include_str!("../../../assets/icon.svg");

/// The asset at exactly this name: an old hash is gone, never answered with new bytes.
pub(super) fn find(name: &str) -> Option<&'static File> {
    [&*RAPIDOC, &*SCRIPT, &*STYLE, &*ICON].into_iter().find(|file| file.name == name)
}

fn asset(name: &str, media: &'static str, text: &str) -> File {
    File::new(name, media, text.as_bytes().to_vec()).hashed()
}

impl File {
    pub(super) fn new(name: &str, media: &'static str, plain: Vec<u8>) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(&plain).and_then(|()| encoder.finish()).expect("memory takes it all");
        Self { compressed: compressed.into(), ..Self::of(name, media, plain) }
    }

    fn of(name: &str, media: &'static str, plain: Vec<u8>) -> Self {
        let mut hash = String::new();
        for byte in &digest(&SHA256, &plain).as_ref()[..8] {
            write!(hash, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Self { name: name.to_owned(), media, plain: plain.into(), compressed: Bytes::new(), hash }
    }

    fn hashed(mut self) -> Self {
        let (stem, ending) = self.name.rsplit_once('.').expect("assets have an ending");
        self.name = format!("{stem}-{}.{ending}", self.hash);
        self
    }

    pub(super) fn answer(&self, request: &HeaderMap, caching: &'static str) -> Response {
        let is_compressed = takes_gzip(request);
        // Strong: equal tags are equal bytes, so each form has its own.
        let tag = format!("\"{}{}\"", self.hash, if is_compressed { "-gzip" } else { "" });
        let mut headers = HeaderMap::with_capacity(5);
        headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if has(request, &tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media));
        if is_compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let body = if is_compressed { &self.compressed } else { &self.plain };
        (headers, Extension(KeptAnyway), body.clone()).into_response()
    }
}

fn takes_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn has(request: &HeaderMap, tag: &str) -> bool {
    let known = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known
        .flat_map(|value| value.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|it| it == tag || it == "*")
}
