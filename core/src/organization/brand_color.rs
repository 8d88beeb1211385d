//! The colour of an organization, and what it becomes where text must be read on it. Pure.
//!
//! An organization may choose any colour, also one that nobody sees on white. So a button of the
//! colour has an edge, in the nearest colour of the same hue that stands out from the page, and
//! its text is white or black. Ratios of contrast are those of WCAG 2.

use std::fmt;
use std::str::FromStr;

/// A colour of sRGB, as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrandColor {
    red: u8,
    green: u8,
    blue: u8,
}

/// The ratio of contrast between a button and what is around it (WCAG 2, 1.4.11).
pub const SHAPE_CONTRAST_MIN: f64 = 3.0;
/// The ratio of contrast between a text and what is behind it (WCAG 2, 1.4.3).
pub const TEXT_CONTRAST_MIN: f64 = 4.5;

/// Steps from a colour to black or white.
const STEPS: u16 = 255;

impl BrandColor {
    /// `#000000`.
    pub const BLACK: Self = Self::new(0, 0, 0);
    /// `#ffffff`.
    pub const WHITE: Self = Self::new(255, 255, 255);

    /// The colour of three channels.
    #[must_use]
    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue }
    }

    /// The ratio of contrast between two colours, from 1 to 21.
    #[must_use]
    pub fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// The colour of a text on this colour: white if it is read well there, or else black, which
    /// then is.
    #[must_use]
    pub fn text_on(self) -> Self {
        if self.contrast(Self::WHITE) >= TEXT_CONTRAST_MIN {
            Self::WHITE
        } else {
            Self::BLACK
        }
    }

    /// This colour if it stands out from a background by the ratio `min`, or else the nearest
    /// one on the way to black (on a light background) or white (on a dark one) that does.
    #[must_use]
    pub fn visible_on(self, background: Self, min: f64) -> Self {
        let end = background.text_on();
        let steps = (0..=STEPS).map(|step| self.towards(end, step));
        let mut visible = steps.filter(|color| color.contrast(background) >= min);
        visible.next().unwrap_or(end)
    }

    fn towards(self, end: Self, step: u16) -> Self {
        let mix = |from: u8, to: u8| {
            let (from, to) = (u16::from(from), u16::from(to));
            let mixed = (from * (STEPS - step) + to * step) / STEPS;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        Self {
            red: mix(self.red, end.red),
            green: mix(self.green, end.green),
            blue: mix(self.blue, end.blue),
        }
    }

    /// The relative luminance, from 0 to 1.
    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }
}

impl FromStr for BrandColor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = "must be a colour in the form #rrggbb, such as #1a73e8";
        let digits = text.strip_prefix('#').ok_or(error)?;
        let is_hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        let [_, red, green, blue] = number.ok_or(error)?.to_be_bytes();
        Ok(Self { red, green, blue })
    }
}

impl fmt::Display for BrandColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { red, green, blue } = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(text: &str) -> BrandColor {
        text.parse().unwrap()
    }

    #[test]
    fn only_six_digits_after_a_hash_are_a_colour() {
        assert_eq!(color("#1A73e8").to_string(), "#1a73e8");
        for text in [
            "",
            "#",
            "1a73e8",
            "#fff",
            "#1a73e",
            "#1a73e80",
            "#1a73e8 ",
            "#+1a73e",
            "#1a73eg",
            "red",
            "#١٢٣٤٥٦",
            "#000;}",
        ] {
            assert!(text.parse::<BrandColor>().is_err(), "{text}");
        }
    }

    #[test]
    fn ratios_are_those_of_wcag() {
        let ratio = |one: &str, other: &str| (color(one).contrast(color(other)) * 100.0).round();
        assert_eq!(ratio("#000000", "#ffffff"), 2_100.0);
        assert_eq!(ratio("#777777", "#ffffff"), 448.0);
        assert_eq!(ratio("#0000ff", "#ffffff"), 859.0);
        assert_eq!(ratio("#ffff00", "#ffffff"), 107.0);
    }

    #[test]
    fn the_edge_of_a_button_of_any_colour_is_seen_and_its_text_is_read() {
        let channel = || (0..=255).step_by(15);
        for red in channel() {
            for green in channel() {
                for blue in channel() {
                    let wanted = BrandColor::new(red, green, blue);
                    let text = wanted.contrast(wanted.text_on());
                    assert!(text >= TEXT_CONTRAST_MIN, "{wanted}: {text}");
                    for background in ["#ffffff", "#f4f5f7", "#1c1f24", "#111317", "#000000"] {
                        let background = color(background);
                        let edge = wanted.visible_on(background, SHAPE_CONTRAST_MIN);
                        let shape = edge.contrast(background);
                        assert!(
                            shape >= SHAPE_CONTRAST_MIN,
                            "{wanted} on {background}: {shape}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_colour_that_is_seen_stays_as_it_is() {
        let blue = color("#1a73e8");
        assert_eq!(blue.visible_on(BrandColor::WHITE, SHAPE_CONTRAST_MIN), blue);
        let yellow = color("#ffe100").visible_on(BrandColor::WHITE, SHAPE_CONTRAST_MIN);
        assert!(
            yellow.red > yellow.blue && yellow.green > yellow.blue,
            "{yellow}"
        );
    }
}
