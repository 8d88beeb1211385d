//! The recipients of messages in requests, and other lists of mailboxes.

use poem_openapi::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type as _;
use serde_json::Value;
use waypost_core::acceptance::draft::{self, DraftRecipient, METADATA_BYTES_MAX, RECIPIENTS_MAX};
use waypost_core::address::{EmailAddress, Mailbox};
use waypost_core::issue::Issue;

use crate::fields::content::{JsonObject, Variables};
use crate::fields::{kind_of, list, object, schema, string};
use crate::validate::{Field, Validated, problem};

/// One or more recipients, without repeated addresses.
#[derive(Debug)]
pub(crate) struct Recipients(pub(crate) Listed);

/// Recipients. Without the addresses in `Debug`, so that they are never logged.
pub(crate) struct Listed(pub(crate) Vec<DraftRecipient>);

impl std::fmt::Debug for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} recipients", self.0.len())
    }
}

/// A recipient with data of its own.
#[derive(Debug, Object)]
#[oai(rename = "MessageRecipient")]
struct RecipientObject {
    /// The address.
    email: Validated<EmailAddress>,
    /// The display name.
    name: Validated<Option<DisplayName>>,
    /// Variables of this recipient, up to 256 KiB. Each takes the place of the message's
    /// variable of the same name. The message is rendered for this recipient.
    variables: Validated<Option<Variables>>,
    /// Metadata of this recipient; up to 64 KiB, together with that of the message. Each
    /// takes the place of the message's entry of the same name in the webhook events of
    /// this recipient.
    metadata: Validated<Option<JsonObject<METADATA_BYTES_MAX>>>,
}

/// A display name. `Mailbox` checks it.
#[derive(Debug)]
struct DisplayName(String);

impl Field for DisplayName {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.max_length = Some(255);
            schema.example = Some(Value::from("Ada Lovelace"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Ok(Self(string(value)?.trim().to_owned()))
    }
}

impl RecipientObject {
    fn check(self) -> Result<DraftRecipient, Vec<Issue>> {
        let mut issues = Vec::new();
        let email = self.email.take("email", &mut issues);
        let name = self.name.take("name", &mut issues);
        let variables = self.variables.take("variables", &mut issues);
        let metadata = self.metadata.take("metadata", &mut issues);
        let recipient = (|| {
            let mailbox = match Mailbox::named(name?.map(|name| name.0), email?) {
                Ok(mailbox) => mailbox,
                Err(error) => {
                    issues.push(Issue::new("name", error.to_string()));
                    return None;
                }
            };
            Some(DraftRecipient {
                variables: variables?.map(|variables| variables.0),
                metadata: metadata?.map(|metadata| metadata.0),
                ..mailbox.into()
            })
        })();
        recipient.filter(|_| issues.is_empty()).ok_or(issues)
    }
}

/// One recipient: a mailbox, or an object.
struct OneRecipient(DraftRecipient);

impl Field for OneRecipient {
    fn schema() -> MetaSchemaRef {
        schema("", |schema| {
            schema.one_of = vec![Mailbox::schema(), RecipientObject::schema_ref()];
        })
    }

    fn register(registry: &mut Registry) {
        RecipientObject::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match value {
            Value::String(_) => Ok(Self(Mailbox::read(value)?.into())),
            Value::Object(_) => object::<RecipientObject>(value)?.check().map(Self),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let kind = kind_of(&value);
                problem(format!("must be a string or an object, not {kind}"))
            }
        }
    }
}

impl Field for Recipients {
    fn schema() -> MetaSchemaRef {
        let list = schema("array", |list| {
            list.items = Some(Box::new(OneRecipient::schema()));
            list.min_items = Some(1);
            list.max_items = Some(RECIPIENTS_MAX);
        });
        schema("", |schema| {
            schema.title = Some("Recipients".to_owned());
            schema.one_of = vec![Mailbox::schema(), list];
        })
    }

    fn register(registry: &mut Registry) {
        OneRecipient::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        if value.is_string() {
            let only = Mailbox::read(value)?;
            return Ok(Self(Listed(vec![only.into()])));
        }
        let Value::Array(items) = value else {
            let kind = kind_of(&value);
            return problem(format!(
                "must be a string or an array of strings and objects, not {kind}"
            ));
        };
        let listed = list::<OneRecipient>(items, 1, RECIPIENTS_MAX, "recipients")?;
        let listed = listed.into_iter().enumerate();
        let listed =
            listed.map(|(index, OneRecipient(recipient))| DraftRecipient { index, ..recipient });
        Ok(Self(Listed(draft::distinct(listed.collect()))))
    }
}

/// Up to `MAX` mailboxes: one, or an array, which may be empty.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes<const MAX: usize>(pub(crate) Vec<Mailbox>);

impl<const MAX: usize> Field for Mailboxes<MAX> {
    fn schema() -> MetaSchemaRef {
        let list = schema("array", |list| {
            list.items = Some(Box::new(Mailbox::schema()));
        });
        // One schema for every MAX; the descriptions of the fields name the limits.
        schema("", |schema| {
            schema.title = Some("Addresses".to_owned());
            schema.one_of = vec![Mailbox::schema(), list];
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match value {
            Value::String(_) => Ok(Self(vec![Mailbox::read(value)?])),
            Value::Array(items) => list(items, 0, MAX, "addresses").map(Self),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                let kind = kind_of(&value);
                problem(format!(
                    "must be a string or an array of strings, not {kind}"
                ))
            }
        }
    }
}
