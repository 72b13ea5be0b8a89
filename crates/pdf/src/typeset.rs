//! Text set in lines: fonts chosen, glyphs shaped, directions resolved, lines broken.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use krilla::text::{GlyphId, KrillaGlyph};
use parley::{
    Alignment, AlignmentOptions, FontContext, FontFamily, FontFamilyName, FontFeature, FontFeatures, FontWeight,
    Layout, LayoutContext, LineHeight, OverflowWrap, PositionedLayoutItem, StyleProperty, setting::Tag,
};

use crate::clean::NOTHING_TO_SHOW;
use crate::colour::{Colour, INK};
use crate::fonts;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Points.
    pub size: f32,
    pub strong: bool,
    pub colour: Colour,
    pub align: Align,
    /// Share of the size between two letters.
    pub spacing: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
    /// Left, or right for text that is written from the right.
    Start,
}

impl Style {
    pub(crate) const fn new(size: f32) -> Self {
        Self { size, strong: false, colour: INK, align: Align::Left, spacing: 0.0 }
    }

    pub(crate) const fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    pub(crate) const fn colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    pub(crate) const fn align(self, align: Align) -> Self {
        Self { align, ..self }
    }

    pub(crate) const fn spaced(self, spacing: f32) -> Self {
        Self { spacing, ..self }
    }
}

/// Text in lines, not yet anywhere.
pub(crate) struct Block {
    pub text: String,
    pub colour: Colour,
    layout: Layout<()>,
    align: Align,
    boxes: [u32; 2],
}

/// A stretch of one font in a line.
pub(crate) struct Run {
    pub font: krilla::text::Font,
    pub size: f32,
    /// From the block's left edge and from the line's top.
    pub x: f32,
    pub baseline: f32,
    pub glyphs: Vec<KrillaGlyph>,
}

impl Block {
    /// Breaks the lines anew.
    pub(crate) fn within(&mut self, width: f32) {
        self.layout.break_all_lines(Some(width));
        let alignment = match self.align {
            Align::Left => Alignment::Left,
            Align::Right => Alignment::Right,
            Align::Start => Alignment::Start,
        };
        self.layout.align(alignment, AlignmentOptions::default());
    }

    /// Of the widest line.
    pub(crate) fn width(&self) -> f32 {
        self.layout.width()
    }

    pub(crate) fn height(&self) -> f32 {
        self.layout.height()
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.len()
    }

    pub(crate) fn line_height(&self, line: usize) -> f32 {
        self.layout.get(line).map_or(0.0, |it| it.metrics().line_height)
    }

    /// Nothing of the line is drawn.
    pub(crate) fn is_blank(&self, line: usize) -> bool {
        let text = self.layout.get(line).and_then(|it| self.text.get(it.text_range()));
        text.is_none_or(|text| text.trim().is_empty())
    }

    pub(crate) fn runs(&self, line: usize) -> Vec<Run> {
        let Some(line) = self.layout.get(line) else { return Vec::new() };
        let top = line.metrics().block_min_coord;
        line.items()
            .filter_map(|item| match item {
                PositionedLayoutItem::GlyphRun(run) => Some(run),
                PositionedLayoutItem::InlineBox(_) => None,
            })
            .map(|run| {
                let font = &run.run().font().data;
                let size = run.run().font_size();
                Run {
                    font: fonts::writable(font),
                    size,
                    x: run.offset(),
                    baseline: run.baseline() - top,
                    glyphs: glyphs(run.run(), self.boxes),
                }
            })
            .collect()
    }
}

fn glyphs(run: &parley::Run<'_, ()>, boxes: [u32; 2]) -> Vec<KrillaGlyph> {
    let size = run.font_size();
    let mut glyphs: Vec<KrillaGlyph> = Vec::new();
    // What a ligature stands for beyond its first letter. From right to left it is met before the ligature.
    let mut beyond: Option<usize> = None;
    for cluster in run.visual_clusters() {
        let mut range = cluster.text_range();
        if cluster.is_ligature_continuation() {
            if run.is_rtl() {
                beyond = beyond.max(Some(range.end));
            } else if let Some(glyph) = glyphs.last_mut() {
                glyph.text_range.end = range.end;
            }
            continue;
        }
        range.end = range.end.max(beyond.take().unwrap_or(0));
        for glyph in cluster.glyphs() {
            // Glyph 0 is a font's "I have none": an archived file may not show it, so an ordinary box stands for it.
            let id = if glyph.id == 0 { boxes[usize::from(fonts::is_arabic(&run.font().data))] } else { glyph.id };
            // Upwards; a pile of accents stays near its line instead of climbing over other text.
            let up = (-glyph.y / size).clamp(-FARTHEST_ACCENT, FARTHEST_ACCENT);
            let id = GlyphId::new(id);
            glyphs.push(KrillaGlyph::new(id, glyph.advance / size, glyph.x / size, up, 0.0, range.clone(), None));
        }
    }
    glyphs
}

