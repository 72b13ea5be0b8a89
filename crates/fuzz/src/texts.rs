//! Single values: what a field, a header, a query or a settings file holds.

use std::hint::black_box;
use std::sync::LazyLock;

use dalasi::config::{ServeArguments, ServeSettings};
use dalasi::credentials::{ApiKey, ClientSecret, ClientSecretKeys};
use dalasi::egress::{Egress, EgressSettings, is_public};
use dalasi::http::json::{self, Body};
use dalasi::http::query::Query;
use dalasi::pages::text::{Language, Locale, Text, plain};
use dalasi::secrets::{MasterKey, Purpose};
use dalasi::signing::{Attempt, WebhookSecret, sign};
use dalasi::tokens::{SigningKey, SigningKeys, parse_key_set};
use dalasi::{card_number, form_token, ledger_proof, plausible};
use domain::checkout::Checkout;
use domain::{Currency, Id, Money, Msisdn, TaxRate, Timestamp};

use crate::watch::{MOST_TIME, spend};

const NOW_S: i64 = 1_796_032_800;
const ISSUER: &str = "https://pay.test";

/// Most readers take text; what is none never gets to them.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

/// Whatever we take for JSON, everybody else does too.
pub(crate) fn json(input: &[u8]) {
    if let Ok(body) = json::parse(input)
        && body.faults.as_slice().is_empty()
    {
        let other: Result<serde_json::Value, _> = serde_json::from_slice(input);
        // They can't keep a number that large; we keep its text.
        let too_large = |error: &serde_json::Error| error.to_string().starts_with("number out of range");
        assert!(other.as_ref().err().is_none_or(too_large), "only we read it: {other:?}");
    }
    let _ = black_box(Body::parse(input));
}

pub(crate) fn query(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let mut query = Query::parse(Some(text));
    black_box(query.text("status").optional());
    black_box(query.page());
}

/// An amount that is read is written and read again as the same.
pub(crate) fn amount(input: &[u8]) {
    let Some(text) = text(input) else { return };
    for code in ["GMD", "USD", "XOF", "KWD"] {
        let Some(currency) = Currency::parse(code) else { continue };
        let _ = black_box(Money::parse_positive(text, currency));
        if let Ok(money) = Money::parse(text, currency) {
            assert!(money.minor >= 0, "less than nothing");
            assert_eq!(Money::parse(&money.to_string(), currency), Ok(money));
        }
    }
}

pub(crate) fn tax_rate(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(rate) = TaxRate::parse(text) {
        assert_eq!(TaxRate::parse(&rate.to_string()), Ok(rate));
    }
}

/// A number has one spelling once it is read.
pub(crate) fn phone(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(number) = Msisdn::parse(text) {
        assert_eq!(Msisdn::parse(number.as_str()).as_ref(), Ok(&number));
        assert!(number.as_str().len() <= 16, "{number:?}");
    }
}

pub(crate) fn time(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(time) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&time.to_text_micros()), Ok(time));
    }
    if let Ok((first, last)) = Timestamp::parse_day(text) {
        assert!(first < last, "a day has a beginning and an end");
    }
}

pub(crate) fn id(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(id) = text.parse::<Id<Checkout>>() {
        assert_eq!(id.to_string(), text, "an id has one spelling");
    }
}

/// An address that may be called names no machine inside.
pub(crate) fn web_address(input: &[u8]) {
    static EGRESS: LazyLock<Egress> = LazyLock::new(|| Egress::new(EgressSettings::default()));
    let Some(text) = text(input) else { return };
    black_box(plausible::is_web_address(text));
    let Ok(url) = EGRESS.check_url(text, true) else { return };
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none(), "with a name: {url}");
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    assert!(address.map_or(true, is_public), "inside: {url}");
    assert!(!host.ends_with("localhost"), "inside: {url}");
}

pub(crate) fn email(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if plausible::is_email(text) {
        assert!(!text.contains(['\r', '\n', ' ', ',', '<', '>']), "more than one mailbox");
    }
}

pub(crate) fn card_number(input: &[u8]) {
    let Some(text) = text(input) else { return };
    black_box(card_number::has_card_number(text));
}

