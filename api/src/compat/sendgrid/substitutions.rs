//! Substitutions: texts of a personalization that take the place of others in the subject and
//! the content. They are replaced here, once; what is inserted is not looked through again.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};
use waypost_core::issue::Issue;

/// The most substitutions of a personalization.
const COUNT_MAX: usize = 1_000;
/// The most bytes of the texts to replace, and of those to insert, in a personalization: that of
/// SendGrid.
const BYTES_MAX: usize = 10_000;
/// The most bytes of a text after replacing.
pub(super) const RESULT_BYTES_MAX: usize = 8 << 20;

/// The substitutions of a personalization.
pub(super) struct TextSubstitutions {
    keys: AhoCorasick,
    values: Vec<String>,
}

impl TextSubstitutions {
    /// Those in `pairs`, whose values are strings. `None` is none, or a mistake.
    pub(super) fn of(
        pairs: Map<String, Value>,
        personalization: &str,
        issues: &mut Vec<Issue>,
    ) -> Option<Self> {
        let mut refuse = |rule: String| {
            let path = format!("{personalization}.substitutions");
            issues.push(Issue::new(path, rule));
        };
        if pairs.is_empty() {
            return None;
        }
        let pairs: Vec<(String, String)> = pairs
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
            .collect();
        let bytes: usize = pairs
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        if pairs.iter().any(|(key, _)| key.is_empty()) {
            refuse("must not have an empty name".to_owned());
            return None;
        }
        if bytes > BYTES_MAX {
            refuse(format!("must not be larger than {BYTES_MAX} bytes"));
            return None;
        }
        if pairs.len() > COUNT_MAX {
            refuse(format!("must not be more than {COUNT_MAX}"));
            return None;
        }
        let (keys, values): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
        // Where several match, the longest is meant: -name- is not in the way of -name-full-.
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&keys);
        match built {
            Ok(keys) => Some(Self { keys, values }),
            Err(_) => {
                refuse("must have shorter names".to_owned());
                None
            }
        }
    }

    /// The text with the substitutions; `None` if it became too large.
    pub(super) fn replaced(&self, text: &str) -> Option<String> {
        let mut result = String::with_capacity(text.len());
        let mut is_within = true;
        self.keys
            .replace_all_with(text, &mut result, |found, _, result| {
                result.push_str(&self.values[found.pattern().as_usize()]);
                is_within = result.len() <= RESULT_BYTES_MAX;
                is_within
            });
        (is_within && result.len() <= RESULT_BYTES_MAX).then_some(result)
    }

    /// Whether the text has something to replace.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.keys.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(pairs: &Value) -> Option<TextSubstitutions> {
        let pairs = pairs.as_object().unwrap().clone();
        TextSubstitutions::of(pairs, "personalizations.0", &mut Vec::new())
    }

    #[test]
    fn the_longest_text_is_replaced_once() {
        let pairs = json!({ "-name-": "-name-full-", "-name-full-": "Ada Lovelace" });
        let found = of(&pairs).unwrap();
        let text = "Hello -name-, -name-full- & -other-";
        let expected = "Hello -name-full-, Ada Lovelace & -other-";
        assert_eq!(found.replaced(text).unwrap(), expected);
        assert!(found.is_in(text));
        assert!(!found.is_in("Hello"));
    }

    #[test]
    fn a_text_that_grows_too_large_is_refused() {
        let pairs = json!({ "a": "b".repeat(9_000) });
        let found = of(&pairs).unwrap();
        assert!(found.replaced(&"a".repeat(10)).is_some());
        assert!(found.replaced(&"a".repeat(10_000)).is_none());
    }

    #[test]
    fn empty_names_and_too_many_bytes_are_refused() {
        let pairs = json!({ "": "x" });
        assert!(of(&pairs).is_none());
        let pairs = json!({ "a": "x".repeat(BYTES_MAX) });
        assert!(of(&pairs).is_none());
    }
}
