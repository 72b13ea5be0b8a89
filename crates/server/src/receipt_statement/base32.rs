//! Upper-case Crockford base32 of byte strings of any length. No aliases and no padding: bytes have one text.

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity((bytes.len() * 8).div_ceil(5));
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
    if bits > 0 {
        text.push(character(held << (5 - bits)));
    }
    text
}

/// The bytes whose text this is, if it is any's.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == character)?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits).to_le_bytes()[0]);
            held &= (1 << bits) - 1;
        }
    }
    // What remains is less than a character, and nothing.
    (bits < 5 && held == 0).then_some(bytes)
}

fn character(value: u32) -> char {
    char::from(ALPHABET[(value & 31) as usize])
}
