//! What holds for every page in every state: its weight, its escaping, its words.

use std::collections::BTreeMap;

use super::assets::{ICON, SCRIPT, STYLE, VERIFY_SCRIPT};
use super::text::Locale;

use crate::{mask, pages};

#[path = "../../examples/page_gallery/samples.rs"]
mod samples;

use samples::{Voice, every};

/// The whole first view, uncompressed.
const MOST_BYTES: usize = 30 * 1024;
const MOST_SCRIPT_BYTES: usize = 2 * 1024;
/// It does what elsewhere the server does.
const MOST_VERIFY_SCRIPT_BYTES: usize = 6 * 1024;

#[test]
fn every_page_weighs_little() {
    assert!(SCRIPT.body.len() <= MOST_SCRIPT_BYTES, "script: {}", SCRIPT.body.len());
    assert!(VERIFY_SCRIPT.body.len() <= MOST_VERIFY_SCRIPT_BYTES, "script: {}", VERIFY_SCRIPT.body.len());
    for locale in Locale::ALL {
        for page in every(locale, Voice::Friendly) {
            let script = page.script.map_or(0, |script| script.body.len());
            let bytes = page.html.len() + STYLE.body.len() + ICON.body.len() + script;
            assert!(bytes <= MOST_BYTES, "{} {}: {bytes}", page.name, locale.code());
        }
    }
}

#[test]
fn every_page_loads_only_what_is_ours() {
    for locale in Locale::ALL {
        for page in every(locale, Voice::Friendly) {
            let where_ = format!("{} {}", page.name, locale.code());
            assert!(!page.html.contains(" style="), "inline style: {where_}");
            assert!(!page.html.contains(" onclick"), "inline handler: {where_}");
            assert_eq!(page.html.matches("<style nonce=").count(), 1, "{where_}");
            assert_eq!(page.html.matches("<style").count(), 1, "{where_}");
            for tag in page.html.split("src=\"").skip(1) {
                assert!(tag.starts_with("/assets/"), "{where_}: {tag:.40}");
            }
            for tag in page.html.split("<link ").skip(1) {
                assert!(tag.contains("href=\"/assets/"), "{where_}: {tag:.80}");
            }
            let forms = page.html.matches(" method=\"post\"").count();
            // Outside a dialog such a form sends nothing, with or without its script.
            let silent = page.html.matches("<form method=\"dialog\"").count();
            // A question, which changes nothing.
            let asking = page.html.matches("<form method=\"get\" action=\"/verify\"").count();
            assert_eq!([silent, asking], [usize::from(page.name.starts_with("verify")); 2], "{where_}");
            assert_eq!(page.html.matches("<form").count(), forms + silent + asking, "{where_}");
            assert_eq!(page.html.matches("name=\"form_token\"").count(), forms, "{where_}");
        }
    }
}

/// What a page would hold if one of its fields escaped badly.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' autofocus onfocus='alert(1)",
    "</style><script>x</script>",
    "javascript:alert(1)",
    "https://evil.example/\"onclick=\"x",
    "{ $phone } { -term } &lt;b&gt; &amp;",
    "a\u{2028}b\u{2029}c\u{0}d\u{202e}e\r\nf",
];

#[test]
fn no_field_of_any_page_can_speak_html() {
    for locale in Locale::ALL {
        // Around harmless words and around a harmless address, since an address brings its link along.
        let mut harmless: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in ["plain words", "https://plain.example/"] {
            for page in every(locale, Voice::Hostile(text)) {
                harmless.entry(page.name).or_default().extend(elements(&page.html));
            }
        }
        for text in HOSTILE {
            for page in every(locale, Voice::Hostile(text)) {
                let where_ = format!("{} {} with {text:?}", page.name, locale.code());
                for raw in [
                    "<script>",
                    "<img src=x",
                    "href=\"javascript:",
                    "url=javascript:",
                    "onerror=alert(1)>",
                    "\"onclick",
                    "' autofocus",
                ] {
                    assert!(!page.html.contains(raw), "{raw} in {where_}");
                }
                let mut found = elements(&page.html);
                found.retain(|it| !harmless[&page.name].contains(it));
                assert!(found.is_empty(), "{found:?} in {where_}");
            }
        }
    }
}

/// Names of the elements with the names of their attributes, read as a browser would: quotes respected.
fn elements(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if !rest.starts_with(|it: char| it.is_ascii_alphabetic()) {
            continue;
        }
        let mut shape = String::new();
        let mut quoted = false;
        for character in rest.chars() {
            match character {
                '"' => quoted = !quoted,
                '>' if !quoted => break,
                _ if !quoted => shape.push(character),
                _ => {}
            }
        }
        found.push(shape);
    }
    found
}

