//! Texts and addresses of vendors' requests.

use serde_json::{Map, Value};
use waypost_core::address::{EmailAddress, Mailbox};
use waypost_core::issue::Issue;

use super::given::Given;
use crate::fields::kind_of;

/// Takes a field that is a string.
pub(super) fn text(given: &mut Given, name: &str, issues: &mut Vec<Issue>) -> Option<String> {
    let value = given.take(name)?;
    let found = kind_of(&value);
    if let Value::String(text) = value {
        return Some(text);
    }
    issues.push(wrong_kind(given, name, "a string", found));
    None
}

/// Takes a field that is true or false.
pub(super) fn flag(given: &mut Given, name: &str, issues: &mut Vec<Issue>) -> Option<bool> {
    let value = given.take(name)?;
    let found = kind_of(&value);
    if let Value::Bool(flag) = value {
        return Some(flag);
    }
    issues.push(wrong_kind(given, name, "a boolean", found));
    None
}

/// Takes a field that is an object of strings.
pub(super) fn texts(
    given: &mut Given,
    name: &str,
    issues: &mut Vec<Issue>,
) -> Option<Map<String, Value>> {
    let value = given.take(name)?;
    let found = kind_of(&value);
    let Value::Object(members) = value else {
        issues.push(wrong_kind(given, name, "an object", found));
        return None;
    };
    let wrong = members.iter().filter(|(_, value)| !value.is_string());
    let wrong = wrong.map(|(member, value)| {
        let message = format!("must have strings only; {member:?} has {}", kind_of(value));
        Issue::new(given.place(name), message)
    });
    issues.extend(wrong.take(Issue::SHOWN_MAX));
    Some(members)
}

fn wrong_kind(given: &Given, name: &str, wanted: &str, found: &str) -> Issue {
    let message = format!("must be {wanted}, not {found}");
    Issue::new(given.place(name), message)
}

/// The address in a field, and the display name in another.
pub(super) fn mailbox(
    given: &mut Given,
    [address, name]: [&str; 2],
    issues: &mut Vec<Issue>,
) -> Option<Mailbox> {
    if !given.has(address) {
        issues.push(Issue::new(given.place(address), "is required"));
    }
    let display_name = text(given, name, issues);
    let parsed = EmailAddress::parse(&text(given, address, issues)?);
    let address = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            issues.push(Issue::new(given.place(address), error.to_string()));
            return None;
        }
    };
    let display_name = display_name.map(|name| name.trim().to_owned());
    match Mailbox::named(display_name, address) {
        Ok(mailbox) => Some(mailbox),
        Err(error) => {
            issues.push(Issue::new(given.place(name), error.to_string()));
            None
        }
    }
}
