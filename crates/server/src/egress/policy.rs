//! Which URLs may be called at all: everything that can be said without asking a name server.
//!
//! The text is checked before it is parsed, because the parser of browsers, which reads it here too, forgives what
//! hides a destination: it drops tabs and line breaks, takes `\` for `/` and any number of slashes after the scheme.
//! What the name resolves to is checked at each connection, not here.

use std::fmt;

use url::{Host, Url};

const LONGEST_URL: usize = 2048;
const LONGEST_HOST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// Names that never mean a machine on the internet (RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476, and
/// `internal`, which ICANN reserved).
const INNER_SUFFIXES: [&str; 8] =
    ["localhost", "local", "internal", "home.arpa", "in-addr.arpa", "ip6.arpa", "onion", "invalid"];

/// Where a URL leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the public internet, and nowhere else.
    Public,
    /// To this machine, and nowhere else.
    Loopback,
}

/// What is wrong with a URL, with the code for the `details` of an answer and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFault {
    pub code: &'static str,
    pub message: String,
}

fn malformed(message: &str) -> UrlFault {
    UrlFault { code: "invalid_format", message: message.to_owned() }
}

fn not_allowed(message: &str) -> UrlFault {
    UrlFault { code: "not_allowed", message: message.to_owned() }
}

/// Checks the text of a URL. `loopback` says whether this machine may be called.
pub(super) fn check_text(text: &str, loopback: bool) -> Result<Url, UrlFault> {
    if text.len() > LONGEST_URL {
        return Err(UrlFault { code: "too_long", message: format!("The URL has more than {LONGEST_URL} characters.") });
    }
    let unsafe_character = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '\\';
    if text.contains(unsafe_character) {
        return Err(malformed("The URL contains a blank, a backslash or a control character."));
    }
    let rest = strip_scheme(text).ok_or_else(|| malformed("The URL has to begin with https://."))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(malformed("The URL has no host."));
    }
    if authority.contains('@') {
        return Err(not_allowed("The URL must not contain a user name or password."));
    }
    if authority.contains('%') {
        return Err(malformed("The host must not be percent-encoded."));
    }
    let url = Url::parse(text).map_err(|error| malformed(&format!("The URL is malformed: {error}.")))?;
    if url.as_str().len() > LONGEST_URL {
        return Err(UrlFault { code: "too_long", message: format!("The URL has more than {LONGEST_URL} characters.") });
    }
    // 127.1, 0x7f.1 and 2130706433 all mean an address that nobody would recognise.
    let is_address = matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_)));
    if is_address && !url.host_str().is_some_and(|host| authority.starts_with(host)) {
        return Err(not_allowed("The IP address has to be written in its usual form."));
    }
    reach(&url, loopback)?;
    Ok(url)
}

/// Checks a parsed URL and says where it leads.
pub(super) fn reach(url: &Url, loopback: bool) -> Result<Reach, UrlFault> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(not_allowed("The URL must not contain a user name or password."));
    }
    let secure = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(not_allowed("The URL has to begin with https://.")),
    };
    let host = url.host().ok_or_else(|| malformed("The URL has no host."))?;
    let port = url.port_or_known_default().ok_or_else(|| malformed("The URL has no port."))?;

    if let Host::Domain(name) = host {
        check_labels(name)?;
    }
    if loopback && names_this_machine(&host) {
        return match port {
            0 => Err(not_allowed("Port 0 can't be called.")),
            _ => Ok(Reach::Loopback),
        };
    }
    if !secure {
        return Err(not_allowed("The URL has to begin with https://."));
    }
    let Host::Domain(name) = host else {
        return Err(not_allowed("The URL has to name its host, not an IP address."));
    };
    check_ending(name)?;
    if port != 443 && port < 1024 {
        return Err(not_allowed("The port has to be 443, or 1024 and above."));
    }
    Ok(Reach::Public)
}

fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")).then_some(rest)
}

fn names_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// The parser has lower-cased the name and turned other scripts into punycode. A trailing dot is refused: it makes
/// a second spelling of every name.
fn check_labels(name: &str) -> Result<(), UrlFault> {
    let label_is_good = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > LONGEST_HOST || !name.split('.').all(label_is_good) {
        return Err(malformed("The host is not a valid name."));
    }
    Ok(())
}

/// Two labels at least, and none of the endings that lead nowhere or inside.
fn check_ending(name: &str) -> Result<(), UrlFault> {
    let inner =
        |suffix: &str| name.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    if !name.contains('.') || INNER_SUFFIXES.into_iter().any(inner) {
        return Err(not_allowed("The host has to be reachable from the public internet."));
    }
    Ok(())
}

impl fmt::Display for UrlFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for UrlFault {}
