//! Card numbers in free texts. Finds numbers that a card could bear; ordinary long numbers (times in milliseconds, order
//! numbers, phones) pass. It is a guard against mistakes, not against someone who hides a number on purpose.

const FEWEST_DIGITS: usize = 13;
const MOST_DIGITS: usize = 19;

/// Whether a text holds 13 to 19 digits, perhaps parted by single spaces or dashes, that are a card's number by
/// prefix, length and check digit.
pub fn has_card_number(text: &str) -> bool {
    // One of some ten thousand random UUIDs has digits enough in a row.
    stands_in(text) && stands_in(&without_uuids(text))
}

fn stands_in(text: &str) -> bool {
    runs(text).iter().any(|groups| {
        (0..groups.len()).any(|start| {
            // Until there are more digits than a card has, however many groups follow.
            let mut digits = 0;
            let ends = (start + 1..=groups.len()).map_while(|end| {
                digits += groups[end - 1].len();
                (digits <= MOST_DIGITS).then_some((end, digits))
            });
            let mut long_enough = ends.filter(|(_, digits)| *digits >= FEWEST_DIGITS);
            long_enough.any(|(end, _)| {
                let number: String = groups[start..end].concat();
                let in_one_piece = end - start == 1 || is_card_layout(&groups[start..end]);
                has_brand(&number, in_one_piece) && passes_luhn(&number)
            })
        })
    })
}

/// With a letter for each UUID, which parts what stands before and behind it.
fn without_uuids(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    let mut is_inside = false;
    while let Some(first) = rest.chars().next() {
        let uuid = rest.split_at_checked(UUID_LENGTH).filter(|(token, behind)| {
            !is_inside && is_uuid(token) && !behind.starts_with(|next: char| next.is_ascii_hexdigit())
        });
        let taken = if uuid.is_some() { UUID_LENGTH } else { first.len_utf8() };
        kept.push(if uuid.is_some() { 'u' } else { first });
        is_inside = uuid.is_none() && first.is_ascii_hexdigit();
        rest = &rest[taken..];
    }
    kept
}

const UUID_LENGTH: usize = 36;

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12: no card's number is written so.
fn is_uuid(token: &str) -> bool {
    token.bytes().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Of a phone with its country (E.164).
const LONGEST_PHONE: usize = 15;

/// Groups of digits that are parted by one space or dash each. What follows a plus sign is a phone, if it is no longer than one.
fn runs(text: &str) -> Vec<Vec<&str>> {
    let mut runs: Vec<Vec<&str>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut end_of_last = None;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        let group = &text[start..at];
        let continues = end_of_last.is_some_and(|end| start == end + 1 && matches!(bytes[end], b' ' | b'-'));
        let is_phone = start > 0 && bytes[start - 1] == b'+' && is_short(&bytes[start..]);
        match runs.last_mut() {
            Some(run) if continues => run.push(group),
            _ if is_phone => {
                end_of_last = None;
                continue;
            }
            _ => runs.push(vec![group]),
        }
        end_of_last = Some(at);
    }
    runs
}

/// Whether what begins here, with all its groups, has no more digits than a phone.
fn is_short(digits: &[u8]) -> bool {
    let parts =
        |place: usize| matches!(digits[place], b' ' | b'-') && digits.get(place + 1).is_some_and(u8::is_ascii_digit);
    let of_run = (0..digits.len()).take_while(|place| digits[*place].is_ascii_digit() || parts(*place));
    of_run.filter(|place| digits[*place].is_ascii_digit()).take(LONGEST_PHONE + 1).count() <= LONGEST_PHONE
}

/// Groups as they are printed on a card: 4-4-4-4, 4-6-5 and the like, never the halves of two phone numbers.
fn is_card_layout(groups: &[&str]) -> bool {
    groups[0].len() == 4 && groups[1..].iter().all(|group| group.len() <= 6)
}

/// An EAN-13 by its check digit: one in ten that begin with a 4 is one of a card's, too.
fn is_barcode(number: &str) -> bool {
    let weighed =
        number.bytes().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| u32::from(digit - b'0') * weight);
    number.len() == 13 && weighed.sum::<u32>().is_multiple_of(10)
}

