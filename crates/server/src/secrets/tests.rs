use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

fn key(byte: u8) -> MasterKey {
    MasterKey::from_bytes([byte; 32])
}

/// A folder of its own per test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dalasi-secrets-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_wrapped_unwraps() {
    for length in [0, 1, 32, 85, 4096] {
        let secret = vec![7_u8; length];
        let blob = key(1).wrap(&secret, "org_1|test|we_1");
        assert_eq!(key(1).unwrap(&blob, "org_1|test|we_1").expect("opens").expose(), secret);
    }
}

#[test]
fn a_blob_names_its_key_and_hides_its_secret() {
    let blob = key(1).wrap(b"whsec_plain", "a");
    assert!(blob.starts_with(&format!("v1:{}:", key(1).id())));
    assert!(!blob.contains("whsec"));
    assert_ne!(blob, key(1).wrap(b"whsec_plain", "a"), "a nonce was used twice");
}

#[test]
fn another_row_another_key_or_a_flipped_bit_does_not_open() {
    let blob = key(1).wrap(b"secret", "org_1|test|we_1");
    assert_eq!(key(1).unwrap(&blob, "org_1|live|we_1").err(), Some(UnwrapFault::Forged));
    assert_eq!(key(2).unwrap(&blob, "org_1|test|we_1").err(), Some(UnwrapFault::OtherKey(key(1).id().to_owned())));
    // The key's id is authenticated: relabelling a blob doesn't help either.
    let relabelled = blob.replace(key(1).id(), key(2).id());
    assert_eq!(key(2).unwrap(&relabelled, "org_1|test|we_1").err(), Some(UnwrapFault::Forged));
    let head = format!("v1:{}:", key(1).id());
    let body = STANDARD_NO_PAD.decode(&blob[head.len()..]).expect("base64");
    for bit in 0..body.len() * 8 {
        let mut flipped = body.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let flipped = format!("{head}{}", STANDARD_NO_PAD.encode(flipped));
        assert_eq!(key(1).unwrap(&flipped, "org_1|test|we_1").err(), Some(UnwrapFault::Forged), "bit {bit}");
    }
}

#[test]
fn nonsense_is_malformed_and_never_a_panic() {
    let id = key(1).id().to_owned();
    for blob in
        ["", ":", "v1", "v1::", "v2:a:b", &format!("v1:{id}"), &format!("v1:{id}:AAAA:x"), &format!("v1:{id}:*")]
    {
        assert!(key(1).unwrap(blob, "").is_err(), "{blob}");
    }
    for length in 0..28 {
        let blob = format!("v1:{id}:{}", STANDARD_NO_PAD.encode(vec![0_u8; length]));
        assert!(key(1).unwrap(&blob, "").is_err(), "{length} bytes");
    }
}

#[test]
fn every_purpose_has_a_key_of_its_own() {
    let purposes = [
        Purpose::ApiKeyDigest,
        Purpose::ClientSecretDigest,
        Purpose::ClientSecretId,
        Purpose::FormToken,
        Purpose::PageToken,
        Purpose::KeptAnswer,
        Purpose::RequestFingerprint,
    ];
    let mut seen = std::collections::BTreeSet::new();
    for master in [key(1), key(2)] {
        for purpose in purposes {
            assert!(seen.insert(master.subkey(purpose).derive("label")), "{purpose:?} shares a key");
        }
    }
}

#[test]
fn derivation_is_pinned() {
    // These values are in every stored digest: if they change, every API key of every installation stops working.
    assert_eq!(key(1).id(), PINNED_KEY_ID);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &PINNED_API_KEY_PEPPER), b"label");
    assert_eq!(key(1).subkey(Purpose::ApiKeyDigest).derive("label"), tag.as_ref());
}

const PINNED_KEY_ID: &str = "0213eac2";
const PINNED_API_KEY_PEPPER: [u8; 32] = [
    0x44, 0xf0, 0xbf, 0x69, 0x4d, 0xf9, 0x9b, 0x11, 0x00, 0x05, 0x42, 0x48, 0xc8, 0x39, 0xe9, 0xe2, 0x78, 0x6c, 0xb5,
    0x0b, 0x6d, 0x6f, 0xe1, 0xea, 0xbb, 0x5f, 0x25, 0xd9, 0xa2, 0x05, 0x38, 0xed,
];

#[test]
fn nothing_prints_a_secret() {
    let shown = format!(
        "{:?} {:?} {:?} {:?}",
        SecretText::new("canary".to_owned()),
        SecretBytes::new(b"canary".to_vec()),
        MasterKey::from_bytes(*b"canarycanarycanarycanarycanaryca"),
        key(1).subkey(Purpose::FormToken),
    );
    assert!(!shown.contains("canary") && !shown.contains("99, 97"), "{shown}");
    assert_eq!(shown.matches("[redacted]").count(), 4);
}

