//! Phones and e-mail addresses as a page, or a file that opens without a key, may show them: enough for their owner to
//! recognise, too little for anyone who was sent the link.

const DOT: char = '•';

/// `+2207123412` is `+220 7•• ••12`; numbers of other countries keep their first two and last two digits. What is no
/// number is hidden altogether.
pub fn phone(number: &str) -> String {
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
    let dots = |count: usize| DOT.to_string().repeat(count);
    match digits.as_slice() {
        ['2', '2', '0', local @ ..] if local.len() == 7 => gambian(local),
        local if local.len() == 7 => gambian(local),
        all if all.len() >= 8 => {
            format!("+{}{} {}{}{}", all[0], all[1], dots(all.len() - 4), all[all.len() - 2], all[all.len() - 1])
        }
        _ => dots(4),
    }
}

fn gambian(local: &[char]) -> String {
    format!("+220 {}{DOT}{DOT} {DOT}{DOT}{}{}", local[0], local[5], local[6])
}

/// `fatou@example.gm` is `f•••@e•••.gm`.
pub fn email(address: &str) -> String {
    let dots = DOT.to_string().repeat(3);
    let Some((name, host)) = address.rsplit_once('@') else {
        return dots;
    };
    let first = |text: &str| text.chars().next().map(String::from).unwrap_or_default();
    match host.rsplit_once('.') {
        Some((domain, ending)) => {
            format!("{}{dots}@{}{dots}.{ending}", first(name), first(domain))
        }
        None => format!("{}{dots}@{dots}", first(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_shows_its_first_and_last_digits() {
        let table = [
            ("+2207123412", "+220 7•• ••12"),
            ("2207123412", "+220 7•• ••12"),
            ("7123412", "+220 7•• ••12"),
            ("+220 712 34 12", "+220 7•• ••12"),
            ("+221771234567", "+22 ••••••••67"),
            ("12", "••••"),
            ("", "••••"),
            ("not a phone", "••••"),
        ];
        for (number, masked) in table {
            assert_eq!(phone(number), masked, "{number}");
        }
    }

    #[test]
    fn an_address_shows_its_initials_and_its_ending() {
        let table = [
            ("fatou@example.gm", "f•••@e•••.gm"),
            ("é@ü.gm", "é•••@ü•••.gm"),
            ("a@localhost", "a•••@•••"),
            ("\"a@b\"@mail.example.com", "\"•••@m•••.com"),
            ("nothing", "•••"),
            ("", "•••"),
        ];
        for (address, masked) in table {
            assert_eq!(email(address), masked, "{address}");
        }
    }
}