/// Prefix and length of a brand. The short lengths (old Visa, Diners) are also those of two phone numbers in a row,
/// so they count only when written as a card is.
fn has_brand(number: &str, in_one_piece: bool) -> bool {
    let prefix = |digits: usize| number[..digits].parse::<u32>().unwrap_or(0);
    let (two, three, four, six) = (prefix(2), prefix(3), prefix(4), prefix(6));
    match number.len() {
        // Of Visa's old ones, and barcodes are as long.
        13 => in_one_piece && two / 10 == 4 && !is_barcode(number),
        14 => in_one_piece && (matches!(three, 300..=305 | 309) || matches!(two, 36 | 38 | 39)),
        15 => matches!(two, 34 | 37),
        // Visa, Mastercard, Discover, JCB, UnionPay, Verve, Maestro.
        16 => {
            two / 10 == 4
                || matches!(two, 51..=55 | 62 | 65)
                || matches!(four, 2221..=2720 | 3528..=3589 | 6011)
                || matches!(three, 644..=649)
                || is_verve_or_maestro(four, six)
        }
        17 | 18 => two == 62 || is_verve_or_maestro(four, six),
        19 => {
            two / 10 == 4
                || matches!(two, 62 | 65)
                || matches!(four, 3528..=3589 | 6011)
                || matches!(three, 644..=649)
                || is_verve_or_maestro(four, six)
        }
        _ => false,
    }
}

fn is_verve_or_maestro(four: u32, six: u32) -> bool {
    matches!(six, 506_099..=506_198) || matches!(four, 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761 | 6762 | 6763)
}

fn passes_luhn(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, byte)| {
            let digit = u32::from(byte - b'0');
            match (place % 2, digit) {
                (0, digit) => digit,
                (_, digit @ 0..=4) => digit * 2,
                (_, digit) => digit * 2 - 9,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_groups_take_no_longer_than_their_bytes() {
        assert!(!has_card_number(&"1 ".repeat(50_000)));
        assert!(!has_card_number(&"12345678901234567890-".repeat(5_000)));
        assert!(has_card_number(&format!("{}4242 4242 4242 4242", "1 ".repeat(50_000))));
    }

    #[test]
    fn finds_cards_and_lets_numbers_pass() {
        for (text, found) in [
            ("4242424242424242", true),
            ("card 4242 4242 4242 4242, thanks", true),
            ("4242-4242-4242-4242", true),
            ("4242 42424242 4242", true),
            ("12 4242 4242 4242 4242 12 26", true),
            ("x4000002500003155y", true),
            ("5555555555554444", true),
            ("2223003122003222", true),
            ("378282246310005", true),
            ("3782 822463 10005", true),
            ("30569309025904", true),
            ("3056 930902 5904", true),
            ("6011111111111117", true),
            ("3566002020360505", true),
            ("4222222222222", true),
            // Barcodes whose digits are also those of a card.
            ("4898541528017", false),
            ("4904474487922", false),
            ("5060990580000217499", true),
            ("٤٢٤٢", false),
            ("4242424242424241", false),
            ("42424242424242424242", false),
            ("1763697142000", false),
            ("1763697142000000", false),
            ("ORD-2026-1121-0000-1234", false),
            ("2026112112000018", false),
            ("+4915123456786", false),
            ("+491 5123 456786", false),
            ("+4242424242424242", true),
            ("+4242 4242-4242 4242", true),
            ("call 3012345 or 3012346", false),
            ("", false),
            ("0000000000000000", false),
            ("0a1b2c3d-4242-4242-4242-4242abcdefab", false),
            ("order 0A1B2C3D-4242-4242-4242-4242ABCDEFAB of 2026", false),
            ("0a1b2c3d-4242-4242-4242-4242abcdefab 4242 4242 4242 4242", true),
            // No UUID: a digit too many, or too few.
            ("00a1b2c3d-4242-4242-4242-4242abcdefab", true),
            ("0a1b2c3d-4242-4242-4242-4242abcdefa", true),
            ("é0a1b2c3d-4242-4242-4242-4242abcdefabé", false),
        ] {
            assert_eq!(has_card_number(text), found, "{text}");
        }
    }

    #[test]
    fn no_time_in_milliseconds_is_a_card() {
        // 2020 to 2083.
        for step in 0..80_000_i64 {
            let time = 1_600_000_000_000 + step * 25_000_003;
            assert!(!has_card_number(&time.to_string()), "{time}");
        }
    }
}
