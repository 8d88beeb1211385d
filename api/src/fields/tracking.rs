//! What a request wants tracked.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::tracking::TrackingChoice;

use crate::fields::{kind_of, schema};
use crate::validate::{Field, problem};

const OPENS: &str = "opens";
const CLICKS: &str = "clicks";

impl Field for TrackingChoice {
    fn schema() -> MetaSchemaRef {
        let flag = <Option<bool> as Field>::schema;
        schema("object", |object| {
            object.properties = vec![(OPENS, flag()), (CLICKS, flag())];
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(mut given) = value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let mut issues = Vec::new();
        let mut read = |name| match given.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => match bool::read(value) {
                Ok(flag) => Some(flag),
                Err(found) => {
                    issues.extend(found.into_iter().map(|issue| issue.under(name)));
                    None
                }
            },
        };
        let choice = Self {
            opens: read(OPENS),
            clicks: read(CLICKS),
        };
        if issues.is_empty() {
            Ok(choice)
        } else {
            Err(issues)
        }
    }
}
