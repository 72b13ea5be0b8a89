use std::collections::BTreeSet;

use domain::Currency;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tokens::{key_set, parse_key_set};

const CODE: &str = "0123456789abcdef0123456789abcdef";
/// What the browser's tests hold against the page: the same statement by both.
const EXAMPLE: &str = include_str!("../../../../tests/browser/receipt-statement.json");

fn key(byte: u8) -> SigningKey {
    SigningKey::generate(&[byte; 32])
}

fn public(byte: u8) -> Vec<PublicKey> {
    vec![key(byte).public().clone()]
}

fn paid() -> Paid<'static> {
    Paid {
        mode: Mode::Live,
        receipt_number: "RCT-2026-001",
        amount: Money::new(150_000, Currency::gmd()),
        merchant: "Kairaba Books",
        paid_at: Timestamp::from_micros(1_795_273_500_000_000),
        payer: "Fatou Ceesay",
        validation_code: CODE,
    }
}

fn statement() -> Statement {
    Statement::of(&paid()).unwrap()
}

/// What is signed as it stands, whatever it says.
fn sign(body: &[u8], key: &SigningKey) -> String {
    UPPER.encode(&[body, &key.sign(PURPOSE, body)].concat())
}

#[test]
fn a_statement_says_what_was_signed_and_fits_a_small_code() {
    let text = statement().sign(&key(1));
    let signed = Statement::verify(&text, &public(1)).unwrap();
    assert_eq!(signed.statement, statement());
    assert_eq!(signed.key_id, key(1).public().id());
    let address = address("https://pay.kairababooks.example", &text);
    assert!(address.len() <= 250, "{}", address.len());
    assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()), "{text}");
    assert_eq!(find(&address), text);
    assert_eq!(find(&format!(" {text}\n")), text);
}

#[test]
fn the_example_of_the_browser_tests_is_what_we_write() {
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    let text = statement().sign(&key(1));
    assert_eq!(example["statement"], text.as_str(), "{text}");
    assert_eq!(example["keys"], key_set(&public(1)));
    assert_eq!(example["payer"], paid().payer);
    assert_eq!(example["validation_code"], paid().validation_code);
    assert_eq!(parse_key_set(example["keys"].to_string().as_bytes()), Some(public(1)));
}

#[test]
fn no_bit_can_be_turned_no_byte_added_or_lost() {
    let text = statement().sign(&key(1));
    let bytes = UPPER.decode(text.as_bytes()).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        assert!(Statement::verify(&UPPER.encode(bytes), &public(1)).is_err(), "{what}");
    };
    for bit in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        refused(&altered, &format!("bit {bit} turned"));
    }
    for at in 0..bytes.len() {
        refused(&bytes[..at], &format!("cut at {at}"));
        refused(&bytes[at + 1..], &format!("begins behind {at}"));
        let mut lost = bytes.clone();
        lost.remove(at);
        refused(&lost, &format!("byte {at} lost"));
        for other in (at + 1..bytes.len()).filter(|other| bytes[*other] != bytes[at]) {
            let mut swapped = bytes.clone();
            swapped.swap(at, other);
            refused(&swapped, &format!("{at} and {other} swapped"));
        }
        for byte in [0, 1, 0x80, 0xff] {
            let mut longer = bytes.clone();
            longer.insert(at, byte);
            refused(&longer, &format!("{byte} put in at {at}"));
        }
    }
    for byte in 0..=255 {
        refused(&[&bytes[..], &[byte]].concat(), &format!("{byte} added"));
    }
}

#[test]
fn no_character_can_be_another() {
    let text = statement().sign(&key(1));
    let others: Vec<char> = (0..128_u8).map(char::from).chain(['é', 'Ａ', '０']).collect();
    for at in 0..text.len() {
        for other in others.iter().filter(|other| !text[at..].starts_with(**other)) {
            let altered = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert!(Statement::verify(&altered, &public(1)).is_err(), "{other:?} at {at}");
        }
    }
    for altered in [
        text.to_lowercase(),
        format!("{text}="),
        format!("{text}0"),
        format!("{text}00000000"),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{}-{}", &text[..8], &text[8..]),
        text.repeat(2),
        String::new(),
        "#".to_owned(),
        "0".repeat(1_000_000),
    ] {
        assert!(Statement::verify(&altered, &public(1)).is_err(), "{altered:.300}");
    }
}

