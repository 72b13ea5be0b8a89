//! Signatures on outgoing webhooks: Standard Webhooks v1 and the compatibility header.
//!
//! It signs bytes that are given and sends nothing. Which secrets sign, and for how long, the caller decides: during
//! a rotation old and new secrets sign `webhook-signature`, while the compatibility header, which has room for one, keeps
//! the oldest until it stops signing (contract.md §2.11, §6).

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::secrets::SecretText;

pub const ID_HEADER: &str = "webhook-id";
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
pub const SIGNATURE_HEADER: &str = "webhook-signature";
pub const COMPATIBILITY_HEADER: &str = "x-jokoor-signature";

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1";

/// `whsec_` and base64 of the key; ours have 32 bytes, the standard allows 24 to 64.
#[derive(Debug, Clone)]
pub struct WebhookSecret(SecretText);

/// The text isn't a webhook secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedSecret;

/// What is signed: one attempt at delivering one event.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The event's id, the same on every attempt.
    pub event_id: &'a str,
    /// Unix seconds of this attempt.
    pub timestamp_s: i64,
    /// The raw body as it goes over the wire.
    pub body: &'a [u8],
}

/// Values of the two signature headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signatures {
    /// For [`SIGNATURE_HEADER`]: `v1,<base64>`, one per secret, separated by a space.
    pub standard: String,
    /// For [`COMPATIBILITY_HEADER`]: `sha256=<hex>`.
    pub compatibility: String,
}

impl WebhookSecret {
    pub fn generate(random: &[u8; 32]) -> Self {
        Self(SecretText::new(format!("{PREFIX}{}", *Zeroizing::new(STANDARD.encode(random)))))
    }

    pub fn parse(text: &str) -> Result<Self, MalformedSecret> {
        let secret = Self(SecretText::new(text.to_owned()));
        match secret.key_bytes() {
            Some(key) if (24..=64).contains(&key.len()) => Ok(secret),
            _ => Err(MalformedSecret),
        }
    }

    /// The whole secret, for the answer that creates it and for wrapping it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    fn key_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let encoded = self.0.expose().strip_prefix(PREFIX)?;
        STANDARD.decode(encoded).ok().map(Zeroizing::new)
    }

    fn standard_signature(&self, attempt: &Attempt<'_>) -> String {
        let key = self.key_bytes().expect("a webhook secret is decoded once before it exists");
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
        context.update(attempt.event_id.as_bytes());
        context.update(b".");
        context.update(attempt.timestamp_s.to_string().as_bytes());
        context.update(b".");
        context.update(attempt.body);
        format!("{VERSION},{}", STANDARD.encode(context.sign()))
    }

    /// Keyed with the secret as it is written, prefix included, unlike the standard's.
    fn compatibility_signature(&self, attempt: &Attempt<'_>) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.expose().as_bytes());
        let tag = hmac::sign(&key, attempt.body);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256={hex}")
    }
}

/// Signs one attempt. `secret` is the endpoint's (during a rotation the oldest that still signs), `incoming` those that
/// rotations brought in since.
pub fn sign(attempt: &Attempt<'_>, secret: &WebhookSecret, incoming: &[WebhookSecret]) -> Signatures {
    let mut standard = secret.standard_signature(attempt);
    for incoming in incoming {
        standard.push(' ');
        standard.push_str(&incoming.standard_signature(attempt));
    }
    Signatures { standard, compatibility: secret.compatibility_signature(attempt) }
}

impl fmt::Display for MalformedSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the webhook secret is malformed")
    }
}