#[test]
fn comparison_is_by_value() {
    assert!(secrets_match(b"same", b"same"));
    assert!(!secrets_match(b"same", b"sama"));
    assert!(!secrets_match(b"same", b"same\0"));
}

#[test]
fn a_key_file_is_private_whole_and_never_replaced() {
    let folder = Folder::new("create");
    let path = folder.0.join("master.key");
    let created = create_key_file(&path, [9; 32]).expect("created");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let loaded = load_key_file(&path).expect("loads");
    assert_eq!(loaded.id(), created.id());
    assert!(loaded.unwrap(&created.wrap(b"x", "a"), "a").is_ok());
    assert!(matches!(create_key_file(&path, [8; 32]), Err(KeyFileFault::Exists(_))));
    assert_eq!(load_key_file(&path).expect("still loads").id(), created.id());
    let left = fs::read_dir(&folder.0).expect("listed").count();
    assert_eq!(left, 1, "a temporary file stayed behind");
}

#[test]
fn of_many_creators_one_wins() {
    let folder = Folder::new("race");
    let path = folder.0.join("master.key");
    let winners: Vec<u8> = std::thread::scope(|scope| {
        let creators: Vec<_> = (1..=8_u8)
            .map(|byte| {
                let path = &path;
                scope.spawn(move || create_key_file(path, [byte; 32]).is_ok().then_some(byte))
            })
            .collect();
        creators.into_iter().filter_map(|creator| creator.join().expect("no panic")).collect()
    });
    assert_eq!(winners.len(), 1);
    assert_eq!(load_key_file(&path).expect("loads").id(), key(winners[0]).id());
    assert_eq!(fs::read_dir(&folder.0).expect("listed").count(), 1);
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let folder = Folder::new("permissions");
    let path = folder.0.join("master.key");
    create_key_file(&path, [9; 32]).expect("created");
    for mode in [0o640, 0o604, 0o620, 0o601, 0o644, 0o666, 0o777] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
        assert!(matches!(load_key_file(&path), Err(KeyFileFault::Permissions { .. })), "{mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("changed");
    assert!(load_key_file(&path).is_ok());
    let link = folder.0.join("link.key");
    symlink(&path, &link).expect("linked");
    assert!(load_key_file(&link).is_ok(), "mounted secrets are links");
}

#[test]
fn a_damaged_or_missing_key_file_says_so() {
    let folder = Folder::new("damaged");
    let path = folder.0.join("master.key");
    assert!(matches!(load_key_file(&path), Err(KeyFileFault::Missing(_))));
    assert!(matches!(load_key_file(&folder.0), Err(KeyFileFault::Malformed(_))));
    let good = format!("dalasi-master-key:v1:{}", base64::engine::general_purpose::STANDARD.encode([1_u8; 32]));
    let cases: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"dalasi-master-key:v1:\n".to_vec(),
        b"dalasi-master-key:v2:AAAA".to_vec(),
        good.as_bytes()[..good.len() - 4].to_vec(),
        format!("{good}AAAA").into_bytes(),
        format!(" {good}").into_bytes(),
        vec![0xff; 64],
        vec![b'a'; 100_000],
    ];
    for case in cases {
        fs::write(&path, &case).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        assert!(
            matches!(load_key_file(&path), Err(KeyFileFault::Malformed(_))),
            "{:?}",
            String::from_utf8_lossy(&case)
        );
    }
    fs::write(&path, format!("{good}\n")).expect("written");
    assert!(load_key_file(&path).is_ok());
}

#[test]
fn a_sealed_text_opens_under_its_own_label_only() {
    let key = MasterKey::from_bytes([7; 32]).subkey(Purpose::KeptAnswer);
    for plain in [&b""[..], b"{}", &[0xff; 5000]] {
        let sealed = key.seal("org\ntest\nsecret\norder-1", plain);
        assert_eq!(sealed.len(), plain.len() + Subkey::SEAL_LENGTH);
        assert_eq!(key.open("org\ntest\nsecret\norder-1", &sealed).as_deref(), Ok(plain));
        assert_eq!(key.open("org\ntest\nsecret\norder-2", &sealed), Err(UnwrapFault::Forged));
        assert_ne!(key.seal("org\ntest\nsecret\norder-1", plain), sealed, "each has its own nonce");
        for place in [0, Subkey::SEAL_LENGTH - 17, sealed.len() - 1] {
            let mut altered = sealed.clone();
            altered[place] ^= 1;
            assert_eq!(key.open("org\ntest\nsecret\norder-1", &altered), Err(UnwrapFault::Forged));
        }
        assert!(key.open("org\ntest\nsecret\norder-1", &sealed[..Subkey::SEAL_LENGTH - 1]).is_err());
    }
    let other = MasterKey::from_bytes([8; 32]).subkey(Purpose::KeptAnswer);
    assert!(other.open("label", &key.seal("label", b"plain")).is_err());
}
