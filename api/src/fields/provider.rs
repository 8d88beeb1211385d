//! Credentials and event secrets of provider accounts in requests.
//!
//! The fields that credentials and event secrets must have depend on the provider type. So
//! a handler reads the JSON object here first and parses it for its provider type in a
//! second step.

use std::collections::BTreeSet;

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

/// The fields of the credentials of one provider type in the document: names, whether they
/// are required, and descriptions.
struct CredentialsForm {
    title: &'static str,
    fields: &'static [(&'static str, bool, &'static str)],
}

const FORMS: [CredentialsForm; 5] = [
    CredentialsForm {
        title: "SendgridCredentials",
        fields: &[
            ("apiKey", true, "The API key."),
            ("region", false, "`global` (the default) or `eu`."),
        ],
    },
    CredentialsForm {
        title: "PostmarkCredentials",
        fields: &[
            ("serverToken", true, "The token of the server."),
            (
                "accountToken",
                false,
                "The token of the account, which is needed to list and add domains.",
            ),
            (
                "messageStream",
                false,
                "The message stream to send through.",
            ),
        ],
    },
    CredentialsForm {
        title: "MailgunCredentials",
        fields: &[
            ("apiKey", true, "The API key."),
            ("domain", true, "The sending domain."),
            ("region", false, "`us` (the default) or `eu`."),
        ],
    },
    CredentialsForm {
        title: "SesCredentials",
        fields: &[
            ("accessKeyId", true, "The id of the access key."),
            ("secretAccessKey", true, "The secret access key."),
            (
                "sessionToken",
                false,
                "The session token of temporary credentials.",
            ),
            (
                "configurationSet",
                false,
                "The configuration set that publishes events.",
            ),
            ("region", true, "The region, such as `eu-central-1`."),
        ],
    },
    CredentialsForm {
        title: "SmtpCredentials",
        fields: &[
            (
                "host",
                true,
                "The host name or IP address of the mail server.",
            ),
            (
                PORT,
                false,
                "The port. The default is 587, with `tls` `implicit` 465, with `none` 25.",
            ),
            (
                "username",
                false,
                "The user name to log in with, together with `password`.",
            ),
            ("password", false, "The password of `username`."),
            (
                "tls",
                false,
                "`starttls` (the default), `implicit` or `none`.",
            ),
        ],
    },
];

/// The one field that is not text.
const PORT: &str = "port";

fn credential_field(name: &str, description: &'static str) -> MetaSchemaRef {
    if name == PORT {
        return schema("integer", |port| {
            port.description = Some(description);
            port.minimum = Some(1.0);
            port.maximum = Some(f64::from(u16::MAX));
            port.example = Some(Value::from(587));
        });
    }
    let example = match name {
        "accessKeyId" => "AKIAIOSFODNN7EXAMPLE",
        "apiKey" => "SG.example",
        "configurationSet" => "waypost",
        "domain" => "example.com",
        "host" => "smtp.example.com",
        "messageStream" => "outbound",
        "region" => "eu",
        "tls" => "starttls",
        "username" => "waypost",
        _ => "secret",
    };
    schema("string", |field| {
        field.description = Some(description);
        field.min_length = Some(1);
        field.example = Some(Value::from(example));
    })
}

impl CredentialsForm {
    fn schema(&self) -> MetaSchemaRef {
        schema("object", |object| {
            object.title = Some(self.title.to_owned());
            for (name, is_required, description) in self.fields {
                let field = credential_field(name, description);
                object.properties.push((name, field));
                if *is_required {
                    object.required.push(name);
                }
            }
        })
    }
}

impl Field for CredentialsObject {
    fn schema() -> MetaSchemaRef {
        schema("", |credentials| {
            credentials.title = Some("ProviderCredentials".to_owned());
            credentials.any_of = FORMS.iter().map(CredentialsForm::schema).collect();
            credentials.example = Some(serde_json::json!({ "apiKey": "SG.example" }));
        })
    }

    /// Only checks that every given field is a non-empty string and the port is a port.
    /// `Credentials::parse` checks the required fields of the provider type.
    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(fields) = &value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let names = FORMS.iter().flat_map(|form| form.fields);
        let names: BTreeSet<&str> = names.map(|(name, ..)| *name).collect();
        let issues = names
            .into_iter()
            .filter(|name| *name != PORT)
            .filter_map(|name| match fields.get(name) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) if text.is_empty() => {
                    Some(Issue::new(name, "must not be empty"))
                }
                Some(Value::String(_)) => None,
                Some(other) => Some(Issue::new(
                    name,
                    format!("must be a string, not {}", kind_of(other)),
                )),
            });
        let mut issues: Vec<Issue> = issues.collect();
        if let Some(port) = fields.get(PORT).filter(|port| !port.is_null())
            && !port
                .as_u64()
                .is_some_and(|port| (1..=65_535).contains(&port))
        {
            issues.push(Issue::new(PORT, "must be a whole number from 1 to 65535"));
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
            object.title = Some("EventSecrets".to_owned());
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
