//! Adapts attributes that mjml 4.18 and the compiler (mrml 6.0.1) interpret differently, so
//! that the compiler's output equals mjml's.

use super::writer::value;

type AdaptedAttributes<'a> = Vec<(&'a str, String)>;

/// The compiler only computes with pixels, mjml with a number in any unit. Each unit is
/// written as pixels with a tiny fraction, which identifies the unit in the output.
const UNITS: [(&str, &str); 5] = [
    ("", ".000000000px"),
    ("%", ".000000001px"),
    ("em", ".000000002px"),
    ("rem", ".000000003px"),
    ("pt", ".000000004px"),
];

/// Adapts the attributes of an element.
pub(super) fn attributes(element: &str, attributes: &mut AdaptedAttributes<'_>) {
    for (name, value) in attributes.iter_mut() {
        if name.ends_with("color") {
            *value = long_color(value);
            continue;
        }
        let is_padding = name.starts_with("padding") || name.starts_with("inner-padding");
        let is_size = SIZES.contains(&(element, *name)) && (*name == "height" || is_number(value));
        if is_padding || is_size {
            *value = with_units(value);
        }
    }
    if BORDERED.contains(&element) {
        for (name, value) in attributes.iter_mut() {
            if ["border", "border-left", "border-right"].contains(name) {
                *value = with_width_first(value);
            }
        }
    }
    // mjml ignores an empty href.
    attributes.retain(|(name, value)| *name != "href" || !value.is_empty());
    match element {
        "mj-section" | "mj-wrapper" => full_width(attributes),
        "mj-image" => {
            full_width(attributes);
            image(attributes);
        }
        "mj-hero" => hero(attributes),
        "mj-button" => button(attributes),
        "mj-table" => table(attributes),
        "mj-carousel" => {
            let mut thumbnails = attributes.iter_mut();
            let thumbnails =
                thumbnails.find(|(name, value)| *name == "thumbnails" && value == SUPPORTED);
            if let Some((_, value)) = thumbnails {
                *value = "visible".to_owned();
            }
            if value(attributes, "tb-width").is_none() {
                attributes.push(("tb-width", THUMBNAIL_WIDTH.to_owned()));
            }
        }
        _ => {}
    }
}

/// The attributes, in addition to paddings, with which the compiler computes.
const SIZES: [(&str, &str); 6] = [
    ("mj-body", "width"),
    ("mj-button", "width"),
    ("mj-column", "width"),
    ("mj-divider", "width"),
    ("mj-group", "width"),
    ("mj-hero", "height"),
];

/// Elements from whose width the compiler subtracts borders.
const BORDERED: [&str; 4] = ["mj-column", "mj-image", "mj-section", "mj-wrapper"];
/// Marks the width of a border that was added for the computation only.
const COMPUTED: &str = ".000000009px ";

/// The compiler reads the width of a border only at its start. If there is none, it uses
/// another border.
fn with_width_first(border: &str) -> String {
    let width = border.split_whitespace().find_map(number).unwrap_or(0.0);
    let first = border.split_whitespace().next().unwrap_or_default();
    if first.strip_suffix("px").and_then(number).is_some() {
        return border.to_owned();
    }
    format!("{}{COMPUTED}{border}", width.trunc())
}

/// The compiler treats any value of `full-width` as true.
fn full_width(attributes: &mut AdaptedAttributes<'_>) {
    attributes.retain(|(name, value)| *name != "full-width" || value == "full-width");
}

/// The value of `thumbnails` that shows them only if the mail program supports carousels.
pub(super) const SUPPORTED: &str = "supported";

/// The width of thumbnails. The compiler reduces it if there are many.
const THUMBNAIL_WIDTH: &str = "110px";

/// The compiler sets `border-collapse:separate` for a table with a border, mjml for a table
/// with cell spacing.
fn table(attributes: &mut AdaptedAttributes<'_>) {
    let spacing = value(attributes, "cellspacing").and_then(number);
    let border = value(attributes, "border").unwrap_or("none");
    if spacing.is_some_and(|spacing| spacing > 0.0) {
        let both = format!("{border};border-collapse:separate");
        set(attributes, "border", both);
    }
}

