//! Substitutions: the template that the mails of a batch share, with tags where they
//! differ, and each recipient's values for the tags.
//!
//! Texts are compared byte by byte. They may differ in *words* only, which are runs of
//! ASCII letters, digits, `-`, `_` and `.`: the tokens in links are such words, and a word
//! means the same in HTML, in plain text, in a URL and in a header. Texts that differ in
//! anything else have no template. Replacing the tags by a recipient's values gives that
//! recipient's text, as long as no tag occurs in the texts themselves: the caller chooses
//! tags that do not.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The tags of one batch and their values, collected from its texts one by one.
pub(in crate::provider) struct Substitutions<'a> {
    tag: fn(&str, usize) -> String,
    mark: String,
    /// The number of each tag, by the recipients' values for it.
    numbers: HashMap<Vec<&'a str>, usize>,
    values: Vec<Vec<&'a str>>,
}

impl<'a> Substitutions<'a> {
    /// `tag` makes a tag from the mark and a number.
    pub(in crate::provider) fn new(mark: String, tag: fn(&str, usize) -> String) -> Self {
        Self {
            tag,
            mark,
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }

    /// The template of the recipients' texts, with tags in place of the words that differ.
    /// `None` if they differ in anything else.
    pub(in crate::provider) fn template(&mut self, texts: &[&'a str]) -> Option<String> {
        let (first, others) = texts.split_first()?;
        let mut rest: Vec<&'a str> = texts.to_vec();
        let mut template = String::with_capacity(first.len());
        loop {
            let alike = rest[1..]
                .iter()
                .map(|other| common_bytes(rest[0], other))
                .min()
                .unwrap_or(rest[0].len());
            if rest.iter().all(|text| text.len() == alike) {
                template.push_str(rest[0]);
                return Some(template);
            }
            // The word that differs began earlier.
            let before = rest[0].as_bytes()[..alike].iter().rev();
            let begins_at = alike - before.take_while(|byte| is_word(**byte)).count();
            // `None` if they differ within a character.
            template.push_str(rest[0].get(..begins_at)?);
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
            template.push_str(&(self.tag)(&self.mark, number));
        }
    }

    /// The same for a text that a mail may lack. `None` if only some mails lack it.
    pub(in crate::provider) fn template_option(
        &mut self,
        texts: impl Iterator<Item = Option<&'a str>>,
    ) -> Option<Option<String>> {
        let texts: Vec<Option<&'a str>> = texts.collect();
        if texts.iter().all(Option::is_none) {
            return Some(None);
        }
        let texts: Option<Vec<&'a str>> = texts.into_iter().collect();
        self.template(&texts?).map(Some)
    }

    /// The tags with one recipient's values.
    pub(in crate::provider) fn for_recipient(
        &self,
        index: usize,
    ) -> impl Iterator<Item = (String, &'a str)> {
        let values = self.values.iter().enumerate();
        values.filter_map(move |(number, values)| {
            Some(((self.tag)(&self.mark, number), *values.get(index)?))
        })
    }

    /// One recipient's values, in the order of the tags' numbers.
    pub(in crate::provider) fn values(&self, index: usize) -> impl Iterator<Item = &'a str> {
        let values = self.values.iter();
        values.filter_map(move |values| values.get(index).copied())
    }

    fn number(&mut self, words: Vec<&'a str>) -> usize {
        let next = self.values.len();
        match self.numbers.entry(words) {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(vacant) => {
                self.values.push(vacant.key().clone());
                *vacant.insert(next)
            }
        }
    }
}

/// Whether a byte may be part of a word.
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

    fn substitutions<'a>() -> Substitutions<'a> {
        Substitutions::new("x".to_owned(), |mark, number| format!("[{mark}{number}]"))
    }

    #[test]
    fn words_that_differ_become_tags_and_substitution_restores_the_texts() {
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
            let mut substitutions = substitutions();
            let template = substitutions.template(&texts).unwrap();
            for (index, text) in texts.iter().enumerate() {
                let substituted = substitutions
                    .for_recipient(index)
                    .fold(template.clone(), |substituted, (tag, value)| {
                        substituted.replace(&tag, value)
                    });
                assert_eq!(substituted, *text, "{template}");
            }
        }
    }

    #[test]
    fn equal_values_share_a_tag() {
        let mut substitutions = substitutions();
        let html = substitutions.template(&["u/abc u/abc", "u/xyz u/xyz"]);
        let text = substitutions.template(&["<u/abc>", "<u/xyz>"]);
        assert_eq!(html.as_deref(), Some("u/[x0] u/[x0]"));
        assert_eq!(text.as_deref(), Some("<u/[x0]>"));
        assert_eq!(
            substitutions.for_recipient(1).collect::<Vec<_>>(),
            [("[x0]".to_owned(), "xyz")]
        );
    }

    #[test]
    fn texts_that_differ_in_more_than_words_have_no_template() {
        for texts in [
            ["a b", "a, b"],
            ["a <b>", "a <i"],
            ["é", "è"],
            ["a", ""],
            ["a ", "a"],
            ["u/ x", "u/1 x"],
            ["aé", "aè"],
        ] {
            assert_eq!(substitutions().template(&texts), None, "{texts:?}");
        }
    }

    #[test]
    fn all_mails_or_none_must_have_the_text() {
        let mut substitutions = substitutions();
        assert_eq!(
            substitutions.template_option([None, None].into_iter()),
            Some(None)
        );
        assert_eq!(
            substitutions.template_option([None, Some("a")].into_iter()),
            None
        );
        let both = substitutions.template_option([Some("a"), Some("a")].into_iter());
        assert_eq!(both, Some(Some("a".to_owned())));
    }
}
