//! The merchant's accent colour, made readable. A colour that would fail the contrast of WCAG 2.2
//! (4.5:1) is moved along its own hue until it passes, once for light pages and once for dark ones.
//! Nothing but `#rrggbb` is taken, so the result is safe inside a style sheet.

/// Behind text and buttons of the light page: the darkest of its grounds, so the hardest for a dark colour.
pub const LIGHT_GROUND: Colour = Colour(0xf1, 0xf0, 0xec);
/// … and the lightest of the dark page.
pub const DARK_GROUND: Colour = Colour(0x2a, 0x2d, 0x2b);
/// Text on a filled button of the dark page; of the light page it is white.
pub const DARK_INK: Colour = Colour(0x10, 0x12, 0x11);
const WHITE: Colour = Colour(0xff, 0xff, 0xff);

const DEFAULT: Colour = Colour(0x0b, 0x5d, 0x50);
const ENOUGH: f64 = 4.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// The accent on light pages (white text upon it) and on dark ones (dark text upon it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accent {
    pub light: Colour,
    pub dark: Colour,
}

impl Accent {
    pub fn new(wanted: Option<&str>) -> Self {
        let wanted = wanted.and_then(Colour::parse).unwrap_or(DEFAULT);
        Self {
            light: corrected(wanted, Direction::Darker, |it| {
                contrast(it, WHITE) >= ENOUGH && contrast(it, LIGHT_GROUND) >= ENOUGH
            }),
            dark: corrected(wanted, Direction::Lighter, |it| {
                contrast(it, DARK_INK) >= ENOUGH && contrast(it, DARK_GROUND) >= ENOUGH
            }),
        }
    }
}

impl Colour {
    /// Exactly `#rrggbb`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        if digits.len() != 6 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self(channel(0)?, channel(2)?, channel(4)?))
    }

    pub fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Lighter or darker at the same hue and saturation, by as little as it takes. The ends are white and black, which
/// pass, so the search ends.
fn corrected(wanted: Colour, towards: Direction, passes: impl Fn(Colour) -> bool) -> Colour {
    if passes(wanted) {
        return wanted;
    }
    let (hue, saturation, lightness) = hue_saturation_lightness(wanted);
    let end = match towards {
        Direction::Darker => 0.0,
        Direction::Lighter => 1.0,
    };
    (1..=256)
        .map(|step| {
            let share = f64::from(step) / 256.0;
            from_hue_saturation_lightness(hue, saturation, lightness + (end - lightness) * share)
        })
        .find(|it| passes(*it))
        .expect("white passes on the dark ground, black on the light one")
}

#[derive(Clone, Copy)]
enum Direction {
    Darker,
    Lighter,
}

/// Hue in sixths of a turn, the others from 0 to 1 (CSS Color 4, section 7).
fn hue_saturation_lightness(colour: Colour) -> (f64, f64, f64) {
    let [red, green, blue] = [colour.0, colour.1, colour.2].map(|it| f64::from(it) / 255.0);
    let most = red.max(green).max(blue);
    let least = red.min(green).min(blue);
    let (range, lightness) = (most - least, f64::midpoint(most, least));
    if range == 0.0 {
        return (0.0, 0.0, lightness);
    }
    let saturation = (most - lightness) / lightness.min(1.0 - lightness);
    let hue = if most == red {
        ((green - blue) / range).rem_euclid(6.0)
    } else if most == green {
        (blue - red) / range + 2.0
    } else {
        (red - green) / range + 4.0
    };
    (hue, saturation, lightness)
}

fn from_hue_saturation_lightness(hue: f64, saturation: f64, lightness: f64) -> Colour {
    let reach = saturation * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let place = (offset + hue * 2.0).rem_euclid(12.0);
        let value = lightness - reach * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0);
        // A float cast saturates, so rounding errors stay within a byte.
        (value * 255.0).round() as u8
    };
    Colour(channel(0.0), channel(8.0), channel(4.0))
}

/// Contrast ratio, WCAG 2.2.
pub fn contrast(one: Colour, other: Colour) -> f64 {
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
        // A lattice over the whole cube, corners included.
        for red in (0..=255).step_by(17) {
            for green in (0..=255).step_by(17) {
                for blue in (0..=255).step_by(17) {
                    let wanted = Colour(red, green, blue).css();
                    let accent = Accent::new(Some(&wanted));
                    for (colour, grounds) in
                        [(accent.light, [WHITE, LIGHT_GROUND]), (accent.dark, [DARK_INK, DARK_GROUND])]
                    {
                        for ground in grounds {
                            let ratio = contrast(colour, ground);
                            assert!(ratio >= ENOUGH, "{wanted} {colour:?} {ground:?} {ratio}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_readable_accent_is_left_alone() {
        assert_eq!(Accent::new(Some("#7a1f4b")).light, Colour(0x7a, 0x1f, 0x4b));
        assert_eq!(Accent::new(Some("#9fe0c8")).dark, Colour(0x9f, 0xe0, 0xc8));
    }

    #[test]
    fn only_the_strict_pattern_is_a_colour() {
        for text in ["", "#fff", "ffffff", "#fffffg", "#ffffff;", "red", "#ffffff\n", "#ﬀffff", "#+1ffff", "url(x)"] {
            assert_eq!(Colour::parse(text), None, "{text:?}");
            assert_eq!(Accent::new(Some(text)), Accent::new(None));
        }
        assert_eq!(Colour::parse("#0A0b0C"), Some(Colour(10, 11, 12)));
    }

    #[test]
    fn a_corrected_accent_keeps_its_hue() {
        let (wanted, _, _) = hue_saturation_lightness(Colour(0x0b, 0x5d, 0x50));
        let (hue, saturation, _) = hue_saturation_lightness(Accent::new(Some("#0b5d50")).dark);
        assert!((hue - wanted).abs() < 0.05, "{hue} {wanted}");
        assert!(saturation > 0.7, "{saturation}");
    }

    #[test]
    fn the_scale_is_wcags() {
        assert!((contrast(WHITE, Colour(0, 0, 0)) - 21.0).abs() < 1e-9);
        assert!((contrast(Colour(0x77, 0x77, 0x77), WHITE) - 4.478).abs() < 1e-3);
    }
}
