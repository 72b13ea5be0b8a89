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
    assert_eq!(end, Some('}'), "an object");
    document.push_str(&format!("{NAME}{sum:08x}{END}"));
    document
}

/// The same document with the checksum of what it says now, if it ends as one does.
pub(crate) fn renewed(document: &str) -> Option<String> {
    let without = without(document);
    without.ends_with('}').then(|| added(without))
}

/// The same document as it was before it had one.
pub(crate) fn without(document: &str) -> String {
    split(document).map_or_else(|| document.to_owned(), |(members, _)| format!("{members}}}"))
}

/// Whether a damaged document can have been this whole one: by the checksum that it still has, if it has one to be read, unless that is
/// what is damaged.
pub(crate) fn can_have_been(damaged: &str, whole: &str) -> bool {
    let Some((members, sum)) = split(damaged) else { return true };
    let whole = renewed(whole);
    let kept = whole.as_deref().and_then(split);
    kept.is_some_and(|(kept, kept_sum)| members == kept || sum == kept_sum)
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
pub(crate) fn split(document: &str) -> Option<(&str, &str)> {
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
    fn a_new_one_takes_the_place_of_the_old_one() {
        let with = added(DOCUMENT.into());
        assert_eq!(renewed(DOCUMENT).as_ref(), Some(&with));
        let is_taken = |document: &str| check(document, format_args!("it")).is_ok();
        for (old, new) in [("Ndëy", "Ndiy"), ("3edd", "3fdd"), ("624c", "\u{1}24c")] {
            let flipped = with.replace(old, new);
            assert!(!is_taken(&flipped), "{flipped}");
            let renewed = renewed(&flipped).unwrap();
            assert!(is_taken(&renewed), "{renewed}");
            assert_eq!(renewed.matches("crc32").count(), 1, "{renewed}");
        }
        assert_eq!(renewed(&with[..with.len() - 1]), None);
    }

    #[test]
    fn a_damaged_one_is_known_by_what_it_still_carries() {
        let with = added(DOCUMENT.into());
        let another = added(DOCUMENT.replace("10000", "20000"));
        for (old, new) in [("10000", "10001"), ("3edd", "3fdd"), ("624c\"}", "624c\"|")] {
            assert!(can_have_been(&with.replace(old, new), &with), "{old}");
        }
        assert!(can_have_been(&with.replace("10000", "10001"), DOCUMENT), "what kept none has the same");
        assert!(!can_have_been(&another.replace("Ndëy", "Ndiy"), &with));
        let (members, sum) = split(&another).unwrap();
        let flipped = another.replace(sum, &sum.chars().rev().collect::<String>());
        assert!(flipped != another && flipped.starts_with(members));
        assert!(!can_have_been(&flipped, &with));
        assert!(can_have_been(&flipped, &another));
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
