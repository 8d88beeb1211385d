//! Splits CSS, for the code that reads inline styles.

/// Splits a text at the separators outside quotes and parentheses.
pub(crate) fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quote = None;
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(c),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if c == separator && depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}
