//! What stands in a tag of Handlebars: words, quoted texts and calls in brackets.

use std::fmt;

/// A word of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TagWord {
    /// A path, a number, `true` and the like, a name after `as`, or `name=value`.
    Plain(String),
    /// A text, without its quotes, which are `"` unless it has such in it.
    Quoted(String),
    /// A call in brackets.
    Call(Vec<TagWord>),
    /// `name=value`
    Pair(String, Box<TagWord>),
}

impl fmt::Display for TagWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Quoted(text) if text.contains('"') => write!(f, "'{text}'"),
            Self::Quoted(text) => write!(f, "\"{text}\""),
            Self::Call(words) => write!(f, "({})", join(words)),
            Self::Pair(name, value) => write!(f, "{name}={value}"),
        }
    }
}

/// Words with spaces between them.
pub(super) fn join(words: &[TagWord]) -> String {
    let words: Vec<String> = words.iter().map(TagWord::to_string).collect();
    words.join(" ")
}

/// The deepest nesting of calls that is read.
const DEPTH_MAX: usize = 32;

/// Reads the words of a tag. `None` if its quotes or brackets do not match.
pub(super) fn words(text: &str) -> Option<Vec<TagWord>> {
    let mut reader = WordReader {
        rest: text,
        depth: 0,
    };
    let words = reader.words()?;
    reader.rest.is_empty().then_some(words)
}

struct WordReader<'a> {
    rest: &'a str,
    depth: usize,
}

impl WordReader<'_> {
    fn words(&mut self) -> Option<Vec<TagWord>> {
        let mut words = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                return Some(words);
            }
            words.push(self.word()?);
        }
    }

    fn word(&mut self) -> Option<TagWord> {
        match self.rest.chars().next()? {
            quote @ ('"' | '\'') => self.quoted(quote).map(TagWord::Quoted),
            '(' => self.call(),
            '|' => {
                let end = self.rest[1..].find('|')? + 2;
                Some(TagWord::Plain(self.take(end)))
            }
            _ => self.plain(),
        }
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let end = self.rest[1..].find(quote)? + 1;
        let text = self.rest[1..end].to_owned();
        // A backslash in a text is an escape in one engine and none in another.
        if text.contains('\\') {
            return None;
        }
        self.rest = &self.rest[end + 1..];
        Some(text)
    }

    fn call(&mut self) -> Option<TagWord> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.rest = &self.rest[1..];
        let words = self.words()?;
        self.rest = self.rest.strip_prefix(')')?;
        self.depth -= 1;
        (!words.is_empty()).then_some(TagWord::Call(words))
    }

    fn plain(&mut self) -> Option<TagWord> {
        let mut in_segment = false;
        let end = self.rest.find(|c: char| {
            match c {
                '[' => in_segment = true,
                ']' => in_segment = false,
                _ => {}
            }
            !in_segment && (c.is_whitespace() || matches!(c, '(' | ')' | '"' | '\'' | '='))
        });
        let text = self.take(end.unwrap_or(self.rest.len()));
        if self.rest.starts_with('=') && !text.is_empty() {
            self.rest = &self.rest[1..];
            return Some(TagWord::Pair(text, Box::new(self.word()?)));
        }
        (!text.is_empty()).then_some(TagWord::Plain(text))
    }

    fn take(&mut self, end: usize) -> String {
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_they_were_read() {
        for text in [
            "a",
            "if (eq a.b \"c d\") x=1 y='\"'",
            "each items as |item index|",
            "a.[b c].d @root.x ../y",
            "or (eq (len a) 0) true",
        ] {
            let found = words(text).unwrap();
            assert_eq!(join(&found), text);
        }
        for broken in ["\"a", "(a", "a)", "()", "a='b", "\"a\\\"b\"", "=a"] {
            assert_eq!(words(broken), None, "{broken}");
        }
        let deep = "(a ".repeat(100_000);
        assert_eq!(words(&deep), None);
    }
}
