//! What invoices and receipts have in common: who it is from, what it is, whose it is, and the way on by QR code.

use crate::clean;
use crate::colour::{Colour, MUTED, WHITE};
use crate::logo::Logo;
use crate::qr::Code;
use crate::sheets::{Drawn, LEFT, MEASURE, Place, RIGHT, Role, Sheets, panel};
use crate::tags::Kind;
use crate::typeset::{Align, Style, Typesetter};
use crate::values::{Merchant, Party};
use std::rc::Rc;

pub(crate) const BODY: Style = Style::new(9.5);
pub(crate) const LABEL: Style = Style::new(8.0).strong().colour(MUTED).spaced(0.015);

/// The large word at the top right, the mark below it, and the merchant's logo or name at the left.
pub(crate) fn masthead(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    merchant: &Merchant,
    logo: Option<Logo>,
    kind: &'static str,
    mark: Option<(&'static str, Colour)>,
) -> Place {
    let at = sheets.start();
    let accent = sheets.about.accent;
    let half = MEASURE * 0.55;

    let heading = sheets.tags.part(Kind::Heading(kind));
    let title =
        typesetter.set_within(kind, Style::new(30.0).strong().colour(accent).align(Align::Right), MEASURE * 0.4);
    let mut right = sheets.flow(at, RIGHT - MEASURE * 0.4, title, heading);
    if let Some((words, colour)) = mark {
        let block = typesetter.set(words, Style::new(9.0).strong().colour(WHITE).spaced(0.08));
        let (width, height) = (block.width() + 20.0, block.height() + 7.0);
        let y = right.y + 6.0;
        let part = sheets.tags.part(Kind::Paragraph);
        sheets.draw(at.page, panel(RIGHT - width, y, width, height, height / 2.0, colour));
        let role = Role::Part(part);
        let block = Rc::new(block);
        sheets.draw(at.page, Drawn::Line { block, line: 0, x: RIGHT - width + 10.0, y: y + 3.5, role });
        right = right.down(6.0 + height);
    }

    let name = clean::line(&merchant.name);
    let left = match logo {
        Some(logo) => {
            let (width, height) = logo.fitted(180.0, 56.0);
            let words = format!("{} {name}", sheets.about.words.logo_of);
            let part = sheets.tags.part(Kind::Figure(words));
            sheets.draw(at.page, Drawn::Picture { logo, x: LEFT, y: at.y, width, height, part });
            at.down(height)
        }
        None => {
            let place = at.down(5.0);
            let part = sheets.tags.part(Kind::Paragraph);
            let block = typesetter.set_within(&name, Style::new(17.0).strong().align(Align::Left), half);
            sheets.flow(place, LEFT, block, part)
        }
    };
    left.or_later(right).down(28.0)
}

/// Two columns: who it is from, and to whom.
pub(crate) fn parties(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    at: Place,
    (from, merchant): (&str, &Merchant),
    (to, party): (&str, &Party),
) -> Place {
    let words = sheets.about.words;
    let column = (MEASURE - 28.0) / 2.0;
    let tax_id = clean::line(&merchant.tax_id);
    let tax_id = if tax_id.is_empty() { tax_id } else { format!("{} {tax_id}", words.tax_id) };
    let below = [merchant.address.as_str(), &merchant.phone, &merchant.email, &tax_id];
    let left = who(sheets, typesetter, (at, LEFT, column), from, &merchant.name, &below);
    let below = [party.address.as_str(), &party.phone, &party.email];
    let right = who(sheets, typesetter, (at, LEFT + column + 28.0, column), to, &party.name, &below);
    left.or_later(right).down(22.0)
}

fn who(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    (at, x, width): (Place, f32, f32),
    label: &str,
    name: &str,
    below: &[&str],
) -> Place {
    let at = sheets.paragraph(typesetter, at, (x, width), label, LABEL).down(3.0);
    let mut at = sheets.paragraph(typesetter, at, (x, width), &clean::line(name), Style::new(10.5).strong());
    for text in below {
        at = sheets.paragraph(typesetter, at, (x, width), &clean::lines(text), BODY);
    }
    at
}

/// Labels over values, side by side as far as the width goes.
pub(crate) fn facts(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    at: Place,
    facts: &[(&'static str, String)],
    columns: usize,
) -> Place {
    let gap = 20.0;
    let width = (MEASURE + gap) / columns as f32 - gap;
    let mut at = at;
    for row in facts.chunks(columns) {
        let mut end = at;
        for (index, (label, value)) in row.iter().enumerate() {
            let x = LEFT + (width + gap) * index as f32;
            let place = sheets.paragraph(typesetter, at, (x, width), label, LABEL).down(2.0);
            end = end.or_later(sheets.paragraph(typesetter, place, (x, width), value, Style::new(10.5)));
        }
        at = end.down(14.0);
    }
    at
}

/// A QR code at the left with words beside it. What `address` says is a link too.
pub(crate) struct WayOn<'a> {
    pub title: &'a str,
    pub how: &'a str,
    pub code: &'a str,
    pub code_words: &'static str,
    pub address: &'a str,
    /// What to type in there.
    pub secret: Option<(&'a str, &'a str)>,
    pub code_side: f32,
}

pub(crate) fn way_on(
    sheets: &mut Sheets,
    typesetter: &mut Typesetter,
    at: Place,
    way: &WayOn<'_>,
    width: f32,
) -> Place {
    let accent = sheets.about.accent;
    let mut x = LEFT;
    let mut end = at;
    if let Some(code) = Code::new(way.code) {
        let side = way.code_side;
        let part = sheets.tags.part(Kind::Figure(way.code_words.to_owned()));
        sheets.draw(at.page, Drawn::Code { code, x, y: at.y, side, part });
        end = at.down(side);
        x += side + 16.0;
    }
    let width = LEFT + width - x;
    let at = sheets.paragraph(typesetter, at.down(2.0), (x, width), way.title, Style::new(10.5).strong()).down(2.0);
    let mut at = sheets.paragraph(typesetter, at, (x, width), way.how, Style::new(8.5).colour(MUTED));
    let address = clean::line(way.address);
    if !address.is_empty() {
        at = at.down(3.0);
        let style = Style::new(7.5).colour(accent);
        let paragraph = sheets.tags.part(Kind::Paragraph);
        let link = sheets.tags.part_of(paragraph, Kind::Link);
        let block = typesetter.set_within(&address, style, width);
        let (area, height) = (block.width().min(width), block.height());
        let after = sheets.flow(at, x, block, link);
        // Only a whole address may be followed.
        if after.page == at.page && (address.starts_with("https://") || address.starts_with("http://")) {
            let (y, part) = (at.y, link);
            sheets.draw(at.page, Drawn::Link { x, y, width: area, height, address, part });
        }
        at = after;
    }
    if let Some((label, secret)) = way.secret {
        at = sheets.paragraph(typesetter, at.down(10.0), (x, width), label, LABEL).down(2.0);
        let style = Style::new(12.5).strong().spaced(0.02);
        at = sheets.paragraph(typesetter, at, (x, width), &clean::line(secret), style);
    }
    end.or_later(at)
}
