//! Languages of template versions and of messages: language tags of BCP 47, such as `de`,
//! `de-AT` and `zh-Hant-TW`, in their usual letters. Extensions (`-u-…`) are refused: nothing
//! is formatted by them.

use std::fmt;

use icu_locale_core::LanguageIdentifier;

/// A language tag: a language, maybe a script, a region and variants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locale(String);

/// What is no language tag. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a language tag such as de, de-AT or zh-Hant-TW")]
pub struct LocaleError;

impl Locale {
    /// The maximum length in characters.
    pub const CHARS_MAX: usize = 35;

    /// Validates a tag and writes its letters as usual: `DE-at` becomes `de-AT`.
    ///
    /// # Errors
    /// That it is none.
    pub fn parse(text: &str) -> Result<Self, LocaleError> {
        if text.len() > Self::CHARS_MAX {
            return Err(LocaleError);
        }
        let tag = LanguageIdentifier::try_from_str(text).map_err(|_| LocaleError)?;
        if tag.language.is_unknown() {
            return Err(LocaleError);
        }
        Ok(Self(tag.to_string()))
    }

    /// The tag.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag, then the tags that are less exact, by the look-up of RFC 4647: `zh-Hant-TW`,
    /// `zh-Hant`, `zh`.
    pub fn fallbacks(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.as_str()), |tag| {
            tag.rsplit_once('-').map(|(rest, _)| rest)
        })
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_written_in_their_usual_letters() {
        for (text, tag) in [
            ("de", "de"),
            ("DE-at", "de-AT"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("es-419", "es-419"),
            ("ca-ES-VALENCIA", "ca-ES-valencia"),
            ("sr-Latn", "sr-Latn"),
        ] {
            assert_eq!(Locale::parse(text).map(|tag| tag.0), Ok(tag.to_owned()));
        }
        for text in [
            "",
            "d",
            "de_AT",
            "de-",
            "-de",
            "de--AT",
            "german language",
            "und",
            "und-AT",
            "de-u-co-phonebk",
            "x-own",
            "de-AT-AT",
            "1-2",
            "d\u{e9}",
            "de\0",
            "ca-ES-valencia-valencia1-valencia2-x",
        ] {
            assert_eq!(Locale::parse(text), Err(LocaleError), "{text}");
        }
    }

    #[test]
    fn a_tag_falls_back_step_by_step() {
        let steps = |text: &str| -> Vec<String> {
            let locale = Locale::parse(text).unwrap();
            locale.fallbacks().map(str::to_owned).collect()
        };
        assert_eq!(steps("de"), ["de"]);
        assert_eq!(steps("de-AT"), ["de-AT", "de"]);
        assert_eq!(steps("zh-Hant-TW"), ["zh-Hant-TW", "zh-Hant", "zh"]);
    }
}
