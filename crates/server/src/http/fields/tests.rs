use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Red,
    Blue,
}

const COLOURS: &[(&str, Colour)] = &[("red", Colour::Red), ("blue", Colour::Blue)];

fn body(text: &str) -> Body {
    Body::parse(text.as_bytes()).expect("JSON")
}

/// The faults of one reader over one body, as `field code` lines.
fn faults(text: &str, read: impl FnOnce(&mut Fields)) -> Vec<String> {
    let body = body(text);
    let mut fields = Fields::new(&body);
    read(&mut fields);
    lines(fields.finish().map(|_| ()).err().unwrap_or_default())
}

fn lines(faults: Vec<Fault>) -> Vec<String> {
    faults
        .into_iter()
        .map(|fault| {
            let code = serde_json::to_value(fault.code).expect("prints");
            format!("{} {}", fault.field, code.as_str().expect("a word"))
        })
        .collect()
}

fn cents(text: &str) -> Result<i64, (FaultCode, &'static str)> {
    text.parse().map_err(|_| (FaultCode::InvalidFormat, "digits, please"))
}

#[test]
fn all_faults_come_at_once_and_in_order() {
    let text = r#"{"name":"","amount":5,"quantity":0,"colour":"green","url":"javascript:alert(1)",
        "items":[{"quantity":1,"total":"1"},{"quantity":"2"},7],"extra":1,"extra":2}"#;
    let found = faults(text, |f| {
        f.text("name").min(1).required();
        f.amount("amount", cents).required();
        f.integer("quantity", 1..=10).required();
        f.text("colour").choice(COLOURS).optional();
        f.text("url").url().optional();
        f.text("missing").required();
        let items = f.objects("items", 200, |item| {
            item.ignore("amount");
            item.integer("quantity", 1..=10).required()
        });
        assert_eq!(items.optional(), None);
    });
    assert_eq!(
        found,
        [
            "extra duplicate_key",
            "name too_short",
            "amount amount_must_be_string",
            "quantity out_of_range",
            "colour invalid_enum",
            "url invalid_format",
            "missing required",
            "items[0].total unknown_field",
            "items[1].quantity wrong_type",
            "items[2] wrong_type",
            "extra unknown_field",
        ]
    );
}

