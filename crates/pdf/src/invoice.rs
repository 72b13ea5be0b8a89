//! An invoice on its sheets.

use crate::clean;
use crate::colour::{ALARM, MUTED, WHITE};
use crate::figures;
use crate::logo::Logo;
use crate::panel::{self, BODY, LABEL, WayOn};
use crate::sheets::{About, LEFT, MEASURE, Place, Sheets};
use crate::table::{self, Sum};
use crate::typeset::{Align, Style, Typesetter};
use crate::values::{Invoice, State};
use crate::words;

pub(crate) fn compose(typesetter: &mut Typesetter, invoice: &Invoice, logo: Option<Logo>) -> Sheets {
    let words = words::of(invoice.locale);
    let mut about =
        About::new(&invoice.merchant, invoice.locale, words.invoice, &invoice.number, invoice.as_of, invoice.test);
    let mark = match invoice.state {
        State::Open => None,
        State::Draft => Some((words.draft, MUTED)),
        State::Cancelled => Some((words.cancelled, ALARM)),
        State::Overdue => Some((words.overdue, ALARM)),
        State::Paid => Some((words.paid_mark, about.accent)),
        State::Refunded => Some((words.refunded_mark, MUTED)),
    };
    if let (State::Draft | State::Cancelled, Some((mark, _))) = (invoice.state, mark) {
        about.mark(typesetter, mark);
    }
    let mut sheets = Sheets::new(typesetter, about);
    let at = panel::masthead(&mut sheets, typesetter, &invoice.merchant, logo, words.invoice, mark);
    let at = panel::facts(&mut sheets, typesetter, at, &facts(invoice), 4).down(8.0);
    let (from, to) = ((words.from, &invoice.merchant), (words.bill_to, &invoice.bill_to));
    let at = panel::parties(&mut sheets, typesetter, at, from, to);
    let at = table::draw(&mut sheets, typesetter, at.down(6.0), invoice);
    let at = close(&mut sheets, typesetter, at, invoice);
    notes(&mut sheets, typesetter, at, &clean::lines(&invoice.notes));
    sheets
}

fn facts(invoice: &Invoice) -> Vec<(&'static str, String)> {
    let words = words::of(invoice.locale);
    let number = clean::line(&invoice.number);
    let mut facts = if number.is_empty() { Vec::new() } else { vec![(words.number, number)] };
    let dates = [(words.issued, invoice.issued), (words.due, invoice.due), (words.paid_on, invoice.paid_on)];
    for (label, date) in dates {
        facts.extend(date.map(|date| (label, figures::date(date, invoice.locale, words))));
    }
    facts
}

/// The sums at the right, and at the left the way to pay.
fn close(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, invoice: &Invoice) -> Place {
    let words = sheets.about.words;
    let amount = |minor| figures::amount(minor, &invoice.currency, invoice.locale);
    let tax = format!("{} ({})", words.tax, figures::rate(&invoice.tax_rate, invoice.locale));
    let sum = |label: &str, minor, style| Sum { label: label.to_owned(), value: amount(minor), style };
    let mut sums = vec![
        sum(words.subtotal, invoice.subtotal, BODY),
        sum(&tax, invoice.tax, BODY),
        sum(words.total, invoice.total, BODY.strong()),
        sum(words.paid, invoice.paid, BODY),
    ];
    if invoice.refunded > 0 {
        sums.push(sum(words.refunded, invoice.refunded, BODY));
    }
    let due = sum(words.remaining, invoice.remaining, Style::new(14.0).strong().colour(WHITE));
    // Nobody is to pay a cancelled invoice, so nothing calls for it.
    let ground = if invoice.state == State::Cancelled { MUTED } else { sheets.about.accent };
    let at = sheets.room(at, 170.0).down(14.0);
    let right = table::sums(sheets, typesetter, at, &sums, (&due, ground));
    let Some(address) = &invoice.pay_address else { return right };
    let way = WayOn {
        title: words.pay,
        how: words.pay_how,
        code: address,
        code_words: words.pay_qr,
        address,
        secret: None,
        code_side: 84.0,
    };
    right.or_later(panel::way_on(sheets, typesetter, at.down(6.0), &way, MEASURE - 212.0 - 36.0))
}

fn notes(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, notes: &str) {
    if notes.is_empty() {
        return;
    }
    let label = sheets.about.words.notes;
    let at = sheets.room(at.down(26.0), 48.0);
    let at = sheets.paragraph(typesetter, at, (LEFT, MEASURE), label, LABEL).down(3.0);
    sheets.paragraph(typesetter, at, (LEFT, MEASURE * 0.8), notes, BODY.align(Align::Start));
}
