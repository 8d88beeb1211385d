//! From our field paths to a vendor's.

use waypost_core::issue::Issue;

use crate::error::Failure;

/// By which of a vendor's fields ours were made. A path that is not listed, and below no listed
/// one, keeps its name.
#[derive(Debug, Default)]
pub(super) struct FieldPaths(Vec<(String, String)>);

impl FieldPaths {
    /// Notes that our field `ours`, and all below it, was made of `theirs`.
    pub(super) fn add(&mut self, ours: impl Into<String>, theirs: impl Into<String>) {
        self.0.push((ours.into(), theirs.into()));
    }

    /// The vendor's path of one of ours: that of the longest listed path above it, and the rest.
    pub(super) fn theirs(&self, path: &str) -> String {
        let above = self.0.iter().filter_map(|(ours, theirs)| {
            let rest = path.strip_prefix(ours.as_str())?;
            (rest.is_empty() || rest.starts_with('.')).then_some((ours.len(), theirs, rest))
        });
        match above.max_by_key(|(length, ..)| *length) {
            Some((_, theirs, rest)) => format!("{theirs}{rest}"),
            None => path.to_owned(),
        }
    }

    /// The issues under the vendor's names.
    pub(super) fn issues(&self, issues: Vec<Issue>) -> Vec<Issue> {
        let renamed = issues.into_iter().map(|issue| Issue {
            path: self.theirs(&issue.path),
            ..issue
        });
        renamed.collect()
    }

    /// The failure with its paths under the vendor's names.
    pub(super) fn failure(&self, failure: Failure) -> Failure {
        rename(failure, |issues| self.issues(issues))
    }
}

/// The failure with its paths below that of a message of a batch.
pub(super) fn under(parent: &str, failure: Failure) -> Failure {
    rename(failure, |issues| {
        let renamed = issues.into_iter().map(|issue| issue.under(parent));
        renamed.collect()
    })
}

fn rename(failure: Failure, issues_of: impl FnOnce(Vec<Issue>) -> Vec<Issue>) -> Failure {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other failures name no field"
    )]
    match failure {
        Failure::Invalid(issues) => Failure::Invalid(issues_of(issues)),
        Failure::UnprocessableFields(reason, issues) => {
            Failure::UnprocessableFields(reason, issues_of(issues))
        }
        Failure::Unprocessable {
            message,
            path: Some(path),
            reason,
        } => {
            let issues = issues_of(vec![Issue::new(path, message)]);
            Failure::UnprocessableFields(reason, issues)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_above_decides() {
        let mut paths = FieldPaths::default();
        paths.add("attachments", "Attachments");
        paths.add("attachments.1.contentId", "Attachments.1.ContentID");
        paths.add("to.0", "personalizations.3.to.0.email");
        for (ours, theirs) in [
            ("attachments", "Attachments"),
            ("attachments.1.filename", "Attachments.1.filename"),
            ("attachments.1.contentId", "Attachments.1.ContentID"),
            ("attachmentsOf", "attachmentsOf"),
            ("to.0", "personalizations.3.to.0.email"),
            ("to.01", "to.01"),
            ("", ""),
        ] {
            assert_eq!(paths.theirs(ours), theirs);
        }
    }
}
