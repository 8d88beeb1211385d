//! Lists of addresses, separated by commas.

/// The addresses of a list, without white space around them. A comma in quotes, in a comment or
/// in angle brackets separates nothing.
pub(super) fn split(list: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped, mut depth, mut is_angled) = (false, false, 0_u32, false);
    let (mut start, mut parts) = (0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted || depth > 0 => is_escaped = true,
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '<' if depth == 0 => is_angled = true,
            '>' if depth == 0 => is_angled = false,
            ',' if depth == 0 && !is_angled => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    // A comma at the end of a list is common, and names nobody.
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_an_address_separate_nothing() {
        for (list, parts) in [
            ("a@example.com", vec!["a@example.com"]),
            (
                "a@example.com, B <b@example.com>,",
                vec!["a@example.com", "B <b@example.com>"],
            ),
            (
                r#""Lovelace, Ada" <a@example.com>,b@example.com"#,
                vec![r#""Lovelace, Ada" <a@example.com>"#, "b@example.com"],
            ),
            (
                r#""a\",b" <a@example.com>, c@example.com"#,
                vec![r#""a\",b" <a@example.com>"#, "c@example.com"],
            ),
            (
                "Ada (one, two) <a@example.com>, b@example.com",
                vec!["Ada (one, two) <a@example.com>", "b@example.com"],
            ),
            (
                r#"<"a,b"@example.com>, c@example.com"#,
                vec![r#"<"a,b"@example.com>"#, "c@example.com"],
            ),
            (" , ,", vec![]),
        ] {
            assert_eq!(split(list), parts, "{list}");
        }
    }
}
