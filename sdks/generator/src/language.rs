//! What a language decides that a template cannot: how it spells types and names, and how it writes comments. A further
//! language is one implementation of [`Language`], and a directory of templates.

use serde_json::Value;

use crate::model::{Model, Type};
use crate::samples::Call;

/// A target language.
pub(crate) trait Language: Send + Sync {
    /// The name of its directory, both in `templates/` and in `sdks/`.
    fn directory(&self) -> &'static str;

    /// What people call it.
    fn name(&self) -> &'static str;

    /// Spells a type. `input` says that it stands in a request, where more kinds of values may be taken.
    fn spell(&self, ty: &Type, input: bool) -> String;

    /// Spells a type where the client is defined, which may have to say where the type comes from.
    fn spell_in_client(&self, ty: &Type, input: bool) -> String {
        self.spell(ty, input)
    }

    /// The name of a method, parameter or field of the client, from its words.
    fn member(&self, words: &[String]) -> String;

    /// The name of a class, from its words.
    fn class(&self, words: &[String]) -> String;

    /// The name of a field of an object, from its name in JSON.
    fn field(&self, name: &str) -> String;

    /// Changes what the templates see, where the language needs more than names and types. An error says what it cannot
    /// spell.
    fn extend(&self, _model: &Model, _context: &mut Value) -> Result<(), String> {
        Ok(())
    }

    /// Adapts the order and the texts of the model. An error says what the language cannot spell.
    fn adapt(&self, _model: &mut Model) -> Result<(), String> {
        Ok(())
    }

    /// A documentation comment, each line indented; empty if there is no text.
    fn comment(&self, text: &str, indent: usize) -> String;

    /// Lays out a file as the language's own formatter does.
    fn format(&self, text: String) -> Result<String, String> {
        Ok(text)
    }

    /// A program that makes a call. An error says what the language cannot spell.
    fn sample(&self, call: &Call<'_>) -> Result<String, String>;
}
