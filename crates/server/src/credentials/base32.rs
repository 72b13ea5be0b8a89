//! Lower-case Crockford base32: no `i l o u`, so that a key read aloud is heard right.
//!
//! Only what keys need: whole byte strings and single groups of bits. No aliases are accepted on input (`O` for
//! `0` and the like), so that one key has one spelling.

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// 256 bits in 52 characters, most significant first; the last character carries one bit and four zeros.
pub(super) fn encode_256(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(52);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(character(held >> bits));
            held &= (1 << bits) - 1;
        }
    }
    text.push(character(held << (5 - bits)));
    text
}

/// The first 30 bits of `bytes` in 6 characters.
pub(super) fn encode_30(bytes: [u8; 4]) -> String {
    let bits = u32::from_be_bytes(bytes) >> 2;
    (0..6).rev().map(|place| character(bits >> (place * 5))).collect()
}

/// The bytes for which [`encode_256`] gives `text`, if there are any.
pub(super) fn decode_256(text: &str) -> Option<[u8; 32]> {
    if text.len() != 52 {
        return None;
    }
    let mut bytes = [0_u8; 32];
    let (mut held, mut bits, mut at) = (0_u32, 0_u32, 0);
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|one| *one == character)?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes[at] = u8::try_from(held >> bits).ok()?;
            held &= (1 << bits) - 1;
            at += 1;
        }
    }
    // The four padding bits are zero: one spelling only.
    (held == 0).then_some(bytes)
}

fn character(value: u32) -> char {
    char::from(ALPHABET[(value & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(encode_256(&[0; 32]), "0".repeat(52));
        assert_eq!(encode_256(&[0xff; 32]), format!("{}g", "z".repeat(51)));
        // 00000 00100 00001 … : counted by hand for the first two bytes 0x01 0x02.
        let mut bytes = [0_u8; 32];
        (bytes[0], bytes[1]) = (1, 2);
        assert_eq!(encode_256(&bytes), format!("0410{}", "0".repeat(48)));
        assert_eq!(encode_30([0xff, 0xff, 0xff, 0xff]), "zzzzzz");
        assert_eq!(encode_30([0, 0, 0, 3]), "000000");
        assert_eq!(encode_30([0, 0, 0, 4]), "000001");
    }

    #[test]
    fn different_bytes_have_different_text() {
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..256 {
            let mut bytes = [0_u8; 32];
            bytes[bit / 8] = 1 << (bit % 8);
            let text = encode_256(&bytes);
            assert_eq!(decode_256(&text), Some(bytes), "{text}");
            assert!(seen.insert(text));
        }
    }

    #[test]
    fn only_whole_canonical_text_is_recognised() {
        let good = encode_256(&[7; 32]);
        assert_eq!(decode_256(&good), Some([7; 32]));
        assert_eq!(decode_256(&encode_256(&[0xff; 32])), Some([0xff; 32]));
        let is_256 = |text: &str| decode_256(text).is_some();
        assert!(!is_256(&good[1..]));
        assert!(!is_256(&format!("{good}0")));
        assert!(!is_256(&good.to_uppercase()));
        for bad in ['i', 'l', 'o', 'u', '-', ' ', '\0', 'é'] {
            assert!(!is_256(&format!("{bad}{}", &good[bad.len_utf8()..])), "{bad}");
        }
        assert!(!is_256(&format!("{}1", &good[..51])), "a padding bit is set");
    }
}
