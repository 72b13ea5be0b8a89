//! The merchant's picture.

use krilla::image::Image;

/// Bytes of the file; every document carries them.
const LARGEST_FILE: usize = 1 << 20;
/// Pixels a side: more than paper shows, less than would hurt to decode.
const LARGEST_SIDE: u32 = 2_000;

#[derive(Clone)]
pub(crate) struct Logo {
    pub image: Image,
    /// Pixels.
    pub width: f32,
    pub height: f32,
}

impl Logo {
    /// Nothing for what is neither PNG nor JPEG, or is too large. Whether its pixels can be read shows later.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        if file.len() > LARGEST_FILE {
            return None;
        }
        let data = || file.to_vec().into();
        let image = if file.starts_with(b"\x89PNG\r\n\x1a\n") {
            Image::from_png(data(), false).ok()?
        } else if file.starts_with(b"\xff\xd8\xff") {
            Image::from_jpeg(data(), false).ok()?
        } else {
            return None;
        };
        let (width, height) = image.size();
        if width == 0 || height == 0 || width > LARGEST_SIDE || height > LARGEST_SIDE {
            return None;
        }
        Some(Self { image, width: width as f32, height: height as f32 })
    }

    /// As large as fits in.
    pub(crate) fn fitted(&self, width: f32, height: f32) -> (f32, f32) {
        let scale = (width / self.width).min(height / self.height);
        (self.width * scale, self.height * scale)
    }
}
