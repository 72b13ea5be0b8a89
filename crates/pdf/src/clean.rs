//! Outside text made fit for paper: no character that draws nothing and changes what the others look like.

use std::borrow::Cow;

/// One paragraph: line breaks become spaces.
pub(crate) fn line(text: &str) -> String {
    lines(text).replace('\n', " ")
}

/// More than anybody writes into one field, and about a page. With every line break an invoice could have thousands of pages.
const MOST_LINES: usize = 40;

/// Line breaks stay, as far as there are not too many; the lines beyond are one paragraph. Of blank lines one stays between
/// two others.
pub(crate) fn lines(text: &str) -> String {
    let text = if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let text: String = kept(&text).collect();
    let mut lines = text.trim().split('\n').map(str::trim_end).collect::<Vec<_>>();
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    let beyond = lines.split_off(lines.len().min(MOST_LINES - 1));
    let beyond = beyond.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    lines.extend((!beyond.is_empty()).then_some(beyond.as_str()));
    lines.join("\n")
}

fn kept(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter_map(|it| match it {
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        it if it.is_control() => Some(' '),
        // Embeddings, overrides and isolates: with them an amount reads backwards.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        '\u{feff}' | '\u{e0000}'..='\u{e0fff}' => None,
        // Private and non-characters mean nothing to any reader and can't stand in an archived file.
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{ffff}' => {
            Some(NOTHING_TO_SHOW)
        }
        it if (it as u32) & 0xfffe == 0xfffe => Some(NOTHING_TO_SHOW),
        it => Some(it),
    })
}

/// U+25A1, an empty box.
pub(crate) const NOTHING_TO_SHOW: char = '\u{25a1}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_look_of_others_goes() {
        let table = [
            ("Awa Ceesay", "Awa Ceesay"),
            ("a\u{0}b\tc\u{7f}d", "a b c d"),
            ("\u{202e}00.001\u{202c} GMD", "00.001 GMD"),
            ("\u{feff}x\u{2066}y\u{2069}", "xy"),
            ("\u{e000}\u{fffe}\u{10ffff}", "\u{25a1}\u{25a1}\u{25a1}"),
            ("one\r\ntwo\u{2028}three", "one two three"),
            ("  \n ", ""),
        ];
        for (text, cleaned) in table {
            assert_eq!(line(text), cleaned);
        }
        assert_eq!(lines("\none\r\ntwo\rthree\u{c}\n"), "one\ntwo\nthree");
    }

    #[test]
    fn one_blank_line_stays_between_two_others() {
        let table = [
            ("one\n\ntwo", "one\n\ntwo"),
            ("one\n\n\r\n \t\n\u{2029}\ntwo\nthree", "one\n\ntwo\nthree"),
            ("one \n  two", "one\n  two"),
            (" \n\n\n ", ""),
        ];
        for (text, cleaned) in table {
            assert_eq!(lines(text), cleaned, "{text:?}");
        }
    }

    #[test]
    fn of_too_many_lines_none_is_lost() {
        let numbered = |count| (1..=count).map(|number: usize| number.to_string()).collect::<Vec<_>>();
        let (all, more) = (numbered(MOST_LINES), numbered(MOST_LINES + 40));
        assert_eq!(lines(&all.join("\n")), all.join("\n"));
        let (first, rest) = more.split_at(MOST_LINES - 1);
        assert_eq!(lines(&more.join("\n")), format!("{}\n{}", first.join("\n"), rest.join(" ")));
    }
}
