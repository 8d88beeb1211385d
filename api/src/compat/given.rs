//! An object of a vendor's request, from which a translation takes what it knows.

use serde_json::{Map, Value};
use waypost_core::issue::Issue;

use super::fields::{Support, VendorField};
use crate::fields::kind_of;
use crate::middleware::unknown_fields::{shortened, unknown};

/// The most objects in a list that are translated. No list of a vendor may be longer.
const OBJECTS_MAX: usize = 1_000;

/// An object of a vendor's request. What a translation takes from it is dealt with; what is left
/// is refused by [`Given::finish`].
pub(super) struct Given {
    fields: &'static [VendorField],
    /// The path of the object in the request, such as `attachments.0`.
    path: String,
    /// The same in the table of fields, such as `attachments[]`.
    pattern: String,
    members: Map<String, Value>,
}

impl Given {
    /// The body of a request.
    ///
    /// # Errors
    /// It is no object.
    pub(super) fn body(fields: &'static [VendorField], value: Value) -> Result<Self, Vec<Issue>> {
        match value {
            Value::Object(members) => Ok(Self {
                fields,
                path: String::new(),
                pattern: String::new(),
                members,
            }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                let message = format!("must be a JSON object, not {}", kind_of(&value));
                Err(vec![Issue::new("", message)])
            }
        }
    }

    /// Takes a field; `None` if it is absent or null.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    /// Whether a field is given and not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(|value| !value.is_null())
    }

    /// The path of the object in the request.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of a field, for issues.
    pub(super) fn place(&self, name: &str) -> String {
        below(&self.path, name)
    }

    /// Takes a field that is an object.
    pub(super) fn object(&mut self, name: &str, issues: &mut Vec<Issue>) -> Option<Self> {
        let value = self.take(name)?;
        self.nested(
            below(&self.path, name),
            below(&self.pattern, name),
            value,
            issues,
        )
    }

    /// Takes a field that is a list of objects. An item that is none becomes an issue.
    pub(super) fn objects(&mut self, name: &str, issues: &mut Vec<Issue>) -> Option<Vec<Self>> {
        let path = self.place(name);
        let pattern = format!("{}[]", below(&self.pattern, name));
        let Value::Array(items) = self.take(name)? else {
            issues.push(Issue::new(path, "must be an array of objects"));
            return None;
        };
        if items.len() > OBJECTS_MAX {
            let rule = format!("must not have more than {OBJECTS_MAX} items");
            issues.push(Issue::new(path, rule));
            return None;
        }
        let items = items.into_iter().enumerate();
        let items = items.filter_map(|(index, item)| {
            let path = format!("{path}.{index}");
            self.nested(path, pattern.clone(), item, issues)
        });
        Some(items.collect())
    }

    fn nested(
        &self,
        path: String,
        pattern: String,
        value: Value,
        issues: &mut Vec<Issue>,
    ) -> Option<Self> {
        let Value::Object(members) = value else {
            let message = format!("must be an object, not {}", kind_of(&value));
            issues.push(Issue::new(path, message));
            return None;
        };
        Some(Self {
            fields: self.fields,
            path,
            pattern,
            members,
        })
    }

    /// Refuses what was not taken: fields that the table refuses, and unknown ones. A null is not
    /// given.
    pub(super) fn finish(self, issues: &mut Vec<Issue>) {
        let left = self.members.iter().filter(|(_, value)| !value.is_null());
        for (name, _) in left.take(Issue::SHOWN_MAX + 1) {
            let pattern = below(&self.pattern, name);
            let field = self.fields.iter().find(|field| field.path == pattern);
            let message = match field {
                Some(VendorField {
                    support: Support::Refused,
                    note,
                    ..
                }) => format!("is not supported: {note}"),
                Some(_) | None => unknown("is not a known field", name, self.known()),
            };
            issues.push(Issue::new(below(&self.path, &shortened(name)), message));
        }
    }

    /// The names of the fields that the object may have.
    fn known(&self) -> impl Iterator<Item = &'static str> {
        let supported = self.fields.iter();
        let supported = supported.filter(|field| field.support != Support::Refused);
        supported.filter_map(|field| {
            let rest = match self.pattern.as_str() {
                "" => field.path,
                pattern => field.path.strip_prefix(pattern)?.strip_prefix('.')?,
            };
            (!rest.contains(['.', '['])).then_some(rest)
        })
    }
}

fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}
