//! How event secrets are read from requests. Which field they must have depends on
//! the provider type, so they are read in a second step, as credentials are.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::provider::event_secrets::FIELDS;

use crate::fields::{kind_of, schema};
use crate::validate::{Field, problem};

/// What the document says of the fields, in the order of [`FIELDS`].
const DESCRIPTIONS: [&str; FIELDS.len()] = [
    "SENDGRID: the verification key of the event webhook, as SendGrid shows it.",
    "MAILGUN: the account's HTTP webhook signing key.",
    "SES: the ARN of the SNS topic that the configuration set publishes to, in the account's region.",
];

/// An account's event secrets as given.
#[derive(Debug)]
pub(crate) struct EventSecretsObject(pub(crate) Value);

impl Field for EventSecretsObject {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            for (name, description) in FIELDS.into_iter().zip(DESCRIPTIONS) {
                let field = schema("string", |field| {
                    field.description = Some(description);
                    field.min_length = Some(1);
                    field.nullable = true;
                });
                object.properties.push((name, field));
            }
            // As in the example of the account: SendGrid's.
            object.example = Some(serde_json::json!({
                "publicKey": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
            }));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        if !value.is_object() {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        }
        Ok(Self(value))
    }
}
