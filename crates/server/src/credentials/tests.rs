use super::*;
use crate::secrets::{MasterKey, Purpose};

const ALL: [(KeyKind, Mode, &str); 4] = [
    (KeyKind::Secret, Mode::Test, "sk_test_"),
    (KeyKind::Secret, Mode::Live, "sk_live_"),
    (KeyKind::Publishable, Mode::Test, "pk_test_"),
    (KeyKind::Publishable, Mode::Live, "pk_live_"),
];

fn pepper(byte: u8) -> Subkey {
    MasterKey::from_bytes([byte; 32]).subkey(Purpose::ApiKeyDigest)
}

#[test]
fn a_generated_key_has_the_documented_shape_and_parses_back() {
    for (kind, mode, head) in ALL {
        for byte in 0..=255 {
            let key = ApiKey::generate(kind, mode, &[byte; 32]);
            let text = key.expose();
            assert_eq!(text.len(), 8 + 52 + 6);
            assert!(text.starts_with(head));
            assert!(text[8..].bytes().all(|byte| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&byte)));
            let parsed = ApiKey::parse(text).expect("parses");
            assert_eq!((parsed.kind(), parsed.mode(), parsed.prefix()), (kind, mode, head));
            assert_eq!(parsed.last4(), &text[62..]);
        }
    }
}

