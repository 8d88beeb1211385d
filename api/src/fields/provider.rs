//! Credentials and event secrets of provider accounts in requests.
//!
//! The fields that credentials and event secrets must have depend on the provider type. So
//! a handler reads the JSON object here first and parses it for its provider type in a
//! second step.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::provider::event_secrets::FIELDS;

use crate::fields::{kind_of, schema};
use crate::validate::{Field, problem};

/// The credentials of a provider account, as given and not yet parsed for its provider
/// type.
#[derive(Debug)]
pub(crate) struct CredentialsObject(pub(crate) Value);

/// The fields of credentials, with their descriptions in the document.
const CREDENTIAL_FIELDS: [(&str, &str); 14] = [
    ("apiKey", "SENDGRID, MAILGUN: required."),
    ("serverToken", "POSTMARK: required."),
    ("accountToken", "POSTMARK: needed to list and add domains."),
    (
        "messageStream",
        "POSTMARK: the message stream to send through.",
    ),
    ("domain", "MAILGUN: required. The sending domain."),
    ("accessKeyId", "SES: required."),
    ("secretAccessKey", "SES: required."),
    (
        "sessionToken",
        "SES: the session token of temporary credentials.",
    ),
    (
        "configurationSet",
        "SES: the configuration set that publishes events.",
    ),
    (
        "region",
        "SES: required, such as `eu-central-1`. SENDGRID: `global` or `eu`. MAILGUN: `us` or `eu`.",
    ),
    (
        "host",
        "SMTP: required. The host name or IP address of the mail server.",
    ),
    (
        "username",
        "SMTP: the user name to log in with, together with `password`.",
    ),
    ("password", "SMTP: the password of `username`."),
    (
        "tls",
        "SMTP: `starttls` (the default), `implicit` or `none`.",
    ),
];

impl Field for CredentialsObject {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            for (name, description) in CREDENTIAL_FIELDS {
                let field = schema("string", |field| {
                    field.description = Some(description);
                    field.min_length = Some(1);
                    field.nullable = true;
                });
                object.properties.push((name, field));
            }
            let port = schema("integer", |port| {
                port.description = Some(
                    "SMTP: the port of the mail server. The default is 587, with `tls` `implicit` 465, with `none` 25.",
                );
                port.minimum = Some(1.0);
                port.maximum = Some(f64::from(u16::MAX));
                port.nullable = true;
            });
            object.properties.push(("port", port));
            object.example = Some(serde_json::json!({ "apiKey": "SG.example" }));
        })
    }

    /// Only checks that every given field is a non-empty string and the port is a port.
    /// `Credentials::parse` checks the required fields of the provider type.
    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(fields) = &value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let issues = CREDENTIAL_FIELDS
            .iter()
            .filter_map(|(name, _)| match fields.get(*name) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) if text.is_empty() => {
                    Some(Issue::new(*name, "must not be empty"))
                }
                Some(Value::String(_)) => None,
                Some(other) => Some(Issue::new(
                    *name,
                    format!("must be a string, not {}", kind_of(other)),
                )),
            });
        let mut issues: Vec<Issue> = issues.collect();
        if let Some(port) = fields.get("port").filter(|port| !port.is_null())
            && !port
                .as_u64()
                .is_some_and(|port| (1..=65_535).contains(&port))
        {
            issues.push(Issue::new("port", "must be a whole number from 1 to 65535"));
        }
        if issues.is_empty() {
            Ok(Self(value))
        } else {
            Err(issues)
        }
    }
}

/// The descriptions in the document, in the order of [`FIELDS`].
const DESCRIPTIONS: [&str; FIELDS.len()] = [
    "SENDGRID: the verification key of the event webhook, as SendGrid shows it.",
    "MAILGUN: the HTTP webhook signing key of the account.",
    "SES: the ARN of the SNS topic that the configuration set publishes to. It must be in the region of the account.",
];

/// The event secrets of an account, as given and not yet parsed for its provider type.
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
            // SendGrid's, as in the example of the account.
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
