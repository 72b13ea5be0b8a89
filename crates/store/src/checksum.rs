//! What tells a text with a flipped bit from the one that was written: neither database holds the pages of its tables against a
//! checksum unless it was set up to.
//!
//! A document holds its own, as its last member: a process of an earlier version, which an upgrade leaves running beside this one,
//! reads past it and writes none. What has none is taken as it is.

use std::fmt::Arguments;

use crate::error::Error;

const NAME: &str = ",\"crc32\":\"";
const END: &str = "\"}";
const DIGITS: usize = 8;

pub(crate) fn of(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}

/// A document, which is an object with members, with its checksum.
pub(crate) fn added(mut document: String) -> String {
    let sum = of(&document);
    let end = document.pop();
    debug_assert_eq!(end, Some('}'), "an object");
    document.push_str(&format!("{NAME}{sum:08x}{END}"));
    document
}

/// Refuses a document that is not as it was written.
pub(crate) fn check(document: &str, what: Arguments<'_>) -> Result<(), Error> {
    let Some((members, sum)) = split(document) else { return Ok(()) };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(members.as_bytes());
    hasher.update(b"}");
    expect(sum == format!("{:08x}", hasher.finalize()), what)
}

/// Refuses a text that has changed since its checksum was kept.
pub(crate) fn check_beside(text: &str, sum: Option<i64>, what: Arguments<'_>) -> Result<(), Error> {
    expect(sum.is_none_or(|sum| sum == i64::from(of(text))), what)
}

fn expect(is_as_written: bool, what: Arguments<'_>) -> Result<(), Error> {
    match is_as_written || domain::planted!(Defect::ChecksumIgnored) {
        true => Ok(()),
        false => Err(Error::Corrupt(format!("{what} is not what was written: its checksum is another"))),
    }
}

/// The members of a document, and its checksum.
fn split(document: &str) -> Option<(&str, &str)> {
    let all = document.strip_suffix(END)?;
    let (before, sum) = all.split_at_checked(all.len().checked_sub(DIGITS)?)?;
    Some((before.strip_suffix(NAME)?, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"amount":{"minor":10000},"name":"Ndëy 🌿"}"#;

    #[test]
    fn whoever_knows_nothing_of_it_reads_the_same() {
        let with = added(DOCUMENT.into());
        assert_eq!(with, r#"{"amount":{"minor":10000},"name":"Ndëy 🌿","crc32":"3edd624c"}"#);
        let mut read: serde_json::Value = serde_json::from_str(&with).unwrap();
        assert!(read.as_object_mut().unwrap().remove("crc32").is_some());
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(DOCUMENT).unwrap());
    }

    #[test]
    fn every_flipped_bit_is_found_but_in_its_name() {
        let with = added(DOCUMENT.into());
        let is_taken = |document: &str| check(document, format_args!("it")).is_ok();
        assert!(is_taken(&with) && is_taken(DOCUMENT) && is_taken(""));
        let is_name = with.len() - END.len() - DIGITS - NAME.len()..with.len() - END.len() - DIGITS;
        for bit in 0..with.len() * 8 {
            let mut flipped = with.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // What is no UTF-8 is no text to any database.
            let Ok(flipped) = String::from_utf8(flipped) else { continue };
            let is_harmless = is_name.contains(&(bit / 8)) || bit / 8 >= with.len() - END.len();
            // Without its last two bytes it is no document to anybody.
            assert_eq!(is_taken(&flipped), is_harmless, "{flipped}");
        }
    }
}
