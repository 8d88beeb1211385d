//! Inserts the unsubscribe link into a body. The link replaces each `{{unsubscribeUrl}}` that
//! the author wrote. If the reader of the HTML can click or read none of them (they are in
//! a comment, a style, a hidden element: `link_visibility`), a paragraph with the link is
//! added at the end of `<body>`. A text without the variable gets the link on a last line.
//! The URL has no characters that HTML would have to escape, so both bodies use the same.

use std::borrow::Cow;
use std::ops::Range;

use super::link_visibility;
use crate::issue::Issue;

/// The name of the template variable for the link.
pub const VARIABLE: &str = "unsubscribeUrl";
/// The value of the variable when a template is rendered. The worker replaces it with the
/// link of each recipient later.
pub const PLACEHOLDER: &str = "{{unsubscribeUrl}}";
/// The value of the variable in previews.
pub const EXAMPLE_URL: &str = "https://example.com/unsubscribe";

/// Returns the HTML with at least one placeholder that the reader can click or read.
pub(super) fn with_placeholder(html: &str) -> String {
    // Every variable gets the same form, without white space, because white space ends an
    // unquoted attribute value. The form stays if braces beside a variable would then be
    // read as its own.
    let normalized = replace_variable(html, PLACEHOLDER)
        .filter(|normalized| replace_variable(normalized, "") == replace_variable(html, ""));
    let html = normalized.map_or(Cow::Borrowed(html), Cow::Owned);
    let scan = link_visibility::scan(&html, Some(PLACEHOLDER));
    if scan.has_link {
        return html.into_owned();
    }
    let (before, after) = html.split_at(scan.append_position);
    format!(
        "{before}<p style=\"text-align:center;font-size:12px\"><a href=\"{PLACEHOLDER}\">Unsubscribe</a></p>{after}"
    )
}

/// Replaces the placeholders of an HTML body from [`with_placeholder`] with the link.
pub(super) fn insert_in_html(html: &str, url: &str) -> String {
    replace_variable(html, url).unwrap_or_else(|| html.to_owned())
}

/// Whether a body contains the variable.
#[must_use]
pub fn has_placeholder(body: &str) -> bool {
    let mut names = body.match_indices(VARIABLE);
    names.any(|(start, name)| tag_around(body, start..start + name.len()).is_some())
}

/// The issue of a message whose body contains the variable and that names no group.
#[must_use]
pub fn group_required() -> Issue {
    Issue::new(
        "unsubscribeGroupId",
        format!("is required if a body contains {PLACEHOLDER}"),
    )
}

/// Replaces the variables of a text with the link, or adds a last line with it.
pub(super) fn insert_in_text(text: &str, url: &str) -> String {
    replace_variable(text, url).unwrap_or_else(|| {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("{text}{end}\nUnsubscribe: {url}\n")
    })
}

/// Replaces each variable with `url`. `None` if the body has no variable.
fn replace_variable(body: &str, url: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut done = 0;
    for (start, name) in body.match_indices(VARIABLE) {
        if let Some(tag) = tag_around(body, start..start + name.len()) {
            replaced.push_str(&body[done..tag.start]);
            replaced.push_str(url);
            done = tag.end;
        }
    }
    (done > 0).then(|| replaced + &body[done..])
}