pub(crate) fn language(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (query, header) = text.split_once('\n').unwrap_or((text, text));
    black_box(Language::choose(Some(query), Some(header), Some(query)));
}

/// Nothing that turns what follows around gets into a sentence of ours.
pub(crate) fn words(input: &[u8]) {
    let Some(text) = text(input) else { return };
    for locale in [Locale::English, Locale::French] {
        let written = Text::new(locale).with("letter-invoice-due", "day", text);
        assert!(!written.contains(['\u{202e}', '\u{2066}', '\u{0}', '\n']), "{written:?}");
    }
    assert_eq!(plain(&plain(text)), plain(text), "once is enough");
}

/// What so many characters of base32 stand for. It refuses nothing but what is no such character, and leaves out what is beyond
/// the last byte: what a reader ought to have refused is written in another way than it was sent.
fn bytes_of(characters: &str) -> [u8; 32] {
    const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0_u8; 32];
    for (at, character) in characters.bytes().enumerate() {
        let value = ALPHABET.iter().position(|known| *known == character).expect("only we read it");
        for bit in 0..5 {
            let place = 5 * at + bit;
            if let Some(byte) = bytes.get_mut(place / 8)
                && (value >> (4 - bit)) & 1 == 1
            {
                *byte |= 0x80 >> (place % 8);
            }
        }
    }
    bytes
}

/// Each has one text, the one that is written of what was read.
pub(crate) fn api_key(input: &[u8]) {
    static KEYS: LazyLock<ClientSecretKeys> = LazyLock::new(|| ClientSecretKeys::new(&MasterKey::from_bytes([3; 32])));
    let Some(text) = text(input) else { return };
    if let Ok(key) = ApiKey::parse(text) {
        let random = bytes_of(&text[8..text.len() - 6]);
        assert_eq!(ApiKey::generate(key.kind(), key.mode(), &random).expose(), text);
        assert_eq!(key.last4().len(), 4);
    }
    if let Ok(secret) = ClientSecret::parse(text, &KEYS) {
        let bytes = bytes_of(&text[5..]);
        let nonce = std::array::from_fn(|at| bytes[at]);
        assert_eq!(ClientSecret::generate(secret.checkout(), nonce, &KEYS).expose(), text);
    }
}

/// Nobody makes a token without the key.
pub(crate) fn access_token(input: &[u8]) {
    static KEYS: LazyLock<SigningKeys> =
        LazyLock::new(|| SigningKeys::new(SigningKey::generate(&[3; 32]), None, Vec::new()));
    let Some(text) = text(input) else { return };
    assert!(KEYS.verify(text, NOW_S, ISSUER).is_err(), "forged");
}

pub(crate) fn form_token(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let key = MasterKey::from_bytes([7; 32]).subkey(Purpose::FormToken);
    assert!(form_token::verify(&key, "pay", "cs_1", text, NOW_S).is_err(), "forged");
}

pub(crate) fn webhook_secret(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(secret) = WebhookSecret::parse(text) {
        let attempt = Attempt { event_id: "evt_1", timestamp_s: NOW_S, body: input };
        black_box(sign(&attempt, &secret, std::slice::from_ref(&secret)));
    }
}

pub(crate) fn key_set(input: &[u8]) {
    black_box(parse_key_set(input));
    if let Ok(value) = serde_json::from_slice(input) {
        let _ = black_box(ledger_proof::parse_key_set(&value));
    }
}

/// A settings file. The files that it names are not looked at: the target's own folder has none of them.
pub(crate) fn settings(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(arguments) = toml::from_str::<ServeArguments>(text)
        && arguments.config.is_none()
    {
        let _ = black_box(ServeSettings::load(arguments));
    }
}

/// A length that is believed.
pub(crate) fn planted_length(input: &[u8]) {
    if let Some((&length, rest)) = input.split_first() {
        black_box(&rest[..usize::from(length % 64)]);
    }
}

pub(crate) fn planted_time(input: &[u8]) {
    if input.first() == Some(&b'x') {
        spend(2 * MOST_TIME);
    }
}

pub(crate) fn planted_memory(input: &[u8]) {
    let megabytes = if input.first() == Some(&b'x') { 65 } else { 1 };
    black_box(vec![1_u8; megabytes * 1024 * 1024]);
}
