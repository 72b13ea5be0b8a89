//! Composed sheets written as a file.

use krilla::action::{Action, LinkAction};
use krilla::annotation::{Annotation, LinkAnnotation, Target};
use krilla::configure::{Accessibility, Archival, Configuration, ConfigurationBuilder};
use krilla::destination::XyzDestination;
use krilla::error::KrillaError;
use krilla::geom::{Path, PathBuilder, Point, Rect, Size, Transform};
use krilla::metadata::{DateTime, Metadata};
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::tagging::{Artifact, ArtifactType, ContentTag, Identifier, SpanTag};
use krilla::{Document, SerializeSettings};

use crate::colour::Colour;
use crate::qr::Code;
use crate::sheets::{About, Drawn, HEIGHT, Role, Sheets, WIDTH};
use crate::typeset::{Block, Typesetter};

pub(crate) fn write(sheets: Sheets, typesetter: &mut Typesetter) -> Result<Vec<u8>, KrillaError> {
    let Sheets { pages, mut tags, about, .. } = sheets.finish(typesetter);
    let settings = SerializeSettings { configuration: configuration(), ..SerializeSettings::default() };
    let mut document = Document::new_with(settings);
    for sheet in pages {
        let a4 = PageSettings::from_wh(WIDTH, HEIGHT).expect("A4 has a size");
        let mut page = document.start_page_with(a4);
        let mut surface = page.surface();
        let mut links = Vec::new();
        for drawn in sheet.drawn {
            match drawn {
                Drawn::Line { block, line, .. } if block.is_blank(line) => {}
                Drawn::Line { block, line, x, y, role } => {
                    let identifier = surface.start_tagged(match role {
                        Role::Part(_) => ContentTag::Span(SpanTag::empty()),
                        Role::PageHeader => ContentTag::Artifact(Artifact::with_kind(ArtifactType::Header)),
                        Role::PageFooter => ContentTag::Artifact(Artifact::with_kind(ArtifactType::Footer)),
                    });
                    text(&mut surface, &block, line, x, y, false);
                    surface.end_tagged();
                    if let Role::Part(part) = role {
                        tags.drawn(part, identifier);
                    }
                }
                Drawn::Panel { x, y, width, height, radius, colour } => {
                    artifact(&mut surface, ArtifactType::Other);
                    fill(&mut surface, colour);
                    if let Some(path) = rounded(x, y, width, height, radius) {
                        surface.draw_path(&path);
                    }
                    surface.end_tagged();
                }
                Drawn::Picture { logo, x, y, width, height, part } => {
                    let identifier = surface.start_tagged(ContentTag::Other);
                    if let Some(size) = Size::from_wh(width, height) {
                        surface.push_transform(&Transform::from_translate(x, y));
                        surface.draw_image(logo.image, size);
                        surface.pop();
                    }
                    surface.end_tagged();
                    tags.drawn(part, identifier);
                }
                Drawn::Code { code, x, y, side, part } => {
                    let identifier = qr(&mut surface, &code, x, y, side);
                    tags.drawn(part, identifier);
                }
                Drawn::Link { x, y, width, height, address, part } => {
                    links.extend(Rect::from_xywh(x, y, width, height).map(|area| (area, address, part)));
                }
                Drawn::Watermark { block } => {
                    artifact(&mut surface, ArtifactType::Watermark);
                    surface.push_transform(&Transform::from_rotate_at(-52.0, WIDTH / 2.0, HEIGHT / 2.0));
                    let (x, y) = ((WIDTH - block.width()) / 2.0, (HEIGHT - block.height()) / 2.0);
                    // As shapes: the mark stands in the text already.
                    text(&mut surface, &block, 0, x, y, true);
                    surface.pop();
                    surface.end_tagged();
                }
            }
        }
        surface.finish();
        for (area, address, part) in links {
            let target = Target::Action(Action::Link(LinkAction::new(address.clone())));
            let annotation = Annotation::new_link(LinkAnnotation::new(area, target), Some(address));
            tags.drawn(part, page.add_tagged_annotation(annotation));
        }
        page.finish();
    }
    document.set_tag_tree(tags.tree(about.words.language));
    let mut outline = Outline::new();
    outline.push_child(OutlineNode::new(about.title.clone(), XyzDestination::new(0, Point::from_xy(0.0, 0.0))));
    document.set_outline(outline);
    document.set_metadata(metadata(about));
    document.finish()
}

