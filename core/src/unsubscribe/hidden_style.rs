//! Reads from an inline style whether it hides its element. Style sheets and media queries
//! are not considered. Of several declarations of a property the last valid one counts, and
//! `!important` takes precedence (CSS Cascade 4, 6.1).

use crate::text::css::split;

/// The properties of an inline style that affect visibility.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Style {
    /// Whether the element and its whole content are invisible.
    pub(super) hides: bool,
    /// The size of the element's text. Elements inside it may set another.
    pub(super) text: TextSize,
    pub(super) width: Option<f64>,
    pub(super) height: Option<f64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextSize {
    /// The size of the parent element, or a multiple of it.
    #[default]
    Inherited,
    Zero,
    Some,
}

#[derive(Clone, Copy, PartialEq)]
enum Property {
    Display,
    Visibility,
    Opacity,
    Width,
    Height,
    MaxWidth,
    MaxHeight,
    Overflow,
    FontSize,
}

/// The properties that affect visibility.
const PROPERTIES: [(&str, Property); 12] = [
    ("display", Property::Display),
    ("visibility", Property::Visibility),
    ("opacity", Property::Opacity),
    ("width", Property::Width),
    ("height", Property::Height),
    ("max-width", Property::MaxWidth),
    ("max-height", Property::MaxHeight),
    ("overflow", Property::Overflow),
    ("overflow-x", Property::Overflow),
    ("overflow-y", Property::Overflow),
    ("font-size", Property::FontSize),
    ("font", Property::FontSize),
];
/// Values of `display` that do not hide.
const DISPLAYS: [&str; 21] = [
    "block",
    "inline",
    "inline-block",
    "inline-table",
    "inline-flex",
    "inline-grid",
    "list-item",
    "table",
    "table-row",
    "table-cell",
    "table-row-group",
    "table-header-group",
    "table-footer-group",
    "table-column",
    "table-caption",
    "flex",
    "grid",
    "contents",
    "flow-root",
    "run-in",
    "block flow",
];
/// Values that every property accepts.
const GLOBAL: [&str; 5] = ["inherit", "initial", "unset", "revert", "revert-layer"];
/// Keywords for sizes.
const SIZES: [&str; 6] = [
    "auto",
    "none",
    "min-content",
    "max-content",
    "fit-content",
    "stretch",
];
const TEXT_SIZES: [&str; 8] = [
    "xx-small",
    "x-small",
    "small",
    "medium",
    "large",
    "x-large",
    "xx-large",
    "xxx-large",
];
/// Units of lengths.
const UNITS: [&str; 17] = [
    "px", "pt", "pc", "in", "cm", "mm", "q", "em", "rem", "ex", "ch", "vw", "vh", "vmin", "vmax",
    "lh", "%",
];
/// The units relative to the parent's font size.
const FONT_RELATIVE_UNITS: [&str; 4] = ["em", "ex", "ch", "%"];

/// The value of a declaration.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    /// Zero, or a keyword that hides.
    Zero,
    Size(f64),
    Inherited,
    /// Any other valid value.
    Other,
}

/// Whether an inline style makes its element and its whole content invisible.
pub(crate) fn hides(style: &str) -> bool {
    Style::read(style).hides
}

impl Style {
    pub(super) fn read(style: &str) -> Self {
        let mut values: [Option<(bool, Value)>; 9] = [None; 9];
        let style = without_comments(&style.to_ascii_lowercase());
        for declaration in split(&style, ';') {
            let Some((name, value)) = declaration.split_once(':') else {
                continue;
            };
            let (value, is_important) = match value.split_once('!') {
                Some((value, word)) => (value, word.trim() == "important"),
                None => (value, false),
            };
            let (name, value) = (name.trim(), value.trim());
            let known = PROPERTIES.iter().find(|(known, _)| *known == name);
            let Some((_, property)) = known else {
                continue;
            };
            let read = if name == "font" {
                font(value)
            } else {
                property.read(value)
            };
            let current = &mut values[*property as usize];
            let is_stronger = current.is_none_or(|(important, _)| is_important || !important);
            if let Some(read) = read.filter(|_| is_stronger) {
                *current = Some((is_important, read));
            }
        }
        Self::of(|property| values[property as usize].map(|(_, value)| value))
    }

