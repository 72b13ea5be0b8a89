//! The merchant's accent, made readable on paper.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Colour(pub u8, pub u8, pub u8);

pub(crate) const WHITE: Colour = Colour(0xff, 0xff, 0xff);
pub(crate) const INK: Colour = Colour(0x17, 0x1a, 0x1f);
/// Labels and what stands beside the matter: 6.5:1 on white.
pub(crate) const MUTED: Colour = Colour(0x58, 0x5f, 0x69);
pub(crate) const HAIRLINE: Colour = Colour(0xdf, 0xe2, 0xe6);
/// Lies below everything and must not compete with it.
pub(crate) const WATERMARK: Colour = Colour(0xee, 0xef, 0xf1);
pub(crate) const ALARM: Colour = Colour(0xa6, 0x1b, 0x1b);

const DEFAULT: Colour = Colour(0x0b, 0x5d, 0x50);
/// WCAG 2.2, normal text.
const ENOUGH: f64 = 4.5;

impl Colour {
    /// Exactly `#rrggbb`.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self(channel(0)?, channel(2)?, channel(4)?))
    }

    /// A trace of this colour on white, for panels.
    pub(crate) fn tint(self) -> Self {
        let mixed = |channel: u8| (255 * 15 + u16::from(channel)).div_ceil(16).min(255) as u8;
        Self(mixed(self.0), mixed(self.1), mixed(self.2))
    }
}

/// As it was asked for when it can be read on white and on its own tint, else darkened step by step until it can.
/// White text upon it is readable too.
pub(crate) fn accent(wanted: Option<&str>) -> Colour {
    let wanted = wanted.and_then(Colour::parse).unwrap_or(DEFAULT);
    (0..=32_u16)
        .map(|step| {
            let darker = |channel: u8| (u16::from(channel) * (32 - step) / 32) as u8;
            Colour(darker(wanted.0), darker(wanted.1), darker(wanted.2))
        })
        .find(|it| contrast(*it, it.tint()) >= ENOUGH)
        .unwrap_or(INK)
}

/// Contrast ratio, WCAG 2.2.
pub(crate) fn contrast(one: Colour, other: Colour) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: Colour) -> f64 {
    let linear = |channel: u8| {
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accent_ends_readable() {
        for red in (0..=255).step_by(51) {
            for green in (0..=255).step_by(51) {
                for blue in (0..=255).step_by(51) {
                    let colour = accent(Some(&format!("#{red:02x}{green:02x}{blue:02x}")));
                    for ground in [WHITE, colour.tint()] {
                        assert!(contrast(colour, ground) >= ENOUGH, "{red} {green} {blue} became {colour:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_readable_accent_is_left_alone() {
        assert_eq!(accent(Some("#7a1f4b")), Colour(0x7a, 0x1f, 0x4b));
        assert_eq!(accent(Some("#fff; url(x)")), DEFAULT);
        assert_eq!(accent(None), DEFAULT);
    }

    #[test]
    fn labels_are_readable() {
        for ground in [WHITE, accent(Some("#ffff00")).tint(), accent(None).tint()] {
            assert!(contrast(MUTED, ground) >= ENOUGH);
            assert!(contrast(ALARM, ground) >= ENOUGH);
        }
    }
}
