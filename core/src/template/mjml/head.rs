//! Adds the links to fonts as mjml does: for each font whose name a style contains.

/// The predefined fonts of mjml.
const FONTS: [(&str, &str); 5] = [
    (
        "Open Sans",
        "https://fonts.googleapis.com/css?family=Open+Sans:300,400,500,700",
    ),
    (
        "Droid Sans",
        "https://fonts.googleapis.com/css?family=Droid+Sans:300,400,500,700",
    ),
    (
        "Lato",
        "https://fonts.googleapis.com/css?family=Lato:300,400,500,700",
    ),
    (
        "Roboto",
        "https://fonts.googleapis.com/css?family=Roboto:300,400,500,700",
    ),
    (
        "Ubuntu",
        "https://fonts.googleapis.com/css?family=Ubuntu:300,400,500,700",
    ),
];
/// Fonts of a template. Each is searched in the whole HTML; 50 take 0.2 s for 1 MiB.
const FONTS_MAX: usize = 50;
/// The text after which the compiler prints its own links.
const LINKS_ANCHOR: &str =
    ".mj-outlook-group-fix { width:100% !important; }\n</style>\n<![endif]-->\n";

/// Adds links to the used fonts among `own` and mjml's predefined fonts.
///
/// # Errors
/// `own` has too many fonts.
pub(super) fn add_fonts(
    html: &mut String,
    own: &[(&str, &str)],
    inline_styles: &[&str],
) -> Result<(), String> {
    if own.len() > FONTS_MAX {
        return Err(format!("there are more than {FONTS_MAX} fonts"));
    }
    let mut fonts = FONTS.to_vec();
    for (name, href) in own {
        match fonts.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = href,
            None => fonts.push((name, href)),
        }
    }
    let body = html
        .find("<body")
        .and_then(|at| html.get(at..))
        .unwrap_or_default();
    let body = body.to_lowercase().replace("&quot;", "'");
    let styles: Vec<String> = inline_styles
        .iter()
        .map(|style| style.to_lowercase())
        .collect();
    fonts.retain(|(name, _)| {
        let name = name.to_lowercase();
        is_in_value(&body, &name) || styles.iter().any(|style| is_in_rule(style, &name))
    });
    let position = html.find(LINKS_ANCHOR).map(|at| at + LINKS_ANCHOR.len());
    if let Some(position) = position.filter(|_| !fonts.is_empty()) {
        let links = fonts.iter().map(|(_, href)| {
            format!("<link href=\"{href}\" rel=\"stylesheet\" type=\"text/css\">")
        });
        let imports = fonts
            .iter()
            .map(|(_, href)| format!("@import url({href});"));
        let links: String = links.collect();
        let imports: String = imports.collect();
        html.insert_str(position, &format!(
            "<!--[if !mso]><!-->{links}<style type=\"text/css\">{imports}</style><!--<![endif]-->"
        ));
    }
    Ok(())
}

/// Whether an attribute value contains the name of a font after `font-family:`.
fn is_in_value(html: &str, name: &str) -> bool {
    html.split('"').any(|value| {
        let family = value.split_once("font-family:");
        family.is_some_and(|(_, rest)| rest.contains(name))
    })
}

fn is_in_rule(style: &str, name: &str) -> bool {
    style.split("font-family:").skip(1).any(|rest| {
        let value = rest.split([';', '}']).next();
        value.is_some_and(|value| value.contains(name))
    })
}
