//! Known answers, times, and what a token says; what it must not get away with is in `attacks`.

mod attacks;
mod flips;

use aws_lc_rs::signature::Ed25519KeyPair;
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://pay.example.gm";

fn grant() -> Grant {
    Grant {
        key_id: "key_01".to_owned(),
        organization_id: "org_01".to_owned(),
        mode: Mode::Test,
        scope: "read:checkouts write:checkouts".to_owned(),
        token_id: "tok_01".to_owned(),
    }
}

fn signing_key(byte: u8) -> SigningKey {
    SigningKey::generate(&[byte; 32])
}

fn keys() -> SigningKeys {
    SigningKeys::new(signing_key(1), Some(signing_key(2).public().clone()), vec![signing_key(3).public().clone()])
}

fn good_claims() -> Value {
    json!({
        "iss": ISSUER, "aud": ISSUER, "sub": "key_01", "org": "org_01", "mode": "test",
        "scope": "read:checkouts", "exp": NOW + 600, "iat": NOW, "jti": "tok_01",
    })
}

fn good_header(byte: u8) -> Value {
    json!({ "alg": "EdDSA", "typ": "JWT", "kid": signing_key(byte).public().id() })
}

/// Signs any two texts with the key made from `byte`, valid JSON or not.
fn signed(byte: u8, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let pair = Ed25519KeyPair::from_pkcs8(signing_key(byte).expose_pkcs8()).expect("a key");
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes())))
}

fn with(base: &Value, name: &str, value: Value) -> String {
    let mut changed = base.clone();
    changed[name] = value;
    changed.to_string()
}

fn without(base: &Value, name: &str) -> String {
    let mut changed = base.clone();
    changed.as_object_mut().expect("an object").remove(name);
    changed.to_string()
}

#[test]
fn a_minted_token_verifies_and_has_the_documented_parts() {
    let token = keys().mint(&grant(), ISSUER, NOW, 3_600).expect("minted");
    let claims = keys().verify(&token, NOW, ISSUER).expect("verifies");
    assert_eq!(claims, Claims { grant: grant(), issued_at_s: NOW, expires_at_s: NOW + 3_600 });
    let parts: Vec<Value> = token
        .split('.')
        .take(2)
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON"))
        .collect();
    assert_eq!(parts[0], good_header(1));
    let mut names: Vec<&String> = parts[1].as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(names, ["aud", "exp", "iat", "iss", "jti", "mode", "org", "scope", "sub"]);
}

