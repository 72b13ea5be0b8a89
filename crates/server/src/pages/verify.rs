//! The page that checks a receipt's statement: the one page that needs a script, because the statement stands behind the
//! `#` of its address and never comes to the server. It says everything it may have to say at once, hidden; the script
//! shows what is true. It holds the public keys, so it needs no network once it is there.

use std::fmt::Write as _;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::assets::{Asset, VERIFY_SCRIPT};
use super::headers::Nonce;
use super::html::{Frame, render as draw};
use super::text::Text;
use super::view::{ReceiptKey, VerifyPage};

pub fn render(page: &VerifyPage, nonce: &Nonce) -> String {
    let t = Text::new(page.language.locale);
    draw(&Verify {
        frame: Frame::new(nonce, None, page.language, &page.path, &[]),
        t,
        script: &VERIFY_SCRIPT,
        keys: page.keys.iter().map(key).collect::<Vec<_>>().join(" "),
        // The script puts the day and the time in.
        moment: t.with_two("moment", ("day", "@day"), ("time", "@time")),
        host: &page.host,
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
    host: &'a str,
}
