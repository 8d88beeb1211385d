//! The `cid:` URLs of HTML bodies: each must have an attachment with its content id, or the
//! recipient sees a broken image. Pure.

use percent_encoding::percent_decode_str;

use super::AcceptRefusal;
use super::render_draft::RenderedDraft;
use crate::issue::Issue;

/// Checks the HTML of a message and that of its recipients.
///
/// # Errors
/// The content ids that no attachment has.
pub(super) fn check(rendered: &RenderedDraft) -> Result<(), AcceptRefusal> {
    let attachments = &rendered.draft.attachments;
    let own = rendered.own.iter().filter_map(|own| own.html.as_ref());
    let mut unanswered: Vec<String> = Vec::new();
    for html in rendered.draft.html.iter().chain(own) {
        for id in content_ids(html) {
            let mut ids = attachments.iter().filter_map(|one| one.content_id.as_ref());
            if !ids.any(|given| *given == id) && !unanswered.contains(&id) {
                unanswered.push(id);
            }
            if unanswered.len() >= Issue::SHOWN_MAX {
                break;
            }
        }
    }
    if unanswered.is_empty() {
        return Ok(());
    }
    let issues = unanswered.into_iter().map(|id| {
        let shown: String = id.chars().take(100).collect();
        Issue::new(
            "html",
            format!("shows cid:{shown}, but no attachment has this contentId"),
        )
    });
    Err(AcceptRefusal::Invalid(issues.collect()))
}

const SCHEME: &str = "cid";
/// Attributes whose value a mail program loads.
const ATTRIBUTES: [&str; 5] = ["src", "background", "poster", "data", "href"];

/// The content ids that an HTML text shows: those in attributes that load something, and in
/// `url()` of styles. Other texts may contain `cid:`, too.
fn content_ids(html: &str) -> impl Iterator<Item = String> {
    html.match_indices(':').filter_map(|(colon, _)| {
        let at = colon.checked_sub(SCHEME.len())?;
        let scheme = &html.as_bytes()[at..colon];
        if !scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) {
            return None;
        }
        let (before, after) = (&html[..at], &html[colon + 1..]);
        is_loaded(before).then(|| {
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '<');
            let id = after.split(ends).next().unwrap_or_default();
            percent_decode_str(id).decode_utf8_lossy().into_owned()
        })
    })
}

/// Whether a URL after this text is one that a mail program loads.
fn is_loaded(before: &str) -> bool {
    let before = before.trim_end();
    let before = before
        .strip_suffix(['"', '\''])
        .unwrap_or(before)
        .trim_end();
    let before = before.strip_suffix("&quot;").unwrap_or(before);
    if let Some(rest) = before.strip_suffix('(') {
        return ends_with_word(rest, "url");
    }
    let Some(name) = before.strip_suffix('=') else {
        return false;
    };
    ATTRIBUTES
        .iter()
        .any(|word| ends_with_word(name.trim_end(), word))
}

/// Whether a text ends with a word that something else precedes.
fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else {
        return false;
    };
    let is_end = text.as_bytes()[at..].eq_ignore_ascii_case(word.as_bytes());
    let before = text.as_bytes()[..at].last();
    is_end && before.is_none_or(|byte| b" \t\r\n\"'/:;,(".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(html: &str) -> Vec<String> {
        content_ids(html).collect()
    }

    #[test]
    fn content_ids_are_found_where_mail_programs_load_them() {
        for html in [
            "<img src=\"cid:logo\">",
            "<img src='cid:logo'>",
            "<img src=cid:logo>",
            "<IMG SRC = \"CID:logo\" alt=x>",
            "<img alt=\"x\"src=\"cid:logo\">",
            "<img src=\" cid:logo \">",
            "<td background=\"cid:logo\">",
            "<p style=\"background:url(cid:logo)\">",
            "<p style=\"background: URL('cid:logo') no-repeat\">",
            "<p style=\"background:url(&quot;cid:logo\">",
            "<img src=\"cid:%6cogo\">",
        ] {
            assert_eq!(found(html), ["logo"], "{html}");
        }
        let two = "<img src=\"cid:a@example.com\"><img src=\"cid:b\">é<img src=\"cid:\u{e9}\">";
        assert_eq!(found(two), ["a@example.com", "b", "é"]);
    }

    #[test]
    fn other_texts_may_contain_the_scheme() {
        for html in [
            "cid:",
            "the URL cid:logo is of RFC 2392",
            "\"cid:logo\"",
            "acid:rain (cid:5)",
            "<a href=\"https://example.com/?cid=cid:5\">",
            "<p data-src-of=\"cid:logo\">",
            "é cid:x",
        ] {
            assert!(found(html).is_empty(), "{html}");
        }
    }
}