#[test]
fn the_example_of_rfc_8037_comes_out() {
    let seed = URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
    let key = SigningKey::generate(&seed.try_into().expect("32 bytes"));
    assert_eq!(URL_SAFE_NO_PAD.encode(key.public().bytes()), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    assert_eq!(key.public().id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    let keys = SigningKeys::new(key, None, vec![]);
    let signature = jsonwebtoken::crypto::sign(
        b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        &keys.encoding,
        Algorithm::EdDSA,
    );
    assert_eq!(
        signature.expect("signed"),
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    );
}

#[test]
fn keys_that_are_published_verify_and_others_do_not() {
    for (byte, accepted) in [(1, true), (2, true), (3, true), (4, false)] {
        let token = signed(byte, &good_header(byte).to_string(), &good_claims().to_string());
        assert_eq!(keys().verify(&token, NOW, ISSUER).is_ok(), accepted, "key {byte}");
    }
    let jwks = keys().jwks();
    let published: Vec<&str> =
        jwks["keys"].as_array().expect("keys").iter().filter_map(|key| key["kid"].as_str()).collect();
    assert_eq!(published, [1, 2, 3].map(|byte| signing_key(byte).public().id().to_owned()));
    for key in jwks["keys"].as_array().expect("keys") {
        assert!(key.get("d").is_none(), "a private key was published");
        assert_eq!(
            (&key["kty"], &key["crv"], &key["alg"], &key["use"]),
            (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA"), &json!("sig"))
        );
    }
}

#[test]
fn a_published_set_is_read_and_foreign_keys_in_it_are_none_of_ours() {
    let read = |set: &Value| parse_key_set(set.to_string().as_bytes());
    let with = |name: &str, value: &str| {
        let mut set = keys().jwks();
        set["keys"][1][name] = json!(value);
        read(&set)
    };
    let of = |bytes: &[u8]| Some(bytes.iter().map(|byte| signing_key(*byte).public().clone()).collect::<Vec<_>>());
    assert_eq!(read(&keys().jwks()), of(&[1, 2, 3]));
    assert_eq!(with("kty", "EC"), of(&[1, 3]));
    assert_eq!(with("crv", "X25519"), of(&[1, 3]));
    assert_eq!(with("kid", "another"), of(&[1, 2, 3]), "an id is computed");
    assert_eq!(with("x", "AAAA"), None);
    assert_eq!(read(&json!({ "keys": [] })), Some(vec![]));
    assert_eq!(read(&json!([])), None);
}

#[test]
fn keys_in_memory_are_shown_by_their_names() {
    let current = signing_key(1).public().id().to_owned();
    assert_eq!(format!("{:?}", keys()), format!("SigningKeys(current {current}, 3 published)"));
}

#[test]
fn a_key_survives_storing() {
    let key = signing_key(5);
    let again = SigningKey::from_pkcs8(key.expose_pkcs8()).expect("a key");
    assert_eq!(again.public(), key.public());
    let nonsense = SigningKey::from_pkcs8(b"nonsense").err();
    assert_eq!(nonsense.map(|fault| fault.to_string()).as_deref(), Some("not an Ed25519 key in PKCS#8"));
    assert!(format!("{key:?}").contains("[redacted]"));
}

#[test]
fn times_are_exact_to_the_second_with_thirty_seconds_of_leeway() {
    let token = keys().mint(&grant(), ISSUER, NOW, 60).expect("minted");
    let at = |now_s| keys().verify(&token, now_s, ISSUER).map(|_| ());
    assert_eq!(at(NOW - 31), Err(TokenFault::Invalid));
    assert_eq!(at(NOW - 30), Ok(()));
    assert_eq!(at(NOW + 89), Ok(()));
    assert_eq!(at(NOW + 90), Err(TokenFault::Expired));
    assert_eq!(at(i64::MAX), Err(TokenFault::Expired));
    assert_eq!(at(i64::MIN), Err(TokenFault::Invalid));
    let not_before = |start: i64| signed(1, &good_header(1).to_string(), &with(&good_claims(), "nbf", json!(start)));
    assert!(keys().verify(&not_before(NOW + 30), NOW, ISSUER).is_ok());
    assert_eq!(keys().verify(&not_before(NOW + 31), NOW, ISSUER), Err(TokenFault::Invalid));
}

/// The longest genuine token there is, and one byte more: a blank in the header, or a letter of the scope.
#[test]
fn a_token_has_a_longest_length() {
    let of_length = |length: usize| {
        let all = (0..4).flat_map(|blanks| (2_500..3_000).map(move |letters| (blanks, letters)));
        let mut tokens = all.map(|(blanks, letters)| {
            let header = format!("{}{}", " ".repeat(blanks), good_header(1));
            signed(1, &header, &with(&good_claims(), "scope", json!("a".repeat(letters))))
        });
        tokens.find(|token| token.len() == length).expect("every length can be reached")
    };
    assert!(keys().verify(&of_length(4_096), NOW, ISSUER).is_ok());
    assert_eq!(keys().verify(&of_length(4_097), NOW, ISSUER), Err(TokenFault::Invalid));
}

#[test]
fn lifetimes_have_limits_when_minted_and_when_verified() {
    assert_eq!([SHORTEST_LIFETIME_S, DEFAULT_LIFETIME_S, LONGEST_LIFETIME_S], [60, 3_600, 86_400]);
    for lifetime_s in [i64::MIN, -1, 0, 59, 86_401, i64::MAX] {
        assert_eq!(keys().mint(&grant(), ISSUER, NOW, lifetime_s), Err(LifetimeOutOfRange), "{lifetime_s}");
    }
    assert_eq!(LifetimeOutOfRange.to_string(), "a token lives 60 to 86400 seconds");
    for lifetime_s in [60, 86_400] {
        assert!(keys().mint(&grant(), ISSUER, NOW, lifetime_s).is_ok());
    }
    let lasting = |exp: i64| signed(1, &good_header(1).to_string(), &with(&good_claims(), "exp", json!(exp)));
    assert!(keys().verify(&lasting(NOW + 86_400), NOW, ISSUER).is_ok());
    for exp in [NOW + 86_401, NOW, NOW - 1, i64::MAX, i64::MIN] {
        assert_eq!(keys().verify(&lasting(exp), NOW, ISSUER), Err(TokenFault::Invalid), "{exp}");
    }
}

#[test]
fn an_expired_forgery_is_invalid_and_not_expired() {
    let mut claims = good_claims();
    (claims["iat"], claims["exp"]) = (json!(NOW - 7_200), json!(NOW - 3_600));
    let genuine = signed(1, &good_header(1).to_string(), &claims.to_string());
    assert_eq!(keys().verify(&genuine, NOW, ISSUER), Err(TokenFault::Expired));
    let forged = signed(4, &good_header(1).to_string(), &claims.to_string());
    assert_eq!(keys().verify(&forged, NOW, ISSUER), Err(TokenFault::Invalid));
}

#[test]
fn no_bit_of_a_token_can_be_flipped() {
    let keys = keys();
    let token = keys.mint(&grant(), ISSUER, NOW, 3_600).expect("minted");
    let mut flips = 0;
    for bit in 0..token.len() * 8 {
        let mut bytes = token.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // A byte above 127 isn't text and can't even reach the check.
        if let Ok(flipped) = String::from_utf8(bytes) {
            assert_eq!(keys.verify(&flipped, NOW, ISSUER), Err(TokenFault::Invalid), "bit {bit}");
            flips += 1;
        }
    }
    // And every bit of what the parts decode to.
    let parts: Vec<Vec<u8>> = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).expect("base64url")).collect();
    for (index, part) in parts.iter().enumerate() {
        for bit in 0..part.len() * 8 {
            let mut changed = parts.clone();
            changed[index][bit / 8] ^= 1 << (bit % 8);
            let flipped: Vec<String> = changed.iter().map(|part| URL_SAFE_NO_PAD.encode(part)).collect();
            assert_eq!(
                keys.verify(&flipped.join("."), NOW, ISSUER),
                Err(TokenFault::Invalid),
                "part {index} bit {bit}"
            );
            flips += 1;
        }
    }
    assert!(flips > 5_000, "{flips}");
    for length in 0..token.len() {
        assert!(keys.verify(&token[..length], NOW, ISSUER).is_err(), "cut at {length}");
    }
}
