//! A personalization: who gets a message, and what is its own.

use std::collections::HashSet;

use chrono::DateTime;
use serde_json::{Map, Value};
use waypost_core::address::{AddressHash, Mailbox};
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;

use super::substitutions::TextSubstitutions;
use crate::compat::given::Given;
use crate::compat::texts::{mailbox, text, texts};
use crate::fields::kind_of;

const EMAIL_AND_NAME: [&str; 2] = ["email", "name"];

/// A personalization of a request.
pub(super) struct Personalization {
    /// Its path in the request.
    pub(super) path: String,
    pub(super) to: Vec<Mailbox>,
    pub(super) cc: Vec<Mailbox>,
    pub(super) bcc: Vec<Mailbox>,
    pub(super) from: Option<Mailbox>,
    pub(super) subject: Option<String>,
    pub(super) headers: Option<Map<String, Value>>,
    pub(super) substitutions: Option<TextSubstitutions>,
    pub(super) data: Option<Value>,
    pub(super) custom_args: Option<Map<String, Value>>,
    pub(super) send_at: Option<SendAt>,
}

/// When a message is sent, with its path in the request.
#[derive(Clone)]
pub(super) struct SendAt {
    pub(super) at: Timestamp,
    pub(super) path: String,
}

impl Personalization {
    pub(super) fn take(path: String, mut given: Given, issues: &mut Vec<Issue>) -> Self {
        if !given.has("to") {
            issues.push(Issue::new(given.place("to"), "is required"));
        }
        let has_to = given.has("to");
        let to = mailboxes(&mut given, "to", issues);
        if has_to && to.as_ref().is_some_and(Vec::is_empty) {
            issues.push(Issue::new(given.place("to"), "must have an address"));
        }
        let cc = mailboxes(&mut given, "cc", issues);
        let bcc = mailboxes(&mut given, "bcc", issues);
        let found = Self {
            to: to.unwrap_or_default(),
            cc: cc.unwrap_or_default(),
            bcc: bcc.unwrap_or_default(),
            from: one_mailbox(&mut given, "from", issues),
            subject: text(&mut given, "subject", issues),
            headers: texts(&mut given, "headers", issues),
            substitutions: texts(&mut given, "substitutions", issues)
                .and_then(|pairs| TextSubstitutions::of(pairs, &path, issues)),
            data: given.take("dynamic_template_data"),
            custom_args: texts(&mut given, "custom_args", issues),
            send_at: send_at(&mut given, issues),
            path,
        };
        given.finish(issues);
        found.check_repeated(issues);
        found
    }

    /// Whether it has one address, and nothing of its own but data: then it can be a recipient of
    /// a message with others.
    pub(super) fn is_plain(&self) -> bool {
        let Self {
            path: _,
            to,
            cc,
            bcc,
            from,
            subject,
            headers,
            substitutions,
            data: _,
            custom_args: _,
            send_at,
        } = self;
        to.len() == 1
            && cc.is_empty()
            && bcc.is_empty()
            && from.is_none()
            && subject.is_none()
            && headers.is_none()
            && substitutions.is_none()
            && send_at.is_none()
    }

    /// The hashes of its addresses.
    pub(super) fn hashes(&self) -> impl Iterator<Item = AddressHash> {
        let all = [&self.to, &self.cc, &self.bcc].into_iter().flatten();
        all.map(|mailbox| mailbox.address().hash())
    }

    /// As with SendGrid, each address stands once in a personalization.
    fn check_repeated(&self, issues: &mut Vec<Issue>) {
        let mut seen = HashSet::new();
        if !self.hashes().all(|hash| seen.insert(hash)) {
            let rule = "must not have an address twice in to, cc and bcc";
            issues.push(Issue::new(self.path.clone(), rule));
        }
    }
}

/// Takes a field that is an address with a name.
pub(super) fn one_mailbox(
    given: &mut Given,
    name: &str,
    issues: &mut Vec<Issue>,
) -> Option<Mailbox> {
    let mut object = given.object(name, issues)?;
    let found = mailbox(&mut object, EMAIL_AND_NAME, issues);
    object.finish(issues);
    found
}

/// Takes a field that is a list of addresses with names.
pub(super) fn mailboxes(
    given: &mut Given,
    name: &str,
    issues: &mut Vec<Issue>,
) -> Option<Vec<Mailbox>> {
    let objects = given.objects(name, issues)?;
    let found = objects.into_iter().filter_map(|mut object| {
        let found = mailbox(&mut object, EMAIL_AND_NAME, issues);
        object.finish(issues);
        found
    });
    Some(found.collect())
}

/// Takes `send_at`, in seconds since 1970.
pub(super) fn send_at(given: &mut Given, issues: &mut Vec<Issue>) -> Option<SendAt> {
    let value = given.take("send_at")?;
    let path = given.place("send_at");
    let seconds = value.as_i64();
    let at = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    if let Some(at) = at {
        return Some(SendAt { at, path });
    }
    let message = match seconds {
        Some(_) => "must be a time up to a year ahead".to_owned(),
        None => format!(
            "must be a time in whole seconds since 1970, not {}",
            kind_of(&value)
        ),
    };
    issues.push(Issue::new(path, message));
    None
}
