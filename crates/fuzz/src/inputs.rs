//! Inputs as they are stored: a file for each target, a line for each input, percent-encoded so that it can be read.

use std::path::PathBuf;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// Where they are.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("inputs")
}

/// What is stored for a target.
///
/// # Panics
/// When the file can't be read.
#[must_use]
pub fn stored(target: &str) -> Vec<Vec<u8>> {
    let path = folder().join(format!("{target}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(unescaped).collect()
}

#[must_use]
pub fn escaped(input: &[u8]) -> String {
    percent_encode(input, ESCAPED).to_string()
}

#[must_use]
pub fn unescaped(line: &str) -> Vec<u8> {
    percent_decode_str(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let input: Vec<u8> = (0..=255).collect();
        assert_eq!(unescaped(&escaped(&input)), input);
        assert_eq!(escaped(b"a%\n "), "a%25%0A ");
    }
}
