//! The parser against its rules, and against serde_json on generated input.

use proptest::prelude::*;

use super::*;

fn problem(text: &[u8]) -> String {
    parse(text).expect_err("must be refused").to_string()
}

#[test]
fn keeps_the_text_of_numbers_and_the_order_of_keys() {
    let text = r#"{"b":1.50,"a":[-0,1E400,9007199254740993,0.1e-7],"c":{"z":null,"y":true}}"#;
    let body = parse(text.as_bytes()).expect("valid");
    assert_eq!(body.value.to_text(), text);
    assert_eq!(
        body.value.to_canonical_text("b"),
        r#"{"a":[-0,1E400,9007199254740993,0.1e-7],"c":{"y":true,"z":null}}"#
    );
}

#[test]
fn an_empty_body_is_an_empty_object() {
    assert_eq!(Body::parse(b"").expect("valid").value, Json::Object(vec![]));
    let refused = Body::parse(b"[]").expect_err("not an object");
    assert!(refused.to_string().contains("JSON object is expected"));
}

#[test]
fn duplicates_and_nul_are_faults_of_their_field() {
    let text = r#"{"items":[{"quantity":1,"quantity":2,"quantity":3}],"name":"a\u0000b","x":1,"x":1}"#;
    let found: Vec<_> = Body::parse(text.as_bytes())
        .expect("readable")
        .faults
        .into_vec()
        .into_iter()
        .map(|fault| (fault.field, fault.code))
        .collect();
    assert_eq!(
        found,
        [
            ("items[0].quantity".to_owned(), FaultCode::DuplicateKey),
            ("name".to_owned(), FaultCode::NulCharacter),
            ("x".to_owned(), FaultCode::DuplicateKey),
        ]
    );
}

#[test]
fn refuses_what_is_no_json() {
    for (text, expected) in [
        (&b"{\"a\":1} x"[..], "follows the end"),
        (b"{\"a\":1,}", "key in double quotes"),
        (b"{\"a\" 1}", "colon"),
        (b"[1 2]", "comma"),
        (b"[1,]", "value is expected"),
        (b"{\"a\":", "ends where a value"),
        (b"nul", "value is expected"),
        (b"\xef\xbb\xbf{}", "value is expected"),
        (b"\"a\x00b\"", "control character"),
        (b"\"a\nb\"", "control character"),
        (b"\"\xff\"", "not UTF-8"),
        (b"\"\\ud800\"", "surrogate"),
        (b"\"\\ud800\\u0041\"", "surrogate"),
        (b"\"\\udc00\"", "surrogate"),
        (b"\"\\x\"", "unknown escape"),
        (b"\"\\u12g4\"", "hexadecimal"),
        (b"\"abc", "closing quote"),
        (b"01", "begin with a zero"),
        (b"-", "digit"),
        (b"1.", "digit"),
        (b"1e", "digit"),
        (b"NaN", "value is expected"),
        (b"'a'", "value is expected"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text:?}: {problem}");
    }
}

#[test]
fn every_character_can_be_escaped_and_no_half_of_one() {
    for character in (1..=u32::from(char::MAX)).filter_map(char::from_u32) {
        let escaped: String = character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect();
        let body = parse(format!("\"{escaped}\"").as_bytes()).expect("valid");
        assert_eq!(body.value, Json::String(character.to_string().into()), "{escaped}");
    }
    for half in 0xd800..=0xdfff {
        assert!(problem(format!("\"\\u{half:04x}\"").as_bytes()).contains("surrogate"));
    }
}

#[test]
fn names_the_place() {
    let error = parse("{\n  \"ä\": x}".as_bytes()).expect_err("refused");
    assert_eq!((error.line, error.column), (2, 8));
}

#[test]
fn holds_its_limits_to_the_last_one() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(32).as_bytes()).is_ok());
    assert!(problem(nested(33).as_bytes()).contains("deeper than 32"));
    assert!(problem("[".repeat(1_000_000).as_bytes()).contains("deeper than 32"));

    let keys = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"{n}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(parse(keys(200).as_bytes()).is_ok());
    assert!(problem(keys(201).as_bytes()).contains("more than 200 keys"));

    let values = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
    assert!(parse(values(MOST_VALUES).as_bytes()).is_ok());
    assert!(problem(values(MOST_VALUES + 1).as_bytes()).contains("more than 65536 values"));
}

/// Our tree as serde_json's value; only for numbers that survive a float.
fn to_serde(json: &Json) -> serde_json::Value {
    serde_json::from_str(&json.to_text()).expect("what we print is JSON")
}

/// Text that is often nearly JSON: fragments in random order.
fn nearly_json() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just(" \n".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("\"a\"".to_owned()),
        Just("\"b\\u00e9\\ud83d\\ude00\\n\"".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        "-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?".prop_map(|s| s),
        "\"[ -~é😀]{0,5}\"".prop_map(|s| s),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(fragment, 0..12).prop_map(|parts| parts.concat())
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e9..1e9f64).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_whatever_serde_json_prints(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let body = parse(text.expect("prints").as_bytes()).expect("valid");
        prop_assert_eq!(to_serde(&body.value), value);
    }

    #[test]
    fn accepts_and_refuses_as_serde_json_does(text in nearly_json()) {
        // `RawValue` checks the grammar and converts nothing, so a number beyond a float's range is no difference.
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        let ours = parse(text.as_bytes());
        // It skips strings without looking at surrogates; those are ours to refuse.
        let surrogate = matches!(&ours, Err(error) if error.problem.contains("surrogate"));
        prop_assert!(surrogate || theirs.is_ok() == ours.is_ok(), "{:?}: {:?} / {:?}", text, theirs, ours);
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }
}

#[test]
fn many_faults_far_down_stay_few_bytes() {
    let (open, close) = (format!("{{\"{}\":", "k".repeat(64)).repeat(30), "}".repeat(30));
    let nuls = vec![r#""\u0000""#; 60_000].join(",");
    let faults = Body::parse(format!("{open}[{nuls}]{close}").as_bytes()).expect("readable").faults;
    let names: usize = faults.as_slice().iter().map(|fault| fault.field.len()).sum();
    assert!((100_000..300_000).contains(&names), "{names}");
}