/// Fit for archives, and for those who have it read to them.
fn configuration() -> Configuration {
    ConfigurationBuilder::new()
        .with_archival_validator(Archival::A2_A)
        .with_accessibility_validator(Accessibility::UA1)
        .finish()
        .expect("both are of PDF 1.7")
}

fn metadata(about: About) -> Metadata {
    let at = about.as_of;
    let date = DateTime::new(at.date.year.clamp(1, 9999).unsigned_abs())
        .month(at.date.month.clamp(1, 12))
        .day(at.date.day.clamp(1, 31))
        .hour(at.hour.min(23))
        .minute(at.minute.min(59))
        .second(at.second.min(59))
        .utc_offset_hour(0);
    Metadata::new()
        .title(about.title)
        .authors(if about.merchant.is_empty() { Vec::new() } else { vec![about.merchant] })
        .language(about.words.language.to_owned())
        .creator("Dalasi".to_owned())
        .producer("Dalasi".to_owned())
        .creation_date(date)
}

fn artifact(surface: &mut Surface<'_>, kind: ArtifactType) {
    surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(kind)));
}

fn fill(surface: &mut Surface<'_>, Colour(red, green, blue): Colour) {
    let paint = krilla::color::rgb::Color::new(red, green, blue).into();
    surface.set_fill(Some(Fill { paint, ..Fill::default() }));
}

fn text(surface: &mut Surface<'_>, block: &Block, line: usize, x: f32, y: f32, as_shapes: bool) {
    fill(surface, block.colour);
    for run in block.runs(line) {
        let start = Point::from_xy(x + run.x, y + run.baseline);
        surface.draw_glyphs(start, &run.glyphs, run.font, &block.text, run.size, as_shapes);
    }
}

fn qr(surface: &mut Surface<'_>, code: &Code, x: f32, y: f32, side: f32) -> Identifier {
    let identifier = surface.start_tagged(ContentTag::Other);
    let module = side / code.side as f32;
    let mut path = PathBuilder::new();
    for &(column, row, length) in &code.dark {
        let (left, top) = (x + column as f32 * module, y + row as f32 * module);
        if let Some(rect) = Rect::from_xywh(left, top, length as f32 * module, module) {
            path.push_rect(rect);
        }
    }
    if let Some(path) = path.finish() {
        fill(surface, Colour(0, 0, 0));
        surface.draw_path(&path);
    }
    surface.end_tagged();
    identifier
}

/// Nothing when there is no area.
fn rounded(x: f32, y: f32, width: f32, height: f32, radius: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    let radius = radius.min(width / 2.0).min(height / 2.0);
    if radius <= 0.0 {
        path.push_rect(Rect::from_xywh(x, y, width, height)?);
        return path.finish();
    }
    // The share of the radius at which a cubic curve is nearest to a quarter of a circle.
    let reach = radius * (1.0 - 0.552_284_8);
    let (right, bottom) = (x + width, y + height);
    path.move_to(x + radius, y);
    path.line_to(right - radius, y);
    path.cubic_to(right - reach, y, right, y + reach, right, y + radius);
    path.line_to(right, bottom - radius);
    path.cubic_to(right, bottom - reach, right - reach, bottom, right - radius, bottom);
    path.line_to(x + radius, bottom);
    path.cubic_to(x + reach, bottom, x, bottom - reach, x, bottom - radius);
    path.line_to(x, y + radius);
    path.cubic_to(x, y + reach, x + reach, y, x + radius, y);
    path.close();
    path.finish()
}