/// Share of the font size.
const FARTHEST_ACCENT: f32 = 0.6;

/// Sets text. Costly to make and reused from document to document; keeps nothing of their text.
pub(crate) struct Typesetter {
    fonts: FontContext,
    layouts: LayoutContext<()>,
    /// The glyph of an empty box, in the Latin fonts and in the Arabic ones.
    boxes: [u32; 2],
}

/// Idle typesetters. There are never more than documents that were written at the same time.
static IDLE: Mutex<Vec<Typesetter>> = Mutex::new(Vec::new());

pub(crate) fn with<T>(work: impl FnOnce(&mut Typesetter) -> T) -> T {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = idle().pop();
    let mut typesetter = taken.unwrap_or_else(Typesetter::new);
    let done = work(&mut typesetter);
    idle().push(typesetter);
    done
}

impl Typesetter {
    fn new() -> Self {
        let mut typesetter = Self { fonts: fonts::context(), layouts: LayoutContext::new(), boxes: [0; 2] };
        let first_glyph =
            |block: &Block| block.runs(0).first().and_then(|it| Some(it.glyphs.first()?.glyph_id.to_u32()));
        let boxes = [(fonts::LATIN, NOTHING_TO_SHOW), (fonts::ARABIC, '\u{25cc}')].map(|(family, it)| {
            first_glyph(&typesetter.set_in(&[family], &it.to_string(), Style::new(10.0))).unwrap_or(0)
        });
        typesetter.boxes = boxes;
        typesetter
    }

    /// On one line, however wide.
    pub(crate) fn set(&mut self, text: &str, style: Style) -> Block {
        self.set_in(&[fonts::LATIN, fonts::ARABIC], text, style)
    }

    pub(crate) fn set_within(&mut self, text: &str, style: Style, width: f32) -> Block {
        let mut block = self.set(text, style);
        block.within(width);
        block
    }

    /// On one line if that is possible at no less than half the size.
    pub(crate) fn set_fitting(&mut self, text: &str, style: Style, width: f32) -> Block {
        let natural = self.set(text, style).width();
        let scale = if natural > width { (width / natural * 0.99).max(0.5) } else { 1.0 };
        self.set_within(text, Style { size: style.size * scale, ..style }, width)
    }

    fn set_in(&mut self, families: &[&str], text: &str, style: Style) -> Block {
        let families: Vec<FontFamilyName<'_>> = families.iter().copied().map(FontFamilyName::named).collect();
        let mut builder = self.layouts.ranged_builder(&mut self.fonts, text, 1.0, false);
        builder.push_default(StyleProperty::FontFamily(FontFamily::List(Cow::Borrowed(&families))));
        builder.push_default(StyleProperty::FontSize(style.size));
        builder.push_default(StyleProperty::FontWeight(if style.strong {
            FontWeight::SEMI_BOLD
        } else {
            FontWeight::NORMAL
        }));
        builder.push_default(StyleProperty::LetterSpacing(style.spacing * style.size));
        let leading = if style.size < LARGE { 1.45 } else { 1.2 };
        builder.push_default(StyleProperty::LineHeight(LineHeight::FontSizeRelative(leading)));
        builder.push_default(StyleProperty::OverflowWrap(OverflowWrap::Anywhere));
        let features = if style.size < LARGE { &EQUALLY_WIDE_FIGURES[..] } else { &[] };
        builder.push_default(StyleProperty::FontFeatures(FontFeatures::List(Cow::Borrowed(features))));
        let mut layout = builder.build(text);
        layout.break_all_lines(None);
        Block { text: text.to_owned(), colour: style.colour, layout, align: style.align, boxes: self.boxes }
    }
}

/// From here on it stands alone: lines closer together, figures as wide as they are drawn.
const LARGE: f32 = 14.0;

/// Columns of figures line up.
const EQUALLY_WIDE_FIGURES: [FontFeature; 1] = [FontFeature::new(Tag::new(b"tnum"), 1)];