impl std::error::Error for MalformedSecret {}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(body: &[u8]) -> Attempt<'_> {
        Attempt { event_id: "evt_01", timestamp_s: 1_700_000_000, body }
    }

    #[test]
    fn the_published_example_comes_out() {
        let secret = WebhookSecret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").expect("a secret");
        let attempt = Attempt {
            event_id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            timestamp_s: 1_649_367_553,
            body: br#"{"email":"test@example.com","username":"test_user"}"#,
        };
        assert_eq!(sign(&attempt, &secret, &[]).standard, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    #[test]
    fn the_compatibility_header_is_plain_hex_under_the_whole_secret() {
        let secret = WebhookSecret::generate(&[0; 32]);
        assert_eq!(secret.expose(), "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        let signed = sign(&attempt(b"{\"id\":\"evt_01\"}"), &secret, &[]);
        assert_eq!(signed.compatibility, "sha256=157c450a0c93e4893eb1ce773e5dc3bca373a9d2eabe73e535e264152cdd6d8a");
    }

    #[test]
    fn during_a_rotation_all_sign_and_the_oldest_keeps_the_compatibility_header() {
        let [old, new, newest] = [1, 2, 3].map(|seed| WebhookSecret::generate(&[seed; 32]));
        let attempt = attempt(b"{}");
        let [only_old, only_new, only_newest] = [&old, &new, &newest].map(|secret| sign(&attempt, secret, &[]));
        let all = sign(&attempt, &old, &[new, newest]);
        let each = [&only_old, &only_new, &only_newest].map(|only| only.standard.as_str());
        assert_eq!(all.standard, each.join(" "));
        assert_eq!(all.compatibility, only_old.compatibility);
        assert_ne!(all.compatibility, only_new.compatibility);
    }

    #[test]
    fn every_signed_part_counts() {
        let secret = WebhookSecret::generate(&[1; 32]);
        let base = sign(&attempt(b"{}"), &secret, &[]);
        let others = [
            Attempt { event_id: "evt_02", ..attempt(b"{}") },
            Attempt { timestamp_s: 1_700_000_001, ..attempt(b"{}") },
            attempt(b"{ }"),
        ];
        for other in others {
            assert_ne!(sign(&other, &secret, &[]).standard, base.standard, "{other:?}");
        }
        assert_ne!(sign(&attempt(b"{ }"), &secret, &[]).compatibility, base.compatibility);
    }

    #[test]
    fn the_public_library_accepts_what_we_send_and_nothing_else() {
        #[expect(clippy::disallowed_methods, reason = "the library compares with its own clock")]
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let timestamp_s = i64::try_from(now.as_secs()).expect("in range");
        let body = "{\"id\":\"evt_01\",\"note\":\"é 🎉\"}".as_bytes();
        let attempt = Attempt { event_id: "evt_01", timestamp_s, body };
        let (old, new) = (WebhookSecret::generate(&[1; 32]), WebhookSecret::generate(&[2; 32]));
        let signed = sign(&attempt, &old, std::slice::from_ref(&new));
        let mut headers = http::HeaderMap::new();
        headers.insert(ID_HEADER, "evt_01".parse().expect("a header"));
        headers.insert(TIMESTAMP_HEADER, timestamp_s.to_string().parse().expect("a header"));
        headers.insert(SIGNATURE_HEADER, signed.standard.parse().expect("a header"));
        for secret in [&old, &new] {
            let receiver = standardwebhooks::Webhook::new(secret.expose()).expect("a secret");
            assert!(receiver.verify(body, &headers).is_ok());
            assert!(receiver.verify(&body[1..], &headers).is_err());
        }
        let stranger = WebhookSecret::generate(&[3; 32]);
        let receiver = standardwebhooks::Webhook::new(stranger.expose()).expect("a secret");
        assert!(receiver.verify(body, &headers).is_err());
    }

    #[test]
    fn malformed_secrets_are_refused_and_none_is_printed() {
        for text in ["", "whsec_", "whsec_AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "whsec_*", "whsec_é"]
        {
            assert_eq!(WebhookSecret::parse(text).err(), Some(MalformedSecret), "{text}");
        }
        assert!(!format!("{:?}", WebhookSecret::generate(&[0; 32])).contains("AAAA"));
    }
}
