//! Which language a page speaks, and its words. The words live in `locales/*.ftl`; a key that is
//! missing is a defect that the tests find, never something a payer sees.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locale {
    English,
    French,
}

impl Locale {
    pub const ALL: [Self; 2] = [Self::English, Self::French];

    /// The primary language subtag, for `lang` attributes and `?lang=`.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }

    /// The one that a page offers beside it.
    pub fn other(self) -> Self {
        match self {
            Self::English => Self::French,
            Self::French => Self::English,
        }
    }

    /// Its own name for itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::French => "Français",
        }
    }

    /// `fr`, `fr-SN`, `FR_fr` …: only the primary subtag counts.
    pub fn parse(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|it| it.code().eq_ignore_ascii_case(primary))
    }

    fn bundle(self) -> &'static Bundle {
        match self {
            Self::English => &ENGLISH,
            Self::French => &FRENCH,
        }
    }
}

/// The language of a page, and whether the payer chose it: then it travels in every address, since
/// there is no cookie to keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language {
    pub locale: Locale,
    pub chosen: bool,
}

impl Language {
    /// `?lang=`, then `Accept-Language`, then the organization's locale, then English.
    pub fn choose(query: Option<&str>, accept_language: Option<&str>, organization: Option<&str>) -> Self {
        if let Some(locale) = query.and_then(Locale::parse) {
            return Self { locale, chosen: true };
        }
        let locale = accept_language
            .and_then(accepted)
            .or_else(|| organization.and_then(Locale::parse))
            .unwrap_or(Locale::English);
        Self { locale, chosen: false }
    }
}

/// The language of ours with the highest weight; of equal weights the first (RFC 9110, 12.5.4). A header longer
/// than any browser sends is cut off.
fn accepted(header: &str) -> Option<Locale> {
    let mut best: Option<(u16, Locale)> = None;
    for range in header.split(',').take(32) {
        let mut parts = range.split(';');
        let Some(locale) = parts.next().and_then(Locale::parse) else {
            continue;
        };
        let weight = parts.find_map(|part| part.trim().strip_prefix("q=")).map_or(1000, thousandths);
        if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, locale));
        }
    }
    best.map(|(_, locale)| locale)
}

