//! Where mjml 4.18 and the compiler (mrml 6.0.1) understand an attribute differently,
//! it is given to the compiler so that what comes out is what mjml makes of it.

use super::writer::value;

type Attributes<'a> = Vec<(&'a str, String)>;

/// Adapts the attributes of an element.
pub(super) fn attributes(element: &str, attributes: &mut Attributes<'_>) {
    for (name, value) in attributes.iter_mut() {
        if name.ends_with("color") {
            *value = long_color(value);
        } else if name.starts_with("padding") || name.starts_with("inner-padding") {
            *value = with_units(value);
        }
    }
    if ["mj-section", "mj-wrapper", "mj-image"].contains(&element) {
        // The compiler takes any value for a yes.
        attributes.retain(|(name, value)| *name != "full-width" || value == "full-width");
    }
    if element == "mj-image" {
        let width = attributes.iter_mut().find(|(name, _)| *name == "width");
        if let Some((_, width)) = width.filter(|(_, width)| is_number(width)) {
            width.push_str("px");
        }
    }
    if element == "mj-hero" {
        hero(attributes);
    }
    if element == "mj-button" {
        button(attributes);
    }
}

/// The compiler takes paddings off the width of the link, and mjml borders as well. Of
/// two widths in a style the later counts.
fn button(attributes: &mut Attributes<'_>) {
    let pixels = |name: &str| {
        let pixels = value(attributes, name)?.strip_suffix("px")?;
        pixels.parse::<f32>().ok()
    };
    let border = |side: &str| value(attributes, side).or(value(attributes, "border"));
    let borders: f32 = ["border-left", "border-right"]
        .into_iter()
        .filter_map(|side| border(side)?.split_whitespace().find_map(number))
        .sum();
    let Some(width) = pixels("width").filter(|_| borders > 0.0) else {
        return;
    };
    let padding = value(attributes, "inner-padding").unwrap_or("10px 25px");
    let beside = beside(padding, "inner-padding", attributes);
    let transform = value(attributes, "text-transform").unwrap_or("none");
    let both = format!("{transform};width:{}px", width - beside - borders);
    attributes.retain(|(name, _)| *name != "text-transform");
    attributes.push(("text-transform", both));
}

/// The compiler has another word for the mode, and prints no `border-radius`; what it
/// prints as the last of the same style is the vertical alignment.
fn hero(attributes: &mut Attributes<'_>) {
    for (_, value) in attributes.iter_mut().filter(|(name, _)| *name == "mode") {
        *value = match value.as_str() {
            "fluid-height" => "fluid".to_owned(),
            _ => "fixed-height".to_owned(),
        };
    }
    if let Some(radius) = value(attributes, "border-radius").map(str::to_owned) {
        let vertical = value(attributes, "vertical-align").unwrap_or("top");
        let both = format!("{vertical};border-radius:{radius}");
        attributes.retain(|(name, _)| *name != "vertical-align");
        attributes.push(("vertical-align", both));
    }
}

/// An image in a hero is as wide as the paddings of both leave it; the compiler forgets
/// those of the hero.
pub(super) fn image_in_hero(attributes: &mut Attributes<'_>, hero_width: f32) {
    let default =
        |side: &str| value(attributes, side).is_none() && value(attributes, "padding").is_none();
    let own = if default("padding-left") {
        50.0
    } else {
        padding_beside(attributes)
    };
    let left = hero_width - own;
    let wanted = value(attributes, "width").and_then(number);
    if wanted.is_none_or(|wanted| wanted > left) {
        attributes.retain(|(name, _)| *name != "width");
        attributes.push(("width", format!("{left}px")));
    }
}

/// Pixels of padding to the left and the right.
pub(super) fn padding_beside(attributes: &Attributes<'_>) -> f32 {
    let all = value(attributes, "padding").unwrap_or_default();
    beside(all, "padding", attributes)
}

fn beside(all: &str, name: &str, attributes: &Attributes<'_>) -> f32 {
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

/// The compiler computes with no number without a unit, and mjml with any.
fn with_units(value: &str) -> String {
    let parts = value.split_whitespace();
    let parts = parts.map(|part| {
        if is_number(part) {
            format!("{part}px")
        } else {
            part.to_owned()
        }
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
    const FLUID: &str = "mso-padding-bottom-alt:0;padding-bottom:";
    let html = html.replace(" bgcolor=\"none\"", "");
    let mut pieces = html.split(FLUID);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(FLUID);
        let (ratio, rest) = piece.split_once(';').unwrap_or((piece, ""));
        match ratio.parse::<f32>() {
            Ok(ratio) => out.push_str(&format!("{}%;{rest}", ratio.round())),
            Err(_) => out.push_str(piece),
        }
    }
    out
}
