//! Where the link stands in a body: at each `{{unsubscribeUrl}}`, where the author
//! put one; else in a paragraph at the end of the HTML's `body`, and on the last
//! line of a text. A link is of characters that mean nothing to HTML, so it is the
//! same in both.

use std::ops::Range;

/// The variable that stands for the link.
pub const VARIABLE: &str = "unsubscribeUrl";
/// What the variable renders to where a template is filled in: itself, since the
/// link is known only when the copy is made.
pub const PLACEHOLDER: &str = "{{unsubscribeUrl}}";
/// What previews show in its place.
pub const EXAMPLE_URL: &str = "https://example.com/unsubscribe";

/// How many `</body` are looked at, from the last one on, for one that is no
/// comment's.
const BODY_ENDS_MAX: usize = 8;

/// The HTML with the link.
pub(super) fn in_html(html: &str, url: &str) -> String {
    fill(html, url).unwrap_or_else(|| {
        let (before, after) = html.split_at(body_end(html).unwrap_or(html.len()));
        format!(
            "{before}<p style=\"text-align:center;font-size:12px\"><a href=\"{url}\">Unsubscribe</a></p>{after}"
        )
    })
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

/// Where the last `</body>` begins that is not within a comment.
fn body_end(html: &str) -> Option<usize> {
    let ends = html.rmatch_indices("</").map(|(at, _)| at);
    let mut ends = ends.filter(|at| is_body_end(&html.as_bytes()[at + 2..]));
    ends.by_ref()
        .take(BODY_ENDS_MAX)
        .find(|at| !is_within_comment(&html[..*at]))
}

fn is_body_end(name: &[u8]) -> bool {
    let (name, after) = name.split_at(name.len().min(4));
    name.eq_ignore_ascii_case(b"body")
        && after
            .first()
            .is_some_and(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace())
}

fn is_within_comment(before: &str) -> bool {
    before.rfind("<!--") > before.rfind("-->")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str =
        "<p style=\"text-align:center;font-size:12px\"><a href=\"U\">Unsubscribe</a></p>";

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
            assert_eq!(in_html(body, "U"), expected);
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
            assert_eq!(in_html(body, "U"), format!("{body}{LINK}"));
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
            ("<body>x</body", ""),
            ("<body>x</bod", ""),
            ("<body>x</", ""),
            ("<!-- </body>", ""),
            ("", ""),
        ] {
            let html = in_html(&format!("{before}{after}"), "U");
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
        assert_eq!(in_html(&html, "U"), format!("{html}{LINK}"));
        let names = "unsubscribeUrl ".repeat(200_000);
        assert!(in_html(&names, "U").ends_with(LINK));
    }
}
