//! A vendor's message as the JSON of `POST /v1/send`.

use poem_openapi::types::ParseFromJSON as _;
use serde_json::{Map, Value};
use waypost_core::acceptance::draft::Draft;
use waypost_core::clock::Clock;
use waypost_core::issue::Issue;

use super::paths::FieldPaths;
use crate::middleware::auth::Caller;
use crate::request::large_text::LargeTexts;
use crate::v1::send_request::SendMessageRequest;

/// A vendor's message as the JSON of `POST /v1/send`. Without `Debug`, so that it is never logged.
#[derive(Default)]
pub(super) struct Translation {
    send: Map<String, Value>,
    paths: FieldPaths,
    /// Mistakes, under the vendor's names.
    pub(super) issues: Vec<Issue>,
}

/// A draft, and the vendor's names of its fields.
pub(super) struct VendorDraft {
    pub(super) draft: Draft,
    pub(super) paths: FieldPaths,
}

impl Translation {
    /// Sets our field `ours`, made of the vendor's field `theirs`.
    pub(super) fn put(&mut self, ours: &str, theirs: impl Into<String>, value: Value) {
        self.send.insert(ours.to_owned(), value);
        self.paths.add(ours, theirs);
    }

    /// Notes of which field of the vendor ours is or would be made, for issues.
    pub(super) fn name(&mut self, ours: impl Into<String>, theirs: impl Into<String>) {
        self.paths.add(ours, theirs);
    }

    /// Notes a mistake.
    pub(super) fn refuse(&mut self, theirs: impl Into<String>, message: impl Into<String>) {
        self.issues.push(Issue::new(theirs, message));
    }

    /// The draft, checked as for `POST /v1/send`.
    ///
    /// # Errors
    /// All mistakes, under the vendor's names.
    pub(super) fn draft(
        self,
        texts: &LargeTexts,
        clock: &Clock,
        caller: &Caller,
    ) -> Result<VendorDraft, Vec<Issue>> {
        let Self {
            send,
            paths,
            mut issues,
        } = self;
        let send = Some(Value::Object(send));
        let request = texts
            .clone()
            .scope(|| SendMessageRequest::parse_from_json(send));
        let checked = request
            .map_err(|error| vec![Issue::new("", error.into_message())])
            .and_then(|request| request.check(Vec::new(), clock, caller));
        match checked {
            Ok(draft) if issues.is_empty() => Ok(VendorDraft { draft, paths }),
            Ok(_) => Err(issues),
            Err(found) => {
                // A field with a mistake was not translated, so ours is missing.
                let mut found = paths.issues(found);
                found.retain(|issue| !issues.iter().any(|other| is_about(other, issue)));
                issues.extend(found);
                Err(issues)
            }
        }
    }
}

/// Whether `other` is about the same field as `issue`, or about one within it.
fn is_about(other: &Issue, issue: &Issue) -> bool {
    let rest = other.path.strip_prefix(issue.path.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