#[test]
fn sound_values_come_out() {
    let body = body(
        r#"{"name":"Tea","amount":"250","on":true,"colour":"blue","tax_rate":12.50,"note":null,
        "tags":["red","blue"],"metadata":{"b":1.0,"a":{"x":"\u00e9"}},"items":[{"q":3}]}"#,
    );
    let mut f = Fields::new(&body);
    let name = f.text("name").min(1).max(3).required();
    let amount = f.amount("amount", cents).required();
    assert!(f.boolean("on").or(false));
    assert_eq!(f.text("colour").choice(COLOURS).or(Colour::Red), Colour::Blue);
    assert_eq!(f.number("tax_rate").optional().as_deref(), Some("12.50"));
    assert_eq!(f.text("note").optional(), None);
    assert_eq!(f.text("absent").or("x".into()), "x");
    let tags = f.texts("tags", 2, |tag| tag.choice(COLOURS).required());
    assert_eq!(tags.optional(), Some(vec![Colour::Red, Colour::Blue]));
    let metadata = f.metadata("metadata", MetadataValues::Any).required();
    assert_eq!(metadata.as_deref(), Some(r#"{"b":1.0,"a":{"x":"é"}}"#));
    let items = f.objects("items", 1, |item| item.integer("q", 1..=3).required());
    assert_eq!(items.required(), Some(vec![3]));
    assert!(f.has("name") && !f.has("note") && !f.has("absent"));
    let checked = f.finish().expect("no fault");
    assert_eq!((checked.of(name), checked.of(amount)), ("Tea".into(), 250));
}

#[test]
fn null_is_absent_on_create_and_a_change_on_update() {
    let text = r#"{"a":null,"b":null,"c":null}"#;
    let found = faults(text, |f| {
        assert_eq!(f.text("a").required(), None);
        assert_eq!(f.text("b").clearable(), Change::Clear);
        assert_eq!(f.text("c").change(), None);
        assert_eq!(f.text("d").clearable(), Change::Keep);
        assert_eq!(f.text("e").change(), None);
    });
    assert_eq!(found, ["a required", "c wrong_type"]);
}

#[test]
fn a_number_for_an_amount_is_told_how_to_write_it() {
    let body = body(r#"{"amount":100.0}"#);
    let mut f = Fields::new(&body);
    f.amount("amount", cents).optional();
    let fault = f.finish().expect_err("refused").remove(0);
    assert_eq!(fault.message, "`amount` must be a string such as \"100.00\"; you sent a number.");
}

#[test]
fn integers_are_whole_and_in_range() {
    for (sent, expected) in [
        ("1", None),
        ("10", None),
        ("11", Some("n out_of_range")),
        ("-1", Some("n out_of_range")),
        ("-0", Some("n out_of_range")),
        ("9223372036854775808", Some("n out_of_range")),
        ("1.0", None),
        ("10.00", None),
        ("11.0", Some("n out_of_range")),
        ("1.5", Some("n wrong_type")),
        ("1.0e1", Some("n wrong_type")),
        ("1e0", Some("n wrong_type")),
        ("\"1\"", Some("n wrong_type")),
        ("true", Some("n wrong_type")),
        ("[1]", Some("n wrong_type")),
    ] {
        let found = faults(&format!("{{\"n\":{sent}}}"), |f| {
            f.integer("n", 1..=10).optional();
        });
        assert_eq!(found.first().map(String::as_str), expected, "{sent}");
    }
}

#[test]
fn addresses_are_absolute_and_plain() {
    let long = format!("https://a.example/{}", "x".repeat(2048));
    for (address, sound) in [
        ("https://shop.example/thanks?a=b#c", true),
        ("HTTP://127.0.0.1:8080", true),
        ("https://[::1]/", true),
        ("https://münchen.example/@user", true),
        ("javascript:alert(1)", false),
        ("//shop.example", false),
        ("/thanks", false),
        ("ftp://shop.example", false),
        ("https:shop.example", false),
        ("https://", false),
        ("https:///path", false),
        ("https://user@shop.example", false),
        ("https://@shop.example", false),
        ("https://user:pass@shop.example", false),
        ("https:\\\\shop.example", false),
        (" https://shop.example", false),
        ("https://shop.example/\n", false),
        ("", false),
        (&long, false),
    ] {
        let text = format!("{{\"u\":{}}}", serde_json::to_string(address).expect("prints"));
        let found = faults(&text, |f| {
            f.text("u").url().optional();
        });
        assert_eq!(found.is_empty(), sound, "{address}: {found:?}");
    }
}

#[test]
fn addresses_of_mail_are_plausible() {
    for (address, sound) in [
        ("awa@example.gm", true),
        ("awa.jallow+shop@mail.example.gm", true),
        ("fatou@münchen.example", true),
        ("awa", false),
        ("awa@", false),
        ("@example.gm", false),
        ("awa@example", false),
        ("awa @example.gm", false),
        ("awa@exa mple.gm", false),
        ("awa@-example.gm", false),
        ("awa@example..gm", false),
        ("a\r\nBcc: x@y.example", false),
    ] {
        let text = format!("{{\"e\":{}}}", serde_json::to_string(address).expect("prints"));
        let found = faults(&text, |f| {
            f.text("e").email().optional();
        });
        assert_eq!(found.is_empty(), sound, "{address}: {found:?}");
    }
    let found = faults(r#"{"a":"","b":"","c":"awa@"}"#, |f| {
        assert_eq!(f.text("a").email().optional(), None);
        assert_eq!(f.text("b").email_or_none().optional().as_deref(), Some(""));
        assert_eq!(f.text("c").email_or_none().optional(), None);
    });
    assert_eq!(found, ["a invalid_format", "c invalid_format"]);
}

#[test]
fn metadata_holds_its_limits() {
    let keys = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"k{n}\":\"v\"")).collect();
        format!("{{{}}}", members.join(","))
    };
    let text = |length: usize| format!("{{\"k\":\"{}\"}}", "é".repeat(length));
    let key = |length: usize| format!("{{\"{}\":1}}", "k".repeat(length));
    let numbers = |count: usize| format!("{{\"k\":[{}0]}}", "0,".repeat(count));
    let any = MetadataValues::Any;
    let strings = MetadataValues::Strings;
    for (map, values, expected) in [
        (keys(50), any, None),
        (keys(51), any, Some("too_long")),
        (text(500), any, None),
        (text(501), any, Some("too_long")),
        (key(40), any, None),
        (key(41), any, Some("too_long")),
        (numbers(8000), any, None),
        (numbers(8300), any, Some("too_long")),
        ("{}".into(), any, None),
        ("{\"\":1}".into(), any, Some("too_short")),
        ("[]".into(), any, Some("wrong_type")),
        (keys(2), strings, None),
        ("{\"k\":1}".into(), strings, Some("wrong_type")),
    ] {
        let found = faults(&format!("{{\"m\":{map}}}"), |f| {
            f.metadata("m", values).optional();
        });
        let code = found.first().and_then(|line| line.split(' ').next_back());
        assert_eq!(code, expected, "{}", map.chars().take(60).collect::<String>());
    }
}

#[test]
fn arrays_hold_their_limit() {
    let found = faults(r#"{"tags":["red","x","blue","y"]}"#, |f| {
        let tags = f.texts("tags", 3, |tag| tag.choice(COLOURS).required());
        assert_eq!(tags.optional(), None);
    });
    assert_eq!(found, ["tags too_long", "tags[1] invalid_enum"]);
}

#[test]
fn a_faulty_object_hides_none_beside_it() {
    let read = |text: &str| {
        let body = body(text);
        let mut f = Fields::new(&body);
        let mut sound = Vec::new();
        let all = f.objects_keeping("items", 3, &mut sound, |item| item.integer("q", 1..=9).required());
        (all.optional(), sound)
    };
    let none: Vec<(usize, i64)> = Vec::new();
    assert_eq!(read(r#"{"items":[{"q":1},{"q":2}]}"#), (Some(vec![1, 2]), none.clone()));
    assert_eq!(read(r#"{"items":[{"q":0},{"q":2},{"q":3,"colour":"red"}]}"#), (None, vec![(1, 2)]));
    assert_eq!(read(r#"{"items":[{"q":1},7,{"q":3},{"q":4}]}"#), (None, vec![(0, 1), (2, 3)]));
    assert_eq!(read(r#"{"items":{"q":1}}"#), (None, none.clone()));
    assert_eq!(read("{}"), (None, none));
}

#[test]
fn an_answer_stays_small_whatever_was_sent() {
    let name = "x".repeat(100_000);
    let body = body(&format!("{{\"{name}\":1}}"));
    let fault = Fields::new(&body).finish().expect_err("refused").remove(0);
    assert!(fault.field.len() < 100 && fault.message.len() < 200);

    let item = "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1}";
    let body = Body::parse(format!("{{\"items\":[{}]}}", [item; 200].join(",")).as_bytes());
    let body = body.expect("JSON");
    let mut f = Fields::new(&body);
    f.objects("items", 200, |_| Some(())).optional();
    assert_eq!(f.finish().expect_err("refused").len(), 1000);
}
