//! What is sold: a table over as many pages as it takes, with its header on each.

use std::rc::Rc;

use crate::clean;
use crate::colour::{Colour, HAIRLINE, MUTED};
use crate::figures;
use crate::panel::{BODY, LABEL};
use crate::sheets::{LEFT, MEASURE, Place, RIGHT, Repeated, Sheets, panel, rule};
use crate::tags::{Kind, Part};
use crate::typeset::{Align, Block, Style, Typesetter};
use crate::values::Invoice;

const GAP: f32 = 16.0;
const ABOVE: f32 = 6.5;
/// However long the figures are, words keep this.
const NARROWEST_DESCRIPTION: f32 = 150.0;

pub(crate) fn draw(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, invoice: &Invoice) -> Place {
    let words = sheets.about.words;
    let (locale, exponent) = (invoice.locale, invoice.currency.exponent);
    let code = clean::line(&invoice.currency.code);
    let figure = BODY.align(Align::Right);
    let label = LABEL.align(Align::Right);

    let mut header = [
        typesetter.set(words.quantity, label),
        typesetter.set(words.unit_price, label),
        typesetter.set(&format!("{} ({code})", words.amount), label),
    ];
    let mut rows: Vec<(String, [Block; 3])> = invoice
        .lines
        .iter()
        .map(|line| {
            let figures = [
                typesetter.set(&figures::digits(line.quantity, 0, locale), figure),
                typesetter.set(&figures::digits(line.unit_price, exponent, locale), figure),
                typesetter.set(&figures::digits(line.total, exponent, locale), figure),
            ];
            (clean::lines(&line.description), figures)
        })
        .collect();

    let widths = widths(&header, &rows);
    let xs =
        [RIGHT - widths[2] - widths[1] - widths[0] - GAP * 2.0, RIGHT - widths[2] - widths[1] - GAP, RIGHT - widths[2]];
    let description_width = xs[0] - GAP - LEFT;
    for (index, width) in widths.iter().enumerate() {
        header[index].within(*width);
        for (_, figures) in &mut rows {
            figures[index].within(*width);
        }
    }

    let table = sheets.tags.part(Kind::Table);
    let head = sheets.tags.part_of(table, Kind::TableHead);
    let head = sheets.tags.part_of(head, Kind::Row);
    let description = typesetter.set_within(words.description, LABEL, description_width);
    let [quantity, price, amount] = header;
    let mut at = sheets.room(at, 60.0);
    let mut end = at;
    let cells = [(description, LEFT), (quantity, xs[0]), (price, xs[1]), (amount, xs[2])];
    let mut repeated = Repeated { cells: Vec::new(), height: 0.0 };
    for (block, x) in cells {
        let part = sheets.tags.part_of(head, Kind::ColumnHeader);
        let block = Rc::new(block);
        repeated.height = repeated.height.max(block.height() + 5.0);
        repeated.cells.push((block.clone(), x));
        end = end.or_later(sheets.flow(at, x, block, part));
    }
    at = end.down(5.0);
    let accent = sheets.about.accent;
    sheets.draw(at.page, rule(LEFT, at.y, MEASURE, accent));
    sheets.repeat(Some(repeated));

    let body = sheets.tags.part_of(table, Kind::TableBody);
    for (description, figures) in rows {
        at = row(sheets, typesetter, at, body, (&description, description_width), figures.into_iter().zip(xs));
    }
    sheets.repeat(None);
    at
}

fn row(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    at: Place,
    body: Part,
    (description, width): (&str, f32),
    figures: impl Iterator<Item = (Block, f32)>,
) -> Place {
    let row = sheets.tags.part_of(body, Kind::Row);
    // A dash keeps the row's place for the eye and for the ear.
    let (description, style) = if description.is_empty() { ("–", BODY.colour(MUTED)) } else { (description, BODY) };
    let description = typesetter.set_within(description, style.align(Align::Start), width);
    let height = description.height() + ABOVE * 2.0;
    // What is longer than a page has to be broken somewhere.
    let room = if Sheets::fits_a_page(height) { height } else { 60.0 };
    let at = sheets.room(at, room).down(ABOVE);
    let part = sheets.tags.part_of(row, Kind::Cell);
    let mut end = sheets.flow(at, LEFT, description, part);
    for (figure, x) in figures {
        let part = sheets.tags.part_of(row, Kind::Cell);
        end = end.or_later(sheets.flow(at, x, figure, part));
    }
    let end = end.down(ABOVE);
    sheets.draw(end.page, rule(LEFT, end.y, MEASURE, HAIRLINE));
    end
}

/// As wide as the widest figure; if that leaves too little for words, the figures share what there is and break.
fn widths(header: &[Block; 3], rows: &[(String, [Block; 3])]) -> [f32; 3] {
    let natural = std::array::from_fn(|index| {
        let widest = rows.iter().map(|(_, figures)| figures[index].width()).fold(header[index].width(), f32::max);
        widened(widest)
    });
    let most = MEASURE - NARROWEST_DESCRIPTION - GAP * 3.0;
    let sum: f32 = natural.iter().sum();
    if sum <= most { natural } else { natural.map(|it| it * most / sum) }
}

/// One line of the sums at the right.
pub(crate) struct Sum {
    pub label: String,
    pub value: String,
    pub style: Style,
}

const SUMS_WIDTH: f32 = 212.0;
/// The panel reaches out by this, so that what is in it lines up with what is above.
const OVERHANG: f32 = 12.0;
/// Share of the width; the rest is the label's.
const LARGEST_SUM: f32 = 0.7;

/// Sums, one below the other at the right, the last of them on a ground of `colour`.
pub(crate) fn sums(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    at: Place,
    sums: &[Sum],
    (last, colour): (&Sum, Colour),
) -> Place {
    let table = sheets.tags.part(Kind::Table);
    let body = sheets.tags.part_of(table, Kind::TableBody);
    let mut at = at;
    for it in sums {
        at = sum(sheets, typesetter, at.down(3.0), body, it);
    }
    let top = at.down(10.0);
    let height = value(typesetter, last).0.height() + 20.0;
    sheets
        .draw(top.page, panel(RIGHT - SUMS_WIDTH - OVERHANG, top.y, SUMS_WIDTH + OVERHANG * 2.0, height, 6.0, colour));
    sum(sheets, typesetter, top.down(10.0), body, last).down(10.0)
}

fn sum(sheets: &mut Sheets, typesetter: &mut Typesetter, at: Place, body: Part, sum: &Sum) -> Place {
    let row = sheets.tags.part_of(body, Kind::Row);
    let (value, width) = value(typesetter, sum);
    let label_style = Style { size: BODY.size, align: Align::Left, ..sum.style };
    let label = typesetter.set_within(&sum.label, label_style, SUMS_WIDTH - width - 8.0);
    let middle = (value.height() - label.height()) / 2.0;
    let part = sheets.tags.part_of(row, Kind::RowHeader);
    let one = sheets.flow(at.down(middle.max(0.0)), RIGHT - SUMS_WIDTH, label, part);
    let part = sheets.tags.part_of(row, Kind::Cell);
    one.or_later(sheets.flow(at, RIGHT - width, value, part))
}

/// The figure, and the width it is set within.
fn value(typesetter: &mut Typesetter, sum: &Sum) -> (Block, f32) {
    let style = sum.style.align(Align::Right);
    let mut value = typesetter.set_fitting(&sum.value, style, SUMS_WIDTH * LARGEST_SUM);
    let width = widened(value.width());
    value.within(width);
    (value, width)
}

/// Line breaking compares sums of fractions.
fn widened(width: f32) -> f32 {
    width.ceil() + 1.0
}
