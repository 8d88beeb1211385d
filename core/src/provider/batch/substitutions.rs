//! Blanks: what the copies of a message share, with tags where they differ, and the
//! values that each copy has for them.
//!
//! Texts are compared, not understood. They may differ in *words* only, runs of ASCII
//! letters, digits, `-`, `_` and `.`: tokens in links are that, and such a word means
//! the same in HTML, in plain text, in a URL and in a header. Whatever differs
//! otherwise cannot be a blank. Filling in a copy's values gives its text, byte by
//! byte, as long as no tag stands in the texts themselves: whoever chooses the tags
//! sees to that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The tags of one batch and their values, gathered from its texts one by one.
pub(in crate::provider) struct Substitutions<'a> {
    tag: fn(&str, usize) -> String,
    mark: String,
    /// The number of each tag, by the values that the copies have for it.
    known: HashMap<Vec<&'a str>, usize>,
    values: Vec<Vec<&'a str>>,
}

impl<'a> Substitutions<'a> {
    /// `tag` makes a tag from the mark and a number.
    pub(in crate::provider) fn new(mark: String, tag: fn(&str, usize) -> String) -> Self {
        Self {
            tag,
            mark,
            known: HashMap::new(),
            values: Vec::new(),
        }
    }

    /// What the copies' texts share, with tags in place of the words that differ.
    /// Nothing where they differ in anything else.
    pub(in crate::provider) fn shared(&mut self, texts: &[&'a str]) -> Option<String> {
        let (first, others) = texts.split_first()?;
        let mut rest: Vec<&'a str> = texts.to_vec();
        let mut shared = String::with_capacity(first.len());
        loop {
            let alike = rest[1..]
                .iter()
                .map(|other| common_bytes(rest[0], other))
                .min()
                .unwrap_or(rest[0].len());
            if rest.iter().all(|text| text.len() == alike) {
                shared.push_str(rest[0]);
                return Some(shared);
            }
            // The word in which they part began earlier.
            let before = rest[0].as_bytes()[..alike].iter().rev();
            let begins_at = alike - before.take_while(|byte| is_word(**byte)).count();
            // Nothing where they part within a character.
            shared.push_str(rest[0].get(..begins_at)?);
            let mut words = Vec::with_capacity(others.len() + 1);
            for text in &mut rest {
                let from = text.get(begins_at..)?;
                let bytes = from.bytes().take_while(|byte| is_word(*byte)).count();
                if bytes == 0 {
                    return None;
                }
                words.push(&from[..bytes]);
                *text = &from[bytes..];
            }
            let number = self.number(words);
            shared.push_str(&(self.tag)(&self.mark, number));
        }
    }

    /// The same for a text that a mail may lack, if all lack it.
    pub(in crate::provider) fn shared_option(
        &mut self,
        texts: impl Iterator<Item = Option<&'a str>>,
    ) -> Option<Option<String>> {
        let texts: Vec<Option<&'a str>> = texts.collect();
        if texts.iter().all(Option::is_none) {
            return Some(None);
        }
        let texts: Option<Vec<&'a str>> = texts.into_iter().collect();
        self.shared(&texts?).map(Some)
    }

    /// The tags with the values of one copy.
    pub(in crate::provider) fn of(&self, copy: usize) -> impl Iterator<Item = (String, &'a str)> {
        let values = self.values.iter().enumerate();
        values.filter_map(move |(number, values)| {
            Some(((self.tag)(&self.mark, number), *values.get(copy)?))
        })
    }

    /// The values of one copy, in the order of the tags' numbers.
    pub(in crate::provider) fn values(&self, copy: usize) -> impl Iterator<Item = &'a str> {
        let values = self.values.iter();
        values.filter_map(move |values| values.get(copy).copied())
    }

    fn number(&mut self, words: Vec<&'a str>) -> usize {
        let next = self.values.len();
        match self.known.entry(words) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                self.values.push(vacant.key().clone());
                *vacant.insert(next)
            }
        }
    }
}

/// A byte of a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

fn common_bytes(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanks<'a>() -> Substitutions<'a> {
        Substitutions::new("x".to_owned(), |mark, number| format!("[{mark}{number}]"))
    }

    #[test]
    fn words_that_differ_become_tags_and_filling_them_gives_the_texts() {
        for texts in [
            vec![
                "<a href=\"u/abc\">ä</a> u/abc.",
                "<a href=\"u/abd\">ä</a> u/abd.",
            ],
            vec!["a1", "b1"],
            vec!["to u/x-1_y.z?k=1&amp;k=2", "to u/x-1_y.w?k=3&amp;k=2"],
            vec!["same", "same", "same"],
            vec!["one two", "one three", "one two"],
            vec!["only"],
            vec!["", ""],
            vec!["a b", "a bc"],
        ] {
            let mut blanks = blanks();
            let shared = blanks.shared(&texts).unwrap();
            for (copy, text) in texts.iter().enumerate() {
                let filled = blanks
                    .of(copy)
                    .fold(shared.clone(), |filled, (tag, value)| {
                        filled.replace(&tag, value)
                    });
                assert_eq!(filled, *text, "{shared}");
            }
        }
    }

    #[test]
    fn values_that_come_again_share_a_tag() {
        let mut blanks = blanks();
        let html = blanks.shared(&["u/abc u/abc", "u/xyz u/xyz"]);
        let text = blanks.shared(&["<u/abc>", "<u/xyz>"]);
        assert_eq!(html.as_deref(), Some("u/[x0] u/[x0]"));
        assert_eq!(text.as_deref(), Some("<u/[x0]>"));
        assert_eq!(
            blanks.of(1).collect::<Vec<_>>(),
            [("[x0]".to_owned(), "xyz")]
        );
    }

    #[test]
    fn texts_that_differ_in_more_than_words_have_no_blank() {
        for texts in [
            ["a b", "a, b"],
            ["a <b>", "a <i"],
            ["é", "è"],
            ["a", ""],
            ["a ", "a"],
            ["u/ x", "u/1 x"],
            ["aé", "aè"],
        ] {
            assert_eq!(blanks().shared(&texts), None, "{texts:?}");
        }
    }

    #[test]
    fn a_text_is_there_for_all_or_for_none() {
        let mut blanks = blanks();
        assert_eq!(blanks.shared_option([None, None].into_iter()), Some(None));
        assert_eq!(blanks.shared_option([None, Some("a")].into_iter()), None);
        let both = blanks.shared_option([Some("a"), Some("a")].into_iter());
        assert_eq!(both, Some(Some("a".to_owned())));
    }
}