const ENGLISH: &str = include_str!("../../locales/en.ftl");
const FRENCH: &str = include_str!("../../locales/fr.ftl");
const FRENCH_LETTERS: &str = include_str!("../../locales/letters.fr.ftl");

/// Key to the arguments that its text uses.
fn keys(source: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut current = "";
    for line in source.lines().filter(|it| !it.starts_with('#')) {
        if line.starts_with(|it: char| it.is_ascii_lowercase()) {
            let (key, _) = line.split_once(" = ").expect("key = text");
            assert!(!keys.contains_key(key), "{key} stands twice");
            current = key;
            keys.insert(key, Vec::new());
        }
        let arguments = line
            .split('$')
            .skip(1)
            .map(|it| it.split(|it: char| !it.is_ascii_alphanumeric()).next().unwrap_or_default());
        if let Some(known) = keys.get_mut(current) {
            known.extend(arguments);
            known.sort_unstable();
            known.dedup();
        }
    }
    keys
}

#[test]
fn every_key_stands_in_every_locale_with_the_same_arguments() {
    let (english, french) = (keys(ENGLISH), keys(FRENCH));
    assert!(english.len() > 100, "the files were read");
    assert_eq!(english, french);
}

/// A line would begin with the mark.
#[test]
fn no_line_breaks_before_a_mark_in_french() {
    for line in [FRENCH, FRENCH_LETTERS].into_iter().flat_map(str::lines).filter(|it| !it.starts_with('#')) {
        assert!(![" ?", " !", " :", " ;", " %"].iter().any(|mark| line.contains(mark)), "{line}");
    }
}

/// The templates and the modules that draw them.
const SOURCES: [&str; 35] = [
    include_str!("payment.rs"),
    include_str!("payment/fields.rs"),
    include_str!("message.rs"),
    include_str!("moment.rs"),
    include_str!("simulator.rs"),
    include_str!("verify.rs"),
    include_str!("../../templates/base.html"),
    include_str!("../../templates/payment.html"),
    include_str!("../../templates/message.html"),
    include_str!("../../templates/simulator.html"),
    include_str!("../../templates/simulator_asks.html"),
    include_str!("../../templates/simulator_outcomes.html"),
    include_str!("../../templates/switch.html"),
    include_str!("../../templates/verify.html"),
    include_str!("../../templates/payment/apart.html"),
    include_str!("../../templates/payment/approve.html"),
    include_str!("../../templates/payment/back.html"),
    include_str!("../../templates/payment/checking.html"),
    include_str!("../../templates/payment/choose.html"),
    include_str!("../../templates/payment/code.html"),
    include_str!("../../templates/payment/field.html"),
    include_str!("../../templates/payment/invoice.html"),
    include_str!("../../templates/payment/kept_apart.html"),
    include_str!("../../templates/payment/leave.html"),
    include_str!("../../templates/payment/leaving.html"),
    include_str!("../../templates/payment/look_again.html"),
    include_str!("../../templates/payment/not_paid.html"),
    include_str!("../../templates/payment/other.html"),
    include_str!("../../templates/payment/order.html"),
    include_str!("../../templates/payment/paid.html"),
    include_str!("../../templates/payment/part.html"),
    include_str!("../../templates/payment/phone.html"),
    include_str!("../../templates/payment/phone_field.html"),
    include_str!("../../templates/payment/receipt.html"),
    include_str!("../../templates/payment/resend.html"),
];

#[test]
fn every_key_that_is_used_exists_and_every_key_that_exists_is_used() {
    let english = keys(ENGLISH);
    let all = SOURCES.concat();
    for call in ["t.get(\"", "t.with(\"", "t.with_two(\"", "t.count(\"", "t.around(\"", "t.around_count(\""] {
        for used in all.split(call).skip(1) {
            let key = used.split('"').next().unwrap_or_default();
            assert!(english.contains_key(key), "no text `{key}`");
        }
    }
    for key in english.keys() {
        let composed = key.starts_with("redirect-") || key.starts_with("test-number-");
        assert!(composed || all.contains(&format!("\"{key}\"")), "`{key}` is never said");
    }
    for part in ["title", "body", "open", "again"] {
        for method in ["wave", "afrimoney", "qmoney", "card"] {
            let key = format!("redirect-{part}-{method}");
            assert!(english.contains_key(key.as_str()), "no text `{key}`");
        }
    }
    assert!(!all.contains("|safe") && !all.contains("| safe"), "raw output");
}

