//! Pages of A4 and what stands on them. All text flows: what doesn't fit on a page goes on at the top of the next.

use std::rc::Rc;

use crate::clean;
use crate::colour::{self, Colour, HAIRLINE, MUTED, WATERMARK};
use crate::logo::Logo;
use crate::qr::Code;
use crate::tags::{Kind, Part, Tags};
use crate::typeset::{Align, Block, Style, Typesetter};
use crate::values::{Locale, Merchant, Moment};
use crate::words::{self, Words};

/// Points: 210 by 297 millimetres.
pub(crate) const WIDTH: f32 = 595.28;
pub(crate) const HEIGHT: f32 = 841.89;

pub(crate) const LEFT: f32 = 50.0;
pub(crate) const RIGHT: f32 = WIDTH - LEFT;
pub(crate) const MEASURE: f32 = RIGHT - LEFT;
const FIRST_TOP: f32 = 54.0;
const NEXT_TOP: f32 = 84.0;
const REPEATED_TOP: f32 = 70.0;
const BOTTOM: f32 = HEIGHT - 66.0;

pub(crate) enum Drawn {
    Line {
        block: Rc<Block>,
        line: usize,
        x: f32,
        y: f32,
        role: Role,
    },
    Panel {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        radius: f32,
        colour: Colour,
    },
    Picture {
        logo: Logo,
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        part: Part,
    },
    Code {
        code: Code,
        x: f32,
        y: f32,
        side: f32,
        part: Part,
    },
    Link {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        address: String,
        part: Part,
    },
    /// Across the page, below everything.
    Watermark {
        block: Rc<Block>,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum Role {
    Part(Part),
    PageHeader,
    PageFooter,
}

/// Where the next thing goes.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub page: usize,
    pub y: f32,
}

impl Place {
    pub(crate) fn down(self, by: f32) -> Self {
        Self { y: self.y + by, ..self }
    }

