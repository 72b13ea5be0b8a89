//! A merchant's picture, drawn anew: what comes out holds the pixels of what came in and nothing else of it, and is small
//! enough for every page and document.

use std::fmt;
use std::io::Cursor;

use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, ImageResult, Limits};

/// Pixels a side of what is read: decoding takes four bytes for each.
const LARGEST_SIDE: u32 = 3_000;
const MOST_MEMORY: u64 = 64 * 1024 * 1024;
/// Pixels of what is made: sharp at the size that pages and paper show.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 160;
/// A payment page weighs 30 KiB with all it loads, and this is what the rest of it leaves. A photograph is drawn smaller.
const MOST_BYTES: usize = 9 * 1024;
/// Below this nothing could be made out any more.
const LEAST_HEIGHT: u32 = 44;

/// What was fetched is no picture that can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The PNG file of a PNG, JPEG or WebP file. SVG is a program more than a picture and is refused.
pub fn redraw(file: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let format = match image::guess_format(file) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP)) => format,
        Ok(_) | Err(_) => return Err(Unreadable("It is no PNG, JPEG or WebP file.".into())),
    };
    let (image, orientation) =
        decoded(file, format).map_err(|error| Unreadable(format!("It can't be read: {error}.")))?;
    let (mut width, mut height) = (WIDTH, HEIGHT);
    loop {
        let file = drawn(&image, orientation, width, height)?;
        if file.len() <= MOST_BYTES || height * 3 / 4 < LEAST_HEIGHT {
            return Ok(file);
        }
        (width, height) = (width * 3 / 4, height * 3 / 4);
    }
}

/// With the way it was held: a camera says it beside the pixels.
fn decoded(file: &[u8], format: ImageFormat) -> ImageResult<(DynamicImage, Orientation)> {
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE);
    limits.max_image_height = Some(LARGEST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    limits.reserve(decoder.total_bytes())?;
    decoder.set_limits(limits)?;
    Ok((DynamicImage::from_decoder(decoder)?, orientation))
}

/// Turned only once it is small, so that there are never two large ones.
fn drawn(image: &DynamicImage, orientation: Orientation, width: u32, height: u32) -> Result<Vec<u8>, Unreadable> {
    let (width, height) = match orientation {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            (height, width)
        }
        Orientation::NoTransforms
        | Orientation::Rotate180
        | Orientation::FlipHorizontal
        | Orientation::FlipVertical => (width, height),
    };
    let image = if image.width() > width || image.height() > height {
        &image.resize(width, height, FilterType::Lanczos3)
    } else {
        image
    };
    let mut file = Cursor::new(Vec::new());
    let encoder = PngEncoder::new_with_quality(&mut file, CompressionType::Best, PngFilter::Adaptive);
    let mut image = DynamicImage::ImageRgba8(image.to_rgba8());
    image.apply_orientation(orientation);
    image.write_with_encoder(encoder).map_err(|error| Unreadable(format!("It can't be drawn: {error}.")))?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let image = DynamicImage::new_rgb8(width, height);
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    fn size(file: &[u8]) -> (u32, u32) {
        let image = image::load_from_memory(file).unwrap();
        (image.width(), image.height())
    }

    #[test]
    fn a_picture_becomes_a_small_png() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let drawn = redraw(&picture(1_200, 300, format)).unwrap();
            assert!(drawn.starts_with(b"\x89PNG"), "{format:?}");
            assert_eq!(size(&drawn), (480, 120), "{format:?}");
        }
        assert_eq!(size(&redraw(&picture(20, 10, ImageFormat::Png)).unwrap()), (20, 10), "a small one stays small");
    }

    #[test]
    fn a_photograph_weighs_no_more_than_a_page_may() {
        // No two pixels of it are alike.
        let mut state = 1_u32;
        let noise = image::RgbImage::from_fn(1_200, 400, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8])
        });
        let smooth = image::RgbImage::from_fn(1_200, 400, |x, y| {
            image::Rgb([(x / 5) as u8, (y / 2) as u8, ((x + y) / 8) as u8])
        });
        for (picture, is_noise) in [(noise, true), (smooth, false)] {
            let mut file = Cursor::new(Vec::new());
            picture.write_to(&mut file, ImageFormat::Png).unwrap();
            let drawn = redraw(&file.into_inner()).unwrap();
            let (width, height) = size(&drawn);
            // What is made of noise alone can only be small.
            assert!(drawn.len() <= MOST_BYTES || (is_noise && height < 60), "{width} x {height}: {}", drawn.len());
            assert!((LEAST_HEIGHT..=HEIGHT).contains(&height) && width >= 3 * height - 3, "{width} x {height}");
        }
    }

    #[test]
    fn the_same_picture_makes_the_same_file() {
        let file = picture(300, 300, ImageFormat::Jpeg);
        assert_eq!(redraw(&file), redraw(&file));
    }

    /// A JPEG file with one more segment behind its first marker.
    fn with_segment(mut file: Vec<u8>, marker: u8, content: &[u8]) -> Vec<u8> {
        let header = [0xff, marker, 0, u8::try_from(content.len() + 2).unwrap()];
        file.splice(2..2, [&header[..], content].concat());
        file
    }

    #[test]
    fn a_photograph_stands_as_it_was_taken() {
        // Wide, white in its left half and black in its right one.
        let pixels = image::RgbImage::from_fn(960, 240, |x, _| image::Rgb([if x < 480 { 255 } else { 0 }; 3]));
        let mut file = Cursor::new(Vec::new());
        pixels.write_to(&mut file, ImageFormat::Jpeg).unwrap();
        let file = file.into_inner();
        let white_at = |drawn: &[u8]| {
            let drawn = image::load_from_memory(drawn).unwrap().to_luma8();
            let (width, height) = drawn.dimensions();
            let corners = [(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)];
            ((width, height), corners.map(|(x, y)| drawn.get_pixel(x, y).0[0] > 128))
        };
        let (left, right, top, bottom) = (
            [true, false, true, false],
            [false, true, false, true],
            [true, true, false, false],
            [false, false, true, true],
        );
        let (wide, high) = ((480, 120), (40, 160));
        let table =
            [(1, wide, left), (2, wide, right), (3, wide, right), (4, wide, left), (5, high, top), (6, high, top)]
                .into_iter()
                .chain([(7, high, bottom), (8, high, bottom), (0, wide, left), (9, wide, left)]);
        for (orientation, size, white) in table {
            // Big-endian, with one entry: tag 0x112 of one short number.
            let exif =
                [&b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[orientation], &[0; 6]].concat();
            let photograph = with_segment(file.clone(), 0xe1, &exif);
            assert_eq!(white_at(&redraw(&photograph).unwrap()), (size, white), "orientation {orientation}");
        }
    }

    #[test]
    fn nothing_but_pixels_gets_through() {
        // A comment in the file, where a script could stand.
        let file = with_segment(picture(8, 8, ImageFormat::Jpeg), 0xfe, b"<script>alert(1)</script>");
        let drawn = redraw(&file).unwrap();
        assert!(!drawn.windows(6).any(|window| window == b"script"));
    }

    #[test]
    fn what_is_no_picture_or_too_large_is_refused() {
        let svg = br#"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#;
        for file in [&b""[..], b"GIF89a", svg, b"\x89PNG\r\n\x1a\n", b"<html>"] {
            assert!(redraw(file).is_err());
        }
        let mut cut = picture(50, 50, ImageFormat::Png);
        cut.truncate(cut.len() / 2);
        assert!(redraw(&cut).is_err());
        assert!(redraw(&picture(3_001, 1, ImageFormat::Png)).is_err());
    }
}
