//! Names are written in one way, whoever typed them and by whatever way they come in.

use icu_normalizer::ComposingNormalizerBorrowed;

/// In Unicode's NFC: letters that were put together of parts are the same as those that are one.
pub fn composed(name: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(name).into_owned()
}
