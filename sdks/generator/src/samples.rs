//! Samples of code for the documentation page: a call of each operation, in each language, with the examples of the
//! document.

use serde_json::{Map, Value, json};

use crate::language::Language;
use crate::model::{Answer, Method, Model, Resource};
use crate::naming::{self, Words};

/// A call to write down.
pub(crate) struct Call<'a> {
    pub(crate) model: &'a Model,
    pub(crate) resource: &'a Resource,
    pub(crate) method: &'a Method,
}

impl Call<'_> {
    /// The examples of the path parameters.
    pub(crate) fn path(&self) -> impl Iterator<Item = &str> {
        self.method
            .path_parameters
            .iter()
            .map(|field| field.example.as_str().unwrap_or_default())
    }

    /// What the answer is called: `template`, `summary`.
    pub(crate) fn variable(&self) -> Words {
        let rest = &self.method.name[1..];
        if !rest.is_empty() {
            return rest.to_vec();
        }
        let mut words = self.resource.path.last().cloned().unwrap_or_default();
        let is_singleton = self.method.path_parameters.is_empty() && self.method.verb != "POST";
        if let (Some(last), false) = (words.last_mut(), is_singleton) {
            *last = naming::singular(last);
        }
        words
    }

    /// Whether the answer says anything.
    pub(crate) fn has_answer(&self) -> bool {
        !matches!(self.method.answer, Answer::Raw) || self.method.verb == "GET"
    }
}

/// All samples: for each operation id what `x-codeSamples` of a document has.
pub(crate) fn samples(model: &Model, languages: &[&dyn Language]) -> Result<Value, String> {
    let mut samples = Map::new();
    for resource in &model.resources {
        for method in &resource.methods {
            let call = Call {
                model,
                resource,
                method,
            };
            let mut of_method = Vec::new();
            for language in languages {
                let source = language
                    .sample(&call)
                    .map_err(|error| format!("{}: {error}", method.operation_id))?;
                of_method.push(json!({"lang": language.directory(), "label": language.name(), "source": source}));
            }
            samples.insert(method.operation_id.clone(), of_method.into());
        }
    }
    Ok(samples.into())
}