#[test]
fn forgeries_are_told_apart_and_tell_nothing() {
    let genuine = statement().to_bytes(key(1).public());
    let table = [
        ("another key, named as such", statement().sign(&key(2)), StatementFault::UnknownKey),
        ("another key under our key's name", sign(&genuine, &key(2)), StatementFault::Forged),
        (
            "our key under another one's name",
            sign(&statement().to_bytes(key(2).public()), &key(1)),
            StatementFault::UnknownKey,
        ),
        ("a later version", sign(&[&[2], &genuine[1..]].concat(), &key(1)), StatementFault::UnknownVersion),
        ("no version", sign(&[&[0], &genuine[1..]].concat(), &key(1)), StatementFault::UnknownVersion),
        (
            "signed for another purpose",
            UPPER.encode(&[&genuine[..], &key(1).sign("dalasi receipt statement v2", &genuine)].concat()),
            StatementFault::Forged,
        ),
        ("no signature", UPPER.encode(&genuine), StatementFault::Malformed),
        ("a signature of nothing", UPPER.encode(&[&genuine[..], &[0; 64]].concat()), StatementFault::Forged),
        ("short", UPPER.encode(&genuine[..9]), StatementFault::Malformed),
        ("nothing", String::new(), StatementFault::Malformed),
    ];
    for (what, text, fault) in table {
        assert_eq!(Statement::verify(&text, &public(1)), Err(fault), "{what}");
    }
    assert_eq!(Statement::verify(&statement().sign(&key(1)), &[]), Err(StatementFault::UnknownKey));
}

#[test]
fn a_signature_that_is_larger_than_its_group_is_none() {
    // The same signature with the group's order added to its second half: lax verifiers take both.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut bytes = UPPER.decode(statement().sign(&key(1)).as_bytes()).unwrap();
    let second = bytes.len() - 32;
    let mut carry = 0_u16;
    for (byte, order) in bytes[second..].iter_mut().zip(ORDER) {
        carry += u16::from(*byte) + u16::from(order);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
    assert_eq!(carry, 0);
    assert_eq!(Statement::verify(&UPPER.encode(&bytes), &public(1)), Err(StatementFault::Forged));
}

#[test]
fn what_we_signed_by_mistake_is_refused_as_well() {
    let body = statement().to_bytes(key(1).public());
    // Where each field begins: flags 1, currency 10, amount 13, time 16, number 21, merchant 34, proof 48.
    let with = |range: std::ops::Range<usize>, bytes: &[u8]| [&body[..range.start], bytes, &body[range.end..]].concat();
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("another exponent", with(1..2, &[LIVE | 3])),
        ("no exponent of any currency", with(1..2, &[0x7f])),
        ("no currency", with(10..13, b"gmd")),
        ("amount 0", with(13..16, &[0])),
        ("amount in too many bytes", with(13..16, &[0xf0, 0x93, 0x89, 0x00])),
        ("amount beyond all", with(13..16, &[0xff; 10])),
        ("amount without an end", with(13..16, &[0xff; 9])),
        ("a time after all times", with(16..21, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
        ("no number", with(21..34, &[0])),
        ("a number with a blank", with(21..34, b"\x03A B")),
        ("a number too long", with(21..34, &[&[33][..], &[b'1'; 33]].concat())),
        ("no merchant", with(34..48, &[0])),
        ("a merchant that is no text", with(34..48, &[2, 0xff, 0xfe])),
        ("a merchant too long", with(34..48, &[&[65][..], &[b'a'; 65]].concat())),
        ("half a proof", body[..body.len() - 8].to_vec()),
        ("more than a proof", [&body[..], &[0]].concat()),
    ];
    assert!(Statement::verify(&sign(&body, &key(1)), &public(1)).is_ok());
    for (what, body) in table {
        assert_eq!(Statement::verify(&sign(&body, &key(1)), &public(1)), Err(StatementFault::Malformed), "{what}");
    }
}

#[test]
fn a_receipt_that_no_statement_can_hold_gets_none() {
    let long = "9".repeat(33);
    let table = [
        Paid { receipt_number: "", ..paid() },
        Paid { receipt_number: &long, ..paid() },
        Paid { receipt_number: "RCT 1", ..paid() },
        Paid { amount: Money::new(0, Currency::gmd()), ..paid() },
        Paid { amount: Money::new(-1, Currency::gmd()), ..paid() },
        Paid { merchant: " ", ..paid() },
        Paid { paid_at: Timestamp::from_micros(-1), ..paid() },
        Paid { paid_at: Timestamp::from_micros(i64::MAX), ..paid() },
    ];
    for paid in table {
        assert_eq!(Statement::of(&paid), Err(Unspeakable), "{paid:?}");
    }
}

#[test]
fn a_long_name_ends_in_an_ellipsis() {
    for (name, expected) in [
        ("a".repeat(64), "a".repeat(64)),
        ("a".repeat(65), format!("{}…", "a".repeat(61))),
        ("é".repeat(40), format!("{}…", "é".repeat(30))),
        ("🎉".repeat(20), format!("{}…", "🎉".repeat(15))),
        (format!("{} {}", "a".repeat(60), "b".repeat(60)), format!("{}…", "a".repeat(60))),
    ] {
        let statement = Statement::of(&Paid { merchant: &name, ..paid() }).unwrap();
        assert_eq!(statement.merchant(), expected);
        assert_eq!(Statement::verify(&statement.sign(&key(1)), &public(1)).unwrap().statement, statement);
    }
}

#[test]
fn the_payer_is_proved_with_the_code_however_the_name_is_typed() {
    let proof = statement().payer_proof();
    for name in ["Fatou Ceesay", "FATOU  CEESAY", " fatou\u{a0}ceesay\n"] {
        assert_eq!(PayerProof::of(name, CODE), proof, "{name:?}");
    }
    assert_eq!(PayerProof::of("Zoé", CODE), PayerProof::of("ZOE\u{301}", CODE));
    assert_ne!(PayerProof::of("Fatou Ceesay", "1123456789abcdef0123456789abcdef"), proof);
    for name in ["", "Fatou", "Ceesay Fatou", "FatouCeesay", "Fatoú Ceesay"] {
        assert_ne!(PayerProof::of(name, CODE), proof, "{name:?}");
    }
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    for (names, is_same) in [("typed_alike", true), ("typed_otherwise", false)] {
        for name in example[names].as_array().unwrap() {
            assert_eq!(PayerProof::of(name.as_str().unwrap(), CODE) == proof, is_same, "{name}");
        }
    }
    // The first half of what any HMAC-SHA256 gives.
    let whole = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, CODE.as_bytes()), b"fatou ceesay");
    assert_eq!(proof.0, whole.as_ref()[..16]);
}

