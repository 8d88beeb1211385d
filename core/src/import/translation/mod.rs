//! Translates templates of other vendors into ours, pure. What means the same is taken, what
//! can be written otherwise with the same meaning is written otherwise, and of the rest each
//! place is named: a template with such a place is not imported.
//!
//! Sources: Twilio's page "Using Handlebars", Postmark's page "Template syntax" and its engine
//! Mustachio, Mailgun's page "Templates", the SES Developer Guide "Advanced email
//! personalization", Resend's page "Template variables".

mod expression;
mod handlebars;
mod mailgun;
mod postmark;
mod resend;
mod sendgrid;
mod ses;
mod tags;

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ImportSource;
use crate::provider::inventory::StoredTemplate;
use tags::place;

/// The most problems that are named of one template.
const PROBLEMS_MAX: usize = 20;

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranslatedPart {
    Subject,
    Html,
    Text,
}

impl TranslatedPart {
    /// The name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Html => "HTML",
            Self::Text => "text",
        }
    }
}

/// A place that cannot be translated, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationProblem {
    /// `None` if it is the template as a whole.
    pub place: Option<(TranslatedPart, usize, usize)>,
    pub sentence: String,
}

impl TranslationProblem {
    fn whole(sentence: impl Into<String>) -> Self {
        Self {
            place: None,
            sentence: sentence.into(),
        }
    }
}

impl fmt::Display for TranslationProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((part, line, column)) => {
                let (part, sentence) = (part.as_str(), &self.sentence);
                write!(f, "{part}, line {line}, column {column}: {sentence}")
            }
            None => f.write_str(&self.sentence),
        }
    }
}

/// The text of a translated template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranslatedText {
    FromHtml,
    None,
    Given(String),
}

/// A template in our language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    pub subject: Option<String>,
    pub html: String,
    pub text: TranslatedText,
    /// A JSON Schema of the variables.
    pub schema: Option<Value>,
}

impl Translated {
    /// SHA-256 of the content, with what else makes the version.
    #[must_use]
    pub fn fingerprint(&self, template: &StoredTemplate) -> Vec<u8> {
        let text = match &self.text {
            TranslatedText::FromHtml => serde_json::json!(true),
            TranslatedText::None => Value::Null,
            TranslatedText::Given(text) => serde_json::json!(text),
        };
        let content = serde_json::json!([
            self.subject,
            self.html,
            text,
            self.schema,
            template.from,
            template.reply_to,
            template.layout,
            template.is_layout,
        ]);
        Sha256::digest(content.to_string()).to_vec()
    }
}

/// Translates a template.
///
/// # Errors
/// Why it cannot be: each place, up to twenty.
pub fn translate(
    source: ImportSource,
    template: &StoredTemplate,
) -> Result<Translated, Vec<TranslationProblem>> {
    if let Some(why) = &template.unsendable {
        return Err(vec![TranslationProblem::whole(why.clone())]);
    }
    let Some(html) = &template.html else {
        let why = "it has no HTML, which a template of Waypost must have";
        return Err(vec![TranslationProblem::whole(why)]);
    };
    let mut problems = Vec::new();
    let mut part = |part, text: &str| {
        let mut finder = Finder {
            part,
            source: text,
            problems: &mut problems,
        };
        match source {
            ImportSource::Sendgrid => sendgrid::translate(&mut finder),
            ImportSource::Postmark => postmark::translate(&mut finder, template.is_layout),
            ImportSource::Mailgun => mailgun::translate(&mut finder),
            ImportSource::Ses => ses::translate(&mut finder),
            ImportSource::Resend => resend::translate(&mut finder, template.variables.as_deref()),
        }
    };
    // A layout is not sent itself.
    let subject = template.subject.as_deref().filter(|_| !template.is_layout);
    let translated = Translated {
        subject: subject.map(|subject| part(TranslatedPart::Subject, subject)),
        html: part(TranslatedPart::Html, html),
        text: match &template.text {
            Some(text) => TranslatedText::Given(part(TranslatedPart::Text, text)),
            None if template.is_text_generated => TranslatedText::FromHtml,
            None => TranslatedText::None,
        },
        schema: template.variables.as_deref().and_then(resend::schema),
    };
    if problems.is_empty() {
        Ok(translated)
    } else {
        Err(problems)
    }
}

/// One part that is being translated, and the problems of all.
struct Finder<'a> {
    part: TranslatedPart,
    source: &'a str,
    problems: &'a mut Vec<TranslationProblem>,
}

impl Finder<'_> {
    /// Notes a problem. Answers an empty text for the place.
    fn problem(&mut self, offset: usize, sentence: impl Into<String>) -> String {
        if self.problems.len() < PROBLEMS_MAX {
            let (line, column) = place(self.source, offset);
            self.problems.push(TranslationProblem {
                place: Some((self.part, line, column)),
                sentence: sentence.into(),
            });
        }
        String::new()
    }

    /// Notes the first occurrence of each text that the vendor replaces and Waypost does not.
    fn refuse_texts(&mut self, refused: &[(&str, &str)]) {
        for (text, sentence) in refused {
            if let Some(offset) = self.source.find(text) {
                self.problem(offset, *sentence);
            }
        }
    }
}
