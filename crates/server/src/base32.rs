//! Crockford base32: no `I L O U`, so that what is read aloud is heard right. Bytes have one text: no aliases (`O` for `0` and the
//! like), no padding, and the bits that fill the last character are zero.

use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};

/// Of keys.
pub(crate) static LOWER: LazyLock<Encoding> = LazyLock::new(|| crockford("0123456789abcdefghjkmnpqrstvwxyz"));
/// Of what a QR code holds in its shorter form.
pub(crate) static UPPER: LazyLock<Encoding> = LazyLock::new(|| crockford("0123456789ABCDEFGHJKMNPQRSTVWXYZ"));

fn crockford(symbols: &str) -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str(symbols);
    specification.encoding().expect("32 characters that differ are an alphabet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(LOWER.encode(&[0; 32]), "0".repeat(52));
        assert_eq!(LOWER.encode(&[0xff; 32]), format!("{}g", "z".repeat(51)));
        assert_eq!(UPPER.encode(&[0xff; 32]), format!("{}G", "Z".repeat(51)));
        // 00000 00100 00001 … : counted by hand for the first two bytes 0x01 0x02.
        let mut bytes = [0_u8; 32];
        (bytes[0], bytes[1]) = (1, 2);
        assert_eq!(LOWER.encode(&bytes), format!("0410{}", "0".repeat(48)));
    }

    #[test]
    fn different_bytes_have_different_text() {
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..256 {
            let mut bytes = [0_u8; 32];
            bytes[bit / 8] = 1 << (bit % 8);
            let text = LOWER.encode(&bytes);
            assert_eq!(LOWER.decode(text.as_bytes()), Ok(bytes.to_vec()), "{text}");
            assert!(seen.insert(text));
        }
    }

    #[test]
    fn only_whole_canonical_text_is_recognised() {
        let good = LOWER.encode(&[7; 32]);
        let is_read = |text: &str| LOWER.decode(text.as_bytes()).is_ok();
        assert!(is_read(&good));
        assert!(!is_read(&good[1..]));
        assert!(!is_read(&format!("{good}00")), "no bytes are so long");
        assert!(!is_read(&good.to_uppercase()) && UPPER.decode(good.to_uppercase().as_bytes()).is_ok());
        for bad in ['i', 'l', 'o', 'u', '-', ' ', '\0', 'é'] {
            assert!(!is_read(&format!("{bad}{}", &good[bad.len_utf8()..])), "{bad}");
        }
        assert!(!is_read(&format!("{}1", &good[..51])), "a padding bit is set");
    }
}
