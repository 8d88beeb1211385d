//! Mailbox providers of recipients in requests.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::routing::mailbox_provider::MailboxProvider;

use crate::fields::{list, list_of_strings, schema};
use crate::validate::Field;

/// Mailbox providers, without repetitions.
#[derive(Debug, Default)]
pub(crate) struct MailboxProviderList(pub(crate) Vec<MailboxProvider>);

impl Field for MailboxProviderList {
    fn schema() -> MetaSchemaRef {
        schema("array", |list| {
            list.items = Some(Box::new(MailboxProvider::schema()));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = list_of_strings(value)?;
        let mut providers: Vec<MailboxProvider> = Vec::new();
        for provider in list(items, 0, MailboxProvider::ALL.len(), "mailbox providers")? {
            if !providers.contains(&provider) {
                providers.push(provider);
            }
        }
        Ok(Self(providers))
    }
}
