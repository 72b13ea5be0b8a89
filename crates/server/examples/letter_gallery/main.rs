//! Writes the letters in every language and standing to a folder, as HTML and as text, for eyes and for tools:
//!
//! ```text
//! cargo run -p dalasi --example letter_gallery -- OUT_DIR
//! ```

mod samples;

use std::fs;
use std::io::{Error, Result};
use std::path::Path;

use dalasi::{letters, pages};
use domain::webhook::DisableReason;
use letters::{EndpointLetter, InvoiceLetter, Letter, ReceiptLetter, Rest, Standing};
use pages::text::Locale;
use samples::{endpoint, invoice, receipt};

fn main() -> Result<()> {
    let out = std::env::args_os().nth(1).ok_or_else(|| Error::other("usage: letter_gallery OUT_DIR"))?;
    let out = Path::new(&out);
    fs::create_dir_all(out)?;
    for locale in Locale::ALL {
        let written = [
            ("invoice", invoice(locale, "").write()),
            ("invoice-test", InvoiceLetter { test_mode: true, ..invoice(locale, "") }.write()),
            ("invoice-overdue", InvoiceLetter { standing: Standing::Overdue, ..invoice(locale, "") }.write()),
            (
                "invoice-settled",
                InvoiceLetter { standing: Standing::Settled, pay_url: None, ..invoice(locale, "") }.write(),
            ),
            ("receipt", receipt(locale, "").write()),
            ("receipt-settled", ReceiptLetter { rest: Rest::Nothing, ..receipt(locale, "") }.write()),
            ("endpoint-failing", endpoint(locale, "").write()),
            (
                "endpoint-gone-test",
                EndpointLetter { reason: DisableReason::Gone, test_mode: true, ..endpoint(locale, "") }.write(),
            ),
        ];
        for (name, Letter { subject, text, html }) in written {
            let name = format!("{name}.{}", locale.code());
            fs::write(out.join(format!("{name}.html")), html)?;
            fs::write(out.join(format!("{name}.txt")), format!("{subject}\n\n{text}"))?;
        }
    }
    Ok(())
}