#[test]
fn a_choice_says_what_it_will_do() {
    let pages = every(Locale::English, Voice::Friendly);
    let choose = &pages.iter().find(|it| it.name == "checkout-choose").expect("sampled").html;
    for words in [
        "<b>Pay with Wave</b><span class=\"vh\"> — </span><span class=\"will\">opens the Wave app",
        "1,500.00",
        "Kairaba Books",
        "action=\"/checkout/cs_01jd3v9k2m4x8q7b5n6p0r1s2t/method?lang=en\"",
    ] {
        assert!(choose.contains(words), "{words}");
    }
}

#[test]
fn a_paid_invoice_says_how_and_when() {
    for (locale, words) in [
        (Locale::English, ["21\u{a0}November\u{a0}2026, 15:05 (Banjul time)<br>Cash<br>", "<br>Card<br>"]),
        (Locale::French, ["21\u{a0}novembre\u{a0}2026", "<br>Espèces<br>"]),
    ] {
        let pages = every(locale, Voice::Friendly);
        let paid = &pages.iter().find(|it| it.name == "invoice-paid").expect("sampled").html;
        for words in words.into_iter().chain(["RCT-2026-001", "href=\"/receipts/"]) {
            assert!(paid.contains(words), "{words} in {paid}");
        }
    }
}

#[test]
fn another_way_to_pay_is_named_only_where_there_is_one() {
    for (locale, words) in [(Locale::English, "pay another way"), (Locale::French, "payez autrement")] {
        let pages = every(locale, Voice::Friendly);
        for (several, one) in [("choose-problem", "choose-one-problem"), ("not-paid", "not-paid-one")] {
            let says = |name: &str| {
                let is_of = |it: &&samples::Sample| it.name == format!("checkout-{name}");
                pages.iter().find(is_of).expect("sampled").html.contains(words)
            };
            assert_eq!([says(several), says(one)], [true, false], "{several} {one} {words}");
        }
    }
}

#[test]
fn whoever_is_told_to_wait_can_look_again() {
    let told = [
        "checking",
        "checking-card",
        "phone-problem",
        "part-in-progress",
        "redirect",
        "redirect-again",
        "redirect-only",
    ];
    for (locale, words) in [(Locale::English, "Look again now"), (Locale::French, "Vérifier maintenant")] {
        for page in every(locale, Voice::Friendly).into_iter().filter(|page| !page.name.starts_with("message-")) {
            let can_look = page.html.contains(&format!(">{words}</a>"));
            let is_told = told.iter().any(|name| page.name.ends_with(name));
            assert_eq!(can_look, is_told, "{} {}", page.name, locale.code());
        }
    }
}

/// An app may take the way out, and the page stays.
#[test]
fn what_leads_to_a_rail_is_watched_and_what_leads_to_the_shop_is_not() {
    let (to_rail, to_shop) = (["-redirect", "-redirect-again", "-redirect-only"], ["-leaving", "-left"]);
    let mut seen = 0;
    for page in every(Locale::English, Voice::Friendly) {
        let is_of = |names: &[&str]| names.iter().any(|name| page.name.ends_with(name));
        if is_of(&to_rail) || is_of(&to_shop) {
            let watched = [" data-events=", " data-status="].map(|part| page.html.contains(part));
            assert_eq!(watched, [is_of(&to_rail); 2], "{}", page.name);
            seen += 1;
        }
    }
    assert_eq!(seen, 10, "each in live and in test mode");
}

#[test]
fn what_was_paid_back_whole_is_not_called_paid() {
    let whole = ["checkout-paid-back", "checkout-test-paid-back", "invoice-paid-all-back"];
    for (locale, back, paid) in [
        (Locale::English, "<h1>Paid back</h1>", "paid in full"),
        (Locale::French, "<h1>Remboursé</h1>", "payée en entier"),
    ] {
        for page in every(locale, Voice::Friendly) {
            assert_eq!(page.html.contains(back), whole.contains(&page.name.as_str()), "{}", page.name);
            assert_eq!(page.html.contains(paid), page.name == "invoice-paid", "{}", page.name);
        }
    }
}

#[test]
fn only_waiting_pages_ask_again_and_only_without_script() {
    for page in every(Locale::English, Voice::Friendly) {
        let refreshes = page.html.matches("http-equiv=\"refresh\"").count();
        assert_eq!(refreshes, page.html.matches("<noscript><meta http-equiv=\"refresh\"").count());
        let waits = ["approve", "checking", "redirect", "leaving", "-unknown"];
        assert_eq!(refreshes == 1, waits.iter().any(|it| page.name.contains(it)), "{}", page.name);
    }
}