/// mjml reads the digits at the start of a width. The compiler ignores the borders of
/// single sides.
fn image(attributes: &mut AdaptedAttributes<'_>) {
    if let Some(width) = value(attributes, "width") {
        let digits = width.find(|c: char| !c.is_ascii_digit());
        let digits = width.get(..digits.unwrap_or(width.len()));
        let width = format!("{}px", digits.unwrap_or_default());
        attributes.retain(|(name, _)| *name != "width");
        if width != "px" {
            attributes.push(("width", width));
        }
    }
    let mut borders = value(attributes, "border").unwrap_or("0").to_owned();
    for side in ["border-left", "border-right", "border-top", "border-bottom"] {
        if let Some(border) = value(attributes, side) {
            borders.push_str(&format!(";{side}:{border}"));
        }
    }
    if borders.contains(';') {
        set(attributes, "border", borders);
    }
}

fn set(attributes: &mut AdaptedAttributes<'_>, name: &'static str, value: String) {
    attributes.retain(|(known, _)| *known != name);
    attributes.push((name, value));
}

/// mjml subtracts paddings and borders from the whole pixels of the width, the compiler only
/// paddings. The later of two widths in a style counts.
fn button(attributes: &mut AdaptedAttributes<'_>) {
    let pixels = |name: &str| {
        let pixels = value(attributes, name)?.strip_suffix("px")?;
        pixels.parse::<f32>().ok()
    };
    let Some(width) = pixels("width") else {
        return;
    };
    let padding = value(attributes, "inner-padding").unwrap_or("10px 25px");
    let horizontal = horizontal(padding, "inner-padding", attributes);
    let transform = value(attributes, "text-transform").unwrap_or("none");
    let both = format!(
        "{transform};width:{}px",
        width.trunc() - horizontal - horizontal_borders(attributes)
    );
    set(attributes, "text-transform", both);
}

/// The compiler has another name for the mode. It does not print `border-radius`, so it is
/// appended to the vertical alignment, the last property of the same style.
fn hero(attributes: &mut AdaptedAttributes<'_>) {
    for (_, value) in attributes.iter_mut().filter(|(name, _)| *name == "mode") {
        *value = match value.as_str() {
            "fluid-height" => "fluid".to_owned(),
            _ => "fixed-height".to_owned(),
        };
    }
    if let Some(radius) = value(attributes, "border-radius").map(str::to_owned) {
        let vertical = value(attributes, "vertical-align").unwrap_or("top");
        let both = format!("{vertical};border-radius:{radius}");
        set(attributes, "vertical-align", both);
    }
}

/// The width of an image in a hero is limited by the paddings of both and by its borders.
/// The compiler ignores the paddings of the hero.
pub(super) fn image_in_hero(attributes: &mut AdaptedAttributes<'_>, hero_width: f32) {
    let padding = value(attributes, "padding").unwrap_or("10px 25px");
    let own = horizontal(padding, "padding", attributes) + horizontal_borders(attributes);
    let left = hero_width - own;
    let given = value(attributes, "width").and_then(number);
    if given.is_none_or(|given| given > left) {
        set(attributes, "width", format!("{left}px"));
    }
}

/// The width of the left and right borders in pixels.
fn horizontal_borders(attributes: &AdaptedAttributes<'_>) -> f32 {
    let border = |side: &str| value(attributes, side).or(value(attributes, "border"));
    let sides = ["border-left", "border-right"].into_iter();
    sides
        .filter_map(|side| border(side)?.split_whitespace().find_map(number))
        .sum()
}

/// The width of the left and right paddings in pixels.
pub(super) fn horizontal_padding(attributes: &AdaptedAttributes<'_>) -> f32 {
    let all = value(attributes, "padding").unwrap_or_default();
    horizontal(all, "padding", attributes)
}

