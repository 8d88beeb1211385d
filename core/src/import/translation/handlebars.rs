//! What is common to the vendors whose templates are Handlebars: SendGrid, Mailgun and SES.
//! Waypost's own are handlebars.js 4.7, so most tags stay as they are.

use super::Finder;
use super::expression::{TagWord, join, words};
use super::tags::{SourcePiece, SourceTag, split};

/// The helpers that mean the same at every vendor and here.
const SAME: [&str; 6] = ["if", "unless", "each", "with", "lookup", "log"];

/// What a vendor has besides.
pub(super) trait Dialect {
    /// Translates a call of a helper that is not one of handlebars.js. `None` if the vendor has
    /// no such helper. The error is a sentence.
    fn call(&self, name: &str, values: &[TagWord]) -> Option<Result<TagWord, String>>;

    /// Translates a tag as a whole, before its words are looked at. `None` if it is like the
    /// others.
    fn tag(
        &self,
        _tag: &SourceTag<'_>,
        _words: &[TagWord],
        _part: super::TranslatedPart,
    ) -> Option<TagResult> {
        None
    }

    /// How a value is put into HTML, if it is not as in handlebars.js.
    fn value(&self, tag: &SourceTag<'_>, inner: &str, _part: super::TranslatedPart) -> String {
        tag.with(inner)
    }
}

/// The text in place of a tag, or a sentence.
pub(super) type TagResult = Result<String, String>;

/// Translates one part.
pub(super) fn translate(finder: &mut Finder<'_>, dialect: &impl Dialect) -> String {
    let source = finder.source;
    let pieces = match split(source, true) {
        Ok(pieces) => pieces,
        Err((offset, sentence)) => return finder.problem(offset, sentence),
    };
    let mut closers: Vec<String> = Vec::new();
    let mut out = String::with_capacity(source.len());
    for piece in &pieces {
        match piece {
            SourcePiece::Text(text) => out.push_str(text),
            SourcePiece::SourceTag(tag) => {
                let translated = translate_tag(dialect, finder.part, tag, &mut closers);
                let text = translated.unwrap_or_else(|sentence| {
                    let sentence = format!("{}: {sentence}", shown(tag));
                    finder.problem(tag.offset, sentence)
                });
                out.push_str(&text);
            }
        }
    }
    if !closers.is_empty() {
        finder.problem(source.len(), "a block is not closed");
    }
    out
}

/// A tag for a report.
pub(super) fn shown(tag: &SourceTag<'_>) -> String {
    const CHARS_MAX: usize = 60;
    let mut text: String = tag.source.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > CHARS_MAX {
        text = text.chars().take(CHARS_MAX).collect::<String>() + "…";
    }
    text.chars().filter(|c| !c.is_control()).collect()
}

fn translate_tag(
    dialect: &impl Dialect,
    part: super::TranslatedPart,
    tag: &SourceTag<'_>,
    closers: &mut Vec<String>,
) -> TagResult {
    if tag.is_comment {
        return Ok(tag.source.to_owned());
    }
    let first = tag.inner.chars().next().unwrap_or_default();
    match first {
        '/' => {
            let name = closers.pop().ok_or("it closes nothing")?;
            Ok(tag.with(&format!("/{name}")))
        }
        '#' | '^' if tag.inner.len() > 1 => open(dialect, tag, closers),
        '^' => Ok(tag.with("else")),
        '>' | '*' => Err("partials are not imported; put their content in its place".to_owned()),
        '&' => value(
            dialect,
            part,
            &SourceTag {
                is_triple: true,
                ..tag.clone()
            },
            &tag.inner[1..],
        ),
        _ if is_else(tag.inner) => otherwise(dialect, tag),
        _ => value(dialect, part, tag, tag.inner),
    }
}

fn is_else(inner: &str) -> bool {
    inner.split_whitespace().next() == Some("else")
}

/// The tag that opens a block. A block of a vendor's own helper becomes an `if`: neither gives
/// its content another context.
fn open(dialect: &impl Dialect, tag: &SourceTag<'_>, closers: &mut Vec<String>) -> TagResult {
    let (sign, rest) = tag.inner.split_at(1);
    if rest.starts_with(['>', '*']) {
        closers.push(String::new());
        return Err("partials are not imported; put their content in its place".to_owned());
    }
    let words = words(rest).ok_or("its quotes or brackets do not match")?;
    let Some((TagWord::Plain(name), values)) = words.split_first() else {
        return Err("it names no block".to_owned());
    };
    if values.is_empty() || SAME.contains(&name.as_str()) {
        closers.push(name.clone());
        let values = map_all(dialect, values)?;
        let words = std::iter::once(TagWord::Plain(name.clone()));
        let words: Vec<TagWord> = words.chain(values).collect();
        return Ok(tag.with(&format!("{sign}{}", join(&words))));
    }
    closers.push(match sign {
        "^" => "unless".to_owned(),
        _ => "if".to_owned(),
    });
    let condition = map_call(dialect, name, values)?;
    let block = if sign == "^" { "unless" } else { "if" };
    Ok(tag.with(&format!("#{block} {condition}")))
}

