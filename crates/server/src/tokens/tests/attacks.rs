//! The corpus of row D4: tokens that have to fail, most of them carrying a genuine signature.

use aws_lc_rs::hmac;

use super::*;

/// Tokens that carry the signature of a key of ours wherever an attacker could get one, and still have to fail.
pub(super) fn attacks() -> Vec<(String, String)> {
    let (header, claims) = (good_header(1), good_claims());
    let (header_text, claims_text) = (header.to_string(), claims.to_string());
    let good = signed(1, &header_text, &claims_text);
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let mut attacks: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, token: String| attacks.push((name, token));

    // alg none in sixteen spellings, with no signature and with a genuine one.
    for mask in 0..16_u8 {
        let none: String = "none"
            .char_indices()
            .map(|(at, letter)| if mask & (1 << at) == 0 { letter } else { letter.to_ascii_uppercase() })
            .collect();
        let head = with(&header, "alg", json!(none));
        add(format!("alg {none}, unsigned"), format!("{}.{}.", encoded(&head), encoded(&claims_text)));
        add(format!("alg {none}, signed"), signed(1, &head, &claims_text));
    }
    for alg in [
        "HS256", "HS384", "HS512", "RS256", "PS256", "ES256", "ES384", "ES256K", "Ed448", "Ed25519", "eddsa", "EDDSA",
        "EdDSA ", " EdDSA", "EdDSA\0", "", "null",
    ] {
        let head = with(&header, "alg", json!(alg));
        add(format!("alg {alg:?}"), signed(1, &head, &claims_text));
        let message = format!("{}.{}", encoded(&head), encoded(&claims_text));
        // For ES256 the zeros are r = s = 0.
        for (kind, bytes) in [("empty", vec![]), ("zero", vec![0; 64]), ("long zero", vec![0; 96])] {
            add(
                format!("alg {alg:?} with a signature that is {kind}"),
                format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes)),
            );
        }
    }
    for alg in [json!(null), json!(0), json!(true), json!(["EdDSA"]), json!({"EdDSA": 1})] {
        add(format!("alg {alg}"), signed(1, &with(&header, "alg", alg), &claims_text));
    }
    // The public key as an HMAC secret, in every form in which a library may take it.
    let public = *signing_key(1).public().bytes();
    let forms: [Vec<u8>; 4] = [
        public.to_vec(),
        URL_SAFE_NO_PAD.encode(public).into_bytes(),
        public.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes(),
        Vec::new(),
    ];
    for (index, form) in forms.iter().enumerate() {
        for alg in ["HS256", "EdDSA"] {
            let head = with(&header, "alg", json!(alg));
            let message = format!("{}.{}", encoded(&head), encoded(&claims_text));
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, form), message.as_bytes());
            add(
                format!("{alg} under the public key, form {index}"),
                format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag)),
            );
        }
    }
    // Signatures that are none.
    for bytes in
        [vec![], vec![0; 64], vec![0xff; 64], vec![0; 63], vec![0; 65], vec![0; 1], vec![0x30, 0x06, 2, 1, 0, 2, 1, 0]]
    {
        add(format!("a signature of {} bytes", bytes.len()), format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes)));
    }
    let mut identity = vec![0_u8; 64];
    identity[0] = 1;
    add("R is the identity, S is zero".to_owned(), format!("{message}.{}", URL_SAFE_NO_PAD.encode(identity)));
    add("S plus the group order".to_owned(), format!("{message}.{}", with_order_added(signature)));
    for (name, token) in [
        ("standard padding", format!("{good}==")),
        ("one padding sign", format!("{good}=")),
        ("a blank before", format!(" {good}")),
        ("a blank after", format!("{good} ")),
        ("a new line after", format!("{good}\n")),
        ("a NUL after", format!("{good}\0")),
        ("four parts", format!("{good}.")),
        ("a part before", format!(".{good}")),
        ("five parts, like a JWE", format!("{good}.AAAA.AAAA")),
        ("two parts", message.to_owned()),
        ("empty", String::new()),
        ("dots", "..".to_owned()),
        ("scheme inside", format!("Bearer {good}")),
        (
            "JSON serialization",
            json!({"payload": encoded(&claims_text), "protected": encoded(&header_text), "signature": signature})
                .to_string(),
        ),
        ("huge", "A".repeat(1 << 20)),
        ("nested", signed(1, &header_text, &json!(good).to_string())),
        (
            "claims of another token",
            format!("{}.{}.{signature}", encoded(&header_text), encoded(&with(&claims, "mode", json!("live")))),
        ),
        ("no signature part content", format!("{message}.")),
    ] {
        add(name.to_owned(), token);
    }
    // Key ids that are not exactly one of ours.
    let id = signing_key(1).public().id().to_owned();
    for kid in [
        String::new(),
        "../../../../dev/null".to_owned(),
        "' or 1=1 --".to_owned(),
        format!("{id}\0"),
        format!("{id} "),
        id.to_lowercase(),
        id[..42].to_owned(),
        format!("{id}="),
        signing_key(2).public().id().to_owned(),
        signing_key(4).public().id().to_owned(),
        "a".repeat(1 << 20),
        format!("{id}/../{id}"),
        "*".to_owned(),
        "0".to_owned(),
    ] {
        let shown: String = kid.chars().take(50).collect();
        add(format!("kid {shown:?}"), signed(1, &with(&header, "kid", json!(kid)), &claims_text));
        add(format!("kid {shown:?} of a stranger"), signed(4, &with(&header, "kid", json!(kid)), &claims_text));
    }
    for kid in [json!(null), json!(0), json!([id]), json!({"kid": id}), json!(true)] {
        add(format!("kid {kid}"), signed(1, &with(&header, "kid", kid), &claims_text));
    }
    // Headers that try to choose.
    for (name, value) in [
        ("jwk", json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(signing_key(4).public().bytes())})),
        ("jku", json!("https://evil.example/jwks.json")),
        ("x5u", json!("https://evil.example/cert.pem")),
        ("x5c", json!(["MIIB"])),
        ("x5t", json!("AAAA")),
        ("x5t#S256", json!("AAAA")),
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("crit", json!(null)),
        ("b64", json!(false)),
        ("b64", json!(true)),
        ("zip", json!("DEF")),
        ("enc", json!("A256GCM")),
        ("cty", json!("JWT")),
        ("nonce", json!("x")),
        ("p2c", json!(2_147_483_647)),
        ("epk", json!({})),
        ("anything", json!(1)),
    ] {
        add(format!("header {name}"), signed(1, &with(&header, name, value.clone()), &claims_text));
        add(format!("header {name} of a stranger"), signed(4, &with(&header, name, value), &claims_text));
    }
    for typ in [
        json!("jwt"),
        json!("JWE"),
        json!("at+jwt"),
        json!("JOSE"),
        json!("application/jwt"),
        json!("dpop+jwt"),
        json!("JWT "),
        json!(""),
        json!(null),
        json!(1),
    ] {
        add(format!("typ {typ}"), signed(1, &with(&header, "typ", typ), &claims_text));
    }
    for name in ["alg", "typ", "kid"] {
        add(format!("header without {name}"), signed(1, &without(&header, name), &claims_text));
    }
    for name in ["iss", "aud", "sub", "org", "mode", "scope", "exp", "iat", "jti"] {
        add(format!("claims without {name}"), signed(1, &header_text, &without(&claims, name)));
        let own = claims[name].clone();
        for value in
            [json!(null), json!(true), json!([own.clone()]), json!({"a": own}), json!(1.5), json!([]), json!({})]
        {
            add(format!("claim {name} {value}"), signed(1, &header_text, &with(&claims, name, value)));
        }
    }
    for name in ["iss", "aud", "sub", "org", "mode", "scope", "jti"] {
        add(format!("claim {name} a number"), signed(1, &header_text, &with(&claims, name, json!(1))));
    }
    for name in ["sub", "org", "mode", "jti"] {
        add(format!("claim {name} empty"), signed(1, &header_text, &with(&claims, name, json!(""))));
    }
    for name in ["exp", "iat", "nbf"] {
        for value in [
            "\"1800000300\"",
            "1800000300.0",
            "1.8e9",
            "9223372036854775808",
            "18446744073709551616",
            "-9223372036854775809",
            "1e400",
            "NaN",
            "\"\"",
            "[]",
            "null",
            "-0.0",
        ] {
            let text = without(&claims, name);
            let text = format!("{},\"{name}\":{value}}}", &text[..text.len() - 1]);
            add(format!("claim {name} {value}"), signed(1, &header_text, &text));
        }
    }
    for issuer in [
        "",
        "https://pay.example.gm/",
        "http://pay.example.gm",
        "https://PAY.example.gm",
        "https://pay.example.gm.evil",
        "https://evil.example",
        "null",
    ] {
        add(format!("iss {issuer}"), signed(1, &header_text, &with(&claims, "iss", json!(issuer))));
        add(format!("aud {issuer}"), signed(1, &header_text, &with(&claims, "aud", json!(issuer))));
    }
    for mode in ["TEST", "Live", "both", "*", "test live"] {
        add(format!("mode {mode}"), signed(1, &header_text, &with(&claims, "mode", json!(mode))));
    }
    // The same key twice, in either order, spelled differently, and text that isn't one flat object.
    for (name, first, second) in
        [("mode", "\"test\"", "\"live\""), ("exp", "1", "1800000300"), ("sub", "\"key_01\"", "\"key_02\"")]
    {
        let body = &claims_text[1..claims_text.len() - 1];
        add(format!("{name} twice"), signed(1, &header_text, &format!("{{{body},\"{name}\":{second}}}")));
        add(format!("{name} twice, before"), signed(1, &header_text, &format!("{{\"{name}\":{first},{body}}}")));
        let escaped: String = name.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
        add(format!("{name} twice, escaped"), signed(1, &header_text, &format!("{{{body},\"{escaped}\":{second}}}")));
    }
    let body = &header_text[1..header_text.len() - 1];
    for extra in ["\"alg\":\"none\"", "\"alg\":\"EdDSA\"", "\"kid\":\"x\"", "\"\\u0061lg\":\"EdDSA\""] {
        add(format!("header with {extra} again"), signed(1, &format!("{{{body},{extra}}}"), &claims_text));
        add(format!("header with {extra} first"), signed(1, &format!("{{{extra},{body}}}"), &claims_text));
    }
    for text in [
        "",
        "null",
        "[]",
        "{}",
        "\"\"",
        "1",
        &format!("{claims_text}{claims_text}"),
        &format!("{claims_text}x"),
        &format!("[{claims_text}]"),
        &format!("\u{feff}{claims_text}"),
        &claims_text[..claims_text.len() - 1],
        &"[".repeat(2_000),
    ] {
        add(format!("claims {:.20}", text), signed(1, &header_text, text));
        add(format!("header {:.20}", text), signed(1, text, &claims_text));
    }
    attacks
}

/// The malleated twin of a signature: S + L, which a verifier without a range check accepts.
fn with_order_added(signature: &str) -> String {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    let mut carry = 0_u16;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn no_attack_is_accepted() {
    let keys = keys();
    let good = signed(1, &good_header(1).to_string(), &good_claims().to_string());
    assert!(keys.verify(&good, NOW, ISSUER).is_ok(), "the base of the attacks is no good token");
    let attacks = attacks();
    assert!(attacks.len() >= 400, "{}", attacks.len());
    for (name, token) in attacks {
        assert_eq!(keys.verify(&token, NOW, ISSUER), Err(TokenFault::Invalid), "{name}");
    }
}