    fn of(value: impl Fn(Property) -> Option<Value>) -> Self {
        let is_zero = |property| value(property) == Some(Value::Zero);
        let size = |property| match value(property)? {
            Value::Zero => Some(0.0),
            Value::Size(size) => Some(size),
            Value::Inherited | Value::Other => None,
        };
        let has_zero_size = [Property::Width, Property::Height, Property::MaxWidth]
            .into_iter()
            .any(is_zero);
        Self {
            hides: is_zero(Property::Display)
                || is_zero(Property::Visibility)
                || is_zero(Property::Opacity)
                || is_zero(Property::MaxHeight)
                || has_zero_size && is_zero(Property::Overflow),
            text: match value(Property::FontSize) {
                Some(Value::Zero) => TextSize::Zero,
                Some(Value::Size(_) | Value::Other) => TextSize::Some,
                Some(Value::Inherited) | None => TextSize::Inherited,
            },
            width: size(Property::Width),
            height: size(Property::Height),
        }
    }
}

impl Property {
    /// Parses a value. `None` if it is invalid and the declaration is ignored.
    fn read(self, value: &str) -> Option<Value> {
        if GLOBAL.contains(&value) {
            return Some(Value::Inherited);
        }
        match self {
            Self::Display if value == "none" => Some(Value::Zero),
            Self::Display => DISPLAYS.contains(&value).then_some(Value::Other),
            Self::Visibility => match value {
                "hidden" | "collapse" => Some(Value::Zero),
                "visible" => Some(Value::Other),
                _ => None,
            },
            Self::Opacity => match number(value)? {
                (number, "" | "%") if number <= 0.0 => Some(Value::Zero),
                (_, "" | "%") => Some(Value::Other),
                _ => None,
            },
            Self::Overflow => match value {
                "visible" => Some(Value::Other),
                _ => Some(Value::Zero),
            },
            Self::FontSize => text_size(value),
            Self::Width | Self::Height | Self::MaxWidth | Self::MaxHeight => {
                length(value).or_else(|| SIZES.contains(&value).then_some(Value::Other))
            }
        }
    }
}

fn text_size(value: &str) -> Option<Value> {
    match number(value) {
        Some((number, unit)) if number != 0.0 && FONT_RELATIVE_UNITS.contains(&unit) => {
            Some(Value::Inherited)
        }
        Some(_) => length(value),
        None if matches!(value, "larger" | "smaller") => Some(Value::Inherited),
        None if TEXT_SIZES.contains(&value) || value.contains('(') => Some(Value::Other),
        None => None,
    }
}

/// The size in `font: italic 12px/1.5 Arial`.
fn font(value: &str) -> Option<Value> {
    let words = value.split_whitespace();
    let sizes = words.map(|word| word.split('/').next().unwrap_or_default());
    // A weight is a number without a unit.
    sizes.into_iter().find_map(text_size)
}

/// Parses a length that is not negative. Only zero needs no unit.
fn length(value: &str) -> Option<Value> {
    if value.contains('(') {
        return Some(Value::Other);
    }
    match number(value)? {
        (0.0, "") => Some(Value::Zero),
        (number, unit) if number >= 0.0 && UNITS.contains(&unit) => Some(if number == 0.0 {
            Value::Zero
        } else {
            Value::Size(number)
        }),
        _ => None,
    }
}

/// Splits a value into a number and its unit.
fn number(value: &str) -> Option<(f64, &str)> {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let end = value.find(|c| !is_of_number(c)).unwrap_or(value.len());
    let (digits, unit) = value.split_at(end);
    Some((digits.parse().ok()?, unit))
}

