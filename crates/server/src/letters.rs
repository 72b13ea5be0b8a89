//! What mails say: pure rendering from a plain struct to a subject, a text and the same as HTML. The amount
//! and the way to pay come first; the text alone is complete.
//!
//! Sending is `mail`'s. The words of dates and amounts are those of the hosted pages.

mod endpoint;
mod invoice;
mod receipt;
mod subjects;

use askama::Template;

pub use endpoint::EndpointLetter;
pub use invoice::{InvoiceLetter, Line, Standing};
pub use receipt::{PaidWith, ReceiptLetter, Rest};

use crate::pages::contrast::Accent;
use crate::pages::text::{Text, plain};

/// Longer texts are cut: a mail is not the document.
const LONGEST_LINE: usize = 300;
const MOST_NOTE_LINES: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Who the letter is from, as the merchant wrote it.
#[derive(Debug, Clone, Default)]
pub struct Merchant {
    pub name: String,
    pub address: Option<String>,
    pub phone: Option<String>,
    pub email: Option<String>,
    /// `#rrggbb`
    pub accent_color: Option<String>,
    /// An answer to the mail reaches the merchant.
    pub can_reply: bool,
}

/// The same, fit to be shown.
struct Shown {
    name: String,
    contact: Vec<String>,
    can_reply: bool,
    accent_light: String,
    accent_dark: String,
}

impl Shown {
    fn of(merchant: &Merchant) -> Self {
        let accent = Accent::new(merchant.accent_color.as_deref());
        let contact = [&merchant.address, &merchant.phone, &merchant.email];
        Self {
            name: clean(&merchant.name),
            contact: contact.into_iter().flatten().flat_map(|text| lines(text)).collect(),
            can_reply: merchant.can_reply,
            accent_light: accent.light.css(),
            accent_dark: accent.dark.css(),
        }
    }
}

/// A name and what belongs to it, apart and in one line.
struct Row {
    name: String,
    value: String,
    said: String,
    strong: bool,
}

impl Row {
    fn new(name: String, value: String, t: Text) -> Self {
        let said =
            if value.is_empty() { name.clone() } else { t.with_two("letter-row", ("name", &name), ("value", &value)) };
        Self { name, value, said, strong: false }
    }

    fn strong(self) -> Self {
        Self { strong: true, ..self }
    }
}

fn hello(name: Option<&str>, t: Text) -> String {
    let name = name.map(clean).filter(|name| !name.trim().is_empty());
    name.map_or_else(|| t.get("letter-hello-nobody"), |name| t.with("letter-hello", "name", name))
}

/// A test mail says so before anything else.
fn subject(subject: String, test_mode: bool, t: Text) -> String {
    if test_mode { t.with("letter-test-subject", "subject", subject) } else { subject }
}

/// One line of anybody's text.
fn clean(text: &str) -> String {
    let line = plain(text);
    if line.chars().nth(LONGEST_LINE).is_none() {
        return line;
    }
    line.chars().take(LONGEST_LINE).chain(['…']).collect()
}

/// The lines that somebody wrote, without the empty ones.
fn lines(text: &str) -> Vec<String> {
    let written = text.lines().map(clean).filter(|line| !line.trim().is_empty());
    written.take(MOST_NOTE_LINES).collect()
}

fn render(template: &impl Template) -> String {
    template.render().expect("writing to a string cannot fail, and our templates return no errors of their own")
}

#[cfg(test)]
mod tests;
