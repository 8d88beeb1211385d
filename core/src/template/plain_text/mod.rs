//! Makes the text of a version from its HTML, when its author gives none. The HTML is still
//! a template: its Handlebars tags stay at their places, also between the rows of a table.
//! A tree of HTML cannot keep them there, because HTML moves text out of tables; so this
//! reads the tokens of html5gum and writes as it goes.
//!
//! The tags are markers while the HTML is read, so that quotes and angle brackets in them
//! are no HTML, and braces of the HTML's text are no tags afterwards. Time and memory are
//! linear in the HTML. Style sheets and the width of lines are not considered.

mod html;
mod marks;
#[cfg(test)]
mod tests;
mod writer;

use super::SOURCE_BYTES_MAX;
use super::source;
use marks::MarkedSource;

/// The text of an HTML template, a Handlebars template itself. `None` if nothing of it is
/// text, or if its blocks do not survive without the HTML.
pub(super) fn of(html: &str) -> Option<String> {
    let marked = MarkedSource::of(html)?;
    let text = html::read(&marked);
    let text = marked.restore(&text)?;
    (text.len() <= SOURCE_BYTES_MAX && source::parse(&text).is_ok()).then_some(text)
}

/// Removes what blocks that render nothing leave in a text: blank lines in a row, and spaces in
/// a row or at the ends of lines. The indentation of lists stays.
pub(super) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank_lines = 0;
    for line in text.lines() {
        let words = line.trim();
        if words.is_empty() {
            blank_lines += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank_lines > 0 { "\n\n" } else { "\n" });
        }
        blank_lines = 0;
        let spaces = line.len() - line.trim_start_matches(' ').len();
        out.extend(std::iter::repeat_n(' ', spaces / 2 * 2));
        if !words.contains("  ") {
            out.push_str(words);
            continue;
        }
        for c in words.chars() {
            if c != ' ' || !out.ends_with(' ') {
                out.push(c);
            }
        }
    }
    out
}
