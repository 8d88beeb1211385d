//! Where mjml 4.18 and the compiler (mrml 6.0.1) understand an attribute differently,
//! it is given to the compiler so that what comes out is what mjml makes of it.

use super::writer::value;

type AdaptedAttributes<'a> = Vec<(&'a str, String)>;

/// The compiler computes with pixels alone, and mjml with any number, whatever its unit.
/// Each unit is written as pixels and a fraction too small to count, by which it is
/// found again in what is printed.
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
    // mjml takes an empty address for none.
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
            let mut shown = attributes.iter_mut();
            let shown = shown.find(|(name, value)| *name == "thumbnails" && value == SUPPORTED);
            if let Some((_, value)) = shown {
                *value = "visible".to_owned();
            }
            if value(attributes, "tb-width").is_none() {
                attributes.push(("tb-width", THUMBNAIL_WIDTH.to_owned()));
            }
        }
        _ => {}
    }
}

/// What the compiler computes with besides paddings.
const SIZES: [(&str, &str); 6] = [
    ("mj-body", "width"),
    ("mj-button", "width"),
    ("mj-column", "width"),
    ("mj-divider", "width"),
    ("mj-group", "width"),
    ("mj-hero", "height"),
];

/// Elements from whose width the compiler takes borders.
const BORDERED: [&str; 4] = ["mj-column", "mj-image", "mj-section", "mj-wrapper"];
/// Behind the width of a border that is only there to compute with.
const COMPUTED: &str = ".000000009px ";

/// The compiler looks for the width of a border at its beginning alone, and takes another
/// border where it finds none.
fn with_width_first(border: &str) -> String {
    let width = border.split_whitespace().find_map(number).unwrap_or(0.0);
    let first = border.split_whitespace().next().unwrap_or_default();
    if first.strip_suffix("px").and_then(number).is_some() {
        return border.to_owned();
    }
    format!("{}{COMPUTED}{border}", width.trunc())
}

/// The compiler takes any value for a yes.
fn full_width(attributes: &mut AdaptedAttributes<'_>) {
    attributes.retain(|(name, value)| *name != "full-width" || value == "full-width");
}

/// How a carousel says that its thumbnails are shown where it works.
pub(super) const SUPPORTED: &str = "supported";

/// The width of thumbnails, which the compiler makes smaller where they are many.
const THUMBNAIL_WIDTH: &str = "110px";

/// The compiler separates the borders of a table that has one, and mjml those of a table
/// with space between its cells.
fn table(attributes: &mut AdaptedAttributes<'_>) {
    let spacing = value(attributes, "cellspacing").and_then(number);
    let border = value(attributes, "border").unwrap_or("none");
    if spacing.is_some_and(|spacing| spacing > 0.0) {
        let both = format!("{border};border-collapse:separate");
        set(attributes, "border", both);
    }
}

/// Of a width mjml reads the digits at its beginning. The compiler forgets the borders of
/// the sides.
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

/// mjml takes paddings and borders off the whole pixels of the width, and the compiler
/// paddings alone. Of two widths in a style the later counts.
fn button(attributes: &mut AdaptedAttributes<'_>) {
    let pixels = |name: &str| {
        let pixels = value(attributes, name)?.strip_suffix("px")?;
        pixels.parse::<f32>().ok()
    };
    let Some(width) = pixels("width") else {
        return;
    };
    let padding = value(attributes, "inner-padding").unwrap_or("10px 25px");
    let beside = beside(padding, "inner-padding", attributes);
    let transform = value(attributes, "text-transform").unwrap_or("none");
    let both = format!(
        "{transform};width:{}px",
        width.trunc() - beside - borders_beside(attributes)
    );
    set(attributes, "text-transform", both);
}

/// The compiler has another word for the mode, and prints no `border-radius`; what it
/// prints as the last of the same style is the vertical alignment.
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

/// An image in a hero is as wide as the paddings of both and its borders leave it; the
/// compiler forgets the paddings of the hero.
pub(super) fn image_in_hero(attributes: &mut AdaptedAttributes<'_>, hero_width: f32) {
    let padding = value(attributes, "padding").unwrap_or("10px 25px");
    let own = beside(padding, "padding", attributes) + borders_beside(attributes);
    let left = hero_width - own;
    let wanted = value(attributes, "width").and_then(number);
    if wanted.is_none_or(|wanted| wanted > left) {
        set(attributes, "width", format!("{left}px"));
    }
}

/// Pixels of border to the left and the right.
fn borders_beside(attributes: &AdaptedAttributes<'_>) -> f32 {
    let border = |side: &str| value(attributes, side).or(value(attributes, "border"));
    let sides = ["border-left", "border-right"].into_iter();
    sides
        .filter_map(|side| border(side)?.split_whitespace().find_map(number))
        .sum()
}

/// Pixels of padding to the left and the right.
pub(super) fn padding_beside(attributes: &AdaptedAttributes<'_>) -> f32 {
    let all = value(attributes, "padding").unwrap_or_default();
    beside(all, "padding", attributes)
}

fn beside(all: &str, name: &str, attributes: &AdaptedAttributes<'_>) -> f32 {
    let all: Vec<f32> = all.split_whitespace().filter_map(number).collect();
    let of = |side: &str, place: usize| {
        let own = value(attributes, &format!("{name}-{side}")).and_then(number);
        own.or(all.get(place).copied()).unwrap_or_default()
    };
    let (right, left) = match all.len() {
        0 | 1 => (0, 0),
        2 | 3 => (1, 1),
        _ => (1, 3),
    };
    of("right", right) + of("left", left)
}

/// The number at the beginning of a value.
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

/// What the compiler prints of a body and mjml does not, or otherwise.
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
    // In a group, columns without a width share it in whole percents.
    numbers(&html, ";width:", |width, _| {
        let columns = (100.0 / width).round();
        (columns <= 100.0 && 100.0 / columns == width).then(|| width.trunc().to_string())
    })
}

/// A CSS class for a social element whose icon stands to the right of its text.
pub(super) const ICON_RIGHT: &str = "`p`";

/// The compiler knows icons to the left alone.
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

/// Of pictures mjml takes whole pixels. A number that is short of one by a rounding error
/// is that one.
fn whole(width: f32, unit: &str) -> Option<String> {
    (!unit.starts_with('%')).then(|| (width + 0.001).trunc().to_string())
}

/// Writes numbers anew that stand behind `before`, as `anew` has them by what follows.
fn numbers(html: &str, before: &str, anew: impl Fn(f32, &str) -> Option<String>) -> String {
    let mut pieces = html.split(before);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(before);
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let number = digits.parse().ok();
        let number = number.and_then(|number| anew(number, rest));
        out.push_str(number.as_deref().unwrap_or(digits));
        out.push_str(rest);
    }
    out
}
