//! A receipt on its sheet.

use crate::clean;
use crate::colour::HAIRLINE;
use crate::figures;
use crate::logo::Logo;
use crate::panel::{self, LABEL, WayOn};
use crate::sheets::{About, LEFT, MEASURE, Place, Sheets, panel as ground, rule};
use crate::tags::Kind;
use crate::typeset::{Style, Typesetter};
use crate::values::Receipt;
use crate::words;

pub(crate) fn compose(typesetter: &mut Typesetter, receipt: &Receipt, logo: Option<Logo>) -> Sheets {
    let words = words::of(receipt.locale);
    let about =
        About::new(&receipt.merchant, receipt.locale, words.receipt, &receipt.number, receipt.paid_at, receipt.test);
    let mut sheets = Sheets::new(typesetter, about);
    let at = panel::masthead(&mut sheets, typesetter, &receipt.merchant, logo, words.receipt, None);
    let at = amount(&mut sheets, typesetter, at, receipt).down(26.0);
    let at = panel::facts(&mut sheets, typesetter, at, &facts(receipt), 3).down(10.0);
    let (by, from) = ((words.issued_by, &receipt.merchant), (words.received_from, &receipt.payer));
    let at = panel::parties(&mut sheets, typesetter, at, by, from);
    verify(&mut sheets, typesetter, at.down(8.0), receipt);
    sheets
}

/// What was received, the largest thing on the sheet.
fn amount(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, receipt: &Receipt) -> Place {
    let accent = sheets.about.accent;
    let words = sheets.about.words;
    let text = figures::amount(receipt.amount, &receipt.currency, receipt.locale);
    let inner = MEASURE - 44.0;
    let label = typesetter.set(words.amount_received, LABEL);
    let amount = typesetter.set_fitting(&text, Style::new(30.0).strong().colour(accent), inner);
    let height = label.height() + amount.height() + 40.0;
    sheets.draw(at.page, ground(LEFT, at.y, MEASURE, height, 8.0, accent.tint()));
    sheets.draw(at.page, ground(LEFT, at.y + 14.0, 4.0, height - 28.0, 2.0, accent));
    let part = sheets.tags.part(Kind::Paragraph);
    let place = sheets.flow(at.down(18.0), LEFT + 22.0, label, part);
    let part = sheets.tags.part(Kind::Paragraph);
    sheets.flow(place.down(4.0), LEFT + 22.0, amount, part);
    at.down(height)
}

fn facts(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let words = words::of(receipt.locale);
    let facts = [
        (words.number, clean::line(&receipt.number)),
        (words.payment_date, figures::moment(receipt.paid_at, receipt.locale, words)),
        (words.method, words::method(receipt.method, receipt.locale).to_owned()),
        (words.for_invoice, clean::line(&receipt.invoice_number)),
        (words.reference, clean::line(&receipt.reference)),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn verify(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, receipt: &Receipt) {
    let words = sheets.about.words;
    let at = sheets.room(at, 190.0);
    sheets.draw(at.page, rule(LEFT, at.y, MEASURE, HAIRLINE));
    let way = WayOn {
        title: words.verify,
        how: words.verify_how,
        code: &receipt.verify_code,
        code_words: words.verify_qr,
        address: &receipt.verify_address,
        secret: Some((words.validation_code, &receipt.validation_code)),
        code_side: 132.0,
    };
    panel::way_on(sheets, typesetter, at.down(20.0), &way, MEASURE);
}