fn horizontal(all: &str, name: &str, attributes: &AdaptedAttributes<'_>) -> f32 {
    let all: Vec<f32> = all.split_whitespace().filter_map(number).collect();
    let of = |side: &str, index: usize| {
        let own = value(attributes, &format!("{name}-{side}")).and_then(number);
        own.or(all.get(index).copied()).unwrap_or_default()
    };
    let (right, left) = match all.len() {
        0 | 1 => (0, 0),
        2 | 3 => (1, 1),
        _ => (1, 3),
    };
    of("right", right) + of("left", left)
}

/// The number at the start of a value.
pub(super) fn number(value: &str) -> Option<f32> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.');
    value.get(..end.unwrap_or(value.len()))?.parse().ok()
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

fn with_units(value: &str) -> String {
    let parts = value.split_whitespace();
    let parts = parts.map(|part| {
        let encoded = UNITS.iter().find_map(|(unit, pixels)| {
            let number = part.strip_suffix(unit)?;
            is_number(number).then(|| format!("{number}{pixels}"))
        });
        encoded.unwrap_or_else(|| part.to_owned())
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// `#abc` as `#aabbcc`.
fn long_color(color: &str) -> String {
    let digits = color
        .strip_prefix('#')
        .filter(|digits| digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits {
        Some(digits) => std::iter::once('#')
            .chain(digits.chars().flat_map(|digit| [digit, digit]))
            .collect(),
        None => color.to_owned(),
    }
}

/// Corrects the parts of the compiled HTML that differ from mjml's.
pub(super) fn compiled(html: &str) -> String {
    let mut html = icons_right(html);
    for (unit, pixels) in UNITS {
        html = html.replace(pixels, unit);
    }
    let mut pieces = html.split(COMPUTED).peekable();
    let mut printed = String::with_capacity(html.len());
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        let digits = |c: char| c.is_ascii_digit() && !last;
        printed.push_str(piece.trim_end_matches(digits));
    }
    let html = printed
        .replace(" bgcolor=\"none\"", "")
        .replace("@media screen, yahoo {", "@media screen yahoo {");
    let html = numbers(
        &html,
        "mso-padding-bottom-alt:0;padding-bottom:",
        |ratio, _| Some(format!("{}%", ratio.round())),
    );
    let html = numbers(&html, " width=\"", whole);
    let html = numbers(&html, "<td style=\"width:", whole);
    let html = numbers(
        &html,
        "<td class=\"mj-full-width-mobile\" style=\"width:",
        whole,
    );
    // In a group, columns without a width get equal shares in whole percents.
    numbers(&html, ";width:", |width, _| {
        let columns = (100.0 / width).round();
        (columns <= 100.0 && 100.0 / columns == width).then(|| width.trunc().to_string())
    })
}

/// The CSS class that marks a social element with its icon to the right of its text.
pub(super) const ICON_RIGHT: &str = "`p`";

/// Moves icons to the right of their text. The compiler only supports icons to the left.
fn icons_right(html: &str) -> String {
    const BEGIN: &str = "<tr class=\"`p`";
    const ICON_END: &str = "</table></td>";
    let mut pieces = html.split(BEGIN);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (classes, rest) = piece.split_once('>').unwrap_or((piece, ""));
        let (icon, rest) = rest.split_once(ICON_END).unwrap_or(("", rest));
        let (text, rest) = rest.split_once("</tr>").unwrap_or(("", rest));
        let classes = classes.trim_start();
        out.extend([
            "<tr class=\"",
            classes,
            ">",
            text,
            icon,
            ICON_END,
            "</tr>",
            rest,
        ]);
    }
    out
}

/// mjml uses whole pixels for images. A number slightly below a whole number because of
/// rounding errors counts as that number.
fn whole(width: f32, unit: &str) -> Option<String> {
    (!unit.starts_with('%')).then(|| (width + 0.001).trunc().to_string())
}

/// Replaces the numbers after each `before`. `replace` gets a number and the text after it,
/// and returns `None` if the number stays.
fn numbers(html: &str, before: &str, replace: impl Fn(f32, &str) -> Option<String>) -> String {
    let mut pieces = html.split(before);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(before);
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let number = digits.parse().ok();
        let number = number.and_then(|number| replace(number, rest));
        out.push_str(number.as_deref().unwrap_or(digits));
        out.push_str(rest);
    }
    out
}
