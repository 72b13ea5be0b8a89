//! Whether a text looks like an address on the web or of a mailbox, or like a name. Proves nothing and asks nobody.

use url::Url;

use crate::receipt_statement::fold;

pub const LONGEST_URL: usize = 2048;
pub const LONGEST_EMAIL: usize = 254;

/// An absolute http or https address without user information.
pub fn is_web_address(text: &str) -> bool {
    is_ordinary(text) || is_one_to_the_parser(text)
}

/// As nearly all are, so that nothing has to be taken apart: a host of plain labels, the last of letters, and nothing behind it
/// that the parser would look at twice.
fn is_ordinary(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (host, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        // Two hyphens may begin what stands for other letters.
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.contains("--")
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let Some((before, last)) = host.rsplit_once('.') else { return false };
    host.len() <= 253
        && before.split('.').all(is_label)
        && last.len() <= 63
        && !last.is_empty()
        && last.bytes().all(|byte| byte.is_ascii_lowercase())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~?=&%#+:,".contains(&byte))
}

fn is_one_to_the_parser(text: &str) -> bool {
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

/// Whether anybody sees a name: it has more than blanks, what is drawn by nothing, and what no page shows.
pub fn is_visible(name: &str) -> bool {
    let is_left_out = |letter: char| matches!(letter, '\u{fff9}'..='\u{ffff}' | '\u{e0000}'..='\u{10ffff}');
    !fold(name).chars().all(is_left_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The quick look says yes to nothing that the parser refuses.
        #[test]
        fn what_is_ordinary_is_an_address(text in "https?://[a-z0-9.-]{0,12}(\\.[a-z]{0,3})?([/?#:%=&+,._~@]|[a-zA-Z0-9-]){0,16}") {
            prop_assert!(!is_ordinary(&text) || is_one_to_the_parser(&text), "{}", text);
        }
    }

    #[test]
    fn a_name_is_what_somebody_sees() {
        for name in ["Kairaba Books", "K", " 7 ", "متجر", "हिन्दी", "가게", "\u{200b}.", "🛒"] {
            assert!(is_visible(name), "{name:?}");
        }
        for name in
            ["", " ", "\u{a0}\t", "\u{200b}", "\u{3164}", "\u{115f}\u{1160}", "\u{ffa0} \u{200d}", "\u{e000}\u{fffd}"]
        {
            assert!(!is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn the_quick_look_sees_ordinary_addresses() {
        for text in [
            "https://shop.example/orders/000000000001/thank-you",
            "https://shop.example",
            "http://a-1.shop.example/?a=1&b=%26#top",
        ] {
            assert!(is_ordinary(text) && is_one_to_the_parser(text), "{text}");
        }
        for text in [
            "https://user@shop.example/",
            "https://shop.example:8443/",
            "https://127.0.0.1/",
            "https://1.2.3.0xff/",
            "https://xn--80ak6aa92e.example/",
            "https:///shop.example",
            "https://shop..example/",
            "HTTPS://shop.example",
            "https://localhost/",
            "https://shop.example\\x",
            "https://shop.example/é",
        ] {
            assert!(!is_ordinary(text), "{text}");
        }
    }
}
