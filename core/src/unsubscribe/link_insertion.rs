//! Where the link stands in a body: at each `{{unsubscribeUrl}}`, where the author
//! put one. Where none of these can be clicked or read (it stands in a comment, a style,
//! a hidden element: `shown`), it stands in a paragraph at the end of the HTML's `body`
//! too, and in a text without one on the last line. A link is of characters that mean
//! nothing to HTML, so it is the same in both.

use std::borrow::Cow;
use std::ops::Range;

use super::link_visibility;
use crate::issue::Issue;

/// The variable that stands for the link.
pub const VARIABLE: &str = "unsubscribeUrl";
/// What the variable renders to where a template is filled in: itself, since the
/// link is known only when the copy is made.
pub const PLACEHOLDER: &str = "{{unsubscribeUrl}}";
/// What previews show in its place.
pub const EXAMPLE_URL: &str = "https://example.com/unsubscribe";

/// The HTML with its variable where a reader can click the link. The same for all copies
/// of a message.
pub(super) fn in_all_copies(html: &str) -> String {
    // In one form everywhere, without white space, which would end an attribute; but not
    // where the braces beside one would be taken for its own.
    let plain = fill(html, PLACEHOLDER).filter(|plain| fill(plain, "") == fill(html, ""));
    let html = plain.map_or(Cow::Borrowed(html), Cow::Owned);
    let shown = link_visibility::read(&html, Some(PLACEHOLDER));
    if shown.has_link {
        return html.into_owned();
    }
    let (before, after) = html.split_at(shown.end);
    format!(
        "{before}<p style=\"text-align:center;font-size:12px\"><a href=\"{PLACEHOLDER}\">Unsubscribe</a></p>{after}"
    )
}

/// The HTML with the link. It is one that [`in_all_copies`] made.
pub(super) fn in_html(html: &str, url: &str) -> String {
    fill(html, url).unwrap_or_else(|| html.to_owned())
}

/// Whether a body has a place for the link.
#[must_use]
pub fn is_in(body: &str) -> bool {
    let mut places = body.match_indices(VARIABLE);
    places.any(|(start, name)| tag_around(body, start..start + name.len()).is_some())
}

/// What is wrong with a message whose body has a place for the link and that is sent in
/// no group.
#[must_use]
pub fn without_group() -> Issue {
    Issue::new(
        "unsubscribeGroupId",
        format!("is required where a body says {PLACEHOLDER}"),
    )
}

/// The text with the link.
pub(super) fn in_text(text: &str, url: &str) -> String {
    fill(text, url).unwrap_or_else(|| {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("{text}{end}\nUnsubscribe: {url}\n")
    })
}

/// The body with the link in each of its places; nothing where it has none.
fn fill(body: &str, url: &str) -> Option<String> {
    let mut filled = String::new();
    let mut done = 0;
    for (start, name) in body.match_indices(VARIABLE) {
        if let Some(tag) = tag_around(body, start..start + name.len()) {
            filled.push_str(&body[done..tag.start]);
            filled.push_str(url);
            done = tag.end;
        }
    }
    (done > 0).then(|| filled + &body[done..])
}

/// The braces around a name, two or three on each side, and what is between.
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

    fn placed(html: &str) -> String {
        in_html(&in_all_copies(html), "U")
    }

    #[test]
    fn the_link_stands_where_the_author_put_it() {
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
            assert_eq!(placed(body), expected);
            assert_eq!(in_text(body, "U"), expected);
        }
    }

    #[test]
    fn what_only_looks_like_the_variable_is_text() {
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
            assert_eq!(placed(body), format!("{body}{LINK}"));
            assert!(!is_in(body), "{body}");
        }
    }

    #[test]
    fn else_it_stands_at_the_end_of_the_body() {
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
            let html = placed(&format!("{before}{after}"));
            assert_eq!(html, format!("{before}{LINK}{after}"));
        }
    }

    #[test]
    fn and_on_the_last_line_of_a_text() {
        for text in ["Hello", "Hello\n"] {
            assert_eq!(in_text(text, "U"), "Hello\n\nUnsubscribe: U\n");
        }
    }

    #[test]
    fn a_body_full_of_ends_costs_no_more_than_reading_it_a_few_times() {
        let html = "<!--</body>".repeat(200_000);
        assert_eq!(placed(&html), format!("{LINK}{html}"));
        let names = "unsubscribeUrl ".repeat(200_000);
        assert!(placed(&names).ends_with(LINK));
        for open in ["<b>", "<p style=\"font-size:0\">", "<a href=x>", "<i></b>"] {
            let html = open.repeat(100_000) + &"</i>".repeat(100_000);
            assert!(placed(&html).contains(LINK), "{open}");
        }
    }

    #[test]
    fn a_link_that_nobody_can_click_is_not_the_only_one() {
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
            let html = placed(body);
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
            let html = placed(body);
            assert!(!html.contains(LINK), "{body}: {html}");
        }
    }

    /// Links that are hidden, lead elsewhere, show nothing or are in no page.
    const UNSEEN: &[&str] = &[
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
        // Of nothing but a pixel.
        "<a href=\"{{unsubscribeUrl}}\"><img width=1 height=1></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x height=\"1px\"></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img style=\"width:1px;height:1px\"></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img src=x width=0></a>",
        "<a href=\"{{unsubscribeUrl}}\"><img style=\"display:none\"> </a>",
        "<a href=\"{{unsubscribeUrl}}\"><span></span><!-- x --></a>",
        // In no page.
        "<html><head><a href=\"{{unsubscribeUrl}}\">x</a></head><body>y</body></html>",
        "<head>{{unsubscribeUrl}}</head><body>y</body>",
    ];

    const SEEN: &[&str] = &[
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
    fn styles_and_other_links_decide_what_is_seen() {
        for body in UNSEEN {
            let html = placed(body);
            assert!(html.contains(LINK), "{body}: {html}");
            assert!(!html.contains(VARIABLE), "{body}: {html}");
        }
        for body in SEEN {
            let html = placed(body);
            assert!(!html.contains(LINK), "{body}: {html}");
        }
    }

    #[test]
    fn what_is_added_stands_before_what_would_swallow_it() {
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
            let html = placed(&format!("{before}{after}"));
            assert_eq!(html, format!("{before}{LINK}{after}"));
        }
    }
}
