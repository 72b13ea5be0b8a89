//! The files beside the pages: one style sheet, a script for payments and one for receipts, one icon, all inside the binary. Each is
//! addressed by its content (`/assets/pages-<hash>.css`), so a browser may keep it for ever and an
//! upgrade is seen at once.

use std::fmt::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, SHA384, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub struct Asset {
    /// The whole path: `/assets/pages-0123456789abcdef.css`.
    pub path: String,
    pub body: String,
    pub content_type: &'static str,
    /// For the attribute `integrity`.
    pub integrity: String,
    hash: String,
}

impl Asset {
    fn new(name: &str, ending: &str, content_type: &'static str, source: &str) -> Self {
        let body = packed(source);
        let mut hash = String::new();
        for byte in &digest(&SHA256, body.as_bytes()).as_ref()[..8] {
            write!(hash, "{byte:02x}").expect("writing to a string cannot fail");
        }
        let integrity = STANDARD.encode(digest(&SHA384, body.as_bytes()));
        Self {
            path: format!("/assets/{name}-{hash}.{ending}"),
            integrity: format!("sha384-{integrity}"),
            body,
            content_type,
            hash,
        }
    }

    /// Strong: equal tags are equal bytes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}

pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("pages", "css", "text/css; charset=utf-8", include_str!("../../assets/pages.css")));

pub static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("payment", "js", "text/javascript; charset=utf-8", include_str!("../../assets/payment.js"))
});

pub static VERIFY_SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("verify", "js", "text/javascript; charset=utf-8", include_str!("../../assets/verify.js"))
});

pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg")));

/// The file at exactly this path, or nothing: an old hash is gone, never answered with new bytes.
pub fn find(path: &str) -> Option<&'static Asset> {
    all().into_iter().find(|it| it.path == path)
}

pub fn all() -> [&'static Asset; 4] {
    [&STYLE, &SCRIPT, &VERIFY_SCRIPT, &ICON]
}

/// Without indentation, empty lines and whole-line comments, which are for readers of the source and not for a slow
/// network. Our files hold no text over several lines that this could change.
fn packed(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.lines().map(str::trim) {
        let comment = line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
        if !line.is_empty() && !comment {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_content_only() {
        for asset in all() {
            assert_eq!(find(&asset.path).map(|it| it.etag()), Some(asset.etag()));
        }
        assert!(find("/assets/pages-0000000000000000.css").is_none());
        assert!(find("/assets/../Cargo.toml").is_none());
        assert!(find("").is_none());
    }

    #[test]
    fn another_byte_is_another_address() {
        let one = Asset::new("a", "css", "text/css", "b{}");
        let other = Asset::new("a", "css", "text/css", "b{ }");
        assert_ne!(one.path, other.path);
        assert_ne!(one.etag(), other.etag());
        assert_ne!(one.integrity, other.integrity);
    }

    #[test]
    fn packing_drops_only_what_nobody_runs() {
        let source = "/* why */\n  a {\n    b: url(//c);\n\n  }\n// no\nx //y\n";
        assert_eq!(packed(source), "a {\nb: url(//c);\n}\nx //y\n");
    }
}
