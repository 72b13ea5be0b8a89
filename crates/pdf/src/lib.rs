//! Invoices and receipts as PDF: plain values in, the bytes of a file out.
//!
//! The bytes depend on the values alone (no clock, no randomness, no fonts of the machine), so the same document is the
//! same file wherever and whenever it is made. Files are PDF/A-2a and PDF/UA-1: they can be archived and read aloud.
//! Nothing in a value can do more than be shown: text is drawn glyph by glyph from the embedded fonts.
//!
//! Not here: where the values come from, what may be shown to whom, and where the file is kept.

mod clean;
mod colour;
mod figures;
mod fonts;
mod invoice;
mod logo;
mod paint;
mod panel;
mod qr;
mod receipt;
mod sheets;
mod table;
mod tags;
mod typeset;
mod values;
mod words;

pub use values::{Currency, Date, Invoice, Line, Locale, Merchant, Method, Moment, Party, Receipt, State};

use std::fmt;

/// A document that could not be written. No value causes it: it is a fault of this crate.
#[derive(Debug)]
pub struct Unwritten(String);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the document could not be written: {}", self.0)
    }
}

impl std::error::Error for Unwritten {}

pub fn invoice(invoice: &Invoice) -> Result<Vec<u8>, Unwritten> {
    with_or_without_logo(&invoice.merchant, |typesetter, logo| invoice::compose(typesetter, invoice, logo))
}

pub fn receipt(receipt: &Receipt) -> Result<Vec<u8>, Unwritten> {
    with_or_without_logo(&receipt.merchant, |typesetter, logo| receipt::compose(typesetter, receipt, logo))
}

/// A picture is only decoded while the file is written. One that turns out broken costs the document its logo, not the
/// payer the document.
fn with_or_without_logo(
    merchant: &Merchant,
    compose: impl Fn(&mut typeset::Typesetter, Option<logo::Logo>) -> sheets::Sheets,
) -> Result<Vec<u8>, Unwritten> {
    typeset::with(|typesetter| {
        if let Some(logo) = merchant.logo.as_deref().and_then(logo::Logo::read) {
            let sheets = compose(typesetter, Some(logo));
            if let Ok(file) = paint::write(sheets, typesetter) {
                return Ok(file);
            }
        }
        let sheets = compose(typesetter, None);
        paint::write(sheets, typesetter).map_err(|error| Unwritten(error.to_string()))
    })
}
