//! The filters of the list of messages.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::{Value, json};
use waypost_core::address::{AddressHash, EmailAddress};
use waypost_core::issue::Issue;
use waypost_core::message::MessageStatus;
use waypost_core::message::list::Sender;

use crate::fields::{schema, string};
use crate::validate::{Field, problem};

/// The longest id of a provider that is searched for, in bytes.
const PROVIDER_ID_BYTES_MAX: usize = 998;

/// One or more statuses, separated by commas.
pub(crate) struct Statuses(pub(crate) Vec<MessageStatus>);

impl Field for Statuses {
    fn schema() -> MetaSchemaRef {
        schema("array", |schema| {
            schema.min_items = Some(1);
            schema.max_items = Some(MessageStatus::ALL.len());
            schema.items = Some(Box::new(MessageStatus::schema()));
            schema.example = Some(json!(["BOUNCED", "FAILED"]));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        let mut statuses = Vec::new();
        for word in text.split(',') {
            let Ok(status) = MessageStatus::read(Value::from(word)) else {
                let known = MessageStatus::ALL.map(MessageStatus::as_str).join(", ");
                return problem(format!(
                    "must be one or more of {known}, separated by commas"
                ));
            };
            if !statuses.contains(&status) {
                statuses.push(status);
            }
        }
        // All of them restrict nothing.
        if statuses.len() == MessageStatus::ALL.len() {
            statuses.clear();
        }
        Ok(Self(statuses))
    }
}

/// The address of a recipient.
pub(crate) struct Recipient(pub(crate) AddressHash);

impl Field for Recipient {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| schema.format = Some("email"))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match EmailAddress::parse(&string(value)?) {
            Ok(address) => Ok(Self(address.hash())),
            Err(error) => problem(error.to_string()),
        }
    }
}

/// An address or a domain.
pub(crate) struct FromFilter(pub(crate) Sender);

impl Field for FromFilter {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(320);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Sender::parse(&string(value)?) {
            Some(sender) => Ok(Self(sender)),
            None => problem("must be an email address or a domain, such as example.com"),
        }
    }
}

/// The message id of a provider.
pub(crate) struct ProviderMessageId(pub(crate) String);

impl Field for ProviderMessageId {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(PROVIDER_ID_BYTES_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        if text.is_empty() || text.contains('\0') {
            return problem("must be the message id of a provider");
        }
        if text.len() > PROVIDER_ID_BYTES_MAX {
            return problem(format!(
                "must not be longer than {PROVIDER_ID_BYTES_MAX} bytes"
            ));
        }
        Ok(Self(text))
    }
}