/// Removes the comments of a style. Quoted strings contain none.
fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut quote = None;
    let mut rest = style;
    while let Some(next) = rest.chars().next() {
        if quote.is_none() && rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
            out.push(' ');
            continue;
        }
        rest = &rest[next.len_utf8()..];
        match quote {
            Some(open) if next == open => quote = None,
            None if matches!(next, '"' | '\'') => quote = Some(next),
            Some(_) | None => {}
        }
        out.push(next);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_hide_are_recognized() {
        for style in [
            "display:none",
            "DISPLAY : None !IMPORTANT",
            "color:red;display:none;mso-hide:all",
            "mso-hide:all;display:none",
            "display:block;display:none",
            "display:none !important;display:block",
            "display:none;display:nonsense",
            "display:none;display:",
            "display/* a */:/* ; */none",
            "display:none;font-family:';display:block'",
            "visibility:hidden",
            "visibility:collapse",
            "opacity:0",
            "opacity:0.0",
            "opacity:.0",
            "opacity:0%",
            "opacity:0.00%",
            "opacity:-1",
            "opacity:1;opacity:0",
            "max-height:0",
            "max-height:0px",
            "max-height:0em",
            "max-height:0.0pt",
            "max-height:0%",
            "max-height:0vh",
            "max-height:0;max-height:12",
            "width:0;overflow:hidden",
            "height:0px;overflow:hidden",
            "overflow:hidden;height:0.0em",
            "overflow:clip;width:0%",
            "max-width:0;overflow-x:hidden",
        ] {
            assert!(Style::read(style).hides, "{style}");
        }
        for style in [
            "",
            "display",
            "display:block",
            "display:none;display:block",
            "display:none;display:table-cell !important",
            "display:none;DISPLAY:INLINE-BLOCK",
            "mso-hide:all",
            "visibility:hidden;visibility:visible",
            "opacity:0.5",
            "opacity:50%",
            "opacity:.01",
            "opacity:0;opacity:1",
            "opacity:00.5",
            "max-height:none",
            "max-height:0;max-height:100px",
            "max-height:10em",
            "width:0",
            "height:0",
            "height:0;overflow:visible",
            "width:100%;overflow:hidden",
            "height:auto;overflow:hidden",
            "min-height:0;overflow:hidden",
            "font-size:0",
            "-webkit-opacity:0",
            "background:url(data:a;display:none)",
            "font-family:'a;display:none;'",
            "/* display:none */",
        ] {
            assert!(!Style::read(style).hides, "{style}");
        }
    }

    #[test]
    fn text_sizes_are_recognized() {
        for (style, size) in [
            ("font-size:0", TextSize::Zero),
            ("font-size:0px", TextSize::Zero),
            ("font-size:0.0em", TextSize::Zero),
            ("font-size:0%", TextSize::Zero),
            ("font-size:14px;font-size:0", TextSize::Zero),
            ("font:0/0 a", TextSize::Zero),
            ("font:0px Arial", TextSize::Zero),
            ("font-size:0 !important;font-size:14px", TextSize::Zero),
            ("font-size:0;font-size:12", TextSize::Zero),
            ("font-size:1px", TextSize::Some),
            ("font-size:0.5pt", TextSize::Some),
            ("font-size:0;font-size:12px", TextSize::Some),
            (
                "font-size:0;font:italic bold 12px/30px Georgia",
                TextSize::Some,
            ),
            ("font:400 14px Arial", TextSize::Some),
            ("font-size:small", TextSize::Some),
            ("font-size:1rem", TextSize::Some),
            ("font-size:clamp(1px,2px,3px)", TextSize::Some),
            ("font-size:1em", TextSize::Inherited),
            ("font-size:120%", TextSize::Inherited),
            ("font-size:larger", TextSize::Inherited),
            ("font-size:inherit", TextSize::Inherited),
            ("color:red", TextSize::Inherited),
        ] {
            assert_eq!(Style::read(style).text, size, "{style}");
        }
    }

    #[test]
    fn reading_takes_time_proportional_to_the_length() {
        let began = std::time::Instant::now();
        for unit in ["a:b;", "/*", "(", "'", "display:none;", "/**/", "!"] {
            let style = unit.repeat((1 << 20) / unit.len());
            let _style = Style::read(&style);
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