/// The range from the opening to the closing braces around a name, two or three on each
/// side. `None` if it has fewer.
fn tag_around(body: &str, name: Range<usize>) -> Option<Range<usize>> {
    let before = body[..name.start].trim_end();
    let after = body[name.end..].trim_start();
    let opening = before
        .bytes()
        .rev()
        .take(3)
        .take_while(|byte| *byte == b'{');
    let closing = after.bytes().take(3).take_while(|byte| *byte == b'}');
    let braces = opening.count().min(closing.count());
    (braces >= 2).then(|| before.len() - braces..body.len() - after.len() + braces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str =
        "<p style=\"text-align:center;font-size:12px\"><a href=\"U\">Unsubscribe</a></p>";

    fn inserted(html: &str) -> String {
        insert_in_html(&with_placeholder(html), "U")
    }

    #[test]
    fn the_link_replaces_the_variable() {
        for (body, expected) in [
            (
                "<a href=\"{{unsubscribeUrl}}\">x</a>",
                "<a href=\"U\">x</a>",
            ),
            ("{{ unsubscribeUrl }} {{{unsubscribeUrl}}}", "U U"),
            ("{{{ unsubscribeUrl }}}{{\n\tunsubscribeUrl}}", "UU"),
            ("{{{unsubscribeUrl}} {{unsubscribeUrl}}}", "{U U}"),
            ("{{{{unsubscribeUrl}}}}", "{U}"),
            ("ä{{unsubscribeUrl}}ö</body>", "äUö</body>"),
        ] {
            assert_eq!(inserted(body), expected);
            assert_eq!(insert_in_text(body, "U"), expected);
        }
    }

    #[test]
    fn text_that_only_resembles_the_variable_stays() {
        for body in [
            "unsubscribeUrl",
            "{unsubscribeUrl}",
            "{{unsubscribeUrl}",
            "{{unsubscribeUrls}}",
            "{{myunsubscribeUrl}}",
            "{{unsubscribeurl}}",
            "{{unsubscribeUrl.x}}",
            "{ {unsubscribeUrl}}",
        ] {
            assert_eq!(inserted(body), format!("{body}{LINK}"));
            assert!(!has_placeholder(body), "{body}");
        }
    }

    #[test]
    fn html_without_the_variable_gets_the_link_at_its_end() {
        for (before, after) in [
            ("<body>x", "</body></html>"),
            ("<BODY>x", "</BODY>"),
            ("x", "</bOdY\n>"),
            ("</body>x", "</body>"),
            ("<body>x", "</body><!-- </body> -->"),
            (
                "<body>x",
                "</body></html><!--[if mso]></body><![endif]--><!-- -->",
            ),
            ("<!-- a -->x", "</body>"),
            ("<p>no body</p>", ""),
            ("<bodyguard></bodyguard>", ""),
            ("<body>x", "</body"),
            ("<body>x", "</bod"),
            ("<body>x", "</"),
            ("", "<!-- </body>"),
            ("", ""),
        ] {
            let html = inserted(&format!("{before}{after}"));
            assert_eq!(html, format!("{before}{LINK}{after}"));
        }
    }

    #[test]
    fn text_without_the_variable_gets_the_link_on_a_last_line() {
        for text in ["Hello", "Hello\n"] {
            assert_eq!(insert_in_text(text, "U"), "Hello\n\nUnsubscribe: U\n");
        }
    }

    #[test]
    fn hostile_bodies_take_time_proportional_to_their_length() {
        let html = "<!--</body>".repeat(200_000);
        assert_eq!(inserted(&html), format!("{LINK}{html}"));
        let names = "unsubscribeUrl ".repeat(200_000);
        assert!(inserted(&names).ends_with(LINK));
        for open in ["<b>", "<p style=\"font-size:0\">", "<a href=x>", "<i></b>"] {
            let html = open.repeat(100_000) + &"</i>".repeat(100_000);
            assert!(inserted(&html).contains(LINK), "{open}");
        }
    }

    #[test]
    fn a_hidden_link_is_not_the_only_one() {
        for body in [
            "<!-- {{unsubscribeUrl}} -->x",
            "<!--[if mso]><a href=\"{{unsubscribeUrl}}\">x</a><![endif]-->x",
            "<a title=\"{{unsubscribeUrl}}\" href=\"https://e.com\">x</a>",
            "<a href=\"https://e.com?u={{unsubscribeUrl}}\">x</a>",
            "<a href=\"https://e.com\" href=\"{{unsubscribeUrl}}\">x</a>",
            "<a href=\"{{unsubscribeUrl}}\"></a>",
            "<a href=\"{{unsubscribeUrl}}\"> &nbsp;&zwnj;</a>",
            "<a href=\"{{unsubscribeUrl}}\" style=\"display: none\">x</a>",
            "<a href=\"{{unsubscribeUrl}}\" hidden>x</a>",
            "<div style=\"color:red;DISPLAY:none !important\"><a href=\"{{unsubscribeUrl}}\">x</a></div>",
            "<div hidden><div></div><a href=\"{{unsubscribeUrl}}\">x</a></div>",
            "<link href=\"{{unsubscribeUrl}}\"><img src=\"{{unsubscribeUrl}}\">",
            "<style>a{b:url({{unsubscribeUrl}})}</style>x",
            "<script>\"{{unsubscribeUrl}}\"</script>x",
            "<head><title>{{unsubscribeUrl}}</title></head><body>x</body>",
            "<textarea>{{unsubscribeUrl}}</textarea>x",
            "<template><a href=\"{{unsubscribeUrl}}\">x</a></template>x",
            "<select><option>{{unsubscribeUrl}}</option></select>x",
            "<noscript><a href=\"{{unsubscribeUrl}}\">x</a></noscript>x",
            "<details><a href=\"{{unsubscribeUrl}}\">x</a></details>x",
            "x<a href=\"{{unsubscribeUrl}}\"",
        ] {
            let html = inserted(body);
            assert!(html.contains(LINK), "{body}: {html}");
            assert!(!html.contains(VARIABLE), "{body}: {html}");
        }
        for body in [
            "<a href=\"{{unsubscribeUrl}}\">x</a>",
            "<A HREF='{{ unsubscribeUrl }}'><b>x</b></A>",
            "<a href={{unsubscribeUrl}}>x</a>",
            "<a href=\" {{unsubscribeUrl}}#top\"><img src=x></a>",
            "<p hidden>x<div><a href=\"{{unsubscribeUrl}}\">x</a></div>",
            "<div hidden>x</div>{{unsubscribeUrl}}",
            "<!--[if !mso]><!--><a href=\"{{unsubscribeUrl}}\">x</a><!--<![endif]-->",
        ] {
            let html = inserted(body);
            assert!(!html.contains(LINK), "{body}: {html}");
        }
    }

    /// Links that are hidden, are inside another link, have no visible content or are
    /// outside the page.
    const INVISIBLE: &[&str] = &[
        // Hidden by a style.
        "<a href=\"{{unsubscribeUrl}}\" style=\"font-size:0\">x</a>",
        "<p style=\"font-size:0px\">a<span>b<a href=\"{{unsubscribeUrl}}\">x</a></span></p>",
        "<td style=\"font-size:0\"><a style=\"font-size:1em\" href=\"{{unsubscribeUrl}}\">x</a></td>",
        "<p style=\"font:0/0 a\">{{unsubscribeUrl}}</p>",
        "<div style=\"opacity:0.0\"><a href=\"{{unsubscribeUrl}}\">x</a></div>",
        "<div style=\"opacity:0%\">{{unsubscribeUrl}}</div>",
        "<div style=\"height:0;overflow:hidden\"><a href=\"{{unsubscribeUrl}}\">x</a></div>",
        "<div style=\"width:0pt;overflow:hidden\">{{unsubscribeUrl}}</div>",
        "<div style=\"max-height:0em\"><a href=\"{{unsubscribeUrl}}\">x</a></div>",
        "<span style=\"display:none;mso-hide:all\">{{unsubscribeUrl}}</span>",
        "<p style=\"display:none\" style=\"display:block\">{{unsubscribeUrl}}</p>",
        "<p hidden=\"false\">{{unsubscribeUrl}}</p>",
        // In another link.
        "<a href=\"https://e.com\">{{unsubscribeUrl}}</a>",
        "<a href=\"https://e.com\">a<a href=\"{{unsubscribeUrl}}\">x</a></a>",
        "<a href=\"https://e.com\"><b><i>{{unsubscribeUrl}}</i></b></a>",
        // With a pixel as the only content.
        "<a href=\"{{unsubscribeUrl}}\"><img width=1 height=1></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x height=\"1px\"></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img style=\"width:1px;height:1px\"></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x width=0></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img style=\"display:none\"> </a>",
        "<a href=\"{{unsubscribeUrl}}\"><span></span><!-- x --></a>",
        // In the head.
        "<html><head><a href=\"{{unsubscribeUrl}}\">x</a></head><body>y</body></html>",
        "<head>{{unsubscribeUrl}}</head><body>y</body>",
    ];

    const VISIBLE: &[&str] = &[
        "<p style=\"display:none;display:block\">{{unsubscribeUrl}}</p>",
        "<p style=\"display:block\" style=\"display:none\">{{unsubscribeUrl}}</p>",
        "<div style=\"opacity:0.5\"><a href=\"{{unsubscribeUrl}}\">x</a></div>",
        "<style>@media (max-width:1px){a{display:none}}</style><a href=\"{{unsubscribeUrl}}\">x</a>",
        "<td style=\"font-size:0px\"><div style=\"font-size:13px\"><a href=\"{{unsubscribeUrl}}\">x</a></div></td>",
        "<td style=\"font-size:0\"><a href=\"{{unsubscribeUrl}}\"><img src=x width=120 height=30></a></td>",
        "<td style=\"font-size:0\"><font size=2>{{unsubscribeUrl}}</font></td>",
        "<p style=\"font-size:0\">a</p><p>{{unsubscribeUrl}}</p>",
        "<p style=\"font-size:0\">a<p>{{unsubscribeUrl}}",
        "<td style=\"font-size:0\">a<td>{{unsubscribeUrl}}</td>",
        "<div style=\"font-size:0\"><span></div><p>{{unsubscribeUrl}}</p>",
        "<div style=\"height:0\">{{unsubscribeUrl}}</div>",
        "<span style=\"mso-hide:all\">{{unsubscribeUrl}}</span>",
        "<a name=\"top\">a<a href=\"{{unsubscribeUrl}}\">x</a>",
        "<a href=\"https://e.com\">a</a> <a href=\"{{unsubscribeUrl}}\">x</a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x width=100% height=30></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x width=1 style=\"width:90px\"></a>",
        "<head><title>a</title><body>{{unsubscribeUrl}}</body>",
    ];

    #[test]
    fn links_hidden_by_styles_or_other_links_are_recognized() {
        for body in INVISIBLE {
            let html = inserted(body);
            assert!(html.contains(LINK), "{body}: {html}");
            assert!(!html.contains(VARIABLE), "{body}: {html}");
        }
        for body in VISIBLE {
            let html = inserted(body);
            assert!(!html.contains(LINK), "{body}: {html}");
        }
    }

    #[test]
    fn the_link_is_added_before_an_unclosed_construct() {
        for (before, after) in [
            ("x", "<!-- open"),
            ("x", "<!-- open --"),
            ("<body>x", "<!-- open </body></html>"),
            ("x", "<![endif"),
            ("x", "<?xml"),
            ("x", "<style>a{}"),
            ("x", "<script>a</body>"),
            ("x", "<textarea>a</body></html>"),
            ("x", "<title>a"),
            ("x", "<template><p>a</body>"),
            ("x", "<select><option>a</body></html>"),
            ("x", "<noscript>a"),
            ("x", "<div style=\"display:none\">a<div></div>"),
            ("x", "<a href=\"https://e.com/>a</a>"),
            ("x", "<a href=\"https://e.com/\" "),
            ("x", "<p"),
            ("x", "<"),
            ("x", "<plaintext>a</plaintext>b"),
            ("ä<!-- a --><style>b</style>\r\n1 < 2", ""),
            ("x<!-->y<!--->z", ""),
            ("<div hidden>a</div>x", ""),
            ("<p style=\"display:none\">a<p>x", ""),
            ("<template>a</body></template>x", "</body>"),
        ] {
            let html = inserted(&format!("{before}{after}"));
            assert_eq!(html, format!("{before}{LINK}{after}"));
        }
    }
}
