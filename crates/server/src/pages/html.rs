//! What all pages share: the frame around them, and which links a page may hold.

use super::assets::{ICON, STYLE};
use super::contrast::Accent;
use super::headers::Nonce;
use super::text::Language;
use super::visit;

/// The head of a page and its language switch.
pub(super) struct Frame {
    pub(super) nonce: String,
    pub(super) accent_light: String,
    pub(super) accent_dark: String,
    pub(super) icon: &'static str,
    pub(super) style: &'static str,
    pub(super) style_integrity: &'static str,
    pub(super) switch: Switch,
}

/// The other language, as a link that works without script.
pub(super) struct Switch {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) href: String,
}

impl Frame {
    /// `kept`: what the address of the page says besides, in the other language as well.
    pub(super) fn new(
        nonce: &Nonce,
        accent: Option<&str>,
        language: Language,
        path: &str,
        kept: &[(&str, &str)],
    ) -> Self {
        let accent = Accent::new(accent);
        let other = language.locale.other();
        let in_other = Language { locale: other, chosen: true };
        Self {
            nonce: nonce.as_str().to_owned(),
            accent_light: accent.light.css(),
            accent_dark: accent.dark.css(),
            icon: &ICON.path,
            style: &STYLE.path,
            style_integrity: &STYLE.integrity,
            switch: Switch {
                code: other.code(),
                name: other.name(),
                href: visit::address(own_path(path).unwrap_or("/"), in_other, kept),
            },
        }
    }
}

/// The address of a page or an action of ours, with the language that the payer chose.
pub(super) fn address(path: &str, language: Language) -> String {
    let path = own_path(path).unwrap_or("/");
    if language.chosen { format!("{path}?lang={}", language.locale.code()) } else { path.to_owned() }
}

/// A path on this host: one slash, then nothing that a browser could read as another host.
pub(super) fn own_path(path: &str) -> Option<&str> {
    let mut bytes = path.bytes();
    let rooted = bytes.next() == Some(b'/') && !matches!(bytes.next(), Some(b'/' | b'\\'));
    (rooted && path.bytes().all(is_plain)).then_some(path)
}

/// Where a link may lead: https anywhere, a path of ours, and in test mode http too, for a shop that is still on its
/// developer's machine. Never `javascript:`, `data:` or an app's own scheme.
pub(super) fn outward(url: &str, test_mode: bool) -> Option<&str> {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let known = lower.starts_with("https://") || (test_mode && lower.starts_with("http://"));
    if known && url.bytes().all(is_plain) {
        return Some(url);
    }
    own_path(url)
}

/// Browsers drop tabs and line breaks from an address and turn backslashes; addresses that are stored hold none.
fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && byte != b'\\'
}

/// The first letter or digit of a name, for a merchant without a logo.
pub(super) fn initial(name: &str) -> String {
    name.chars().find(|it| it.is_alphanumeric()).map(|it| it.to_uppercase().collect()).unwrap_or_default()
}

/// For `Template` types: rendering only writes to memory.
pub(super) fn render(template: &impl askama::Template) -> String {
    template.render().expect("writing to a string cannot fail, and our templates return no errors of their own")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_only_where_a_payer_may_go() {
        let table = [
            ("https://shop.example/a?b=1#c", true, true),
            ("HTTPS://shop.example", true, true),
            ("http://127.0.0.1:3000/", false, true),
            ("/simulator/abc", true, true),
            ("//evil.example", false, false),
            ("/\\evil.example", false, false),
            ("javascript:alert(1)", false, false),
            ("https:evil", false, false),
            ("\thttps://shop.example", false, false),
            ("https://shop.example/\nx", false, false),
            ("data:text/html,x", false, false),
            ("wave://pay", false, false),
            ("", false, false),
            ("é", false, false),
        ];
        for (url, live, test) in table {
            assert_eq!(outward(url, false).is_some(), live, "live {url:?}");
            assert_eq!(outward(url, true).is_some(), test, "test {url:?}");
        }
    }

    #[test]
    fn a_name_has_an_initial() {
        assert_eq!(initial("  kairaba Books"), "K");
        assert_eq!(initial("“Épicerie”"), "É");
        assert_eq!(initial("!?"), "");
    }
}
