//! Splits a source into text and tags, for the template languages of all vendors: they agree
//! on braces and differ in what stands between them.

/// A piece of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourcePiece<'a> {
    Text(&'a str),
    SourceTag(SourceTag<'a>),
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceTag<'a> {
    /// With its braces.
    pub(super) source: &'a str,
    /// Where it begins, in bytes.
    pub(super) offset: usize,
    /// What stands between the braces and signs of white space control.
    pub(super) inner: &'a str,
    /// Whether it has three braces.
    pub(super) is_triple: bool,
    pub(super) is_comment: bool,
    /// Whether white space before it is removed.
    pub(super) trims_before: bool,
    /// Whether white space after it is removed.
    pub(super) trims_after: bool,
}

impl SourceTag<'_> {
    /// A tag with other content in the place of this one, as it treats white space.
    pub(super) fn with(&self, inner: &str) -> String {
        let (open, close) = match self.is_triple {
            true => ("{{{", "}}}"),
            false => ("{{", "}}"),
        };
        let before = if self.trims_before { "~" } else { "" };
        let after = if self.trims_after { "~" } else { "" };
        match self.is_triple {
            // White space control stands outside of the third brace.
            true => format!("{{{{{before}{{{inner}}}{after}}}}}"),
            false => format!("{open}{before}{inner}{after}{close}"),
        }
    }
}

/// Why a source cannot be split: where, and a sentence.
pub(super) type SplitError = (usize, &'static str);

/// Splits a source. `escapes` says whether a backslash before a tag makes it text.
pub(super) fn split(source: &str, escapes: bool) -> Result<Vec<SourcePiece<'_>>, SplitError> {
    let mut pieces = Vec::new();
    let (mut text_start, mut at) = (0, 0);
    while let Some(found) = source[at..].find("{{") {
        let open = at + found;
        let slashes = source[..open]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\');
        let slashes = slashes.count();
        if slashes > 0 && !escapes {
            return Err((
                open,
                "a backslash before a tag means something else in Waypost",
            ));
        }
        if slashes == 1 {
            at = open + 2;
            continue;
        }
        let (tag, end) = read_tag(source, open)?;
        if text_start < open {
            pieces.push(SourcePiece::Text(&source[text_start..open]));
        }
        pieces.push(SourcePiece::SourceTag(tag));
        (text_start, at) = (end, end);
    }
    if text_start < source.len() {
        pieces.push(SourcePiece::Text(&source[text_start..]));
    }
    Ok(pieces)
}

/// The tag that begins at `open`, and where it ends.
fn read_tag(source: &str, open: usize) -> Result<(SourceTag<'_>, usize), SplitError> {
    let rest = &source[open..];
    if rest.starts_with("{{{{") {
        return Err((open, "raw blocks (four braces) are not imported"));
    }
    let head = &rest[2..];
    let trims_before = head.starts_with('~');
    let head = head.strip_prefix('~').unwrap_or(head);
    let is_triple = head.starts_with('{');
    let is_comment = head.starts_with('!');
    let close = match (is_triple, head.starts_with("!--")) {
        (true, _) => triple_end(rest),
        (false, true) => rest.find("--").and_then(|_| comment_end(rest)),
        (false, false) => rest.find("}}").map(|found| found + 2),
    };
    let length = close.ok_or((open, "the tag is not closed"))?;
    let tag = &rest[..length];
    let inner = tag
        .trim_start_matches(['{', '~'])
        .trim_end_matches(['}', '~']);
    Ok((
        SourceTag {
            source: tag,
            offset: open,
            inner: inner.trim(),
            is_triple,
            is_comment,
            trims_before,
            trims_after: tag.ends_with("~}}"),
        },
        open + length,
    ))
}

/// The length of `{{{…}}}`, whose last brace but two may be followed by white space control.
fn triple_end(rest: &str) -> Option<usize> {
    let plain = rest.find("}}}").map(|found| found + 3);
    let trimming = rest.find("}~}}").map(|found| found + 4);
    [plain, trimming].into_iter().flatten().min()
}

fn comment_end(rest: &str) -> Option<usize> {
    let plain = rest.find("--}}").map(|found| found + 4);
    let trimming = rest.find("--~}}").map(|found| found + 5);
    [plain, trimming].into_iter().flatten().min()
}

/// Line and column of a place, both counted from 1.
pub(super) fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..offset];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    (line, before[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_together_are_the_source() {
        for source in [
            "",
            "a{{b}}c",
            "{{{a}}}{{~#if x~}} {{else}}{{/if}}",
            "{{! c }}{{!-- }} --}}x{{{~a}}}",
            r"\{{a}} \\{{b}} {{{c}~}} end",
            "ü{{ä}}\n{{b",
        ] {
            let Ok(pieces) = split(source, true) else {
                assert!(source.ends_with("{{b"));
                continue;
            };
            let whole: String = pieces
                .iter()
                .map(|piece| match piece {
                    SourcePiece::Text(text) => text,
                    SourcePiece::SourceTag(tag) => tag.source,
                })
                .collect();
            assert_eq!(whole, source);
        }
    }

    #[test]
    fn a_tag_is_written_as_it_was() {
        for source in ["{{a}}", "{{~a}}", "{{a~}}", "{{{a}}}", "{{~{a}~}}"] {
            let pieces = split(source, true).unwrap();
            let [SourcePiece::SourceTag(tag)] = &pieces[..] else {
                panic!("{source}: {pieces:?}");
            };
            assert_eq!((tag.inner, tag.with("a").as_str()), ("a", source));
        }
    }

    #[test]
    fn places_are_counted_in_characters() {
        assert_eq!(place("ü{{a}}", 2), (1, 2));
        assert_eq!(place("a\nbü{{a}}", 5), (2, 3));
    }
}
