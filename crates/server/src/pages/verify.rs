//! The page that checks a receipt: by its QR code in the browser, by its validation code here.
//!
//! The statement of a QR code stands behind the `#` of the address and never comes to the server, so that way needs a
//! script. The page says everything it may have to say of it at once, hidden; the script shows what is true. It holds the
//! public keys, so it needs no network once it is there. A validation code says nothing by itself: whoever types one asks
//! us, with or without script.

use std::fmt::Write as _;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::assets::{Asset, VERIFY_SCRIPT};
use super::headers::Nonce;
use super::html::{Frame, render as draw};
use super::text::{Text, plain};
use super::view::{Amount, ReceiptAnswer, ReceiptKey, VerifyPage};
use super::{amount, moment};

pub fn render(page: &VerifyPage, nonce: &Nonce) -> String {
    let t = Text::new(page.language.locale);
    let typed = page.asked.as_ref().and_then(|asked| Some(plain(asked.typed.as_ref()?)));
    let kept: Vec<(&str, &str)> = typed.iter().map(|typed| ("code", typed.as_str())).collect();
    draw(&Verify {
        frame: Frame::new(nonce, None, page.language, &page.path, &kept),
        t,
        script: &VERIFY_SCRIPT,
        keys: page.keys.iter().map(key).collect::<Vec<_>>().join(" "),
        // The script puts the day and the time in.
        moment: t.with_two("moment", ("day", "@day"), ("time", "@time")),
        page,
        typed,
    })
}

/// `<the id in hex>.<the key in base64url>`.
fn key(key: &ReceiptKey) -> String {
    let mut id = String::with_capacity(16);
    for byte in key.id {
        write!(id, "{byte:02x}").expect("writing to a string cannot fail");
    }
    format!("{id}.{}", URL_SAFE_NO_PAD.encode(key.bytes))
}

#[derive(Template)]
#[template(path = "verify.html")]
struct Verify<'a> {
    frame: Frame,
    t: Text,
    script: &'static Asset,
    keys: String,
    moment: String,
    page: &'a VerifyPage,
    typed: Option<String>,
}

impl<'a> Verify<'a> {
    fn answer(&self) -> Option<&'a ReceiptAnswer> {
        self.page.asked.as_ref().map(|asked| &asked.answer)
    }

    fn is_malformed(&self) -> bool {
        matches!(self.answer(), Some(ReceiptAnswer::Malformed))
    }

    fn is_issued(&self) -> bool {
        matches!(self.answer(), Some(ReceiptAnswer::Issued(_)))
    }

    fn is_of_test_mode(&self) -> bool {
        matches!(self.answer(), Some(ReceiptAnswer::Issued(receipt)) if receipt.test_mode)
    }

    fn title(&self) -> String {
        match self.answer() {
            Some(ReceiptAnswer::Issued(_)) => self.t.get("verify-valid-title"),
            Some(ReceiptAnswer::Unknown) => self.t.get("verify-unknown-title"),
            Some(ReceiptAnswer::Malformed) => self.t.with("title-error", "title", self.t.get("verify-title")),
            None => self.t.get("verify-title"),
        }
    }

    /// The script begins with it where the address holds no statement.
    fn first(&self) -> &'static str {
        match self.answer() {
            Some(ReceiptAnswer::Issued(_) | ReceiptAnswer::Unknown) => "answer",
            Some(ReceiptAnswer::Malformed) | None => "intro",
        }
    }

    fn digits(&self, amount: &Amount) -> String {
        amount::digits(amount, self.page.language.locale)
    }

    fn amount_class(&self, amount: &Amount) -> &'static str {
        amount::class(&self.digits(amount))
    }

    fn clean(&self, text: &str) -> String {
        plain(text)
    }

    fn money(&self, amount: &Amount) -> String {
        amount::format(amount, self.page.language.locale)
    }

    fn moment(&self, unix_seconds: &i64) -> String {
        moment::in_words(*unix_seconds, self.t)
    }
}