/// `0.8` is 800; what is no weight counts as nothing.
fn thousandths(weight: &str) -> u16 {
    let (whole, part) = weight.trim().split_once('.').unwrap_or((weight.trim(), ""));
    match whole {
        "1" => 1000,
        "0" if part.len() <= 3 => format!("{part:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

type Bundle = FluentBundle<FluentResource>;

static ENGLISH: LazyLock<Bundle> = LazyLock::new(|| {
    bundle("en", [include_str!("../../locales/en.ftl"), include_str!("../../locales/letters.en.ftl")])
});
static FRENCH: LazyLock<Bundle> = LazyLock::new(|| {
    bundle("fr", [include_str!("../../locales/fr.ftl"), include_str!("../../locales/letters.fr.ftl")])
});

/// The words of the pages and those of the letters.
fn bundle(code: &str, sources: [&str; 2]) -> Bundle {
    let language = code.parse().expect("a constant language tag");
    let mut bundle = FluentBundle::new_concurrent(vec![language]);
    // Names are isolated by `plain`, where they can be of another direction.
    bundle.set_use_isolating(false);
    for source in sources {
        let resource = FluentResource::try_new(source.to_owned())
            .expect("the locale files are part of the binary and parsed by the tests");
        bundle.add_resource(resource).expect("the tests refuse a key that stands twice");
    }
    bundle
}

/// The words of one locale, as the templates use them.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    pub locale: Locale,
}

/// Stands where an argument goes while a sentence is cut around it; a private-use character that `plain` removes
/// from everything else.
const CUT: &str = "\u{e000}";

impl Text {
    pub fn new(locale: Locale) -> Self {
        Self { locale }
    }

    pub fn get(&self, key: &str) -> String {
        self.format(key, None)
    }

    /// A sentence with one piece of text in it, such as a name.
    pub fn with(&self, key: &str, name: &str, value: impl AsRef<str>) -> String {
        let mut arguments = FluentArgs::new();
        arguments.set(name, plain(value.as_ref()));
        self.format(key, Some(&arguments))
    }

    pub fn with_two(
        &self,
        key: &str,
        (first, first_value): (&str, &str),
        (second, second_value): (&str, &str),
    ) -> String {
        let mut arguments = FluentArgs::new();
        arguments.set(first, plain(first_value));
        arguments.set(second, plain(second_value));
        self.format(key, Some(&arguments))
    }

    /// A sentence with a number in it, in the right plural.
    pub fn count(&self, key: &str, number: u32) -> String {
        let mut arguments = FluentArgs::new();
        arguments.set("count", FluentValue::from(number));
        self.format(key, Some(&arguments))
    }

    /// The sentence before and after its argument, for a template that marks the argument up.
    pub fn around(&self, key: &str, name: &str) -> Around {
        let mut arguments = FluentArgs::new();
        arguments.set(name, CUT);
        cut(&self.format(key, Some(&arguments)))
    }

    pub fn around_count(&self, key: &str, name: &str, number: u32) -> Around {
        let mut arguments = FluentArgs::new();
        arguments.set(name, CUT);
        arguments.set("count", FluentValue::from(number));
        cut(&self.format(key, Some(&arguments)))
    }

    fn format(&self, key: &str, arguments: Option<&FluentArgs<'_>>) -> String {
        let bundle = self.locale.bundle();
        let Some(pattern) = bundle.get_message(key).and_then(|it| it.value()) else {
            debug_assert!(false, "no text `{key}` in {}", self.locale.code());
            return key.to_owned();
        };
        let mut errors = Vec::new();
        let text = bundle.format_pattern(pattern, arguments, &mut errors);
        debug_assert!(errors.is_empty(), "text `{key}`: {errors:?}");
        text.into_owned()
    }
}

/// A sentence in two halves.
#[derive(Debug, Clone)]
pub struct Around {
    pub before: String,
    pub after: String,
}

fn cut(sentence: &str) -> Around {
    let (before, after) = sentence.split_once(CUT).unwrap_or((sentence, ""));
    Around { before: before.to_owned(), after: after.to_owned() }
}

/// Text from outside without what could disguise it: control characters, private use, line breaks of every kind, letters
/// that are drawn as blanks and the marks that turn the direction of what follows. Letters of a right-to-left script are kept,
/// isolated.
pub fn plain(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|it| match it {
            '\u{a0}' | '\u{202f}' => it,
            _ if it.is_whitespace() => ' ',
            _ => it,
        })
        .filter(|it| {
            !it.is_control()
                && !matches!(it,
                    '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{061c}' | '\u{feff}'
                    | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
                    | '\u{e000}'..='\u{f8ff}' | '\u{fff9}'..='\u{ffff}' | '\u{e0000}'..='\u{10ffff}')
        })
        .collect();
    if kept.chars().any(is_right_to_left) { format!("\u{2068}{kept}\u{2069}") } else { kept }
}

/// The blocks of Hebrew, Arabic, N'Ko, Adlam and their neighbours.
fn is_right_to_left(character: char) -> bool {
    matches!(character,
        '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plausible::is_visible;

    #[test]
    fn the_most_wanted_language_wins() {
        let table = [
            (None, None, None, Locale::English, false),
            (Some("fr"), Some("en"), Some("en"), Locale::French, true),
            (Some("xx"), Some("fr-SN,en;q=0.8"), None, Locale::French, false),
            (None, Some("de, en;q=0.3, fr;q=0.9"), None, Locale::French, false),
            (None, Some("fr;q=0, *"), Some("fr"), Locale::French, false),
            (None, Some("en;q=0.5,fr;q=0.5"), Some("fr"), Locale::English, false),
            (None, Some("de"), Some("fr_FR"), Locale::French, false),
            (None, Some("fr;q=banana,en;q=0.001"), None, Locale::English, false),
            (None, Some(";;,,;q=,"), Some("tlh"), Locale::English, false),
        ];
        for (query, header, organization, locale, chosen) in table {
            let language = Language::choose(query, header, organization);
            assert_eq!(language, Language { locale, chosen }, "{query:?} {header:?} {organization:?}");
        }
    }

    #[test]
    fn plain_text_hides_nothing() {
        assert_eq!(plain("A\u{202e}B\u{0}\u{2028}C\tD\u{e000}"), "AB C D");
        assert_eq!(plain("متجر"), "\u{2068}متجر\u{2069}");
        assert_eq!(plain("Épicerie n°7"), "Épicerie n°7");
        // What stands for a letter of Hangul that is not there; its own letters stay, as do the joiners of other scripts.
        assert_eq!(plain("\u{3164}A\u{115f}\u{1160}\u{ffa0}B"), "AB");
        assert_eq!(plain("가게 \u{1100}\u{1161} ｶ"), "가게 \u{1100}\u{1161} ｶ");
        assert_eq!(plain("क्\u{200d}ष क्\u{200c}ष"), "क्\u{200d}ष क्\u{200c}ष");
    }

    #[test]
    fn nothing_of_which_no_page_shows_anything_is_a_name() {
        let unshown = ('\0'..=char::MAX).map(String::from).filter(|name| plain(name).trim().is_empty());
        let named: Vec<String> = unshown.filter(|name| is_visible(name)).collect();
        assert!(named.is_empty(), "{named:?}");
    }

    #[test]
    fn a_sentence_is_cut_around_its_argument() {
        let text = Text::new(Locale::English);
        let around = text.around("approve-sent", "phone");
        assert!(around.before.ends_with("to "), "{around:?}");
        assert!(around.after.starts_with('.'), "{around:?}");
    }
}
