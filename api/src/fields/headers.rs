//! The extra headers of a message in requests.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::{Value, json};
use waypost_core::acceptance::headers;
use waypost_core::issue::Issue;

use crate::fields::{kind_of, schema};
use crate::validate::{Field, problem};

/// Extra headers: names and values, in the order of the request.
#[derive(Debug, Default)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Field for Headers {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            object.additional_properties = Some(Box::new(schema("string", |_| {})));
            object.example = Some(json!({ "X-Order": "1042" }));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(given) = value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let mut issues = Vec::new();
        let mut texts = Vec::with_capacity(given.len());
        for (name, value) in given {
            match value {
                Value::String(value) => texts.push((name, value)),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => {
                    let message = format!("must be a string, not {}", kind_of(&value));
                    issues.push(Issue::new(headers::path_of(&name), message));
                }
            }
        }
        match headers::parse(texts) {
            Ok(headers) if issues.is_empty() => Ok(Self(headers)),
            Ok(_) => Err(issues),
            Err(found) => {
                issues.extend(found);
                Err(issues)
            }
        }
    }
}