#[test]
fn the_script_of_the_page_sees_the_same_characters() {
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    assert_eq!(example["unseen_characters"], ('\0'..=char::MAX).filter(|it| is_unseen(*it)).count());
}

#[test]
fn two_keys_whose_names_begin_alike_don_t_hide_one_another() {
    let text = statement().sign(&key(1));
    let keys: Vec<PublicKey> = [public(2), public(1), public(1), public(3)].concat();
    assert!(Statement::verify(&text, &keys).is_ok());
    let names: BTreeSet<_> = keys.iter().map(short_id).collect();
    assert_eq!(names.len(), 3);
}

fn any_paid() -> impl Strategy<Value = (Mode, String, Money, String, Timestamp, String)> {
    let currency = prop::sample::select(vec!["GMD", "XOF", "KWD", "USD", "CLF"]);
    (
        prop::sample::select(vec![Mode::Live, Mode::Test]),
        "[!-~]{1,32}",
        (1..=i64::MAX, currency).prop_map(|(minor, code)| Money::new(minor, Currency::parse(code).unwrap())),
        "[^ ].{0,80}",
        (0..LATEST_S).prop_map(|seconds| Timestamp::from_micros(seconds * 1_000_000)),
        ".{0,40}",
    )
}

proptest! {
    #[test]
    fn whatever_is_signed_is_read_back((mode, receipt_number, amount, merchant, paid_at, payer) in any_paid()) {
        let paid = Paid {
            mode, receipt_number: &receipt_number, amount, merchant: &merchant, paid_at, payer: &payer,
            validation_code: CODE,
        };
        let Ok(statement) = Statement::of(&paid) else {
            prop_assert!(merchant.trim().is_empty());
            return Ok(());
        };
        let text = statement.sign(&key(1));
        let signed = Statement::verify(&text, &public(1)).unwrap();
        prop_assert_eq!(&signed.statement, &statement);
        prop_assert_eq!(signed.statement.sign(&key(1)), text);
        prop_assert_eq!(signed.statement.payer_proof(), PayerProof::of(&payer, CODE));
    }

    #[test]
    fn whatever_comes_is_read_without_harm(text in ".{0,400}", bytes in prop::collection::vec(any::<u8>(), 0..220)) {
        prop_assert!(Statement::verify(&text, &public(1)).is_err());
        prop_assert!(Statement::verify(&UPPER.encode(&bytes), &public(1)).is_err());
        prop_assert_eq!(UPPER.decode(UPPER.encode(&bytes).as_bytes()), Ok(bytes.clone()));
        // Signed, so that the reader sees it.
        let _ = Statement::verify(&sign(&[&[VERSION, 2][..], &short_id(&public(1)[0]), &bytes].concat(), &key(1)), &public(1));
    }
}
