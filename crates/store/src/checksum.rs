//! What tells a text with a flipped bit from the one that was written: neither database holds the pages of its tables against a
//! checksum unless it was set up to.
//!
//! A document holds its own, as its last member: a process of an earlier version, which an upgrade leaves running beside this one,
//! reads past it and writes none. What has none is taken as it is.

use std::fmt::Arguments;

use serde::de::IgnoredAny;

use crate::error::Error;

const NAME: &str = ",\"crc32\":\"";
const END: &str = "\"}";
const DIGITS: usize = 8;
/// Digits or bits of a checksum that may be damaged together with its text.
const MOST_FLIPPED: u32 = 2;
/// No text within a document holds it: quotes stand there behind a backslash.
const LAST_CHANGE: &str = "\"updated_at\":";

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

/// What a damaged text says of a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinship {
    /// It was this one.
    Same,
    /// Its checksum is that of neither text.
    Other,
    /// Its checksum is lost, and nothing that is left says which it was.
    Unknown,
}

/// By the checksum that a damaged document still has, or else by what comes before: all of it, or so much that the time of its last
/// change is in it.
pub(crate) fn kinship(damaged: &str, whole: &str) -> Kinship {
    let whole = renewed(whole);
    let Some((kept, kept_sum)) = whole.as_deref().and_then(split) else { return Kinship::Other };
    match split(damaged) {
        Some((members, sum)) if members == kept || are_near(sum, kept_sum) => Kinship::Same,
        Some(_) => Kinship::Other,
        None if damaged.starts_with(to_last_change(kept).unwrap_or(kept)) => Kinship::Same,
        None => Kinship::Unknown,
    }
}

/// The same of a text with its checksum beside it, as it is stored.
pub(crate) fn kinship_beside(damaged: &str, sum: i64, whole: &str) -> Kinship {
    match damaged == whole || (sum ^ i64::from(of(whole))).count_ones() <= MOST_FLIPPED {
        true => Kinship::Same,
        false => Kinship::Other,
    }
}

/// Whether it is the same checksum, perhaps with a digit or two that are damaged as well. That of another text is so by
/// chance alone, one or two times in a million.
fn are_near(sum: &str, other: &str) -> bool {
    let differing = sum.bytes().zip(other.bytes()).filter(|(one, other)| one != other).count();
    sum.len() == other.len() && differing <= MOST_FLIPPED as usize
}

/// A document as far as the time of its last change, which each of its states has another of.
fn to_last_change(members: &str) -> Option<&str> {
    let begin = members.rfind(LAST_CHANGE)? + LAST_CHANGE.len();
    let length = members[begin..].find([',', '}']).unwrap_or(members.len() - begin);
    members.get(..begin + length)
}

/// Refuses a document that is not as it was written. One whose checksum is lost with its end passes: whoever reads it finds out.
pub(crate) fn check(document: &str, what: Arguments<'_>) -> Result<(), Error> {
    let Some((members, sum)) = split(document) else { return Ok(()) };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(members.as_bytes());
    hasher.update(b"}");
    expect(sum == format!("{:08x}", hasher.finalize()), what)
}

/// Whether a document is as it was written, for whoever doesn't read it.
pub(crate) fn is_whole(document: &str) -> bool {
    match split(document) {
        Some(_) => check(document, format_args!("it")).is_ok(),
        // Of a version that kept none, or of one that did, without its end.
        None => is_json(document),
    }
}

/// The same of a text with its checksum beside it.
pub(crate) fn is_whole_beside(text: &str, sum: Option<i64>) -> bool {
    match sum {
        Some(_) => check_beside(text, sum, format_args!("it")).is_ok(),
        None => is_json(text),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
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
        let can_have_been = |damaged: &str, whole: &str| kinship(damaged, whole) == Kinship::Same;
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
        // Damaged in both, and its digits are not those of any other.
        let both = |digits: &str| with.replace("10000", "10001").replace("3edd624c", digits);
        assert_eq!(kinship(&both("3edd6c4c"), &with), Kinship::Same);
        assert_eq!(kinship(&both("00000000"), &with), Kinship::Other);
    }

    #[test]
    fn without_its_checksum_it_is_known_by_when_it_was_changed() {
        let state = |time: u32| {
            let text = r#""updated_at":7,"#;
            added(format!(r#"{{"name":{text:?},"inner":{{"updated_at":1}},"updated_at":{time},"note":"Awa Ceesay"}}"#))
        };
        let (damaged, whole) = (state(20), state(30));
        let cut = |text: &str, before: &str| text[..text.find(before).unwrap()].to_owned();
        for end in [",\"note\"", " Ceesay", ",\"crc32"] {
            assert_eq!(kinship(&cut(&whole, end), &whole), Kinship::Same, "{end}");
            assert_eq!(kinship(&cut(&damaged, end), &whole), Kinship::Unknown, "{end}");
        }
        for end in ["30", "\"updated_at\":30", "{"] {
            assert_eq!(kinship(&cut(&whole, end), &whole), Kinship::Unknown, "{end}");
        }
        // What never changes has no such time: then all of it has to be there.
        let with = added(DOCUMENT.into());
        assert_eq!(kinship(&cut(&with, ",\"crc32"), &with), Kinship::Same);
        assert_eq!(kinship(&cut(&with, " 🌿"), &with), Kinship::Unknown);
    }

    #[test]
    fn a_checksum_beside_may_have_lost_a_bit_too() {
        let sum = i64::from(of("{}"));
        assert_eq!(kinship_beside("{]", sum, "{}"), Kinship::Same);
        assert_eq!(kinship_beside("{]", sum ^ 0x8001, "{}"), Kinship::Same);
        assert_eq!(kinship_beside("{]", sum ^ 0x8101, "{}"), Kinship::Other);
        assert_eq!(kinship_beside("{}", 7, "{}"), Kinship::Same);
    }

    #[test]
    fn what_has_no_checksum_is_whole_if_it_parses() {
        let with = added(DOCUMENT.into());
        assert!(is_whole(&with) && is_whole(DOCUMENT) && is_whole_beside(DOCUMENT, None));
        for torn in [&with[..with.len() - 1], &with[..with.len() / 4], &DOCUMENT[..9], "", "{}\u{0}"] {
            assert!(!is_whole(torn) && !is_whole_beside(torn, None), "{torn}");
            assert!(is_whole_beside(torn, Some(of(torn).into())), "{torn}");
        }
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
