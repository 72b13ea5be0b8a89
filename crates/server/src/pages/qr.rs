//! An address as a QR code, drawn as one path: small enough to be a part of its page.

use std::fmt::Write as _;

use qrcode::{Color, EcLevel, QrCode};

/// A path in a square of so many units a side, with the quiet margin that cameras need.
pub(super) struct Drawing {
    pub(super) side: usize,
    pub(super) path: String,
}

const MARGIN: usize = 4;

/// Nothing for what is too long for any code.
pub(super) fn draw(text: &str) -> Option<Drawing> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let is_dark = |x: usize, y: usize| code[(x, y)] == Color::Dark;
    let mut path = String::new();
    for y in 0..width {
        let mut x = 0;
        while x < width {
            let run = (x..width).take_while(|x| is_dark(*x, y)).count();
            if run > 0 {
                write!(path, "M{} {}h{run}v1h-{run}z", x + MARGIN, y + MARGIN)
                    .expect("writing to a string cannot fail");
            }
            x += run.max(1);
        }
    }
    Some(Drawing { side: width + 2 * MARGIN, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dark_module_is_drawn_once() {
        let address = "https://pay.kairababooks.example/pay/pl_01h455vb4pex5vsknk084sn02q";
        let Drawing { side, path } = draw(address).unwrap();
        let code = QrCode::with_error_correction_level(address, EcLevel::L).unwrap();
        let dark = code.to_colors().into_iter().filter(|color| *color == Color::Dark).count();
        let run = |part: &str| part.split_once('h').and_then(|(_, rest)| rest.split_once('v')?.0.parse::<usize>().ok());
        assert_eq!(path.split('M').filter_map(run).sum::<usize>(), dark);
        assert_eq!(side, code.width() + 8);
        assert!(path.len() < 8 * 1024, "{}", path.len());
        assert!(draw(&"a".repeat(5000)).is_none());
    }
}