/// `{{else}}`, and `{{else helper values}}`.
fn otherwise(dialect: &impl Dialect, tag: &SourceTag<'_>) -> TagResult {
    let rest = tag.inner.trim_start()["else".len()..].trim();
    let words = words(rest).ok_or("its quotes or brackets do not match")?;
    let Some((TagWord::Plain(name), values)) = words.split_first() else {
        return Ok(tag.with("else"));
    };
    if SAME.contains(&name.as_str()) || values.is_empty() {
        let values = map_all(dialect, values)?;
        return Ok(tag.with(format!("else {name} {}", join(&values)).trim_end()));
    }
    let condition = map_call(dialect, name, values)?;
    Ok(tag.with(&format!("else if {condition}")))
}

/// A tag that stands for a value.
fn value(
    dialect: &impl Dialect,
    part: super::TranslatedPart,
    tag: &SourceTag<'_>,
    inner: &str,
) -> TagResult {
    let words = words(inner).ok_or("its quotes or brackets do not match")?;
    if let Some(result) = dialect.tag(tag, &words, part) {
        return result;
    }
    let text = match words.split_first() {
        None => return Err("it is empty".to_owned()),
        Some((first, [])) => map(dialect, first)?.to_string(),
        Some((TagWord::Plain(name), values)) => match map_call(dialect, name, values)? {
            TagWord::Call(words) => join(&words),
            word @ (TagWord::Plain(_) | TagWord::Quoted(_) | TagWord::Pair(..)) => word.to_string(),
        },
        Some(_) => return Err("it names no helper".to_owned()),
    };
    Ok(dialect.value(tag, &text, part))
}

fn map_all(dialect: &impl Dialect, words: &[TagWord]) -> Result<Vec<TagWord>, String> {
    words.iter().map(|word| map(dialect, word)).collect()
}

fn map(dialect: &impl Dialect, word: &TagWord) -> Result<TagWord, String> {
    match word {
        TagWord::Plain(_) | TagWord::Quoted(_) => Ok(word.clone()),
        TagWord::Pair(name, value) => {
            let value = map(dialect, value)?;
            Ok(TagWord::Pair(name.clone(), Box::new(value)))
        }
        TagWord::Call(words) => match words.split_first() {
            Some((TagWord::Plain(name), values)) => map_call(dialect, name, values),
            Some(_) | None => Err("it names no helper".to_owned()),
        },
    }
}

/// A call of a helper with values.
fn map_call(dialect: &impl Dialect, name: &str, values: &[TagWord]) -> Result<TagWord, String> {
    let values = map_all(dialect, values)?;
    if SAME.contains(&name) {
        let words = std::iter::once(TagWord::Plain(name.to_owned()));
        return Ok(TagWord::Call(words.chain(values).collect()));
    }
    dialect
        .call(name, &values)
        .unwrap_or_else(|| Err(format!("Waypost has no helper {name}")))
}

/// A call of one of our helpers.
pub(super) fn call(name: &str, values: impl IntoIterator<Item = TagWord>) -> TagWord {
    let words = std::iter::once(TagWord::Plain(name.to_owned()));
    TagWord::Call(words.chain(values).collect())
}

/// `a == b` of JavaScript, where one of them is a literal: ours compares types too, so each
/// value that JavaScript takes for equal is compared. `None` if neither is a literal.
pub(super) fn loosely_equal(left: &TagWord, right: &TagWord) -> Option<TagWord> {
    let (literal, other) = match (alternatives(left), alternatives(right)) {
        (_, Some(found)) => (found, left),
        (Some(found), None) => (found, right),
        (None, None) => return None,
    };
    let mut equals = literal
        .into_iter()
        .map(|one| call("eq", [other.clone(), one]));
    let first = equals.next()?;
    let rest: Vec<TagWord> = equals.collect();
    if rest.is_empty() {
        return Some(first);
    }
    Some(call("or", std::iter::once(first).chain(rest)))
}

/// All values that JavaScript takes for equal to a literal, apart from lists and objects.
fn alternatives(word: &TagWord) -> Option<Vec<TagWord>> {
    let plain = |text: &str| TagWord::Plain(text.to_owned());
    let quoted = |text: &str| TagWord::Quoted(text.to_owned());
    Some(match word {
        TagWord::Quoted(text) if text.is_empty() => {
            vec![quoted(""), plain("0"), plain("false")]
        }
        TagWord::Quoted(text) if is_number(text) => match text.as_str() {
            "1" => vec![quoted("1"), plain("1"), plain("true")],
            "0" => vec![quoted("0"), plain("0"), plain("false")],
            _ => vec![quoted(text), plain(text)],
        },
        // `Number(text)` is a number too, which no literal of a template is written like.
        TagWord::Quoted(text) if text.trim().parse::<f64>().is_ok() => return None,
        TagWord::Quoted(text) => vec![quoted(text)],
        TagWord::Plain(text) => match text.as_str() {
            "true" => vec![plain("true"), plain("1"), quoted("1")],
            "false" => vec![plain("false"), plain("0"), quoted("0"), quoted("")],
            "1" => vec![plain("1"), quoted("1"), plain("true")],
            "0" => vec![plain("0"), quoted("0"), plain("false"), quoted("")],
            text if is_number(text) => vec![plain(text), quoted(text)],
            _ => return None,
        },
        TagWord::Call(_) | TagWord::Pair(..) => return None,
    })
}

/// Whether a text is a number as JavaScript writes it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "1"));
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = whole == "0" || !whole.starts_with('0');
    all(whole)
        && is_plain
        && all(fraction)
        && !fraction.ends_with('0')
        && text != "-0"
        && whole.len() < 16
}
