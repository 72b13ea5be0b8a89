//! A merchant's picture, drawn anew: what comes out holds the pixels of what came in and nothing else of it, and is small
//! enough for every page and document.

use std::fmt;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits, imageops::FilterType};

/// Pixels a side of what is read: decoding takes four bytes for each.
const LARGEST_SIDE: u32 = 3_000;
const MOST_MEMORY: u64 = 64 * 1024 * 1024;
/// Pixels of what is made: sharp at the size that pages and paper show.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 160;

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
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE);
    limits.max_image_height = Some(LARGEST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let image = reader.decode().map_err(|error| Unreadable(format!("It can't be read: {error}.")))?;
    let image = if image.width() > WIDTH || image.height() > HEIGHT {
        image.resize(WIDTH, HEIGHT, FilterType::Lanczos3)
    } else {
        image
    };
    let mut drawn = Cursor::new(Vec::new());
    DynamicImage::ImageRgba8(image.into_rgba8())
        .write_to(&mut drawn, ImageFormat::Png)
        .map_err(|error| Unreadable(format!("It can't be drawn: {error}.")))?;
    Ok(drawn.into_inner())
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
    fn the_same_picture_makes_the_same_file() {
        let file = picture(300, 300, ImageFormat::Jpeg);
        assert_eq!(redraw(&file), redraw(&file));
    }

    #[test]
    fn nothing_but_pixels_gets_through() {
        let mut file = picture(8, 8, ImageFormat::Jpeg);
        // A comment in the file, where a script could stand.
        let comment = b"<script>alert(1)</script>";
        let mut segment = vec![0xff, 0xfe, 0, u8::try_from(comment.len() + 2).unwrap()];
        segment.extend_from_slice(comment);
        file.splice(2..2, segment);
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
