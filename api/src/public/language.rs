//! The languages of the pages for recipients, and which of them a browser asks for (RFC 9110,
//! 12.5.4, with the look-up of RFC 4647: `de-AT` is answered in `de`).

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
}

/// Languages of a header that are read. Browsers send fewer than ten.
const RANGES_MAX: usize = 50;

impl Language {
    /// All languages. The first one is for browsers that ask for none of them.
    pub(crate) const ALL: [Self; 4] = [Self::English, Self::German, Self::French, Self::Spanish];

    /// The language tag.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
        }
    }

    /// The language for the value of `Accept-Language`: the one with the highest quality, and
    /// of those with the same the one that is named first.
    pub(crate) fn preferred(header: &str) -> Self {
        let ranges = header.split(',').take(RANGES_MAX).filter_map(read_range);
        let wanted = ranges.filter_map(|(tag, quality)| Some((Self::of_tag(tag)?, quality)));
        let mut best: Option<(Self, u16)> = None;
        for (language, quality) in wanted {
            if quality > best.map_or(0, |(_, highest)| highest) {
                best = Some((language, quality));
            }
        }
        best.map_or(Self::English, |(language, _)| language)
    }

    fn of_tag(tag: &str) -> Option<Self> {
        if tag == "*" {
            return Some(Self::English);
        }
        let primary = tag.split('-').next().unwrap_or_default();
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.as_str().eq_ignore_ascii_case(primary))
    }
}

/// A language tag and its quality in thousandths; `None` if the quality is not valid.
fn read_range(range: &str) -> Option<(&str, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let tag = parts.next().filter(|tag| !tag.is_empty())?;
    let quality = match parts.next() {
        None => 1_000,
        Some(part) => read_quality(part)?,
    };
    Some((tag, quality))
}

fn read_quality(part: &str) -> Option<u16> {
    let (name, value) = part.split_once('=')?;
    let value: f32 = value.trim().parse().ok()?;
    let is_quality = name.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is between 0 and 1"
    )]
    is_quality.then_some((value * 1_000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_the_highest_quality_is_chosen() {
        for (header, expected) in [
            ("", "en"),
            ("de", "de"),
            ("de-AT", "de"),
            ("DE-at,en;q=0.9", "de"),
            ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"),
            ("en;q=0.8, es-419;q=0.9", "es"),
            ("ja, de;q=0.5", "de"),
            ("ja, zh", "en"),
            ("*", "en"),
            ("*, de", "en"),
            ("*;q=0.1, de;q=0.2", "de"),
            ("de;q=0, fr;q=0.001", "fr"),
            ("de;q=0", "en"),
            ("es, de", "es"),
            ("de;q=0.5, es;q=0.5", "de"),
            ("de ; q = 0.9 , fr ; q=0.95", "fr"),
            ("de;q=2, fr;q=0.1", "fr"),
            ("de;q=-1, fr;q=NaN, es;q=x", "en"),
            ("de;level=1, fr;q=0.3", "fr"),
            (",,;,;q=1,de", "de"),
            ("deutsch", "en"),
            ("den", "en"),
        ] {
            assert_eq!(Language::preferred(header).as_str(), expected, "{header}");
        }
        let long = format!("{}de", "ja,".repeat(RANGES_MAX));
        assert_eq!(Language::preferred(&long), Language::English);
    }
}
