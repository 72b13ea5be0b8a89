//! Whether a text looks like an address on the web or of a mailbox. Proves nothing and asks nobody.

use url::Url;

pub const LONGEST_URL: usize = 2048;
pub const LONGEST_EMAIL: usize = 254;

/// An absolute http or https address without user information.
pub fn is_web_address(text: &str) -> bool {
    // The parser is as lenient as a browser (`http:\\host`, tabs inside): ask for the plain form first.
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let plain = (lower.starts_with("http://") || lower.starts_with("https://"))
        && !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\');
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    plain
        && matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        // The parser drops an empty user name (`https://@host`) and skips slashes (`https:///host`).
        && !authority(text).is_empty()
        && !authority(text).contains('@')
}

fn authority(text: &str) -> &str {
    let rest = text.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or("")
}

/// Only a message that arrives proves one.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let local_is_sane = !local.is_empty()
        && local.len() <= 64
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        && local.chars().all(|c| (c.is_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c)) && !c.is_whitespace());
    let domain_is_sane = domain.split('.').count() >= 2
        && domain.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        });
    local_is_sane && domain_is_sane
}