    pub(crate) fn or_later(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

pub(crate) struct Page {
    pub drawn: Vec<Drawn>,
    top: f32,
}

/// What every page says of its document.
pub(crate) struct About {
    /// `Invoice INV-0042`.
    pub title: String,
    pub merchant: String,
    pub as_of: Moment,
    pub words: &'static Words,
    pub accent: Colour,
    test: bool,
    watermark: Option<Rc<Block>>,
}

impl About {
    pub(crate) fn new(
        merchant: &Merchant,
        locale: Locale,
        kind: &str,
        number: &str,
        as_of: Moment,
        test: bool,
    ) -> Self {
        let number = clean::line(number);
        Self {
            title: if number.is_empty() { kind.to_owned() } else { format!("{kind} {number}") },
            merchant: clean::line(&merchant.name),
            as_of,
            words: words::of(locale),
            accent: colour::accent(merchant.accent.as_deref()),
            test,
            watermark: None,
        }
    }

    pub(crate) fn mark(&mut self, typesetter: &mut Typesetter, mark: &str) {
        let style = Style::new(112.0).strong().colour(WATERMARK);
        self.watermark = Some(Rc::new(typesetter.set_fitting(mark, style, 700.0)));
    }
}

/// A row that is repeated on every page that is begun while it stands.
pub(crate) struct Repeated {
    pub cells: Vec<(Rc<Block>, f32)>,
    pub height: f32,
}

pub(crate) struct Sheets {
    pub pages: Vec<Page>,
    pub tags: Tags,
    pub about: About,
    repeated: Option<Repeated>,
    running: Rc<Block>,
    running_right: Rc<Block>,
}

impl Sheets {
    pub(crate) fn new(typesetter: &mut Typesetter, about: About) -> Self {
        let small = Style::new(8.0).colour(MUTED);
        let running = one_line(typesetter, &about.merchant, small, MEASURE * 0.55);
        let running_right = one_line(typesetter, &about.title, small.align(Align::Right), MEASURE * 0.4);
        let mut sheets =
            Self { pages: Vec::new(), tags: Tags::default(), about, repeated: None, running, running_right };
        sheets.begin_page();
        sheets
    }

    pub(crate) fn start(&self) -> Place {
        Place { page: 0, y: FIRST_TOP }
    }

    pub(crate) fn draw(&mut self, page: usize, drawn: Drawn) {
        self.pages[page].drawn.push(drawn);
    }

    /// Here, or on the next page if `height` doesn't fit here and would there.
    pub(crate) fn room(&mut self, at: Place, height: f32) -> Place {
        if at.y + height <= BOTTOM || at.y <= self.pages[at.page].top { at } else { self.next_page(at) }
    }

    /// Whether a whole page could hold it.
    pub(crate) fn fits_a_page(height: f32) -> bool {
        height <= BOTTOM - NEXT_TOP - 40.0
    }

    fn next_page(&mut self, at: Place) -> Place {
        let page = at.page + 1;
        if page == self.pages.len() {
            self.begin_page();
        }
        Place { page, y: self.pages[page].top }
    }

    fn begin_page(&mut self) {
        let first = self.pages.is_empty();
        let mut drawn = Vec::new();
        if let Some(block) = &self.about.watermark {
            drawn.push(Drawn::Watermark { block: block.clone() });
        }
        let strip = if first { 7.0 } else { 3.0 };
        drawn.push(panel(0.0, 0.0, WIDTH, strip, 0.0, self.about.accent));
        let mut top = FIRST_TOP;
        if !first {
            for (block, x) in [(&self.running, LEFT), (&self.running_right, RIGHT - MEASURE * 0.4)] {
                let role = Role::PageHeader;
                drawn.push(Drawn::Line { block: block.clone(), line: 0, x, y: 36.0, role });
            }
            drawn.push(rule(LEFT, 56.0, MEASURE, HAIRLINE));
            top = NEXT_TOP;
            if let Some(row) = &self.repeated {
                for (block, x) in &row.cells {
                    for line in 0..block.len() {
                        let y = REPEATED_TOP + block.line_height(line) * line as f32;
                        drawn.push(Drawn::Line { block: block.clone(), line, x: *x, y, role: Role::PageHeader });
                    }
                }
                top = REPEATED_TOP + row.height;
                drawn.push(rule(LEFT, top, MEASURE, self.about.accent));
            }
        }
        self.pages.push(Page { drawn, top });
    }

    /// On pages that are begun from now on.
    pub(crate) fn repeat(&mut self, row: Option<Repeated>) {
        self.repeated = row;
    }

    /// Lines one below the other, on as many pages as they take.
    pub(crate) fn flow(&mut self, at: Place, x: f32, block: impl Into<Rc<Block>>, part: Part) -> Place {
        let block = block.into();
        let mut at = at;
        for line in 0..block.len() {
            let height = block.line_height(line);
            at = self.room(at, height);
            let role = Role::Part(part);
            self.draw(at.page, Drawn::Line { block: block.clone(), line, x, y: at.y, role });
            at = at.down(height);
        }
        at
    }

    /// A paragraph of its own; an empty text takes no room.
    pub(crate) fn paragraph(
        &mut self,
        typesetter: &mut Typesetter,
        at: Place,
        (x, width): (f32, f32),
        text: &str,
        style: Style,
    ) -> Place {
        if text.is_empty() {
            return at;
        }
        let part = self.tags.part(Kind::Paragraph);
        let block = typesetter.set_within(text, style, width);
        self.flow(at, x, block, part)
    }

    /// Page numbers, now that their number is known.
    pub(crate) fn finish(mut self, typesetter: &mut Typesetter) -> Self {
        let count = self.pages.len();
        let Words { page, of, test, .. } = *self.about.words;
        let small = Style::new(8.0).colour(MUTED);
        let y = HEIGHT - 44.0;
        // Nobody is to take such a paper for money: large, between the strip and the running titles.
        let loud = Style::new(16.0).colour(colour::ALARM).strong();
        let test = self.about.test.then(|| one_line(typesetter, test, loud, MEASURE));
        for index in 0..count {
            let number = format!("{page} {} {of} {count}", index + 1);
            let number = one_line(typesetter, &number, small.align(Align::Right), 120.0);
            let mut drawn = vec![
                rule(LEFT, y - 8.0, MEASURE, HAIRLINE),
                footer(self.running.clone(), LEFT, y),
                footer(number, RIGHT - 120.0, y),
            ];
            if let Some(test) = &test {
                drawn.push(footer(test.clone(), (WIDTH - test.width()) / 2.0, 12.0));
            }
            self.pages[index].drawn.extend(drawn);
        }
        self
    }
}

fn footer(block: Rc<Block>, x: f32, y: f32) -> Drawn {
    Drawn::Line { block, line: 0, x, y, role: Role::PageFooter }
}

pub(crate) fn panel(x: f32, y: f32, width: f32, height: f32, radius: f32, colour: Colour) -> Drawn {
    Drawn::Panel { x, y, width, height, radius, colour }
}

pub(crate) fn rule(x: f32, y: f32, width: f32, colour: Colour) -> Drawn {
    panel(x, y, width, 0.75, 0.0, colour)
}

/// The first line of it, as running titles are.
fn one_line(typesetter: &mut Typesetter, text: &str, style: Style, width: f32) -> Rc<Block> {
    let block = typesetter.set_within(text, style, width);
    if block.len() <= 1 {
        return Rc::new(block);
    }
    // Cut where the line broke, with room for the sign that it was.
    let mut short: String = text.chars().take(160).collect();
    while short.pop().is_some() {
        let cut = typesetter.set_within(&format!("{}…", short.trim_end()), style, width);
        if cut.len() <= 1 {
            return Rc::new(cut);
        }
    }
    Rc::new(typesetter.set_within("…", style, width))
}