#[test]
fn every_single_wrong_character_and_every_swap_is_noticed() {
    let key = ApiKey::generate(KeyKind::Secret, Mode::Live, &[0x5a; 32]);
    let text = key.expose();
    let mut tried = 0;
    for at in 0..text.len() {
        for other in b"0123456789abcdefghjkmnpqrstvwxyz_-OIL\0 " {
            let mut bytes = text.as_bytes().to_vec();
            if bytes[at] == *other {
                continue;
            }
            bytes[at] = *other;
            let wrong = String::from_utf8(bytes).expect("ASCII");
            assert!(ApiKey::parse(&wrong).is_err(), "{wrong}");
            tried += 1;
        }
    }
    assert!(tried > 2_000);
    for at in 0..text.len() - 1 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.swap(at, at + 1);
        let wrong = String::from_utf8(bytes).expect("ASCII");
        assert!(wrong == text || ApiKey::parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_key_of_one_mode_or_kind_is_not_a_key_of_another() {
    for (kind, mode, head) in ALL {
        let text = ApiKey::generate(kind, mode, &[3; 32]).expose().to_owned();
        for (_, _, other) in ALL {
            assert_eq!(ApiKey::parse(&text.replace(head, other)).is_ok(), head == other);
        }
    }
}

#[test]
fn nonsense_is_malformed_and_never_a_panic() {
    let good = ApiKey::generate(KeyKind::Secret, Mode::Test, &[3; 32]).expose().to_owned();
    let cases = [
        String::new(),
        "sk_test_".to_owned(),
        "sk_test_é".to_owned(),
        "sk_test_éééééé".to_owned(),
        "sk_".to_owned(),
        good[..65].to_owned(),
        format!("{good}0"),
        format!(" {good}"),
        format!("{good}\n"),
        good.to_uppercase(),
        "é".repeat(33),
        "sk_test_".repeat(10_000),
    ];
    for case in cases {
        assert_eq!(ApiKey::parse(&case).err(), Some(Malformed), "{case}");
    }
    assert!(ApiKey::resembles("sk_nonsense") && ApiKey::resembles(&good) && !ApiKey::resembles("eyJhbGciOi"));
}

#[test]
fn digests_depend_on_the_whole_key_and_on_the_pepper() {
    let one = ApiKey::generate(KeyKind::Secret, Mode::Test, &[3; 32]);
    let other = ApiKey::generate(KeyKind::Secret, Mode::Live, &[3; 32]);
    let digest = one.digest(&pepper(1));
    assert_eq!(digest.len(), 64);
    assert!(digests_match(&digest, &ApiKey::parse(one.expose()).expect("parses").digest(&pepper(1))));
    assert!(!digests_match(&digest, &other.digest(&pepper(1))));
    assert!(!digests_match(&digest, &one.digest(&pepper(2))));
    assert!(!digests_match(&digest, &digest[..63]));
    assert!(!digest.contains(&one.expose()[8..20]));
}

#[test]
fn the_digest_of_a_fixed_key_is_pinned() {
    // Keys of every installation are looked up by this digest; it may never change.
    let key = ApiKey::generate(KeyKind::Secret, Mode::Test, &[1; 32]);
    assert_eq!(key.expose(), "sk_test_040g2081040g2081040g2081040g2081040g2081040g2081040g7rbwvy");
    assert_eq!(key.digest(&pepper(1)), "3be8f6d2ef84e9c96720126ff6dc53642d616916af11ac3c352b41cdcb328e36");
}

#[test]
fn a_fixed_client_secret_and_its_digest_are_pinned() {
    // Payers' browsers hold such texts while the server is upgraded, and checkouts keep the digest: neither may change.
    let keys = ClientSecretKeys::new(&MasterKey::from_bytes([1; 32]));
    let checkout: Id<Checkout> = "cs_01h455vb4pex5vsknk084sn02q".parse().expect("an id");
    let secret = ClientSecret::generate(checkout, [9; 16], &keys);
    assert_eq!(secret.expose(), "csec_144gj289144gj289144gj28915v971vxy62wcqecsq8nj3qzjbwg");
    assert_eq!(secret.digest(&keys), "d28f040e431a3bf4c0b4e18fe9f9e07328e0575174e299ec2900ffc367d5fdad");
}

#[test]
fn client_secrets_parse_back_and_hide() {
    let [keys, others] = [1, 2].map(|byte| ClientSecretKeys::new(&MasterKey::from_bytes([byte; 32])));
    let checkout: Id<Checkout> = "cs_01h455vb4pex5vsknk084sn02q".parse().expect("an id");
    let secret = ClientSecret::generate(checkout, [9; 16], &keys);
    assert_eq!(secret.expose().len(), 5 + 52);
    assert_eq!(ClientSecret::parse(secret.expose(), &keys).map(|parsed| parsed.checkout()), Ok(checkout));
    let read = ClientSecret::parse(secret.expose(), &others).expect("text is text");
    assert_ne!(read.checkout(), checkout, "only who has the key reads the id");
    assert_eq!(secret.digest(&keys).len(), 64);
    for wrong in [
        "",
        "csec_",
        "csec_0",
        &secret.expose()[1..],
        &secret.expose()[..56],
        &format!("{}0", secret.expose()),
        &secret.expose().to_uppercase(),
        &format!("csec_{}", "é".repeat(26)),
    ] {
        assert!(ClientSecret::parse(wrong, &keys).is_err(), "{wrong}");
    }
    let key = ApiKey::generate(KeyKind::Secret, Mode::Test, &[9; 32]);
    let shown = format!("{secret:?} {key:?}");
    assert!(shown.contains("[redacted]") && !shown.contains(&secret.expose()[31..41]), "{shown}");
    assert!(!shown.contains(&key.expose()[8..18]), "{shown}");
}

#[test]
fn two_client_secrets_of_one_checkout_hide_its_id_each_in_its_own_way() {
    let keys = ClientSecretKeys::new(&MasterKey::from_bytes([1; 32]));
    let checkout: Id<Checkout> = "cs_01h455vb4pex5vsknk084sn02q".parse().expect("an id");
    let [one, other] = [[9; 16], [8; 16]].map(|nonce| {
        let secret = ClientSecret::generate(checkout, nonce, &keys);
        let bytes = decode_256(&secret.expose()[5..]).expect("base32");
        u128::from_be_bytes(std::array::from_fn(|at| bytes[16 + at]))
    });
    let id = u128::from_be_bytes(checkout.to_bytes());
    for (one, other) in [(one, other), (one, id), (other, id)] {
        // Half of 128 bits differ by chance, and fewer than 40 or more than 88 once in 80,000 times. Under one mask for both, or
        // under none, no bit would.
        let differing = (one ^ other).count_ones();
        assert!((40..=88).contains(&differing), "{one:032x} {other:032x}");
    }
}
