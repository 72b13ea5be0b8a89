//! Form tokens of the hosted pages: signed, stateless proof that a form came from our page for this object.
//!
//! There is no cookie behind it (in-app browsers often have none), so the token is bound to a purpose and to an
//! object, expires, and carries a nonce: the same token sent twice is the same press of the button, which makes it
//! the idempotency key as well. It doesn't remember which tokens were used; idempotency does.
//!
//! The text is base64url of expiry (8 bytes), nonce (16) and HMAC-SHA256 tag (32): 75 characters.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::secrets::Subkey;

const NONCE_LENGTH: usize = 16;
const HEAD_LENGTH: usize = 8 + NONCE_LENGTH;
const TOKEN_LENGTH: usize = HEAD_LENGTH + 32;
const TEXT_LENGTH: usize = 75;

/// Why a form is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormTokenFault {
    /// Not ours, altered, or of another form or object.
    Invalid,
    /// Ours, but too old: show the page again.
    Expired,
}

/// Makes a token for one form. Valid while `now < expires_at_s`.
pub fn issue(key: &Subkey, purpose: &str, object_id: &str, expires_at_s: i64, random: &[u8; 32]) -> String {
    let mut token = Vec::with_capacity(TOKEN_LENGTH);
    token.extend_from_slice(&expires_at_s.to_be_bytes());
    token.extend_from_slice(&random[..NONCE_LENGTH]);
    let tag = hmac_input(key, purpose, object_id, &token).sign();
    token.extend_from_slice(tag.as_ref());
    URL_SAFE_NO_PAD.encode(token)
}

/// Checks a token that came back with a form.
pub fn verify(key: &Subkey, purpose: &str, object_id: &str, text: &str, now_s: i64) -> Result<(), FormTokenFault> {
    if text.len() != TEXT_LENGTH {
        return Err(FormTokenFault::Invalid);
    }
    let token = URL_SAFE_NO_PAD.decode(text).map_err(|_| FormTokenFault::Invalid)?;
    let (head, tag) = token.split_at_checked(HEAD_LENGTH).ok_or(FormTokenFault::Invalid)?;
    let expected = hmac_input(key, purpose, object_id, head).sign();
    aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_ref(), tag).map_err(|_| FormTokenFault::Invalid)?;
    let expires_at_s = i64::from_be_bytes(head[..8].try_into().expect("the head begins with eight bytes"));
    if now_s >= expires_at_s { Err(FormTokenFault::Expired) } else { Ok(()) }
}

/// Each part is preceded by its length, so that no two sets of parts read alike.
fn hmac_input(key: &Subkey, purpose: &str, object_id: &str, head: &[u8]) -> hmac::Context {
    let mut context = hmac::Context::with_key(key.hmac_key());
    for part in [purpose.as_bytes(), object_id.as_bytes(), head] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{MasterKey, Purpose};

    fn key(byte: u8) -> Subkey {
        MasterKey::from_bytes([byte; 32]).subkey(Purpose::FormToken)
    }

    fn token() -> String {
        issue(&key(1), "pay", "cs_01", 1_000, &[7; 32])
    }

    #[test]
    fn a_token_is_good_until_it_expires() {
        assert_eq!(token().len(), TEXT_LENGTH);
        assert_eq!(verify(&key(1), "pay", "cs_01", &token(), 999), Ok(()));
        assert_eq!(verify(&key(1), "pay", "cs_01", &token(), 1_000), Err(FormTokenFault::Expired));
    }

    #[test]
    fn a_token_is_bound_to_purpose_object_and_key() {
        for (byte, purpose, object) in
            [(2, "pay", "cs_01"), (1, "cancel", "cs_01"), (1, "pay", "cs_02"), (1, "payc", "s_01"), (1, "", "paycs_01")]
        {
            assert_eq!(
                verify(&key(byte), purpose, object, &token(), 1),
                Err(FormTokenFault::Invalid),
                "{purpose} {object}"
            );
        }
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let good = token();
        for at in 0..good.len() {
            for other in b"Aa0-_9=+/ \0" {
                let mut bytes = good.clone().into_bytes();
                if bytes[at] == *other {
                    continue;
                }
                bytes[at] = *other;
                let text = String::from_utf8(bytes).expect("ASCII");
                assert_eq!(verify(&key(1), "pay", "cs_01", &text, 1), Err(FormTokenFault::Invalid), "{text}");
            }
        }
        for text in ["", "é", &good[1..], &format!("{good}="), &"A".repeat(1 << 20)] {
            assert_eq!(verify(&key(1), "pay", "cs_01", text, 1), Err(FormTokenFault::Invalid));
        }
    }

    #[test]
    fn two_pages_have_two_tokens() {
        assert_ne!(issue(&key(1), "pay", "cs_01", 1_000, &[8; 32]), token());
    }
}
