//! The style of the pages for recipients: light or dark as the browser prefers, with the colour
//! of an organization. A colour is written by [`BrandColor`] and so can hold nothing else.

use std::fmt::Write as _;

use waypost_core::organization::brand_color::{BrandColor, SHAPE_CONTRAST_MIN};

/// The rules, in which all colours are variables.
const RULES: &str = include_str!("pages/style.css");

/// The colour of an organization that chose none.
const NEUTRAL: BrandColor = BrandColor::new(0x33, 0x41, 0x55);

/// The colours of a scheme.
struct Palette {
    /// Behind the card.
    page: BrandColor,
    card: BrandColor,
    text: BrandColor,
    /// Text that is less important.
    muted: BrandColor,
    /// Lines that only decorate.
    line: BrandColor,
    /// The edge of a button that is not filled.
    edge: BrandColor,
}

const LIGHT: Palette = Palette {
    page: BrandColor::new(0xf3, 0xf4, 0xf6),
    card: BrandColor::WHITE,
    text: BrandColor::new(0x1b, 0x1f, 0x24),
    muted: BrandColor::new(0x57, 0x60, 0x6a),
    line: BrandColor::new(0xdf, 0xe3, 0xe8),
    edge: BrandColor::new(0x6e, 0x77, 0x81),
};

const DARK: Palette = Palette {
    page: BrandColor::new(0x11, 0x13, 0x17),
    card: BrandColor::new(0x1c, 0x1f, 0x24),
    text: BrandColor::new(0xe6, 0xe8, 0xeb),
    muted: BrandColor::new(0xa0, 0xa8, 0xb2),
    line: BrandColor::new(0x33, 0x38, 0x3f),
    edge: BrandColor::new(0x7d, 0x85, 0x90),
};

/// The style of a page in the colour of an organization, or in a neutral one.
pub(super) fn of(color: Option<BrandColor>) -> String {
    let color = color.unwrap_or(NEUTRAL);
    let mut style = String::with_capacity(RULES.len() + 1_024);
    style.push_str(":root{color-scheme:light dark;");
    LIGHT.write(color, &mut style);
    style.push_str("}@media (prefers-color-scheme:dark){:root{");
    DARK.write(color, &mut style);
    style.push_str("}}");
    style.extend(RULES.lines());
    style
}

impl Palette {
    fn write(&self, brand: BrandColor, style: &mut String) {
        let variables = [
            ("page", self.page),
            ("card", self.card),
            ("text", self.text),
            ("muted", self.muted),
            ("line", self.line),
            ("edge", self.edge),
            ("brand", brand),
            ("on-brand", brand.text_on()),
            (
                "button-edge",
                brand.visible_on(self.card, SHAPE_CONTRAST_MIN),
            ),
        ];
        for (name, color) in variables {
            let _infallible = write!(style, "--{name}:{color};");
        }
    }
}

#[cfg(test)]
mod tests {
    use waypost_core::organization::brand_color::TEXT_CONTRAST_MIN;

    use super::*;

    #[test]
    fn the_texts_and_edges_of_both_schemes_are_seen() {
        for palette in [LIGHT, DARK] {
            for background in [palette.page, palette.card] {
                for text in [palette.text, palette.muted] {
                    assert!(text.contrast(background) >= TEXT_CONTRAST_MIN, "{text}");
                }
            }
            assert!(palette.edge.contrast(palette.card) >= SHAPE_CONTRAST_MIN);
        }
    }

    #[test]
    fn the_style_has_no_line_break_and_loads_nothing() {
        let style = of(Some(BrandColor::WHITE));
        for text in ["\n", "url(", "@import", "</", "{{"] {
            assert!(!style.contains(text), "{text}");
        }
        assert!(
            style.contains("--brand:#ffffff;--on-brand:#000000;"),
            "{style}"
        );
    }
}
