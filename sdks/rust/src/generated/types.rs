// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

//! What requests and answers consist of.
//!
//! - A request is made by `new`, with what it needs, and a method for each other field; or as a struct with
//!   `..Default::default()`.
//! - An answer keeps the fields that this version does not know in `unknown_fields`.
//! - An enum has the variant `Other` for values that this version does not know. They are written as they were read.

use chrono::{DateTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::runtime::call::Call;

/// An enum of texts that may grow.
macro_rules! open_enum {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = concat!("`", $value, "`")]
                $variant,
            )*
            /// A value that this version does not know.
            Other(String),
        }

        impl $name {
            /// The value as it is in JSON.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Other(value) => value,
                }
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                match value {
                    $($value => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self::from(value.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

/// The answer to an invitation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct AcceptInvitationRequest {
    /// The token in the link, after `#`.
    pub token: String,
    /// The name of a new user. The default is the part of the address before the `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The password that a new user gets, of 12 to 128 characters; or the present password of the user.
    pub password: String,
    /// The code of the second factor, or a recovery code. Required if the user has a second factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl AcceptInvitationRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(token: impl Into<String>, password: impl Into<String>) -> Self {
        Self { token: token.into(), name: Default::default(), password: password.into(), code: Default::default() }
    }

    /// The name of a new user.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The code of the second factor, or a recovery code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
}

/// How long half and 95 % of the accepted calls took at most, in milliseconds, accurate to 10 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcceptLatency {
    /// The time that half of the messages did not exceed, in milliseconds.
    pub p50: i64,
    /// The time that 95 % of the messages did not exceed, in milliseconds.
    pub p95: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The new password.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct AcceptPasswordResetRequest {
    /// The token in the link, after `#`.
    pub token: String,
    /// The new password, of 12 to 128 characters.
    pub password: String,
}

impl AcceptPasswordResetRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(token: impl Into<String>, password: impl Into<String>) -> Self {
        Self { token: token.into(), password: password.into() }
    }
}

/// An API key. Its secret is returned only once, when the key is created or rotated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApiKey {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// The first characters of the secret, to tell keys apart.
    pub prefix: String,
    /// Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
    /// another with `wp_live_`.
    #[serde(rename = "isTest")]
    pub is_test: bool,
    /// What the key may do.
    pub permissions: Vec<Permission>,
    /// The IP addresses and networks that the key can be used from; if the list is empty, from anywhere.
    #[serde(rename = "allowedIps")]
    pub allowed_ips: Vec<String>,
    /// When the key expires; null means never.
    #[serde(rename = "expiresAt")]
    pub expires_at: Option<DateTime<Utc>>,
    /// When the key was last used, to the minute.
    #[serde(rename = "lastUsedAt")]
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// The id of the user or of the API key that created this key, or `system` if the operator created it.
    #[serde(rename = "createdBy")]
    pub created_by: String,
    /// When the key was revoked; null if it was not.
    #[serde(rename = "revokedAt")]
    pub revoked_at: Option<DateTime<Utc>>,
    /// When the secret that the last rotation replaced stops working, or stopped.
    #[serde(rename = "oldSecretValidUntil")]
    pub old_secret_valid_until: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An API key with its secret, which is returned only once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApiKeyWithSecret {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// The first characters of the secret, to tell keys apart.
    pub prefix: String,
    /// Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
    /// another with `wp_live_`.
    #[serde(rename = "isTest")]
    pub is_test: bool,
    /// What the key may do.
    pub permissions: Vec<Permission>,
    /// The IP addresses and networks that the key can be used from; if the list is empty, from anywhere.
    #[serde(rename = "allowedIps")]
    pub allowed_ips: Vec<String>,
    /// When the key expires; null means never.
    #[serde(rename = "expiresAt")]
    pub expires_at: Option<DateTime<Utc>>,
    /// When the key was last used, to the minute.
    #[serde(rename = "lastUsedAt")]
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// The id of the user or of the API key that created this key, or `system` if the operator created it.
    #[serde(rename = "createdBy")]
    pub created_by: String,
    /// When the key was revoked; null if it was not.
    #[serde(rename = "revokedAt")]
    pub revoked_at: Option<DateTime<Utc>>,
    /// When the secret that the last rotation replaced stops working, or stopped.
    #[serde(rename = "oldSecretValidUntil")]
    pub old_secret_valid_until: Option<DateTime<Utc>>,
    /// The secret, for `Authorization: Bearer`. It cannot be retrieved again.
    pub key: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An attachment, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttachmentDetail {
    /// The file name that the recipient sees.
    pub filename: String,
    /// The media type.
    #[serde(rename = "contentType")]
    pub content_type: String,
    /// The id by which the HTML body shows the file; null if it does not.
    #[serde(rename = "contentId")]
    pub content_id: Option<String>,
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 of the content, as lower-case hexadecimal.
    pub sha256: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Who made the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditActor {
    /// The type of the actor.
    pub r#type: AuditActorType,
    /// The id.
    pub id: Option<String>,
    /// The name of the actor at the time of the change.
    pub name: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Where the request came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditContext {
    /// The IP address of the client.
    pub ip: Option<String>,
    /// The `User-Agent` of the client.
    #[serde(rename = "userAgent")]
    pub user_agent: Option<String>,
    /// The id of the request, as in `X-Request-Id`.
    #[serde(rename = "requestId")]
    pub request_id: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditLogEntry {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The action, such as `provider.created`.
    pub action: String,
    /// When it happened.
    #[serde(rename = "occurredAt")]
    pub occurred_at: DateTime<Utc>,
    /// Who made the change.
    pub actor: AuditActor,
    /// The changed record.
    pub target: AuditTarget,
    /// Where the request came from.
    pub context: AuditContext,
    /// Details of the change: an object.
    pub metadata: Map<String, Value>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The changed record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditTarget {
    /// The type of the record, such as `provider`.
    pub r#type: String,
    /// The id.
    pub id: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A message of a batch: the fields of `POST /v1/send`, and an idempotency key.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct BatchMessage {
    /// One address or an array of up to 1,000, each with or without a display name. An item of the array can be an
    /// object with variables and metadata of this recipient. Each recipient gets a message of their own and does not
    /// see the other recipients, unless the message is shared. A repeated address gets one message.
    pub to: Recipients,
    /// One address or an array of addresses that get a copy and that all recipients see. With `cc` or `bcc`, the
    /// message is shared: all recipients get one mail and see the addresses of `to` and `cc`. A shared message has up
    /// to 50 addresses in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Addresses>,
    /// One address or an array of addresses that get a copy and that the other recipients do not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bcc: Option<Addresses>,
    /// `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail and see each other. The
    /// default is `shared` with `cc` or `bcc`, and else `private`. A shared message has no variables of single
    /// recipients, and no `unsubscribeGroupId` unless it has one address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryMode>,
    /// The sender. The domain must be verified on the provider account that sends the message; the setting
    /// `unverifiedDomains` can allow other domains. Required, unless `templateId` names a template whose version has
    /// a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The subject, on one line. With `templateId` or variables it is a Handlebars template, and the rendered subject
    /// must keep the same length limit. Required, unless `templateId` names a template whose version has a subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The HTML body. With `templateId` it replaces the template's HTML and is not rendered. With variables and
    /// without `templateId` it is a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The plain-text body. With `templateId` it replaces the template's text and is not rendered. With variables and
    /// without `templateId` it is a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// One address for replies or an array of up to 10. The default is that of the template's version, or else the
    /// sender.
    #[serde(rename = "replyTo", skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Addresses>,
    /// Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits and hyphens; a value
    /// is ASCII on one line (other characters as encoded words, RFC 2047). Headers that Waypost or the provider sets
    /// are refused: `From`, `To`, `Subject`, `Date`, `Message-ID`, `Content-*`, `DKIM-*`, `X-Waypost-*` and others.
    /// With `unsubscribeGroupId`, so is `List-Unsubscribe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<std::collections::BTreeMap<String, String>>,
    /// Up to 50 files. A file with a `contentId` is shown within the HTML body, which must not show `cid:` URLs of
    /// other ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<MessageAttachment>>,
    /// Up to 10 tags, for routing rules and analytics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`.
    #[serde(rename = "messageClass", skip_serializing_if = "Option::is_none")]
    pub message_class: Option<MessageClass>,
    /// Any JSON object of up to 64 KiB. It is stored with the message and included in its webhook events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The template to render. The current version is rendered when the message is accepted; later versions do not
    /// change the message.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// With `templateId`: the language of the version, as a language tag. Without a current version in this language,
    /// the next less exact one counts: `de-AT`, then `de`, then the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The variables of the template: an object of up to 256 KiB. Without `templateId`, `subject`, `html` and `text`
    /// are rendered with these variables (even if the object is empty). If neither the message nor a recipient has
    /// `variables`, they are sent unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// The unsubscribe group of the message. Recipients who unsubscribed from this group are dropped, in addition to
    /// those suppressed for all messages. Each recipient gets an unsubscribe link: at `{{unsubscribeUrl}}` in a body,
    /// or else at its end, and in the headers for the unsubscribe button of mail clients. Without a group, a body
    /// must not contain `{{unsubscribeUrl}}`, unless `variables` defines it.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
    /// Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The default is the
    /// organization's settings. A link with the attribute `data-waypost-no-track` is not tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Tracking>,
    /// When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until then its status is
    /// QUEUED. Suppressions and the account are decided at that time. The `Idempotency-Key` is valid until 24 hours
    /// after it.
    #[serde(rename = "scheduledAt", skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<DateTime<Utc>>,
    /// The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
    /// `scheduledAt`. Recipients to whom it was not sent before are dropped.
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The only provider account that may send the message, whatever the routing rules say. It must be active, and
    /// the sender's domain must be verified on it.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and
    /// nothing is counted. The default is whether the API key is a test key; with a test key it must not be false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// What becomes of a test. `delivered` is the default. `bounced`: a hard bounce. `complained`: delivered, then
    /// reported as spam. `deferred`: deferred, then delivered. `failed`: the provider refuses it. `suppressed`: all
    /// recipients are suppressed. `unknown`: the provider's answer is lost, and the rule's `onUnknown` decides.
    /// `failover`: the first account fails, and the next one takes it.
    #[serde(rename = "testOutcome", skip_serializing_if = "Option::is_none")]
    pub test_outcome: Option<TestOutcome>,
    /// Makes it safe to send this message again: in this or another batch, or with the same key as the
    /// `Idempotency-Key` of `POST /v1/send`. Without it, the message is protected by the `Idempotency-Key` of the
    /// batch, if there is one.
    #[serde(rename = "idempotencyKey", skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl BatchMessage {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(to: impl Into<Recipients>) -> Self {
        Self {
            to: to.into(),
            cc: Default::default(),
            bcc: Default::default(),
            delivery: Default::default(),
            from: Default::default(),
            subject: Default::default(),
            html: Default::default(),
            text: Default::default(),
            reply_to: Default::default(),
            headers: Default::default(),
            attachments: Default::default(),
            tags: Default::default(),
            message_class: Default::default(),
            metadata: Default::default(),
            template_id: Default::default(),
            locale: Default::default(),
            variables: Default::default(),
            unsubscribe_group_id: Default::default(),
            tracking: Default::default(),
            scheduled_at: Default::default(),
            expires_at: Default::default(),
            provider_account_id: Default::default(),
            test: Default::default(),
            test_outcome: Default::default(),
            idempotency_key: Default::default(),
        }
    }

    /// One address or an array of addresses that get a copy and that all recipients see.
    #[must_use]
    pub fn cc(mut self, cc: impl Into<Addresses>) -> Self {
        self.cc = Some(cc.into());
        self
    }

    /// One address or an array of addresses that get a copy and that the other recipients do not see.
    #[must_use]
    pub fn bcc(mut self, bcc: impl Into<Addresses>) -> Self {
        self.bcc = Some(bcc.into());
        self
    }

    /// `private`: each recipient of `to` gets a mail of their own.
    #[must_use]
    pub fn delivery(mut self, delivery: impl Into<DeliveryMode>) -> Self {
        self.delivery = Some(delivery.into());
        self
    }

    /// The sender.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// The subject, on one line.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// The HTML body.
    #[must_use]
    pub fn html(mut self, html: impl Into<String>) -> Self {
        self.html = Some(html.into());
        self
    }

    /// The plain-text body.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// One address for replies or an array of up to 10.
    #[must_use]
    pub fn reply_to(mut self, reply_to: impl Into<Addresses>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// Extra headers: up to 50 names with their values, 8 KiB in all.
    #[must_use]
    pub fn headers(mut self, headers: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.headers = Some(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// Up to 50 files.
    #[must_use]
    pub fn attachments(mut self, attachments: impl IntoIterator<Item = impl Into<MessageAttachment>>) -> Self {
        self.attachments = Some(attachments.into_iter().map(Into::into).collect());
        self
    }

    /// Up to 10 tags, for routing rules and analytics.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`.
    #[must_use]
    pub fn message_class(mut self, message_class: impl Into<MessageClass>) -> Self {
        self.message_class = Some(message_class.into());
        self
    }

    /// Any JSON object of up to 64 KiB.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// The template to render.
    #[must_use]
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.template_id = Some(template_id.into());
        self
    }

    /// With `templateId`: the language of the version, as a language tag.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The variables of the template: an object of up to 256 KiB.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// The unsubscribe group of the message.
    #[must_use]
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }

    /// Which tracking to add to the HTML body: a pixel for opens, redirects for clicks.
    #[must_use]
    pub fn tracking(mut self, tracking: impl Into<Tracking>) -> Self {
        self.tracking = Some(tracking.into());
        self
    }

    /// When to send the message, up to a year ahead: ISO 8601 with an offset from UTC.
    #[must_use]
    pub fn scheduled_at(mut self, scheduled_at: impl Into<DateTime<Utc>>) -> Self {
        self.scheduled_at = Some(scheduled_at.into());
        self
    }

    /// The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
    /// `scheduledAt`.
    #[must_use]
    pub fn expires_at(mut self, expires_at: impl Into<DateTime<Utc>>) -> Self {
        self.expires_at = Some(expires_at.into());
        self
    }

    /// The only provider account that may send the message, whatever the routing rules say.
    #[must_use]
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and
    /// nothing is counted.
    #[must_use]
    pub fn test(mut self, test: bool) -> Self {
        self.test = Some(test);
        self
    }

    /// What becomes of a test.
    #[must_use]
    pub fn test_outcome(mut self, test_outcome: impl Into<TestOutcome>) -> Self {
        self.test_outcome = Some(test_outcome.into());
        self
    }

    /// Makes it safe to send this message again: in this or another batch, or with the same key as the
    /// `Idempotency-Key` of `POST /v1/send`.
    #[must_use]
    pub fn idempotency_key(mut self, idempotency_key: impl Into<String>) -> Self {
        self.idempotency_key = Some(idempotency_key.into());
        self
    }
}

/// The result of one message of a batch: `messageId` and `status` if it was accepted (`messageId` is null if all its
/// recipients are suppressed), or `error` if it was rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchResult {
    /// The id of the message.
    #[serde(rename = "messageId", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// `queued`, or `suppressed` if all recipients are suppressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SendStatus>,
    /// Why the message was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The query of a breakdown, with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BreakdownQuery {
    /// The begin of the period.
    pub from: DateTime<Utc>,
    /// The end of the period, which is not part of it.
    pub to: DateTime<Utc>,
    /// By what the counts are grouped.
    #[serde(rename = "groupBy")]
    pub group_by: MetricsGroupBy,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A message after its cancellation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CancelledMessage {
    /// The id.
    pub id: String,
    /// The status of the message, as in the list: FAILED if all its recipients are cancelled.
    pub status: MessageStatus,
    /// The number of cancelled recipients, by this request and by earlier ones.
    #[serde(rename = "cancelledCount")]
    pub cancelled_count: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How to confirm a second factor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ConfirmTotpRequest {
    /// A code of the authenticator.
    pub code: String,
}

impl ConfirmTotpRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into() }
    }
}

/// An account to connect.
#[derive(Debug, Clone, PartialEq, Serialize)]

pub struct ConnectProviderRequest {
    /// An email provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The display name.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// The credentials. The required fields depend on `providerType`: `apiKey` for SENDGRID; `serverToken` for
    /// POSTMARK; `apiKey` and `domain` for MAILGUN; `accessKeyId`, `secretAccessKey` and `region` for SES; `host` for
    /// SMTP.
    pub credentials: ProviderCredentials,
    /// The secrets that verify the provider's events: `publicKey` for SENDGRID, `signingKey` for MAILGUN, `topicArn`
    /// for SES. POSTMARK takes none. If the provider's API offers the secret, registering the event webhook reads it.
    #[serde(rename = "eventSecrets", skip_serializing_if = "Option::is_none")]
    pub event_secrets: Option<EventSecrets>,
    /// Whether to register the account's `webhookUrl` with the provider. The default is true, or false if
    /// `eventSecrets` is given: you then set up the webhook at the provider.
    #[serde(rename = "registerEventWebhook", skip_serializing_if = "Option::is_none")]
    pub register_event_webhook: Option<bool>,
    /// The most calls to the provider per second, over all workers. The default is no limit.
    #[serde(rename = "maxRatePerSecond", skip_serializing_if = "Option::is_none")]
    pub max_rate_per_second: Option<i64>,
    /// The most concurrent calls to the provider, over all workers. The default is no limit.
    #[serde(rename = "maxConcurrency", skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<i64>,
}

impl ConnectProviderRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(
        provider_type: impl Into<ProviderType>,
        display_name: impl Into<String>,
        credentials: impl Into<ProviderCredentials>,
    ) -> Self {
        Self {
            provider_type: provider_type.into(),
            display_name: display_name.into(),
            credentials: credentials.into(),
            event_secrets: Default::default(),
            register_event_webhook: Default::default(),
            max_rate_per_second: Default::default(),
            max_concurrency: Default::default(),
        }
    }

    /// The secrets that verify the provider's events: `publicKey` for SENDGRID, `signingKey` for MAILGUN, `topicArn`
    /// for SES.
    #[must_use]
    pub fn event_secrets(mut self, event_secrets: impl Into<EventSecrets>) -> Self {
        self.event_secrets = Some(event_secrets.into());
        self
    }

    /// Whether to register the account's `webhookUrl` with the provider.
    #[must_use]
    pub fn register_event_webhook(mut self, register_event_webhook: bool) -> Self {
        self.register_event_webhook = Some(register_event_webhook);
        self
    }

    /// The most calls to the provider per second, over all workers.
    #[must_use]
    pub fn max_rate_per_second(mut self, max_rate_per_second: i64) -> Self {
        self.max_rate_per_second = Some(max_rate_per_second);
        self
    }

    /// The most concurrent calls to the provider, over all workers.
    #[must_use]
    pub fn max_concurrency(mut self, max_concurrency: i64) -> Self {
        self.max_concurrency = Some(max_concurrency);
        self
    }
}

/// A newly connected account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConnectedProvider {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known
    /// (SMTP).
    pub region: Option<AccountRegion>,
    /// Whether the account sends messages.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// The URL that the provider posts events to. Keep it secret.
    #[serde(rename = "webhookUrl")]
    pub webhook_url: String,
    /// Whether an event from the provider was verified since the event secrets were last set.
    #[serde(rename = "eventsVerified")]
    pub events_verified: bool,
    /// The most calls to the provider per second, over all workers; null means no limit.
    #[serde(rename = "maxRatePerSecond")]
    pub max_rate_per_second: Option<i64>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    #[serde(rename = "maxConcurrency")]
    pub max_concurrency: Option<i64>,
    /// Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
    /// messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
    /// account try again at once. Null again after that, or once the provider accepts a message.
    #[serde(rename = "sendingPausedReason")]
    pub sending_paused_reason: Option<String>,
    /// Since when the account cannot send; null if it can.
    #[serde(rename = "sendingPausedSince")]
    pub sending_paused_since: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,
    /// The registration of the event webhook; null if it was not requested.
    #[serde(rename = "eventWebhook")]
    pub event_webhook: Option<FirstEventWebhook>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An extra header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContentHeader {
    /// The name of the header.
    pub name: String,
    /// The value of the header.
    pub value: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An API key to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateApiKeyRequest {
    /// The name of the key.
    pub name: String,
    /// Whether everything that the key sends is a test, for which no provider is called. The default is false. A test
    /// key can create only test keys.
    #[serde(rename = "isTest", skip_serializing_if = "Option::is_none")]
    pub is_test: Option<bool>,
    /// One or more permissions. The caller must have each of them.
    pub permissions: Vec<Permission>,
    /// Up to 100 IP addresses and networks (CIDR) that the key can be used from. The default is anywhere.
    #[serde(rename = "allowedIps", skip_serializing_if = "Option::is_none")]
    pub allowed_ips: Option<Vec<String>>,
    /// When the key expires; null means never.
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

impl CreateApiKeyRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(name: impl Into<String>, permissions: impl IntoIterator<Item = impl Into<Permission>>) -> Self {
        Self {
            name: name.into(),
            is_test: Default::default(),
            permissions: permissions.into_iter().map(Into::into).collect(),
            allowed_ips: Default::default(),
            expires_at: Default::default(),
        }
    }

    /// Whether everything that the key sends is a test, for which no provider is called.
    #[must_use]
    pub fn is_test(mut self, is_test: bool) -> Self {
        self.is_test = Some(is_test);
        self
    }

    /// Up to 100 IP addresses and networks (CIDR) that the key can be used from.
    #[must_use]
    pub fn allowed_ips(mut self, allowed_ips: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_ips = Some(allowed_ips.into_iter().map(Into::into).collect());
        self
    }

    /// When the key expires; null means never.
    #[must_use]
    pub fn expires_at(mut self, expires_at: impl Into<DateTime<Utc>>) -> Self {
        self.expires_at = Some(expires_at.into());
        self
    }
}

/// Somebody to invite.
#[derive(Debug, Clone, PartialEq, Serialize)]

pub struct CreateInvitationRequest {
    /// The address of the person.
    pub email: String,
    /// The role that the person gets. The caller must have each of its permissions.
    pub role: Role,
}

impl CreateInvitationRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>, role: impl Into<Role>) -> Self {
        Self { email: email.into(), role: role.into() }
    }
}

/// A user to make a member.
#[derive(Debug, Clone, PartialEq, Serialize)]

pub struct CreateMemberRequest {
    /// The address of the user.
    pub email: String,
    /// The role of the member. The caller must have each of its permissions.
    pub role: Role,
}

impl CreateMemberRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>, role: impl Into<Role>) -> Self {
        Self { email: email.into(), role: role.into() }
    }
}

/// A domain to add to an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateProviderDomainRequest {
    /// The domain name. An international name is stored in its ASCII form.
    pub domain: String,
}

impl CreateProviderDomainRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(domain: impl Into<String>) -> Self {
        Self { domain: domain.into() }
    }
}

/// A rule to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateRoutingRuleRequest {
    /// The name of the rule.
    pub name: String,
    /// Rules with a higher priority are checked first. The default is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Whether the rule is used. The default is true.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// The sender's domain. The default is every domain.
    #[serde(rename = "senderDomain", skip_serializing_if = "Option::is_none")]
    pub sender_domain: Option<String>,
    /// The tags of matching messages; an empty list matches every message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Whether a message must have `any` (the default) or `all` of the tags.
    #[serde(rename = "tagMatch", skip_serializing_if = "Option::is_none")]
    pub tag_match: Option<TagMatch>,
    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a
    /// message must match one of them. An empty list matches all recipients.
    #[serde(rename = "recipientDomains", skip_serializing_if = "Option::is_none")]
    pub recipient_domains: Option<Vec<String>>,
    /// The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
    /// `other`. Every recipient of a message must have one of them. An empty list matches all recipients.
    #[serde(rename = "recipientMailboxProviders", skip_serializing_if = "Option::is_none")]
    pub recipient_mailbox_providers: Option<Vec<MailboxProvider>>,
    /// The class that messages have: `transactional` or `bulk`. The default is both.
    #[serde(rename = "messageClass", skip_serializing_if = "Option::is_none")]
    pub message_class: Option<MessageClass>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    #[serde(rename = "minSizeBytes", skip_serializing_if = "Option::is_none")]
    pub min_size_bytes: Option<i64>,
    /// The largest size of messages, in bytes.
    #[serde(rename = "maxSizeBytes", skip_serializing_if = "Option::is_none")]
    pub max_size_bytes: Option<i64>,
    /// Whether the rule is for tests only (true) or for live messages only (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The region that accounts must be in to send the messages: `eu` or `us`. All accounts of the rule must be in
    /// it. The default is anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<AccountRegion>,
    /// The account that sends the messages. A rule has this or `targets`.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Up to 10 accounts that share the messages by weight, instead of `providerAccountId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<NewRoutingTarget>>,
    /// Which messages always have the same target: `none` (the default), those to one `recipientDomain` (of the first
    /// recipient), or those of one `sender`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<RoutingStickiness>,
    /// Whether targets share the messages by their `weight` alone (the default), or also by their `health`: a target
    /// whose mail fails gets less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<RoutingPreference>,
    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it (the
    /// default), or it waits (`wait`).
    #[serde(rename = "overCap", skip_serializing_if = "Option::is_none")]
    pub over_cap: Option<RoutingOverCap>,
    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    #[serde(rename = "rampBounds", skip_serializing_if = "Option::is_none")]
    pub ramp_bounds: Option<NewRoutingRampBounds>,
    /// Up to 5 accounts that send if this account cannot, in this order.
    #[serde(rename = "fallbackProviderAccountIds", skip_serializing_if = "Option::is_none")]
    pub fallback_provider_account_ids: Option<Vec<String>>,
    /// What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none
    /// (the default), `resend` at once (the recipient may get the message twice), or `fail` (the message may have
    /// been sent).
    #[serde(rename = "onUnknown", skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
}

impl CreateRoutingRuleRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            priority: Default::default(),
            is_active: Default::default(),
            sender_domain: Default::default(),
            tags: Default::default(),
            tag_match: Default::default(),
            recipient_domains: Default::default(),
            recipient_mailbox_providers: Default::default(),
            message_class: Default::default(),
            min_size_bytes: Default::default(),
            max_size_bytes: Default::default(),
            test: Default::default(),
            region: Default::default(),
            provider_account_id: Default::default(),
            targets: Default::default(),
            sticky: Default::default(),
            prefer: Default::default(),
            over_cap: Default::default(),
            ramp_bounds: Default::default(),
            fallback_provider_account_ids: Default::default(),
            on_unknown: Default::default(),
        }
    }

    /// Rules with a higher priority are checked first.
    #[must_use]
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Whether the rule is used.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }

    /// The sender's domain.
    #[must_use]
    pub fn sender_domain(mut self, sender_domain: impl Into<String>) -> Self {
        self.sender_domain = Some(sender_domain.into());
        self
    }

    /// The tags of matching messages; an empty list matches every message.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Whether a message must have `any` (the default) or `all` of the tags.
    #[must_use]
    pub fn tag_match(mut self, tag_match: impl Into<TagMatch>) -> Self {
        self.tag_match = Some(tag_match.into());
        self
    }

    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a
    /// message must match one of them.
    #[must_use]
    pub fn recipient_domains(mut self, recipient_domains: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.recipient_domains = Some(recipient_domains.into_iter().map(Into::into).collect());
        self
    }

    /// The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
    /// `other`.
    #[must_use]
    pub fn recipient_mailbox_providers(
        mut self,
        recipient_mailbox_providers: impl IntoIterator<Item = impl Into<MailboxProvider>>,
    ) -> Self {
        self.recipient_mailbox_providers = Some(recipient_mailbox_providers.into_iter().map(Into::into).collect());
        self
    }

    /// The class that messages have: `transactional` or `bulk`.
    #[must_use]
    pub fn message_class(mut self, message_class: impl Into<MessageClass>) -> Self {
        self.message_class = Some(message_class.into());
        self
    }

    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    #[must_use]
    pub fn min_size_bytes(mut self, min_size_bytes: i64) -> Self {
        self.min_size_bytes = Some(min_size_bytes);
        self
    }

    /// The largest size of messages, in bytes.
    #[must_use]
    pub fn max_size_bytes(mut self, max_size_bytes: i64) -> Self {
        self.max_size_bytes = Some(max_size_bytes);
        self
    }

    /// Whether the rule is for tests only (true) or for live messages only (false).
    #[must_use]
    pub fn test(mut self, test: bool) -> Self {
        self.test = Some(test);
        self
    }

    /// The region that accounts must be in to send the messages: `eu` or `us`.
    #[must_use]
    pub fn region(mut self, region: impl Into<AccountRegion>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// The account that sends the messages.
    #[must_use]
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Up to 10 accounts that share the messages by weight, instead of `providerAccountId`.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = impl Into<NewRoutingTarget>>) -> Self {
        self.targets = Some(targets.into_iter().map(Into::into).collect());
        self
    }

    /// Which messages always have the same target: `none` (the default), those to one `recipientDomain` (of the first
    /// recipient), or those of one `sender`.
    #[must_use]
    pub fn sticky(mut self, sticky: impl Into<RoutingStickiness>) -> Self {
        self.sticky = Some(sticky.into());
        self
    }

    /// Whether targets share the messages by their `weight` alone (the default), or also by their `health`: a target
    /// whose mail fails gets less.
    #[must_use]
    pub fn prefer(mut self, prefer: impl Into<RoutingPreference>) -> Self {
        self.prefer = Some(prefer.into());
        self
    }

    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it (the
    /// default), or it waits (`wait`).
    #[must_use]
    pub fn over_cap(mut self, over_cap: impl Into<RoutingOverCap>) -> Self {
        self.over_cap = Some(over_cap.into());
        self
    }

    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    #[must_use]
    pub fn ramp_bounds(mut self, ramp_bounds: impl Into<NewRoutingRampBounds>) -> Self {
        self.ramp_bounds = Some(ramp_bounds.into());
        self
    }

    /// Up to 5 accounts that send if this account cannot, in this order.
    #[must_use]
    pub fn fallback_provider_account_ids(
        mut self,
        fallback_provider_account_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.fallback_provider_account_ids = Some(fallback_provider_account_ids.into_iter().map(Into::into).collect());
        self
    }

    /// What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none
    /// (the default), `resend` at once (the recipient may get the message twice), or `fail` (the message may have
    /// been sent).
    #[must_use]
    pub fn on_unknown(mut self, on_unknown: impl Into<OnUnknown>) -> Self {
        self.on_unknown = Some(on_unknown.into());
        self
    }
}

/// Who signs in.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateSessionRequest {
    /// The address of the user.
    pub email: String,
    /// The password of the user.
    pub password: String,
    /// The code of the second factor, or a recovery code. Required if the user has a second factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl CreateSessionRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>, password: impl Into<String>) -> Self {
        Self { email: email.into(), password: password.into(), code: Default::default() }
    }

    /// The code of the second factor, or a recovery code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }
}

/// An address to suppress.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateSuppressionRequest {
    /// The address. Only its hash is stored.
    pub email: String,
    /// The unsubscribe group that the suppression applies to. The default is all messages.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
    /// The source of the suppression. The default is MANUAL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SuppressionSource>,
}

impl CreateSuppressionRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>) -> Self {
        Self { email: email.into(), unsubscribe_group_id: Default::default(), source: Default::default() }
    }

    /// The unsubscribe group that the suppression applies to.
    #[must_use]
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }

    /// The source of the suppression.
    #[must_use]
    pub fn source(mut self, source: impl Into<SuppressionSource>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// A template to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateTemplateRequest {
    /// The name of the template. That of a partial has up to 100 letters, digits, `-` and `_`, begins with a letter,
    /// and is no other partial's.
    pub name: String,
    /// What the template is for. The default is `TEMPLATE`. It cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<TemplateType>,
    /// The description of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Up to 20 tags of up to 100 characters each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl CreateTemplateRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            r#type: Default::default(),
            description: Default::default(),
            tags: Default::default(),
        }
    }

    /// What the template is for.
    #[must_use]
    pub fn r#type(mut self, r#type: impl Into<TemplateType>) -> Self {
        self.r#type = Some(r#type.into());
        self
    }

    /// The description of the template.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Up to 20 tags of up to 100 characters each.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
}

/// The content of a new version. Each source is a Handlebars template of up to 1 MiB, rendered as handlebars.js 4.7
/// renders it. Variables, sections, `if`, `unless`, `each`, `with`, `lookup`, `eq`, `ne`, `gt`, `gte`, `lt`, `lte`,
/// `and`, `or`, `not`, `len` and `raw` are supported, and partials of the organization: `{{> name}}`. A layout or
/// partial has sources and a language alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateTemplateVersionRequest {
    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`. Without one, it is of
    /// the default language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The subject of messages that bring none, a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What mail programs show beside the subject, a Handlebars template on one line. It is put at the beginning of
    /// the HTML, hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preheader: Option<String>,
    /// The sender of messages that bring none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// One address for replies or an array of up to 10, for messages that bring none.
    #[serde(rename = "replyTo", skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Addresses>,
    /// The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
    #[serde(rename = "layoutId", skip_serializing_if = "Option::is_none")]
    pub layout_id: Option<String>,
    /// The HTML source. It may be empty if `mjmlSource` is given.
    #[serde(rename = "htmlContent")]
    pub html_content: String,
    /// The MJML source. It is compiled now, and the result replaces `htmlContent`.
    #[serde(rename = "mjmlSource", skip_serializing_if = "Option::is_none")]
    pub mjml_source: Option<String>,
    /// The plain-text source. Without it, the text is made from the HTML; if it is empty, there is no text.
    #[serde(rename = "textContent", skip_serializing_if = "Option::is_none")]
    pub text_content: Option<String>,
    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match. References outside
    /// the schema are not allowed.
    #[serde(rename = "variablesSchema", skip_serializing_if = "Option::is_none")]
    pub variables_schema: Option<Value>,
}

impl CreateTemplateVersionRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(html_content: impl Into<String>) -> Self {
        Self {
            locale: Default::default(),
            subject: Default::default(),
            preheader: Default::default(),
            from: Default::default(),
            reply_to: Default::default(),
            layout_id: Default::default(),
            html_content: html_content.into(),
            mjml_source: Default::default(),
            text_content: Default::default(),
            variables_schema: Default::default(),
        }
    }

    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The subject of messages that bring none, a Handlebars template.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// What mail programs show beside the subject, a Handlebars template on one line.
    #[must_use]
    pub fn preheader(mut self, preheader: impl Into<String>) -> Self {
        self.preheader = Some(preheader.into());
        self
    }

    /// The sender of messages that bring none.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// One address for replies or an array of up to 10, for messages that bring none.
    #[must_use]
    pub fn reply_to(mut self, reply_to: impl Into<Addresses>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// The layout around the content.
    #[must_use]
    pub fn layout_id(mut self, layout_id: impl Into<String>) -> Self {
        self.layout_id = Some(layout_id.into());
        self
    }

    /// The MJML source.
    #[must_use]
    pub fn mjml_source(mut self, mjml_source: impl Into<String>) -> Self {
        self.mjml_source = Some(mjml_source.into());
        self
    }

    /// The plain-text source.
    #[must_use]
    pub fn text_content(mut self, text_content: impl Into<String>) -> Self {
        self.text_content = Some(text_content.into());
        self
    }

    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match.
    #[must_use]
    pub fn variables_schema(mut self, variables_schema: impl Into<Value>) -> Self {
        self.variables_schema = Some(variables_schema.into());
        self
    }
}

/// An unsubscribe group to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateUnsubscribeGroupRequest {
    /// The name of the group, which recipients see.
    pub name: String,
    /// The description of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the group becomes the default group, in place of the present one. The default is false.
    #[serde(rename = "isDefault", skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
}

impl CreateUnsubscribeGroupRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: Default::default(), is_default: Default::default() }
    }

    /// The description of the group.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Whether the group becomes the default group, in place of the present one.
    #[must_use]
    pub fn is_default(mut self, is_default: bool) -> Self {
        self.is_default = Some(is_default);
        self
    }
}

/// A webhook endpoint to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct CreateWebhookEndpointRequest {
    /// An HTTPS URL with a public address. The operator can allow http and private addresses
    /// (`WAYPOST_WEBHOOK_ALLOW`); in development loopback is allowed. It is called once, and must respond within 5
    /// seconds, with any status.
    pub url: String,
    /// The types of the events that the endpoint receives: at least one.
    pub events: Vec<WebhookEventType>,
    /// Receive events of messages only for messages with one of these tags. The default is all messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Whether the endpoint receives events. The default is true.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

impl CreateWebhookEndpointRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(url: impl Into<String>, events: impl IntoIterator<Item = impl Into<WebhookEventType>>) -> Self {
        Self {
            url: url.into(),
            events: events.into_iter().map(Into::into).collect(),
            tags: Default::default(),
            is_active: Default::default(),
        }
    }

    /// Receive events of messages only for messages with one of these tags.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the endpoint receives events.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }
}

/// The current version of a language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CurrentTemplateVersion {
    /// The language, as a language tag; null is the default language.
    pub locale: Option<String>,
    /// The id of the version.
    #[serde(rename = "versionId")]
    pub version_id: String,
    /// The number of the version, from 1.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A chunk of a message that no worker takes any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeadJob {
    /// The message id.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The number of the chunk in its message, from 0.
    pub chunk: i64,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The number of recipients without a final status.
    pub recipients: i64,
    /// How many workers were lost while they held the chunk.
    pub losses: i64,
    /// Since when no worker takes it.
    #[serde(rename = "deadSince")]
    pub dead_since: DateTime<Utc>,
    /// Why no worker takes the chunk any more.
    pub reason: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How to remove the second factor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct DisableTotpRequest {
    /// The present password.
    pub password: String,
    /// A code of the authenticator, or a recovery code.
    pub code: String,
}

impl DisableTotpRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(password: impl Into<String>, code: impl Into<String>) -> Self {
        Self { password: password.into(), code: code.into() }
    }
}

/// A sender domain of a provider account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DomainVerification {
    /// The id.
    pub id: String,
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The domain name, in ASCII.
    pub domain: String,
    /// Whether the provider reports the domain as verified.
    #[serde(rename = "isVerified")]
    pub is_verified: bool,
    /// `verified`, `unverified`, or `unknown` if the credentials give no access to the domain.
    pub state: DomainState,
    /// The DNS records to publish, each with `type`, `name`, `value`, `priority`, `purpose` and the provider's
    /// `status`; and with what DNS had at the last check, `found` and `foundStatus`.
    #[serde(rename = "dnsRecords")]
    pub dns_records: Vec<DnsRecord>,
    /// When Waypost last looked the records up in DNS; null before the first check.
    #[serde(rename = "dnsCheckedAt")]
    pub dns_checked_at: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A person to erase.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ErasePersonRequest {
    /// The person's address.
    pub email: String,
}

impl ErasePersonRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>) -> Self {
        Self { email: email.into() }
    }
}

/// What was erased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErasureResult {
    /// The id of the erasure: the target of its entries in the audit log.
    pub id: String,
    /// The number of messages of which something was erased.
    pub messages: i64,
    /// The number of events whose details were erased.
    pub events: i64,
    /// The number of references to attachments that were erased.
    pub attachments: i64,
    /// The number of messages that are still being sent. They are left as they are; repeat the request when they are
    /// finished.
    pub pending: i64,
    /// Whether all messages to the person were visited. If not, repeat the request: it continues.
    pub complete: bool,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The event webhook of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventWebhookResult {
    /// Whether the webhook is registered with the provider. If not, the provider was not called and `steps` lists
    /// what to do.
    pub registered: bool,
    /// The URL that the provider posts events to. Keep it secret.
    #[serde(rename = "webhookUrl")]
    pub webhook_url: String,
    /// Whether an event from the provider has been verified.
    #[serde(rename = "eventsVerified")]
    pub events_verified: bool,
    /// The steps to take by hand, in this order.
    pub steps: Vec<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A call that the provider did not accept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedProviderCall {
    /// When the call started.
    pub at: DateTime<Utc>,
    /// The outcome: REJECTED, THROTTLED, UNAVAILABLE or UNKNOWN.
    pub outcome: SendAttemptOutcome,
    /// The status code of the provider's response; null without a response.
    #[serde(rename = "statusCode")]
    pub status_code: Option<i64>,
    /// The provider's error message, or the error of the call.
    pub reason: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A fallback of the matching rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FallbackResolution {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// Whether the sender's domain is verified on this account.
    #[serde(rename = "domainVerified")]
    pub domain_verified: bool,
    /// Why this fallback is not used: `PROVIDER_INACTIVE`, `DOMAIN_NOT_VERIFIED` if the sender's domain is unverified
    /// on it, or `REGION` if it is not in the rule's region; null if it is used.
    #[serde(rename = "passedOver")]
    pub passed_over: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The result of registering the event webhook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FirstEventWebhook {
    /// Whether the webhook is registered with the provider. If not, the account sends, but its messages stay SENT
    /// until the webhook is set up.
    pub registered: bool,
    /// Why the webhook could not be registered; null if it is registered.
    pub reason: Option<String>,
    /// The steps to take by hand, in this order.
    pub steps: Vec<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One event of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryEvent {
    /// The type of the event.
    #[serde(rename = "eventType")]
    pub event_type: EventType,
    /// When it happened.
    #[serde(rename = "occurredAt")]
    pub occurred_at: DateTime<Utc>,
    /// The attempt that the event belongs to, if known: the id of one of the message's `attempts`. If the response to
    /// a call was lost and the call was repeated, the recipient may receive the message twice. The history then has
    /// the events of both attempts, and metrics count the recipient once.
    #[serde(rename = "attemptId", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The provider's message id that the event belongs to, if known.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal. An event without it is about
    /// all recipients.
    #[serde(rename = "toHash", skip_serializing_if = "Option::is_none")]
    pub to_hash: Option<String>,
    /// The provider account of the attempt.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Why, in the provider's words or in those of Waypost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The type of a bounce, such as `hard`.
    #[serde(rename = "bounceType", skip_serializing_if = "Option::is_none")]
    pub bounce_type: Option<BounceType>,
    /// The link that was clicked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether a program opened or clicked, and not a person.
    #[serde(rename = "isBot", skip_serializing_if = "Option::is_none")]
    pub is_bot: Option<bool>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Where to continue.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ImportProviderSuppressionsRequest {
    /// The `nextCursor` of the import before. The default is the beginning of the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ImportProviderSuppressionsRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { cursor: Default::default() }
    }

    /// The `nextCursor` of the import before.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImportResult {
    /// The number of newly suppressed addresses.
    pub imported: i64,
    /// The number of addresses that were already suppressed or were repeated in the request.
    pub skipped: i64,
    /// The number of addresses in the request: `imported` plus `skipped`.
    pub total: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Addresses to suppress.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ImportSuppressionsRequest {
    /// 1 to 10,000 addresses. Only their hashes are stored.
    pub emails: Vec<String>,
    /// The unsubscribe group that the suppressions apply to. The default is all messages.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
}

impl ImportSuppressionsRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(emails: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { emails: emails.into_iter().map(Into::into).collect(), unsubscribe_group_id: Default::default() }
    }

    /// The unsubscribe group that the suppressions apply to.
    #[must_use]
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }
}

/// An invitation that is neither accepted nor expired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Invitation {
    /// The id.
    pub id: String,
    /// The address.
    pub email: String,
    /// The role.
    pub role: Role,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When the link stops working.
    #[serde(rename = "expiresAt")]
    pub expires_at: DateTime<Utc>,
    /// The id of the user or of the API key that invited, or `system` if the operator did.
    #[serde(rename = "createdBy")]
    pub created_by: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What an invitation says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InvitationDetail {
    /// The name of the organization.
    #[serde(rename = "organizationName")]
    pub organization_name: String,
    /// The address.
    pub email: String,
    /// The role.
    pub role: Role,
    /// Whether there is a user with the address, whose password must be given.
    #[serde(rename = "hasUser")]
    pub has_user: bool,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An invitation with its link, which is returned only once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InvitationWithUrl {
    /// The id.
    pub id: String,
    /// The address.
    pub email: String,
    /// The role.
    pub role: Role,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When the link stops working.
    #[serde(rename = "expiresAt")]
    pub expires_at: DateTime<Utc>,
    /// The id of the user or of the API key that invited, or `system` if the operator did.
    #[serde(rename = "createdBy")]
    pub created_by: String,
    /// The link. It works once, for seven days.
    pub url: String,
    /// Whether the link is sent to the address through Waypost. If not, pass it on.
    pub mailed: bool,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The jobs of a queue in Redis, by their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobQueue {
    /// The name of the queue.
    pub name: String,
    /// Jobs that no worker has fetched.
    pub waiting: i64,
    /// Jobs that a worker has fetched and not finished.
    pub fetched: i64,
    /// Jobs that are due later.
    pub delayed: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The link to look up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct LookUpInvitationRequest {
    /// The token in the link, after `#`.
    pub token: String,
}

impl LookUpInvitationRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self { token: token.into() }
    }
}

/// The link to look up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct LookUpPasswordResetRequest {
    /// The token in the link, after `#`.
    pub token: String,
}

impl LookUpPasswordResetRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self { token: token.into() }
    }
}

/// A user of the organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Member {
    /// The id of the membership.
    pub id: String,
    /// The user.
    #[serde(rename = "userId")]
    pub user_id: String,
    /// The address.
    pub email: String,
    /// The name of the user.
    pub name: String,
    /// The role.
    pub role: Role,
    /// When the user last began a session in the organization.
    #[serde(rename = "lastSignedInAt")]
    pub last_signed_in_at: Option<DateTime<Utc>>,
    /// When the user became a member.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A file of a message. It needs `content` or `url`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct MessageAttachment {
    /// The name that the recipient sees: no path, no control characters.
    pub filename: String,
    /// The file in base64 (RFC 4648, without line breaks).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// A public `https` URL. The file is fetched when the message is accepted, and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The media type. Without it, the type follows from the file name.
    #[serde(rename = "contentType", skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Shows the file within the HTML body, where `cid:` and this id are the URL of an image.
    #[serde(rename = "contentId", skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
}

impl MessageAttachment {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(filename: impl Into<String>) -> Self {
        Self {
            filename: filename.into(),
            content: Default::default(),
            url: Default::default(),
            content_type: Default::default(),
            content_id: Default::default(),
        }
    }

    /// The file in base64 (RFC 4648, without line breaks).
    #[must_use]
    pub fn content(mut self, content: impl Into<String>) -> Self {
        self.content = Some(content.into());
        self
    }

    /// A public `https` URL.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The media type.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Shows the file within the HTML body, where `cid:` and this id are the URL of an image.
    #[must_use]
    pub fn content_id(mut self, content_id: impl Into<String>) -> Self {
        self.content_id = Some(content_id.into());
        self
    }
}

/// What a message says, before tracking and unsubscribe links are added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageContentView {
    /// The subject.
    pub subject: String,
    /// The HTML body.
    pub html: Option<String>,
    /// The text body.
    pub text: Option<String>,
    /// The extra headers of the message.
    pub headers: Vec<ContentHeader>,
    /// The attachments, without their content.
    pub attachments: Vec<AttachmentDetail>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A message with its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageDetail {
    /// The id.
    pub id: String,
    /// The sender's address.
    #[serde(rename = "fromAddress")]
    pub from_address: String,
    /// The subject.
    pub subject: String,
    /// The status of the message, as in the list.
    pub status: MessageStatus,
    /// The tags.
    pub tags: Vec<String>,
    /// Whether the message is a test, for which no provider is called.
    pub test: bool,
    /// The number of recipients.
    #[serde(rename = "recipientCount")]
    pub recipient_count: i64,
    /// The SHA-256 of each address of `to`, in lower case, as lower-case hexadecimal, in the order of the send
    /// request.
    pub to: Vec<String>,
    /// The metadata of the send request.
    pub metadata: Option<Map<String, Value>>,
    /// The message is not sent before this time.
    #[serde(rename = "scheduledAt")]
    pub scheduled_at: Option<DateTime<Utc>>,
    /// The template of the message.
    #[serde(rename = "templateId")]
    pub template_id: Option<String>,
    /// The version of the template that was rendered.
    #[serde(rename = "templateVersionId")]
    pub template_version_id: Option<String>,
    /// The number of this version; null also if the template was deleted.
    #[serde(rename = "templateVersionNumber")]
    pub template_version_number: Option<i64>,
    /// The events, oldest first.
    pub events: Vec<HistoryEvent>,
    /// The newest 500 calls to providers, oldest first.
    pub attempts: Vec<SendAttempt>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A recipient with data of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct MessageRecipient {
    /// The address.
    pub email: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Variables of this recipient, up to 256 KiB. Each takes the place of the message's variable of the same name.
    /// The message is rendered for this recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// Metadata of this recipient; up to 64 KiB, together with that of the message. Each takes the place of the
    /// message's entry of the same name in the webhook events of this recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

impl MessageRecipient {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(email: impl Into<String>) -> Self {
        Self {
            email: email.into(),
            name: Default::default(),
            variables: Default::default(),
            metadata: Default::default(),
        }
    }

    /// The display name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Variables of this recipient, up to 256 KiB.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// Metadata of this recipient; up to 64 KiB, together with that of the message.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }
}

/// A message in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageSummary {
    /// The id.
    pub id: String,
    /// The provider account of the message: the account that routing selected at acceptance, or the one that sent to
    /// the first recipient.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The sender's address.
    #[serde(rename = "fromAddress")]
    pub from_address: String,
    /// The SHA-256 of the first recipient's address in lower case, as lower-case hexadecimal.
    #[serde(rename = "toHash")]
    pub to_hash: String,
    /// The subject.
    pub subject: String,
    /// The status of the message, summarized over its recipients: QUEUED if any recipient has it, or else SENDING,
    /// DELIVERED, SENT, BOUNCED or FAILED, in this order.
    pub status: MessageStatus,
    /// The tags.
    pub tags: Vec<String>,
    /// The number of recipients.
    #[serde(rename = "recipientCount")]
    pub recipient_count: i64,
    /// The provider's message id for the first recipient.
    #[serde(rename = "providerMessageId")]
    pub provider_message_id: Option<String>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When a provider first accepted the message for a recipient.
    #[serde(rename = "sentAt")]
    pub sent_at: Option<DateTime<Utc>>,
    /// When the message was first delivered to a recipient.
    #[serde(rename = "deliveredAt")]
    pub delivered_at: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Counts by group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsBreakdown {
    /// The groups, by descending `sent`, then by name.
    pub data: Vec<MetricsGroup>,
    /// The query of a breakdown, with its defaults filled in.
    pub query: BreakdownQuery,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The counts of one hour, day, week or month.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsBucket {
    /// When the bucket begins, in UTC or in `timeZone`: `YYYY-MM-DD HH:MM:SS`. Weeks begin on Monday.
    pub timestamp: String,
    /// When the bucket begins, in UTC; only if `timeZone` is given. Where clocks are put back, two hours have the
    /// same `timestamp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<DateTime<Utc>>,
    /// The number of recipients whose message a provider accepted.
    pub sent: i64,
    /// The number of recipients whose message was delivered.
    pub delivered: i64,
    /// The number of recipients who opened the message. Repeated opens count once.
    pub opened: i64,
    /// The number of recipients who clicked a link. Repeated clicks count once.
    pub clicked: i64,
    /// The number of recipients whose message bounced.
    pub bounced: i64,
    /// The number of recipients who reported the message as spam.
    pub complained: i64,
    /// The number of recipients who unsubscribed with the link.
    pub unsubscribed: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The counts of one provider type, domain, template, account, tag or recipient domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsGroup {
    /// The provider type, the sender's domain, the template, the provider account, the tag or the recipient's domain.
    /// Templates and accounts are shown by their names, by their ids if they were deleted, and by both if several
    /// have this name. `(none)` stands for messages without a template or tag, `(other)` for the tags and recipient
    /// domains beyond the first 500 of a month.
    pub name: String,
    /// The id of the provider account, if grouped by `account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// From acceptance, or from `scheduledAt`, to when the provider accepted the mail; if grouped by `account`,
    /// without the filters `tag` and `templateId`.
    #[serde(rename = "acceptToSent", skip_serializing_if = "Option::is_none")]
    pub accept_to_sent: Option<MetricsPercentiles>,
    /// From when the provider accepted the mail to its delivery.
    #[serde(rename = "sentToDelivered", skip_serializing_if = "Option::is_none")]
    pub sent_to_delivered: Option<MetricsPercentiles>,
    /// Copies of messages that a provider accepted.
    pub sent: i64,
    /// Copies that a mailbox accepted.
    pub delivered: i64,
    /// Copies that were opened.
    pub opened: i64,
    /// Copies of which a link was followed.
    pub clicked: i64,
    /// Copies that the receiving server refused.
    pub bounced: i64,
    /// Copies that the recipient reported as spam.
    pub complained: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How long it took for half, 95 % and 99 % of the recipients at most, in milliseconds, to a tenth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsPercentiles {
    /// The time that half of the messages did not exceed, in milliseconds.
    pub p50: i64,
    /// The time that 95 % of the messages did not exceed, in milliseconds.
    pub p95: i64,
    /// The time that 99 % of the messages did not exceed, in milliseconds.
    pub p99: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A time series of counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsSeries {
    /// The buckets, oldest first. Buckets without events are included.
    pub data: Vec<MetricsBucket>,
    /// The query of a series, with its defaults filled in.
    pub query: SeriesQuery,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The total counts and rates of a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsSummary {
    /// The total counts and rates. Each recipient of a message counts once for each type of event. Rates have four
    /// decimals, are 0 if the divisor is 0, and are never above 1, even if more messages were delivered than sent in
    /// the period.
    pub data: MetricsTotals,
    /// The period of a summary.
    pub period: SummaryPeriod,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The total counts and rates. Each recipient of a message counts once for each type of event. Rates have four
/// decimals, are 0 if the divisor is 0, and are never above 1, even if more messages were delivered than sent in the
/// period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MetricsTotals {
    /// Copies of messages that a provider accepted.
    #[serde(rename = "totalSent")]
    pub total_sent: i64,
    /// Copies that a mailbox accepted.
    #[serde(rename = "totalDelivered")]
    pub total_delivered: i64,
    /// Copies that were opened.
    #[serde(rename = "totalOpened")]
    pub total_opened: i64,
    /// Copies of which a link was followed.
    #[serde(rename = "totalClicked")]
    pub total_clicked: i64,
    /// Copies that the receiving server refused.
    #[serde(rename = "totalBounced")]
    pub total_bounced: i64,
    /// Copies that the recipient reported as spam.
    #[serde(rename = "totalComplained")]
    pub total_complained: i64,
    /// Recipients that unsubscribed.
    #[serde(rename = "totalUnsubscribed")]
    pub total_unsubscribed: i64,
    /// `totalDelivered` divided by `totalSent`.
    #[serde(rename = "deliveryRate")]
    pub delivery_rate: f64,
    /// `totalOpened` divided by `totalDelivered`.
    #[serde(rename = "openRate")]
    pub open_rate: f64,
    /// `totalClicked` divided by `totalOpened`.
    #[serde(rename = "clickRate")]
    pub click_rate: f64,
    /// `totalBounced` divided by `totalSent`.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: f64,
    /// `totalComplained` divided by `totalDelivered`.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: f64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How the daily cap of a target grows, so that mailbox providers get to know a new account.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct NewRoutingRamp {
    /// The most recipients of the first day.
    pub start: i64,
    /// What each step multiplies the cap by, 1.01 to 10.
    pub factor: f64,
    /// The days from one step to the next, 1 to 30.
    #[serde(rename = "everyDays")]
    pub every_days: i64,
    /// The first day, in UTC; before it the target gets nothing. A ramp whose first day is over begins where it would
    /// be now. The default is the day that the same ramp of the account has, or today.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Option<String>>,
}

impl NewRoutingRamp {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(start: i64, factor: f64, every_days: i64) -> Self {
        Self { start, factor, every_days, from: Default::default() }
    }

    /// The first day, in UTC; before it the target gets nothing.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(Some(from.into()));
        self
    }

    /// Clears `from`.
    #[must_use]
    pub fn clear_from(mut self) -> Self {
        self.from = Some(None);
        self
    }
}

/// The bounds of the rates of an account, beyond which the ramps of a rule do not grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct NewRoutingRampBounds {
    /// The most bounces, as a part of the sent mails. The default is 0.05.
    #[serde(rename = "bounceRate", skip_serializing_if = "Option::is_none")]
    pub bounce_rate: Option<Option<f64>>,
    /// The most complaints, as a part of the delivered mails. The default is 0.001.
    #[serde(rename = "complaintRate", skip_serializing_if = "Option::is_none")]
    pub complaint_rate: Option<Option<f64>>,
}

impl NewRoutingRampBounds {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { bounce_rate: Default::default(), complaint_rate: Default::default() }
    }

    /// The most bounces, as a part of the sent mails.
    #[must_use]
    pub fn bounce_rate(mut self, bounce_rate: f64) -> Self {
        self.bounce_rate = Some(Some(bounce_rate));
        self
    }

    /// Clears `bounceRate`.
    #[must_use]
    pub fn clear_bounce_rate(mut self) -> Self {
        self.bounce_rate = Some(None);
        self
    }

    /// The most complaints, as a part of the delivered mails.
    #[must_use]
    pub fn complaint_rate(mut self, complaint_rate: f64) -> Self {
        self.complaint_rate = Some(Some(complaint_rate));
        self
    }

    /// Clears `complaintRate`.
    #[must_use]
    pub fn clear_complaint_rate(mut self) -> Self {
        self.complaint_rate = Some(None);
        self
    }
}

/// An account that gets a part of the messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct NewRoutingTarget {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    pub weight: i64,
    /// The most recipients of a day in UTC, of all messages of the rule.
    #[serde(rename = "dailyCap", skip_serializing_if = "Option::is_none")]
    pub daily_cap: Option<Option<i64>>,
    /// The most recipients of an hour, of all messages of the rule.
    #[serde(rename = "hourlyCap", skip_serializing_if = "Option::is_none")]
    pub hourly_cap: Option<Option<i64>>,
    /// How the daily cap grows until it reaches `dailyCap`, or without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<NewRoutingRamp>,
}

impl NewRoutingTarget {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(provider_account_id: impl Into<String>, weight: i64) -> Self {
        Self {
            provider_account_id: provider_account_id.into(),
            weight,
            daily_cap: Default::default(),
            hourly_cap: Default::default(),
            ramp: Default::default(),
        }
    }

    /// The most recipients of a day in UTC, of all messages of the rule.
    #[must_use]
    pub fn daily_cap(mut self, daily_cap: i64) -> Self {
        self.daily_cap = Some(Some(daily_cap));
        self
    }

    /// Clears `dailyCap`.
    #[must_use]
    pub fn clear_daily_cap(mut self) -> Self {
        self.daily_cap = Some(None);
        self
    }

    /// The most recipients of an hour, of all messages of the rule.
    #[must_use]
    pub fn hourly_cap(mut self, hourly_cap: i64) -> Self {
        self.hourly_cap = Some(Some(hourly_cap));
        self
    }

    /// Clears `hourlyCap`.
    #[must_use]
    pub fn clear_hourly_cap(mut self) -> Self {
        self.hourly_cap = Some(None);
        self
    }

    /// How the daily cap grows until it reaches `dailyCap`, or without end.
    #[must_use]
    pub fn ramp(mut self, ramp: impl Into<NewRoutingRamp>) -> Self {
        self.ramp = Some(ramp.into());
        self
    }
}

/// The OpenID Connect provider at which users can sign in; null if there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OidcMethod {
    /// The name of the provider, for people.
    pub name: String,
    /// Where the sign-in begins, relative to the public URL.
    pub url: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An organization of a user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OrganizationMembership {
    /// The id.
    pub id: String,
    /// The name of the organization.
    pub name: String,
    /// The role of the user in this organization.
    pub role: Role,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A page as a recipient sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PagePreview {
    /// The whole page. Show it in a frame without rights (`<iframe sandbox>`).
    pub html: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The position of a page in its list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pagination {
    /// The page number, from 1.
    pub page: i64,
    /// The number of items per page.
    pub limit: i64,
    /// The number of items in the whole list.
    pub total: i64,
    /// The number of pages.
    #[serde(rename = "totalPages")]
    pub total_pages: i64,
    /// The `cursor` of the next page, for the same request; null at the end of the list.
    #[serde(rename = "nextCursor")]
    pub next_cursor: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A rule that was skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PassedOverRule {
    /// A routing rule. A message must match all conditions of the rule; an absent condition matches every message.
    pub rule: RoutingRule,
    /// Why the rule was skipped: `RULE_INACTIVE`, `SENDER_DOMAIN`, `TAGS`, `RECIPIENT_DOMAIN`,
    /// `RECIPIENT_MAILBOX_PROVIDER`, `MESSAGE_CLASS`, `SIZE`, `TEST` or `PROVIDER_INACTIVE`.
    pub reason: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Whose password a link sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PasswordResetDetail {
    /// The address.
    pub email: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The content of a version to preview, as for a new version, and its variables.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct PreviewTemplateDraftRequest {
    /// The variables. They need not match the JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`. Without one, it is of
    /// the default language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The subject of messages that bring none, a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What mail programs show beside the subject, a Handlebars template on one line. It is put at the beginning of
    /// the HTML, hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preheader: Option<String>,
    /// The sender of messages that bring none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// One address for replies or an array of up to 10, for messages that bring none.
    #[serde(rename = "replyTo", skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Addresses>,
    /// The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
    #[serde(rename = "layoutId", skip_serializing_if = "Option::is_none")]
    pub layout_id: Option<String>,
    /// The HTML source. It may be empty if `mjmlSource` is given.
    #[serde(rename = "htmlContent")]
    pub html_content: String,
    /// The MJML source. It is compiled now, and the result replaces `htmlContent`.
    #[serde(rename = "mjmlSource", skip_serializing_if = "Option::is_none")]
    pub mjml_source: Option<String>,
    /// The plain-text source. Without it, the text is made from the HTML; if it is empty, there is no text.
    #[serde(rename = "textContent", skip_serializing_if = "Option::is_none")]
    pub text_content: Option<String>,
    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match. References outside
    /// the schema are not allowed.
    #[serde(rename = "variablesSchema", skip_serializing_if = "Option::is_none")]
    pub variables_schema: Option<Value>,
}

impl PreviewTemplateDraftRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(html_content: impl Into<String>) -> Self {
        Self {
            variables: Default::default(),
            locale: Default::default(),
            subject: Default::default(),
            preheader: Default::default(),
            from: Default::default(),
            reply_to: Default::default(),
            layout_id: Default::default(),
            html_content: html_content.into(),
            mjml_source: Default::default(),
            text_content: Default::default(),
            variables_schema: Default::default(),
        }
    }

    /// The variables.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The subject of messages that bring none, a Handlebars template.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// What mail programs show beside the subject, a Handlebars template on one line.
    #[must_use]
    pub fn preheader(mut self, preheader: impl Into<String>) -> Self {
        self.preheader = Some(preheader.into());
        self
    }

    /// The sender of messages that bring none.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// One address for replies or an array of up to 10, for messages that bring none.
    #[must_use]
    pub fn reply_to(mut self, reply_to: impl Into<Addresses>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// The layout around the content.
    #[must_use]
    pub fn layout_id(mut self, layout_id: impl Into<String>) -> Self {
        self.layout_id = Some(layout_id.into());
        self
    }

    /// The MJML source.
    #[must_use]
    pub fn mjml_source(mut self, mjml_source: impl Into<String>) -> Self {
        self.mjml_source = Some(mjml_source.into());
        self
    }

    /// The plain-text source.
    #[must_use]
    pub fn text_content(mut self, text_content: impl Into<String>) -> Self {
        self.text_content = Some(text_content.into());
        self
    }

    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match.
    #[must_use]
    pub fn variables_schema(mut self, variables_schema: impl Into<Value>) -> Self {
        self.variables_schema = Some(variables_schema.into());
        self
    }
}

/// What to preview.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct PreviewTemplateRequest {
    /// The variables. They need not match the JSON Schema of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// The id of the version. The default is the current version.
    #[serde(rename = "versionId", skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// The language of the version, instead of `versionId`: its current version is rendered, or that of the next less
    /// exact language, or of the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
}

impl PreviewTemplateRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { variables: Default::default(), version_id: Default::default(), locale: Default::default() }
    }

    /// The variables.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// The id of the version.
    #[must_use]
    pub fn version_id(mut self, version_id: impl Into<String>) -> Self {
        self.version_id = Some(version_id.into());
        self
    }

    /// The language of the version, instead of `versionId`: its current version is rendered, or that of the next less
    /// exact language, or of the default.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }
}

/// A connected account at a provider. Its credentials are never returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderAccount {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known
    /// (SMTP).
    pub region: Option<AccountRegion>,
    /// Whether the account sends messages.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// The URL that the provider posts events to. Keep it secret.
    #[serde(rename = "webhookUrl")]
    pub webhook_url: String,
    /// Whether an event from the provider was verified since the event secrets were last set.
    #[serde(rename = "eventsVerified")]
    pub events_verified: bool,
    /// The most calls to the provider per second, over all workers; null means no limit.
    #[serde(rename = "maxRatePerSecond")]
    pub max_rate_per_second: Option<i64>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    #[serde(rename = "maxConcurrency")]
    pub max_concurrency: Option<i64>,
    /// Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
    /// messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
    /// account try again at once. Null again after that, or once the provider accepts a message.
    #[serde(rename = "sendingPausedReason")]
    pub sending_paused_reason: Option<String>,
    /// Since when the account cannot send; null if it can.
    #[serde(rename = "sendingPausedSince")]
    pub sending_paused_since: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Whether calls to a provider account are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderCircuit {
    /// CLOSED: calls are made. OPEN: no calls are made until `until`. HALF_OPEN: each worker makes one call, whose
    /// result decides.
    pub state: ProviderCircuitState,
    /// Why the circuit is not closed; null if it is.
    pub cause: Option<ProviderCircuitCause>,
    /// When the next call may be made; null unless the circuit is open.
    pub until: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What became of a provider account's mail to one recipient domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderDomainHealth {
    /// The recipient domain. `(other)` stands for all domains beyond the 50 with the most mail and the first 500 of a
    /// month, `(none)` for addresses that are not known any more.
    #[serde(rename = "recipientDomain")]
    pub recipient_domain: String,
    /// The number of calls to the provider, for one recipient each, that ended.
    pub attempts: i64,
    /// The number of attempts that the provider accepted.
    pub accepted: i64,
    /// The number of attempts that the provider refused for good.
    pub rejected: i64,
    /// The number of attempts that the provider, or later the recipient's server, put off.
    pub deferred: i64,
    /// The number of recipients whose message the provider accepted.
    pub sent: i64,
    /// The number of recipients whose message was delivered.
    pub delivered: i64,
    /// The number of recipients whose message bounced.
    pub bounced: i64,
    /// The number of recipients who reported the message as spam.
    pub complained: i64,
    /// `deferred` divided by `attempts`.
    #[serde(rename = "deferralRate")]
    pub deferral_rate: Option<f64>,
    /// `bounced` divided by `sent`.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: Option<f64>,
    /// `complained` divided by `delivered`.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: Option<f64>,
    /// `delivered` divided by `sent`.
    #[serde(rename = "deliveryRate")]
    pub delivery_rate: Option<f64>,
    /// How long accepted calls took; null if there are fewer than 20.
    #[serde(rename = "acceptLatencyMs")]
    pub accept_latency_ms: Option<AcceptLatency>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One cause for which an account fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderFailure {
    /// `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many calls
    /// failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider refuses the
    /// credentials. An account may fail for several causes; each ends by itself.
    pub cause: ProviderFailureCause,
    /// Since when the account fails for this cause.
    pub since: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How a provider account does at the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderHealth {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// An email provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// Whether the account sends messages.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// Whether calls to the account are made; null while Redis, which knows it, does not answer.
    pub circuit: Option<ProviderCircuit>,
    /// The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null
    /// if it does not throttle, or while Redis does not answer.
    #[serde(rename = "throttledRatePerSecond")]
    pub throttled_rate_per_second: Option<f64>,
    /// Why the account cannot send, as reported by the provider; null if it can.
    #[serde(rename = "sendingPausedReason")]
    pub sending_paused_reason: Option<String>,
    /// What is wrong with the account now, as the event PROVIDER_FAILING reports it.
    pub failures: Vec<ProviderFailure>,
    /// The newest calls of the last 15 minutes, at most 1,000. Tests are not counted.
    pub calls: RecentProviderCalls,
    /// The most calls to the provider per second, over all workers; null means no limit.
    #[serde(rename = "maxRatePerSecond")]
    pub max_rate_per_second: Option<i64>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    #[serde(rename = "maxConcurrency")]
    pub max_concurrency: Option<i64>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What became of a provider account's mail, by recipient domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderHealthByDomain {
    /// The domains, those with the most mail first; `(other)` comes last.
    pub data: Vec<ProviderDomainHealth>,
    /// The time that is counted.
    pub window: ProviderHealthWindow,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How a provider account does at the moment, and what became of its mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderHealthDetail {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// An email provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// Whether the account sends messages.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// Whether calls to the account are made; null while Redis, which knows it, does not answer.
    pub circuit: Option<ProviderCircuit>,
    /// The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null
    /// if it does not throttle, or while Redis does not answer.
    #[serde(rename = "throttledRatePerSecond")]
    pub throttled_rate_per_second: Option<f64>,
    /// Why the account cannot send, as reported by the provider; null if it can.
    #[serde(rename = "sendingPausedReason")]
    pub sending_paused_reason: Option<String>,
    /// What is wrong with the account now, as the event PROVIDER_FAILING reports it.
    pub failures: Vec<ProviderFailure>,
    /// The newest calls of the last 15 minutes, at most 1,000. Tests are not counted.
    pub calls: RecentProviderCalls,
    /// The most calls to the provider per second, over all workers; null means no limit.
    #[serde(rename = "maxRatePerSecond")]
    pub max_rate_per_second: Option<i64>,
    /// The most concurrent calls to the provider, over all workers; null means no limit.
    #[serde(rename = "maxConcurrency")]
    pub max_concurrency: Option<i64>,
    /// What became of all mail of a provider account lately. The quarters of an hour that a window touches count
    /// whole. Tests are not counted.
    pub windows: ProviderHealthWindows,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The time that is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderHealthWindow {
    /// The start of the first quarter of an hour that is counted.
    pub from: DateTime<Utc>,
    /// The end of the period, which is not part of it.
    pub to: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What became of all mail of a provider account lately. The quarters of an hour that a window touches count whole.
/// Tests are not counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderHealthWindows {
    /// What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `acceptLatencyMs` are
    /// up to a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if
    /// they are of fewer than 20.
    #[serde(rename = "last15Minutes")]
    pub last15_minutes: ProviderMailFigures,
    /// What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `acceptLatencyMs` are
    /// up to a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if
    /// they are of fewer than 20.
    #[serde(rename = "lastDay")]
    pub last_day: ProviderMailFigures,
    /// What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `acceptLatencyMs` are
    /// up to a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if
    /// they are of fewer than 20.
    #[serde(rename = "lastWeek")]
    pub last_week: ProviderMailFigures,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The result of an import from a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderImportResult {
    /// The number of newly suppressed addresses.
    pub imported: i64,
    /// The number of addresses that were already suppressed for all messages.
    #[serde(rename = "alreadyThere")]
    pub already_there: i64,
    /// The number of entries that name no address, or that hold for some messages only.
    pub unusable: i64,
    /// The `cursor` of the request that continues; null if all lists were read.
    #[serde(rename = "nextCursor")]
    pub next_cursor: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `acceptLatencyMs` are up to
/// a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if they are
/// of fewer than 20.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderMailFigures {
    /// The number of calls to the provider, for one recipient each, that ended.
    pub attempts: i64,
    /// The number of attempts that the provider accepted.
    pub accepted: i64,
    /// The number of attempts that the provider refused for good.
    pub rejected: i64,
    /// The number of attempts that the provider, or later the recipient's server, put off.
    pub deferred: i64,
    /// The number of recipients whose message the provider accepted.
    pub sent: i64,
    /// The number of recipients whose message was delivered.
    pub delivered: i64,
    /// The number of recipients whose message bounced.
    pub bounced: i64,
    /// The number of recipients who reported the message as spam.
    pub complained: i64,
    /// `deferred` divided by `attempts`.
    #[serde(rename = "deferralRate")]
    pub deferral_rate: Option<f64>,
    /// `bounced` divided by `sent`.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: Option<f64>,
    /// `complained` divided by `delivered`.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: Option<f64>,
    /// `delivered` divided by `sent`.
    #[serde(rename = "deliveryRate")]
    pub delivery_rate: Option<f64>,
    /// How long accepted calls took; null if there are fewer than 20.
    #[serde(rename = "acceptLatencyMs")]
    pub accept_latency_ms: Option<AcceptLatency>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Rate limits, in requests per second; null means the operator's limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateLimits {
    /// The limit of `POST /v1/send`.
    #[serde(rename = "sendPerSecond")]
    pub send_per_second: Option<i64>,
    /// The limit of all other operations together.
    #[serde(rename = "otherPerSecond")]
    pub other_per_second: Option<i64>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The newest calls of the last 15 minutes, at most 1,000. Tests are not counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecentProviderCalls {
    /// All calls since this time are counted: 15 minutes ago, or later if there were more than 1,000.
    pub since: DateTime<Utc>,
    /// The number of calls that the provider accepted.
    pub accepted: i64,
    /// The number of calls that the provider rejected.
    pub rejected: i64,
    /// The number of calls that the provider throttled.
    pub throttled: i64,
    /// The number of calls that failed without a delivery.
    pub unavailable: i64,
    /// The number of calls whose answer was lost.
    pub unknown: i64,
    /// The number of calls that have not ended.
    pub pending: i64,
    /// The median of the durations of the calls, in milliseconds; null if no call ended.
    #[serde(rename = "medianDurationMs")]
    pub median_duration_ms: Option<i64>,
    /// The 95th percentile of the durations of the calls, in milliseconds; null if no call ended.
    #[serde(rename = "p95DurationMs")]
    pub p95_duration_ms: Option<i64>,
    /// The newest call that the provider did not accept; null if there is none.
    #[serde(rename = "lastFailure")]
    pub last_failure: Option<FailedProviderCall>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One recipient of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecipientDetail {
    /// Where the recipient stands in the mail: TO, CC or BCC.
    pub kind: RecipientKind,
    /// The SHA-256 of the address in lower case, as lower-case hexadecimal.
    #[serde(rename = "toHash")]
    pub to_hash: String,
    /// How far a message, or its copy to one recipient, is.
    pub status: MessageStatus,
    /// The provider account of the latest attempt.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: Option<String>,
    /// The provider's message id for this recipient.
    #[serde(rename = "providerMessageId")]
    pub provider_message_id: Option<String>,
    /// The number of attempts. A throttled attempt is not counted.
    pub attempts: i64,
    /// The error of the latest failed attempt.
    #[serde(rename = "lastError")]
    pub last_error: Option<String>,
    /// The events, oldest first.
    pub events: Vec<HistoryEvent>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The recovery codes, which are shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecoveryCodes {
    /// Ten codes. Each replaces the code of the second factor once.
    #[serde(rename = "recoveryCodes")]
    pub recovery_codes: Vec<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RemovalResult {
    /// The number of suppressions that were removed.
    pub removed: i64,
    /// The number of addresses that were not suppressed or were repeated in the request.
    #[serde(rename = "notFound")]
    pub not_found: i64,
    /// The number of addresses in the request: `removed` plus `notFound`.
    pub total: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Addresses whose suppressions to remove.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct RemoveSuppressionsRequest {
    /// 1 to 10,000 addresses.
    pub emails: Vec<String>,
    /// The unsubscribe group whose suppressions to remove. The default is the suppressions for all messages; those in
    /// groups stay.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
}

impl RemoveSuppressionsRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(emails: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { emails: emails.into_iter().map(Into::into).collect(), unsubscribe_group_id: Default::default() }
    }

    /// The unsubscribe group whose suppressions to remove.
    #[must_use]
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }
}

/// The number of replayed deliveries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplayResult {
    /// The number of deliveries that are due again.
    pub replayed: i64,
    /// One request replays at most 100,000 deliveries. If there are more, the `since` of the next request; otherwise
    /// null.
    #[serde(rename = "continueFrom")]
    pub continue_from: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Which deliveries to replay.
#[derive(Debug, Clone, PartialEq, Serialize)]

pub struct ReplayWebhooksRequest {
    /// Replays deliveries created at or after this time.
    pub since: DateTime<Utc>,
    /// Replays deliveries created before this time, at most 30 days after `since`. A date without a time includes
    /// that whole day.
    pub until: DateTime<Utc>,
    /// Replays only deliveries with this status. The default is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<WebhookDeliveryStatus>,
}

impl ReplayWebhooksRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(since: impl Into<DateTime<Utc>>, until: impl Into<DateTime<Utc>>) -> Self {
        Self { since: since.into(), until: until.into(), status: Default::default() }
    }

    /// Replays only deliveries with this status.
    #[must_use]
    pub fn status(mut self, status: impl Into<WebhookDeliveryStatus>) -> Self {
        self.status = Some(status.into());
        self
    }
}

/// The message to resolve the route of.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ResolveRouteRequest {
    /// The sender.
    pub from: String,
    /// The recipients. Only their domains matter. Without them, rules with `recipientDomains` or
    /// `recipientMailboxProviders` are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Recipients>,
    /// The tags of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The class of the message. The default is `transactional`.
    #[serde(rename = "messageClass", skip_serializing_if = "Option::is_none")]
    pub message_class: Option<MessageClass>,
    /// The size of the message, in bytes. The default is 0.
    #[serde(rename = "sizeBytes", skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// Whether the message is a test. The default is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
}

impl ResolveRouteRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(from: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: Default::default(),
            tags: Default::default(),
            message_class: Default::default(),
            size_bytes: Default::default(),
            test: Default::default(),
        }
    }

    /// The recipients.
    #[must_use]
    pub fn to(mut self, to: impl Into<Recipients>) -> Self {
        self.to = Some(to.into());
        self
    }

    /// The tags of the message.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// The class of the message.
    #[must_use]
    pub fn message_class(mut self, message_class: impl Into<MessageClass>) -> Self {
        self.message_class = Some(message_class.into());
        self
    }

    /// The size of the message, in bytes.
    #[must_use]
    pub fn size_bytes(mut self, size_bytes: i64) -> Self {
        self.size_bytes = Some(size_bytes);
        self
    }

    /// Whether the message is a test.
    #[must_use]
    pub fn test(mut self, test: bool) -> Self {
        self.test = Some(test);
        self
    }
}

/// The dead jobs that are due again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetriedDeadJobs {
    /// The message id.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The number of chunks.
    pub chunks: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The result of a rollback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RolledBack {
    /// The template.
    #[serde(rename = "templateId")]
    pub template_id: String,
    /// The version that messages are rendered from now.
    #[serde(rename = "currentVersionId")]
    pub current_version_id: String,
    /// The number of the version, from 1.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How to rotate a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct RotateApiKeyRequest {
    /// How long the old secret keeps working, in seconds: 0 to 604,800. The default is 86,400 (one day).
    #[serde(rename = "gracePeriodSeconds", skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i64>,
}

impl RotateApiKeyRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { grace_period_seconds: Default::default() }
    }

    /// How long the old secret keeps working, in seconds: 0 to 604,800.
    #[must_use]
    pub fn grace_period_seconds(mut self, grace_period_seconds: i64) -> Self {
        self.grace_period_seconds = Some(grace_period_seconds);
        self
    }
}

/// How to rotate a signing secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct RotateWebhookSecretRequest {
    /// How long deliveries are signed with the old secret too, in seconds: 0 to 604,800. The default is 86,400 (one
    /// day).
    #[serde(rename = "gracePeriodSeconds", skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i64>,
}

impl RotateWebhookSecretRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { grace_period_seconds: Default::default() }
    }

    /// How long deliveries are signed with the old secret too, in seconds: 0 to 604,800.
    #[must_use]
    pub fn grace_period_seconds(mut self, grace_period_seconds: i64) -> Self {
        self.grace_period_seconds = Some(grace_period_seconds);
        self
    }
}

/// The route of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RouteResolution {
    /// The rule that matched; null if none did.
    pub rule: Option<RoutingRule>,
    /// The rules that were checked before and skipped, in order.
    #[serde(rename = "passedOver")]
    pub passed_over: Vec<PassedOverRule>,
    /// The account that would send the message; null if there is none. Of several targets each message gets one, so
    /// the next message may get another.
    pub account: Option<ProviderAccount>,
    /// Whether the sender's domain is verified on this account.
    #[serde(rename = "domainVerified")]
    pub domain_verified: bool,
    /// The targets of the rule, in order; empty if one account sends all its messages.
    pub targets: Vec<TargetResolution>,
    /// The fallbacks of the rule, in order.
    pub fallbacks: Vec<FallbackResolution>,
    /// Why a send would be refused: `NO_ACTIVE_PROVIDER` (in the region of the rule) or `DOMAIN_NOT_VERIFIED`; null
    /// if it would be accepted.
    pub refusal: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How far a routing rule is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingProgress {
    /// The targets of the rule in their order; empty if one account sends all its messages.
    pub targets: Vec<RoutingTargetProgress>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How the daily cap of a target grows, so that mailbox providers get to know a new account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingRamp {
    /// The most recipients of the first day.
    pub start: i64,
    /// What each step multiplies the cap by, 1.01 to 10.
    pub factor: f64,
    /// The days from one step to the next, 1 to 30.
    #[serde(rename = "everyDays")]
    pub every_days: i64,
    /// The first day, in UTC; before it the target gets nothing.
    pub from: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The bounds of the rates of an account, for all its mail, beyond which the ramps of a rule do not grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingRampBounds {
    /// The most bounces, as a part of the sent mails.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: f64,
    /// The most complaints, as a part of the delivered mails.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: f64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How far the ramp of a target is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingRampProgress {
    /// The most recipients of this day by the ramp; 0 before its first day.
    pub cap: i64,
    /// `notBegun` before its first day; `growing`; `held` while a rate is beyond its bound; `finished`, and then it
    /// limits no more.
    pub state: RoutingRampState,
    /// Since when it is in this state.
    pub since: DateTime<Utc>,
    /// The day of UTC of the next step, or of the first; null while it is held, and when it is finished.
    #[serde(rename = "nextStepOn")]
    pub next_step_on: Option<String>,
    /// The part of the account's sent mails that bounced, over a day, or over a week if fewer than 100 were sent in a
    /// day; null if fewer than 100 were.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: Option<f64>,
    /// The part of the account's delivered mails that was reported as spam, over the same time; null as `bounceRate`
    /// is.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: Option<f64>,
    /// How many mails the account sent in that time.
    pub sent: i64,
    /// What happened to the ramp, the newest first, up to 50.
    pub steps: Vec<RoutingRampStep>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Something that happened to a ramp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingRampStep {
    /// The at.
    pub at: DateTime<Utc>,
    /// `begin`: its first day came. `step`: the cap grew. `hold`: a rate passed its bound. `halve`: a rate passed
    /// twice its bound. `resume`: the rates are within their bounds again. `finish`: the cap reached that of the
    /// target.
    pub action: RoutingRampAction,
    /// The cap of a day before.
    #[serde(rename = "capBefore")]
    pub cap_before: i64,
    /// The cap of a day from then on.
    #[serde(rename = "capAfter")]
    pub cap_after: i64,
    /// The rate then; null if it was not known.
    #[serde(rename = "bounceRate")]
    pub bounce_rate: Option<f64>,
    /// The rate then; null if it was not known.
    #[serde(rename = "complaintRate")]
    pub complaint_rate: Option<f64>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A routing rule. A message must match all conditions of the rule; an absent condition matches every message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingRule {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// 0 to 1,000. Rules with a higher priority are checked first; for equal priorities, older rules are.
    pub priority: i64,
    /// Whether it is in use.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// The sender's domain: `example.com`, or `*.example.com` for every subdomain but not the domain itself; null
    /// matches every domain.
    #[serde(rename = "senderDomain")]
    pub sender_domain: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Whether a message must have `any` or `all` of the tags.
    #[serde(rename = "tagMatch")]
    pub tag_match: TagMatch,
    /// The domains of the recipients, such as `example.com` or `*.example.com`: every recipient of a message must
    /// match one of them. Empty for all recipients.
    #[serde(rename = "recipientDomains")]
    pub recipient_domains: Vec<String>,
    /// The mailbox providers of the recipients, by the MX records of their domains: every recipient of a message must
    /// have one of them. `other` are all that are not named. Empty for all recipients. A domain that is not known yet
    /// matches none: it is looked up after the first message to it.
    #[serde(rename = "recipientMailboxProviders")]
    pub recipient_mailbox_providers: Vec<MailboxProvider>,
    /// The class that messages have: `transactional` or `bulk`; null for both.
    #[serde(rename = "messageClass")]
    pub message_class: Option<MessageClass>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments. What single recipients have
    /// instead does not count. Null for no bound.
    #[serde(rename = "minSizeBytes")]
    pub min_size_bytes: Option<i64>,
    /// The largest size of messages, in bytes; null for no bound.
    #[serde(rename = "maxSizeBytes")]
    pub max_size_bytes: Option<i64>,
    /// Whether the rule is for tests only (true) or for live messages only (false); null for both.
    pub test: Option<bool>,
    /// The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere. Accounts outside of
    /// it are skipped, whatever else fails.
    pub region: Option<AccountRegion>,
    /// The account that sends the messages; of a rule with targets, that of the first.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The accounts that share the messages; empty if one account sends them all.
    pub targets: Vec<RoutingTarget>,
    /// Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient),
    /// or those of one `sender`.
    pub sticky: RoutingStickiness,
    /// Whether targets share the messages by their `weight` alone, or also by their `health`: the weight of a target
    /// whose mail fails is lowered until its mail succeeds again.
    pub prefer: RoutingPreference,
    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it
    /// waits (`wait`).
    #[serde(rename = "overCap")]
    pub over_cap: RoutingOverCap,
    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    #[serde(rename = "rampBounds")]
    pub ramp_bounds: RoutingRampBounds,
    /// The accounts that send if this account, or none of the targets, can, in this order.
    #[serde(rename = "fallbackProviderAccountIds")]
    pub fallback_provider_account_ids: Vec<String>,
    /// What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none,
    /// `resend` at once (the recipient may get the message twice), or `fail` (the message may have been sent).
    #[serde(rename = "onUnknown")]
    pub on_unknown: OnUnknown,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What the live messages of a period would have done. Accounts and their domains count as they are now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingSimulation {
    /// The begin of the period.
    pub from: DateTime<Utc>,
    /// The end of the period, which is not part of it.
    pub to: DateTime<Utc>,
    /// The messages that were accepted in the period.
    pub messages: i64,
    /// The recipients of these messages.
    pub recipients: i64,
    /// 1 if every message was looked at. Of more than 100,000, one in so many was, and the counts are multiplied by
    /// it.
    #[serde(rename = "sampledOneIn")]
    pub sampled_one_in: i64,
    /// The accounts that the messages went to, in the simulation or in fact.
    pub accounts: Vec<SimulatedAccount>,
    /// The rules in the order in which they are checked.
    pub rules: Vec<SimulatedRuleCounts>,
    /// Messages without a matching rule, and those that name their account.
    #[serde(rename = "withoutRule")]
    pub without_rule: i64,
    /// Messages that would have been refused.
    pub refused: SimulatedRefusals,
    /// Recipients that would have waited for a cap until sending is given up.
    pub unsent: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An account that gets a part of a rule's messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingTarget {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    pub weight: i64,
    /// The most recipients of a day in UTC; null for no cap.
    #[serde(rename = "dailyCap")]
    pub daily_cap: Option<i64>,
    /// The most recipients of an hour; null for no cap.
    #[serde(rename = "hourlyCap")]
    pub hourly_cap: Option<i64>,
    /// How its daily cap grows; null if it does not.
    pub ramp: Option<RoutingRamp>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How far a target of a routing rule is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoutingTargetProgress {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// 1 to 1,000. Each account gets its weight's part of the messages.
    pub weight: i64,
    /// How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a
    /// little ahead: workers reserve several at once.
    #[serde(rename = "usedToday")]
    pub used_today: i64,
    /// The most recipients of this day, by `dailyCap` and by the ramp; null for no cap.
    #[serde(rename = "dailyCap")]
    pub daily_cap: Option<i64>,
    /// How many recipients of the rule's messages it had in this hour. Counted if it has an `hourlyCap`, and a little
    /// ahead.
    #[serde(rename = "usedThisHour")]
    pub used_this_hour: i64,
    /// The most recipients of an hour; null for no cap.
    #[serde(rename = "hourlyCap")]
    pub hourly_cap: Option<i64>,
    /// How far its ramp is; null if it has none.
    pub ramp: Option<RoutingRampProgress>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A task of the scheduler, with its last run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SchedulerTask {
    /// The name of the task.
    pub name: String,
    /// How often the task runs, in milliseconds.
    #[serde(rename = "everyMs")]
    pub every_ms: i64,
    /// The process that ran the task last.
    pub leader: String,
    /// When the last run began.
    #[serde(rename = "lastStartedAt")]
    pub last_started_at: DateTime<Utc>,
    /// When the last finished run ended.
    #[serde(rename = "lastFinishedAt")]
    pub last_finished_at: Option<DateTime<Utc>>,
    /// When the last successful run ended.
    #[serde(rename = "lastSucceededAt")]
    pub last_succeeded_at: Option<DateTime<Utc>>,
    /// How long the last finished run took, in milliseconds.
    #[serde(rename = "tookMs")]
    pub took_ms: Option<i64>,
    /// How long ago the last successful run was, less one interval and the ten seconds within which a run is stored,
    /// in milliseconds.
    #[serde(rename = "lagMs")]
    pub lag_ms: i64,
    /// Whether the task needs attention.
    #[serde(rename = "isLate")]
    pub is_late: bool,
    /// The error of the last finished run.
    #[serde(rename = "lastError")]
    pub last_error: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One call to a provider for one recipient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SendAttempt {
    /// The id of the attempt. The events of this attempt have it as `attemptId`.
    pub id: String,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal.
    #[serde(rename = "toHash")]
    pub to_hash: String,
    /// The provider account of the call. It may have been removed since.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The provider type of the account.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// When the call started.
    #[serde(rename = "startedAt")]
    pub started_at: DateTime<Utc>,
    /// The duration until the outcome was known, in milliseconds; null if it is not known yet.
    #[serde(rename = "durationMs")]
    pub duration_ms: Option<i64>,
    /// The outcome: ACCEPTED, REJECTED, THROTTLED, UNAVAILABLE, UNKNOWN (the response was lost, and the provider may
    /// have accepted the message) or PENDING (the call still runs).
    pub outcome: SendAttemptOutcome,
    /// The status code of the provider's response.
    #[serde(rename = "statusCode")]
    pub status_code: Option<i64>,
    /// The provider's error message, or the error of the call.
    pub reason: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The messages to send.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SendBatchRequest {
    /// 1 to 1,000 messages. The operator can set another maximum.
    pub messages: Vec<BatchMessage>,
}

impl SendBatchRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(messages: impl IntoIterator<Item = impl Into<BatchMessage>>) -> Self {
        Self { messages: messages.into_iter().map(Into::into).collect() }
    }
}

/// The results, one for each message, in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SendBatchResponse {
    /// The results, in the order of the messages.
    pub results: Vec<BatchResult>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A message to send. It needs at least one of `templateId`, `html` and `text`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SendMessageRequest {
    /// One address or an array of up to 1,000, each with or without a display name. An item of the array can be an
    /// object with variables and metadata of this recipient. Each recipient gets a message of their own and does not
    /// see the other recipients, unless the message is shared. A repeated address gets one message.
    pub to: Recipients,
    /// One address or an array of addresses that get a copy and that all recipients see. With `cc` or `bcc`, the
    /// message is shared: all recipients get one mail and see the addresses of `to` and `cc`. A shared message has up
    /// to 50 addresses in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Addresses>,
    /// One address or an array of addresses that get a copy and that the other recipients do not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bcc: Option<Addresses>,
    /// `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail and see each other. The
    /// default is `shared` with `cc` or `bcc`, and else `private`. A shared message has no variables of single
    /// recipients, and no `unsubscribeGroupId` unless it has one address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryMode>,
    /// The sender. The domain must be verified on the provider account that sends the message; the setting
    /// `unverifiedDomains` can allow other domains. Required, unless `templateId` names a template whose version has
    /// a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The subject, on one line. With `templateId` or variables it is a Handlebars template, and the rendered subject
    /// must keep the same length limit. Required, unless `templateId` names a template whose version has a subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The HTML body. With `templateId` it replaces the template's HTML and is not rendered. With variables and
    /// without `templateId` it is a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The plain-text body. With `templateId` it replaces the template's text and is not rendered. With variables and
    /// without `templateId` it is a Handlebars template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// One address for replies or an array of up to 10. The default is that of the template's version, or else the
    /// sender.
    #[serde(rename = "replyTo", skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Addresses>,
    /// Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits and hyphens; a value
    /// is ASCII on one line (other characters as encoded words, RFC 2047). Headers that Waypost or the provider sets
    /// are refused: `From`, `To`, `Subject`, `Date`, `Message-ID`, `Content-*`, `DKIM-*`, `X-Waypost-*` and others.
    /// With `unsubscribeGroupId`, so is `List-Unsubscribe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<std::collections::BTreeMap<String, String>>,
    /// Up to 50 files. A file with a `contentId` is shown within the HTML body, which must not show `cid:` URLs of
    /// other ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<MessageAttachment>>,
    /// Up to 10 tags, for routing rules and analytics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`.
    #[serde(rename = "messageClass", skip_serializing_if = "Option::is_none")]
    pub message_class: Option<MessageClass>,
    /// Any JSON object of up to 64 KiB. It is stored with the message and included in its webhook events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The template to render. The current version is rendered when the message is accepted; later versions do not
    /// change the message.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// With `templateId`: the language of the version, as a language tag. Without a current version in this language,
    /// the next less exact one counts: `de-AT`, then `de`, then the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The variables of the template: an object of up to 256 KiB. Without `templateId`, `subject`, `html` and `text`
    /// are rendered with these variables (even if the object is empty). If neither the message nor a recipient has
    /// `variables`, they are sent unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// The unsubscribe group of the message. Recipients who unsubscribed from this group are dropped, in addition to
    /// those suppressed for all messages. Each recipient gets an unsubscribe link: at `{{unsubscribeUrl}}` in a body,
    /// or else at its end, and in the headers for the unsubscribe button of mail clients. Without a group, a body
    /// must not contain `{{unsubscribeUrl}}`, unless `variables` defines it.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
    /// Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The default is the
    /// organization's settings. A link with the attribute `data-waypost-no-track` is not tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Tracking>,
    /// When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until then its status is
    /// QUEUED. Suppressions and the account are decided at that time. The `Idempotency-Key` is valid until 24 hours
    /// after it.
    #[serde(rename = "scheduledAt", skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<DateTime<Utc>>,
    /// The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
    /// `scheduledAt`. Recipients to whom it was not sent before are dropped.
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The only provider account that may send the message, whatever the routing rules say. It must be active, and
    /// the sender's domain must be verified on it.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and
    /// nothing is counted. The default is whether the API key is a test key; with a test key it must not be false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// What becomes of a test. `delivered` is the default. `bounced`: a hard bounce. `complained`: delivered, then
    /// reported as spam. `deferred`: deferred, then delivered. `failed`: the provider refuses it. `suppressed`: all
    /// recipients are suppressed. `unknown`: the provider's answer is lost, and the rule's `onUnknown` decides.
    /// `failover`: the first account fails, and the next one takes it.
    #[serde(rename = "testOutcome", skip_serializing_if = "Option::is_none")]
    pub test_outcome: Option<TestOutcome>,
}

impl SendMessageRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(to: impl Into<Recipients>) -> Self {
        Self {
            to: to.into(),
            cc: Default::default(),
            bcc: Default::default(),
            delivery: Default::default(),
            from: Default::default(),
            subject: Default::default(),
            html: Default::default(),
            text: Default::default(),
            reply_to: Default::default(),
            headers: Default::default(),
            attachments: Default::default(),
            tags: Default::default(),
            message_class: Default::default(),
            metadata: Default::default(),
            template_id: Default::default(),
            locale: Default::default(),
            variables: Default::default(),
            unsubscribe_group_id: Default::default(),
            tracking: Default::default(),
            scheduled_at: Default::default(),
            expires_at: Default::default(),
            provider_account_id: Default::default(),
            test: Default::default(),
            test_outcome: Default::default(),
        }
    }

    /// One address or an array of addresses that get a copy and that all recipients see.
    #[must_use]
    pub fn cc(mut self, cc: impl Into<Addresses>) -> Self {
        self.cc = Some(cc.into());
        self
    }

    /// One address or an array of addresses that get a copy and that the other recipients do not see.
    #[must_use]
    pub fn bcc(mut self, bcc: impl Into<Addresses>) -> Self {
        self.bcc = Some(bcc.into());
        self
    }

    /// `private`: each recipient of `to` gets a mail of their own.
    #[must_use]
    pub fn delivery(mut self, delivery: impl Into<DeliveryMode>) -> Self {
        self.delivery = Some(delivery.into());
        self
    }

    /// The sender.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// The subject, on one line.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// The HTML body.
    #[must_use]
    pub fn html(mut self, html: impl Into<String>) -> Self {
        self.html = Some(html.into());
        self
    }

    /// The plain-text body.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// One address for replies or an array of up to 10.
    #[must_use]
    pub fn reply_to(mut self, reply_to: impl Into<Addresses>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// Extra headers: up to 50 names with their values, 8 KiB in all.
    #[must_use]
    pub fn headers(mut self, headers: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.headers = Some(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// Up to 50 files.
    #[must_use]
    pub fn attachments(mut self, attachments: impl IntoIterator<Item = impl Into<MessageAttachment>>) -> Self {
        self.attachments = Some(attachments.into_iter().map(Into::into).collect());
        self
    }

    /// Up to 10 tags, for routing rules and analytics.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`.
    #[must_use]
    pub fn message_class(mut self, message_class: impl Into<MessageClass>) -> Self {
        self.message_class = Some(message_class.into());
        self
    }

    /// Any JSON object of up to 64 KiB.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// The template to render.
    #[must_use]
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.template_id = Some(template_id.into());
        self
    }

    /// With `templateId`: the language of the version, as a language tag.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The variables of the template: an object of up to 256 KiB.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// The unsubscribe group of the message.
    #[must_use]
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }

    /// Which tracking to add to the HTML body: a pixel for opens, redirects for clicks.
    #[must_use]
    pub fn tracking(mut self, tracking: impl Into<Tracking>) -> Self {
        self.tracking = Some(tracking.into());
        self
    }

    /// When to send the message, up to a year ahead: ISO 8601 with an offset from UTC.
    #[must_use]
    pub fn scheduled_at(mut self, scheduled_at: impl Into<DateTime<Utc>>) -> Self {
        self.scheduled_at = Some(scheduled_at.into());
        self
    }

    /// The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
    /// `scheduledAt`.
    #[must_use]
    pub fn expires_at(mut self, expires_at: impl Into<DateTime<Utc>>) -> Self {
        self.expires_at = Some(expires_at.into());
        self
    }

    /// The only provider account that may send the message, whatever the routing rules say.
    #[must_use]
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and
    /// nothing is counted.
    #[must_use]
    pub fn test(mut self, test: bool) -> Self {
        self.test = Some(test);
        self
    }

    /// What becomes of a test.
    #[must_use]
    pub fn test_outcome(mut self, test_outcome: impl Into<TestOutcome>) -> Self {
        self.test_outcome = Some(test_outcome.into());
        self
    }
}

/// The result of a send. Suppressed recipients are dropped. If all recipients are suppressed, no message is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SendMessageResponse {
    /// The id of the message; null if all recipients are suppressed.
    #[serde(rename = "messageId")]
    pub message_id: Option<String>,
    /// The provider account that will send the message; null if all recipients are suppressed.
    #[serde(rename = "providerId")]
    pub provider_id: Option<String>,
    /// The provider type of this account.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// `queued`, or `suppressed` if all recipients are suppressed.
    pub status: SendStatus,
    /// Whether the sender's domain is verified on this account.
    #[serde(rename = "domainVerified", skip_serializing_if = "Option::is_none")]
    pub domain_verified: Option<bool>,
    /// The number of suppressed recipients; absent if none is suppressed.
    #[serde(rename = "suppressedCount", skip_serializing_if = "Option::is_none")]
    pub suppressed_count: Option<i64>,
    /// The number of accepted recipients; absent if none or all are suppressed.
    #[serde(rename = "acceptedCount", skip_serializing_if = "Option::is_none")]
    pub accepted_count: Option<i64>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// To whom a template is sent, and with what.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SendTemplateTestRequest {
    /// One address or an array of up to 10. Each gets a mail of their own.
    pub to: Addresses,
    /// The variables of the template, which must match its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// The id of the version. The default is the current version.
    #[serde(rename = "versionId", skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// The language of the version, instead of `versionId`: its current version is sent, or that of the next less
    /// exact language, or of the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The sender. Required if the version has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The subject, a Handlebars template. Required if the version has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl SendTemplateTestRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(to: impl Into<Addresses>) -> Self {
        Self {
            to: to.into(),
            variables: Default::default(),
            version_id: Default::default(),
            locale: Default::default(),
            from: Default::default(),
            subject: Default::default(),
        }
    }

    /// The variables of the template, which must match its schema.
    #[must_use]
    pub fn variables(mut self, variables: impl Into<Value>) -> Self {
        self.variables = Some(variables.into());
        self
    }

    /// The id of the version.
    #[must_use]
    pub fn version_id(mut self, version_id: impl Into<String>) -> Self {
        self.version_id = Some(version_id.into());
        self
    }

    /// The language of the version, instead of `versionId`: its current version is sent, or that of the next less
    /// exact language, or of the default.
    #[must_use]
    pub fn locale(mut self, locale: impl Into<String>) -> Self {
        self.locale = Some(locale.into());
        self
    }

    /// The sender.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// The subject, a Handlebars template.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

/// A sender domain, across the accounts that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomain {
    /// The domain name, in ASCII.
    pub domain: String,
    /// `complete`: DNS has all records that mail needs. `incomplete`: some are missing or differ, and were never
    /// found. `broken`: some were found before, and two checks missed them. `unknown`: DNS was not asked yet or could
    /// not be asked, or no account names its records.
    pub status: SenderDomainStatus,
    /// The accounts that have the domain.
    pub accounts: Vec<SenderDomainAccount>,
    /// The SPF record of a domain. A domain has one record for all of its senders.
    pub spf: SenderDomainSpf,
    /// The DKIM records that the accounts want.
    pub dkim: Vec<SenderDomainDkim>,
    /// The DMARC policy of a domain.
    pub dmarc: SenderDomainDmarc,
    /// What is wrong with the domain as a whole.
    pub conflicts: Vec<SenderDomainConflict>,
    /// When DNS was last asked; null before the first check.
    #[serde(rename = "checkedAt")]
    pub checked_at: Option<DateTime<Utc>>,
    /// Since when DNS lacks records that it had; null if it has them.
    #[serde(rename = "brokenSince")]
    pub broken_since: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A sender domain at one account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainAccount {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// An email provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// The id of the domain in `/v1/providers/:id/domains`.
    #[serde(rename = "domainId")]
    pub domain_id: String,
    /// The provider's verdict, which decides whether the account may send from the domain.
    pub state: DomainState,
    /// The records that the provider wants, with what DNS has.
    pub records: Vec<SenderDomainRecord>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Something that is wrong with a domain as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainConflict {
    /// The kind of conflict, for programs.
    pub code: SenderDomainConflictCode,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// The names of the records.
    pub names: Vec<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A DKIM record that an account wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainDkim {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The DKIM selector.
    pub selector: String,
    /// The full name of the record.
    pub name: String,
    /// Whether DNS has the record.
    pub status: DnsFoundStatus,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The DMARC policy of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainDmarc {
    /// The record; null if there is none.
    pub record: Option<String>,
    /// The domain that has the record: this one, or one above it.
    #[serde(rename = "policyDomain")]
    pub policy_domain: Option<String>,
    /// What receivers do with mail that does not pass; null without a valid record.
    pub policy: Option<DmarcPolicy>,
    /// Whether receivers accept the DMARC record of a domain.
    pub status: DmarcStatus,
    /// Whether the return paths of all accounts are of this domain, as far as the policy asks for it; null if there
    /// is no policy or an account does not name its records.
    #[serde(rename = "alignedSpf")]
    pub aligned_spf: Option<bool>,
    /// The same of the signatures of all accounts. Mail passes if one of both is aligned.
    #[serde(rename = "alignedDkim")]
    pub aligned_dkim: Option<bool>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A DNS record that a provider wants, with what DNS has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainRecord {
    /// The type of the record.
    pub r#type: DnsRecordType,
    /// The full name of the record.
    pub name: String,
    /// The value that the provider wants.
    pub value: String,
    /// The priority of an MX record; null for other types.
    pub priority: Option<i64>,
    /// What the record is for.
    pub purpose: DnsRecordPurpose,
    /// Whether the provider found the record.
    pub status: DnsRecordStatus,
    /// The values that DNS has there; of SPF and DMARC, the records of that kind.
    pub found: Vec<String>,
    /// Whether DNS has the record; `unknown` if DNS was not or could not be asked.
    #[serde(rename = "foundStatus")]
    pub found_status: DnsFoundStatus,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The SPF record of a domain. A domain has one record for all of its senders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainSpf {
    /// The record; the first, if there are several; null if there is none.
    pub record: Option<String>,
    /// Whether receivers accept it. Accounts may do without one: SENDGRID, POSTMARK and SES send with return paths of
    /// other domains.
    pub status: SpfStatus,
    /// The look-ups that it causes, with those of included records, up to 50.
    pub lookups: i64,
    /// The look-ups that receivers make (RFC 7208, 4.6.4).
    #[serde(rename = "lookupsMax")]
    pub lookups_max: i64,
    /// The look-ups that find nothing. Receivers accept two.
    #[serde(rename = "voidLookups")]
    pub void_lookups: i64,
    /// The mechanisms that accounts want and the record lacks.
    pub missing: Vec<String>,
    /// One record for all accounts; null if the record need not be changed.
    pub recommended: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A sender domain in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SenderDomainSummary {
    /// The domain name, in ASCII.
    pub domain: String,
    /// What the last check found.
    pub status: SenderDomainStatus,
    /// The provider accounts that have the domain.
    #[serde(rename = "providerAccountIds")]
    pub provider_account_ids: Vec<String>,
    /// The kinds of conflicts that the last check found.
    pub conflicts: Vec<SenderDomainConflictCode>,
    /// When DNS was last asked; null before the first check.
    #[serde(rename = "checkedAt")]
    pub checked_at: Option<DateTime<Utc>>,
    /// Since when DNS lacks records that it had; null if it has them.
    #[serde(rename = "brokenSince")]
    pub broken_since: Option<DateTime<Utc>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The query of a series, with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SeriesQuery {
    /// The begin of the period.
    pub from: DateTime<Utc>,
    /// The end of the period, which is not part of it.
    pub to: DateTime<Utc>,
    /// The length of the buckets.
    pub granularity: MetricsGranularity,
    /// The time zone of the buckets, by its IANA name.
    #[serde(rename = "timeZone", skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Who is signed in, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// A user.
    pub user: User,
    /// The organization of a session.
    pub organization: SessionOrganization,
    /// The role of the user in the organization.
    pub role: Role,
    /// The permissions of the role, and `OPERATOR` if the user is an operator.
    pub permissions: Vec<CallerPermission>,
    /// The organizations of the user, by their names.
    pub organizations: Vec<OrganizationMembership>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When the session ends at the latest. It ends earlier after 12 hours without a request.
    #[serde(rename = "expiresAt")]
    pub expires_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The organization of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionOrganization {
    /// The id.
    pub id: String,
    /// The name of the organization.
    pub name: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The settings of the organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The name of the organization. Recipients see it on the pages of unsubscribe links.
    pub name: String,
    /// The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
    #[serde(rename = "brandColor")]
    pub brand_color: Option<String>,
    /// What happens to a message whose sender domain is not verified on the provider account: `reject` (the send gets
    /// 422) or `accept` (the send gets 202 with `domainVerified: false`).
    #[serde(rename = "unverifiedDomains")]
    pub unverified_domains: UnverifiedDomains,
    /// Whether opens are tracked, unless a message sets `tracking`. A change applies to messages accepted after it.
    #[serde(rename = "trackOpens")]
    pub track_opens: bool,
    /// Whether clicks are tracked, unless a message sets `tracking`. A change applies to messages accepted after it.
    #[serde(rename = "trackClicks")]
    pub track_clicks: bool,
    /// How many days messages and their data are stored; null means the operator's retention period. If the
    /// operator's period is shorter, it applies. Metrics and the audit log are not affected.
    #[serde(rename = "retentionDays")]
    pub retention_days: Option<i64>,
    /// Rate limits, in requests per second; null means the operator's limit.
    #[serde(rename = "rateLimits")]
    pub rate_limits: RateLimits,
    /// How many soft bounces of an address add a suppression for it, with the source BOUNCE; 0 means never.
    #[serde(rename = "softBounceLimit")]
    pub soft_bounce_limit: i64,
    /// The number of days within which soft bounces are counted together.
    #[serde(rename = "softBounceWindowDays")]
    pub soft_bounce_window_days: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The ways to sign in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SignInMethods {
    /// Whether users can sign in with a password.
    pub password: bool,
    /// The OpenID Connect provider at which users can sign in; null if there is none.
    pub oidc: Option<OidcMethod>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The rules to try, and on which messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SimulateRoutingRequest {
    /// Up to 100 rules, as they would be created, instead of those of the organization. For equal priorities, earlier
    /// ones are checked first. The default is the organization's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<CreateRoutingRuleRequest>>,
    /// How far back messages are looked at: the last `hour`, `day` (the default) or `week`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<RoutingSimulationPeriod>,
}

impl SimulateRoutingRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: Default::default(), period: Default::default() }
    }

    /// Up to 100 rules, as they would be created, instead of those of the organization.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = impl Into<CreateRoutingRuleRequest>>) -> Self {
        self.rules = Some(rules.into_iter().map(Into::into).collect());
        self
    }

    /// How far back messages are looked at: the last `hour`, `day` (the default) or `week`.
    #[must_use]
    pub fn period(mut self, period: impl Into<RoutingSimulationPeriod>) -> Self {
        self.period = Some(period.into());
        self
    }
}

/// The recipients of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimulatedAccount {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// Recipients in the simulation.
    pub recipients: i64,
    /// Recipients in fact.
    #[serde(rename = "actualRecipients")]
    pub actual_recipients: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Messages that would have been refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimulatedRefusals {
    /// Messages refused with `NO_ACTIVE_PROVIDER`.
    #[serde(rename = "noActiveProvider")]
    pub no_active_provider: i64,
    /// Messages refused with `DOMAIN_NOT_VERIFIED`.
    #[serde(rename = "domainNotVerified")]
    pub domain_not_verified: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What a rule decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimulatedRuleCounts {
    /// The id of the rule; null for one of the request.
    pub id: Option<String>,
    /// The name.
    pub name: String,
    /// The messages that it decided.
    pub messages: i64,
    /// The recipients of these messages.
    pub recipients: i64,
    /// The targets of the rule, in order; empty if one account sends all its messages.
    pub targets: Vec<SimulatedTarget>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What a target got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimulatedTarget {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The recipients that it got.
    pub recipients: i64,
    /// Recipients for whom its hourly cap was reached.
    #[serde(rename = "overHourlyCap")]
    pub over_hourly_cap: i64,
    /// Recipients for whom its daily cap was reached.
    #[serde(rename = "overDailyCap")]
    pub over_daily_cap: i64,
    /// Recipients that waited for a later hour and then went to it.
    pub waited: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// How to begin a second factor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct StartTotpRequest {
    /// The present password.
    pub password: String,
}

impl StartTotpRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self { password: password.into() }
    }
}

/// The response to a deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Success {
    /// Always true.
    pub success: bool,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The period of a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryPeriod {
    /// The begin of the period.
    pub from: DateTime<Utc>,
    /// The end of the period, which is not part of it.
    pub to: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An address that receives no messages. Only its hash is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Suppression {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The SHA-256 of the address in lower case, as lower-case hexadecimal.
    #[serde(rename = "emailHash")]
    pub email_hash: String,
    /// The unsubscribe group that the suppression applies to; null if it applies to all messages.
    #[serde(rename = "unsubscribeGroupId")]
    pub unsubscribe_group_id: Option<String>,
    /// The source of the suppression.
    pub source: SuppressionSource,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// The message that bounced, that was reported or whose unsubscribe link was used; null if no message caused the
    /// suppression or it is not known. The message may have been deleted since.
    #[serde(rename = "messageId")]
    pub message_id: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A target of the matching rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetResolution {
    /// The provider account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The weight that the rule gives it.
    pub weight: i64,
    /// The percent of the weight that counts now for the domain of the first recipient: below 100 if the rule prefers
    /// healthy targets and the mail of this one fails.
    #[serde(rename = "healthPercent")]
    pub health_percent: i64,
    /// The part of the rule's messages that it gets now, from 0 to 1.
    pub share: f64,
    /// Whether the sender's domain is verified on this account.
    #[serde(rename = "domainVerified")]
    pub domain_verified: bool,
    /// How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a
    /// little ahead: workers reserve several at once.
    #[serde(rename = "usedToday")]
    pub used_today: i64,
    /// The most recipients of this day, by `dailyCap` and by the ramp; null for no cap.
    #[serde(rename = "dailyCap")]
    pub daily_cap: Option<i64>,
    /// How many recipients of the rule's messages it had in this hour. Counted if it has an `hourlyCap`, and a little
    /// ahead.
    #[serde(rename = "usedThisHour")]
    pub used_this_hour: i64,
    /// The most recipients of an hour; null for no cap.
    #[serde(rename = "hourlyCap")]
    pub hourly_cap: Option<i64>,
    /// The state of its ramp: `notBegun`, `growing`, `held` or `finished`; null without one.
    #[serde(rename = "rampState")]
    pub ramp_state: Option<RoutingRampState>,
    /// Why this target gets no messages: `PROVIDER_INACTIVE`; `DOMAIN_NOT_VERIFIED` if the sender's domain is
    /// unverified on it; `REGION` if it is not in the rule's region; `RAMP_NOT_BEGUN`; null if it gets some.
    #[serde(rename = "passedOver")]
    pub passed_over: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A template. Its content is in its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Template {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The version of the default language that messages are rendered from; null if there is no such version yet.
    #[serde(rename = "currentVersionId")]
    pub current_version_id: Option<String>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,
    /// `TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
    /// `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
    pub r#type: TemplateType,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A template with the content of its current version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateDetail {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The version of the default language that messages are rendered from; null if there is no such version yet.
    #[serde(rename = "currentVersionId")]
    pub current_version_id: Option<String>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,
    /// `TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
    /// `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
    pub r#type: TemplateType,
    /// The current version of the default language; null if there is no such version yet.
    #[serde(rename = "currentVersion")]
    pub current_version: Option<TemplateVersion>,
    /// The current versions of all languages.
    #[serde(rename = "currentVersions")]
    pub current_versions: Vec<CurrentTemplateVersion>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A layout or partial in a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplatePart {
    /// The id of the layout or partial.
    #[serde(rename = "templateId")]
    pub template_id: String,
    /// `LAYOUT` or `PARTIAL`.
    pub r#type: TemplateType,
    /// The name.
    pub name: String,
    /// The version that is in it.
    #[serde(rename = "versionId")]
    pub version_id: String,
    /// The number of the version, from 1.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A rendered template version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplatePreview {
    /// The rendered subject; absent if the version has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The HTML body.
    pub html: String,
    /// The rendered text; empty if the version has no text.
    pub text: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A current version with the layout or partial in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateUse {
    /// The id of the template that the version is of.
    #[serde(rename = "templateId")]
    pub template_id: String,
    /// `TEMPLATE`, or the `LAYOUT` or `PARTIAL` that has it in it.
    pub r#type: TemplateType,
    /// The name.
    pub name: String,
    /// The id of the version.
    #[serde(rename = "versionId")]
    pub version_id: String,
    /// The number of the version, from 1.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,
    /// The language of the version, as a language tag; null is the default language.
    pub locale: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A version of a template. What its author gave never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateVersion {
    /// The id.
    pub id: String,
    /// The template.
    #[serde(rename = "templateId")]
    pub template_id: String,
    /// The number of the version: 1, 2, 3 and so on.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,
    /// The MJML source.
    #[serde(rename = "mjmlSource")]
    pub mjml_source: Option<String>,
    /// The HTML source, a Handlebars template. With `mjmlSource`, the HTML that it was compiled to, with the layout
    /// and the partials in it.
    #[serde(rename = "htmlContent")]
    pub html_content: String,
    /// The text, a Handlebars template.
    #[serde(rename = "textContent")]
    pub text_content: Option<String>,
    /// The JSON Schema of the variables.
    #[serde(rename = "variablesSchema")]
    pub variables_schema: Option<Map<String, Value>>,
    /// The id of the API key that created the version.
    #[serde(rename = "createdBy")]
    pub created_by: String,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// The language of the version, as a language tag; null is the default language.
    pub locale: Option<String>,
    /// The subject of messages that bring none, a Handlebars template.
    pub subject: Option<String>,
    /// What mail programs show beside the subject, a Handlebars template.
    pub preheader: Option<String>,
    /// The sender of messages that bring none.
    pub from: Option<String>,
    /// The addresses for replies to messages that bring none.
    #[serde(rename = "replyTo")]
    pub reply_to: Vec<String>,
    /// The layout around the content.
    #[serde(rename = "layoutId")]
    pub layout_id: Option<String>,
    /// Whether the text was made from the HTML, because none was given.
    #[serde(rename = "isTextGenerated")]
    pub is_text_generated: bool,
    /// The layout and the partials in the version, also those in others, as they were when it was last composed.
    pub parts: Vec<TemplatePart>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// All versions of a template, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateVersionList {
    /// The records.
    pub data: Vec<TemplateVersionSummary>,
    /// The version of the default language that messages are rendered from; null if there is no such version yet.
    #[serde(rename = "currentVersionId")]
    pub current_version_id: Option<String>,
    /// The current versions of all languages.
    #[serde(rename = "currentVersions")]
    pub current_versions: Vec<CurrentTemplateVersion>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A version of a template, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateVersionSummary {
    /// The id.
    pub id: String,
    /// The template.
    #[serde(rename = "templateId")]
    pub template_id: String,
    /// The number of the version, from 1.
    #[serde(rename = "versionNumber")]
    pub version_number: i64,
    /// The language of the version, as a language tag; null is the default language.
    pub locale: Option<String>,
    /// The id of the API key that created the version.
    #[serde(rename = "createdBy")]
    pub created_by: String,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The secret of a second factor, which is shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TotpEnrolment {
    /// The secret in base 32, to type into an authenticator.
    pub secret: String,
    /// The `otpauth` URI of the secret, for a QR code.
    pub uri: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A kind of messages that recipients can unsubscribe from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsubscribeGroup {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The name.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// Whether this is the default group of the organization. At most one group is.
    #[serde(rename = "isDefault")]
    pub is_default: bool,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The changes to a key. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateApiKeyRequest {
    /// The name of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The permissions. A permission that the caller lacks cannot be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<Permission>>,
    /// The IP addresses and networks that the key can be used from; an empty list means anywhere.
    #[serde(rename = "allowedIps", skip_serializing_if = "Option::is_none")]
    pub allowed_ips: Option<Vec<String>>,
    /// When the key expires; null means never.
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<DateTime<Utc>>>,
}

impl UpdateApiKeyRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: Default::default(),
            permissions: Default::default(),
            allowed_ips: Default::default(),
            expires_at: Default::default(),
        }
    }

    /// The name of the key.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The permissions.
    #[must_use]
    pub fn permissions(mut self, permissions: impl IntoIterator<Item = impl Into<Permission>>) -> Self {
        self.permissions = Some(permissions.into_iter().map(Into::into).collect());
        self
    }

    /// The IP addresses and networks that the key can be used from; an empty list means anywhere.
    #[must_use]
    pub fn allowed_ips(mut self, allowed_ips: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_ips = Some(allowed_ips.into_iter().map(Into::into).collect());
        self
    }

    /// When the key expires; null means never.
    #[must_use]
    pub fn expires_at(mut self, expires_at: impl Into<DateTime<Utc>>) -> Self {
        self.expires_at = Some(Some(expires_at.into()));
        self
    }

    /// Clears `expiresAt`.
    #[must_use]
    pub fn clear_expires_at(mut self) -> Self {
        self.expires_at = Some(None);
        self
    }
}

/// The changes to an invitation. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateInvitationRequest {
    /// The new role. The caller must have each of its permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl UpdateInvitationRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { role: Default::default() }
    }

    /// The new role.
    #[must_use]
    pub fn role(mut self, role: impl Into<Role>) -> Self {
        self.role = Some(role.into());
        self
    }
}

/// The changes to a member. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateMemberRequest {
    /// The new role. The caller must have each of its permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl UpdateMemberRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { role: Default::default() }
    }

    /// The new role.
    #[must_use]
    pub fn role(mut self, role: impl Into<Role>) -> Self {
        self.role = Some(role.into());
        self
    }
}

/// The change of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateMessageRequest {
    /// When the message goes: a time with its offset from UTC, up to one year ahead and before its `expiresAt`. Null
    /// is now.
    #[serde(rename = "scheduledAt", skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Option<DateTime<Utc>>>,
}

impl UpdateMessageRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { scheduled_at: Default::default() }
    }

    /// When the message goes: a time with its offset from UTC, up to one year ahead and before its `expiresAt`.
    #[must_use]
    pub fn scheduled_at(mut self, scheduled_at: impl Into<DateTime<Utc>>) -> Self {
        self.scheduled_at = Some(Some(scheduled_at.into()));
        self
    }

    /// Clears `scheduledAt`.
    #[must_use]
    pub fn clear_scheduled_at(mut self) -> Self {
        self.scheduled_at = Some(None);
        self
    }
}

/// The changes to an account. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateProviderRequest {
    /// The display name.
    #[serde(rename = "displayName", skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Whether the account sends messages.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// New credentials. They are checked with the provider before they replace the old ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ProviderCredentials>,
    /// New secrets that verify the provider's events. `eventsVerified` is false until an event is verified with them.
    #[serde(rename = "eventSecrets", skip_serializing_if = "Option::is_none")]
    pub event_secrets: Option<EventSecrets>,
    /// The most calls to the provider per second, over all workers; null removes the limit. Workers apply the change
    /// within a few seconds.
    #[serde(rename = "maxRatePerSecond", skip_serializing_if = "Option::is_none")]
    pub max_rate_per_second: Option<Option<i64>>,
    /// The most concurrent calls to the provider, over all workers; null removes the limit. Workers apply the change
    /// within a few seconds.
    #[serde(rename = "maxConcurrency", skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<Option<i64>>,
}

impl UpdateProviderRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            display_name: Default::default(),
            is_active: Default::default(),
            credentials: Default::default(),
            event_secrets: Default::default(),
            max_rate_per_second: Default::default(),
            max_concurrency: Default::default(),
        }
    }

    /// The display name.
    #[must_use]
    pub fn display_name(mut self, display_name: impl Into<String>) -> Self {
        self.display_name = Some(display_name.into());
        self
    }

    /// Whether the account sends messages.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }

    /// New credentials.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Into<ProviderCredentials>) -> Self {
        self.credentials = Some(credentials.into());
        self
    }

    /// New secrets that verify the provider's events.
    #[must_use]
    pub fn event_secrets(mut self, event_secrets: impl Into<EventSecrets>) -> Self {
        self.event_secrets = Some(event_secrets.into());
        self
    }

    /// The most calls to the provider per second, over all workers; null removes the limit.
    #[must_use]
    pub fn max_rate_per_second(mut self, max_rate_per_second: i64) -> Self {
        self.max_rate_per_second = Some(Some(max_rate_per_second));
        self
    }

    /// Clears `maxRatePerSecond`.
    #[must_use]
    pub fn clear_max_rate_per_second(mut self) -> Self {
        self.max_rate_per_second = Some(None);
        self
    }

    /// The most concurrent calls to the provider, over all workers; null removes the limit.
    #[must_use]
    pub fn max_concurrency(mut self, max_concurrency: i64) -> Self {
        self.max_concurrency = Some(Some(max_concurrency));
        self
    }

    /// Clears `maxConcurrency`.
    #[must_use]
    pub fn clear_max_concurrency(mut self) -> Self {
        self.max_concurrency = Some(None);
        self
    }
}

/// The changes to a rule. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateRoutingRuleRequest {
    /// The name of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rules with a higher priority are checked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Whether the rule is used.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// The sender's domain; null matches every domain.
    #[serde(rename = "senderDomain", skip_serializing_if = "Option::is_none")]
    pub sender_domain: Option<Option<String>>,
    /// The tags of matching messages; an empty list matches every message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Whether a message must have `any` or `all` of the tags.
    #[serde(rename = "tagMatch", skip_serializing_if = "Option::is_none")]
    pub tag_match: Option<TagMatch>,
    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a
    /// message must match one of them. An empty list matches all recipients.
    #[serde(rename = "recipientDomains", skip_serializing_if = "Option::is_none")]
    pub recipient_domains: Option<Vec<String>>,
    /// The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
    /// `other`. Every recipient of a message must have one of them. An empty list matches all recipients.
    #[serde(rename = "recipientMailboxProviders", skip_serializing_if = "Option::is_none")]
    pub recipient_mailbox_providers: Option<Vec<MailboxProvider>>,
    /// The class that messages have: `transactional` or `bulk`. Null matches both.
    #[serde(rename = "messageClass", skip_serializing_if = "Option::is_none")]
    pub message_class: Option<Option<MessageClass>>,
    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    #[serde(rename = "minSizeBytes", skip_serializing_if = "Option::is_none")]
    pub min_size_bytes: Option<Option<i64>>,
    /// The largest size of messages, in bytes.
    #[serde(rename = "maxSizeBytes", skip_serializing_if = "Option::is_none")]
    pub max_size_bytes: Option<Option<i64>>,
    /// Whether the rule is for tests only (true) or for live messages only (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Option<bool>>,
    /// The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Option<AccountRegion>>,
    /// The account that sends the messages. It takes the place of `targets`.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Up to 10 accounts that share the messages by weight. They take the place of `providerAccountId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<NewRoutingTarget>>,
    /// Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient),
    /// or those of one `sender`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<RoutingStickiness>,
    /// Whether targets share the messages by their `weight` alone, or also by their `health`: a target whose mail
    /// fails gets less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<RoutingPreference>,
    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it
    /// waits (`wait`).
    #[serde(rename = "overCap", skip_serializing_if = "Option::is_none")]
    pub over_cap: Option<RoutingOverCap>,
    /// The bounds of the rates of an account, beyond which its ramp does not grow. An absent one keeps its value.
    #[serde(rename = "rampBounds", skip_serializing_if = "Option::is_none")]
    pub ramp_bounds: Option<NewRoutingRampBounds>,
    /// Up to 5 accounts that send if this account cannot, in this order.
    #[serde(rename = "fallbackProviderAccountIds", skip_serializing_if = "Option::is_none")]
    pub fallback_provider_account_ids: Option<Vec<String>>,
    /// What to do if the provider's response to a call is lost: `wait`, `resend` or `fail`.
    #[serde(rename = "onUnknown", skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
}

impl UpdateRoutingRuleRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: Default::default(),
            priority: Default::default(),
            is_active: Default::default(),
            sender_domain: Default::default(),
            tags: Default::default(),
            tag_match: Default::default(),
            recipient_domains: Default::default(),
            recipient_mailbox_providers: Default::default(),
            message_class: Default::default(),
            min_size_bytes: Default::default(),
            max_size_bytes: Default::default(),
            test: Default::default(),
            region: Default::default(),
            provider_account_id: Default::default(),
            targets: Default::default(),
            sticky: Default::default(),
            prefer: Default::default(),
            over_cap: Default::default(),
            ramp_bounds: Default::default(),
            fallback_provider_account_ids: Default::default(),
            on_unknown: Default::default(),
        }
    }

    /// The name of the rule.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Rules with a higher priority are checked first.
    #[must_use]
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Whether the rule is used.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }

    /// The sender's domain; null matches every domain.
    #[must_use]
    pub fn sender_domain(mut self, sender_domain: impl Into<String>) -> Self {
        self.sender_domain = Some(Some(sender_domain.into()));
        self
    }

    /// Clears `senderDomain`.
    #[must_use]
    pub fn clear_sender_domain(mut self) -> Self {
        self.sender_domain = Some(None);
        self
    }

    /// The tags of matching messages; an empty list matches every message.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Whether a message must have `any` or `all` of the tags.
    #[must_use]
    pub fn tag_match(mut self, tag_match: impl Into<TagMatch>) -> Self {
        self.tag_match = Some(tag_match.into());
        self
    }

    /// The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a
    /// message must match one of them.
    #[must_use]
    pub fn recipient_domains(mut self, recipient_domains: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.recipient_domains = Some(recipient_domains.into_iter().map(Into::into).collect());
        self
    }

    /// The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
    /// `other`.
    #[must_use]
    pub fn recipient_mailbox_providers(
        mut self,
        recipient_mailbox_providers: impl IntoIterator<Item = impl Into<MailboxProvider>>,
    ) -> Self {
        self.recipient_mailbox_providers = Some(recipient_mailbox_providers.into_iter().map(Into::into).collect());
        self
    }

    /// The class that messages have: `transactional` or `bulk`.
    #[must_use]
    pub fn message_class(mut self, message_class: impl Into<MessageClass>) -> Self {
        self.message_class = Some(Some(message_class.into()));
        self
    }

    /// Clears `messageClass`.
    #[must_use]
    pub fn clear_message_class(mut self) -> Self {
        self.message_class = Some(None);
        self
    }

    /// The smallest size of messages, in bytes: subject, bodies and decoded attachments.
    #[must_use]
    pub fn min_size_bytes(mut self, min_size_bytes: i64) -> Self {
        self.min_size_bytes = Some(Some(min_size_bytes));
        self
    }

    /// Clears `minSizeBytes`.
    #[must_use]
    pub fn clear_min_size_bytes(mut self) -> Self {
        self.min_size_bytes = Some(None);
        self
    }

    /// The largest size of messages, in bytes.
    #[must_use]
    pub fn max_size_bytes(mut self, max_size_bytes: i64) -> Self {
        self.max_size_bytes = Some(Some(max_size_bytes));
        self
    }

    /// Clears `maxSizeBytes`.
    #[must_use]
    pub fn clear_max_size_bytes(mut self) -> Self {
        self.max_size_bytes = Some(None);
        self
    }

    /// Whether the rule is for tests only (true) or for live messages only (false).
    #[must_use]
    pub fn test(mut self, test: bool) -> Self {
        self.test = Some(Some(test));
        self
    }

    /// Clears `test`.
    #[must_use]
    pub fn clear_test(mut self) -> Self {
        self.test = Some(None);
        self
    }

    /// The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere.
    #[must_use]
    pub fn region(mut self, region: impl Into<AccountRegion>) -> Self {
        self.region = Some(Some(region.into()));
        self
    }

    /// Clears `region`.
    #[must_use]
    pub fn clear_region(mut self) -> Self {
        self.region = Some(None);
        self
    }

    /// The account that sends the messages.
    #[must_use]
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Up to 10 accounts that share the messages by weight.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = impl Into<NewRoutingTarget>>) -> Self {
        self.targets = Some(targets.into_iter().map(Into::into).collect());
        self
    }

    /// Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient),
    /// or those of one `sender`.
    #[must_use]
    pub fn sticky(mut self, sticky: impl Into<RoutingStickiness>) -> Self {
        self.sticky = Some(sticky.into());
        self
    }

    /// Whether targets share the messages by their `weight` alone, or also by their `health`: a target whose mail
    /// fails gets less.
    #[must_use]
    pub fn prefer(mut self, prefer: impl Into<RoutingPreference>) -> Self {
        self.prefer = Some(prefer.into());
        self
    }

    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it
    /// waits (`wait`).
    #[must_use]
    pub fn over_cap(mut self, over_cap: impl Into<RoutingOverCap>) -> Self {
        self.over_cap = Some(over_cap.into());
        self
    }

    /// The bounds of the rates of an account, beyond which its ramp does not grow.
    #[must_use]
    pub fn ramp_bounds(mut self, ramp_bounds: impl Into<NewRoutingRampBounds>) -> Self {
        self.ramp_bounds = Some(ramp_bounds.into());
        self
    }

    /// Up to 5 accounts that send if this account cannot, in this order.
    #[must_use]
    pub fn fallback_provider_account_ids(
        mut self,
        fallback_provider_account_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.fallback_provider_account_ids = Some(fallback_provider_account_ids.into_iter().map(Into::into).collect());
        self
    }

    /// What to do if the provider's response to a call is lost: `wait`, `resend` or `fail`.
    #[must_use]
    pub fn on_unknown(mut self, on_unknown: impl Into<OnUnknown>) -> Self {
        self.on_unknown = Some(on_unknown.into());
        self
    }
}

/// The change of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateSessionRequest {
    /// The organization to switch to, one of the session's `organizations`.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
}

impl UpdateSessionRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(organization_id: impl Into<String>) -> Self {
        Self { organization_id: organization_id.into() }
    }
}

/// The changes to the settings. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateSettingsRequest {
    /// The name of the organization. Recipients see it on the pages of unsubscribe links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour. A button of this colour
    /// has an edge that is seen, and white or black text, whichever is read.
    #[serde(rename = "brandColor", skip_serializing_if = "Option::is_none")]
    pub brand_color: Option<Option<String>>,
    /// What happens to a message whose sender domain is not verified: `reject` or `accept`.
    #[serde(rename = "unverifiedDomains", skip_serializing_if = "Option::is_none")]
    pub unverified_domains: Option<UnverifiedDomains>,
    /// Whether opens are tracked, unless a message sets `tracking`.
    #[serde(rename = "trackOpens", skip_serializing_if = "Option::is_none")]
    pub track_opens: Option<bool>,
    /// Whether clicks are tracked, unless a message sets `tracking`.
    #[serde(rename = "trackClicks", skip_serializing_if = "Option::is_none")]
    pub track_clicks: Option<bool>,
    /// How many days messages and their data are stored; null means the operator's retention period. Older messages
    /// are permanently deleted within minutes; messages that are still being sent are deleted when they are done.
    #[serde(rename = "retentionDays", skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<Option<i64>>,
    /// Rate limits, in requests per second, up to the operator's limits; null means the operator's limit.
    #[serde(rename = "rateLimits", skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<UpdateRateLimits>,
    /// How many soft bounces of an address add a suppression for it; 0 means never.
    #[serde(rename = "softBounceLimit", skip_serializing_if = "Option::is_none")]
    pub soft_bounce_limit: Option<i64>,
    /// The number of days within which soft bounces are counted together.
    #[serde(rename = "softBounceWindowDays", skip_serializing_if = "Option::is_none")]
    pub soft_bounce_window_days: Option<i64>,
}

impl UpdateSettingsRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: Default::default(),
            brand_color: Default::default(),
            unverified_domains: Default::default(),
            track_opens: Default::default(),
            track_clicks: Default::default(),
            retention_days: Default::default(),
            rate_limits: Default::default(),
            soft_bounce_limit: Default::default(),
            soft_bounce_window_days: Default::default(),
        }
    }

    /// The name of the organization.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
    #[must_use]
    pub fn brand_color(mut self, brand_color: impl Into<String>) -> Self {
        self.brand_color = Some(Some(brand_color.into()));
        self
    }

    /// Clears `brandColor`.
    #[must_use]
    pub fn clear_brand_color(mut self) -> Self {
        self.brand_color = Some(None);
        self
    }

    /// What happens to a message whose sender domain is not verified: `reject` or `accept`.
    #[must_use]
    pub fn unverified_domains(mut self, unverified_domains: impl Into<UnverifiedDomains>) -> Self {
        self.unverified_domains = Some(unverified_domains.into());
        self
    }

    /// Whether opens are tracked, unless a message sets `tracking`.
    #[must_use]
    pub fn track_opens(mut self, track_opens: bool) -> Self {
        self.track_opens = Some(track_opens);
        self
    }

    /// Whether clicks are tracked, unless a message sets `tracking`.
    #[must_use]
    pub fn track_clicks(mut self, track_clicks: bool) -> Self {
        self.track_clicks = Some(track_clicks);
        self
    }

    /// How many days messages and their data are stored; null means the operator's retention period.
    #[must_use]
    pub fn retention_days(mut self, retention_days: i64) -> Self {
        self.retention_days = Some(Some(retention_days));
        self
    }

    /// Clears `retentionDays`.
    #[must_use]
    pub fn clear_retention_days(mut self) -> Self {
        self.retention_days = Some(None);
        self
    }

    /// Rate limits, in requests per second, up to the operator's limits; null means the operator's limit.
    #[must_use]
    pub fn rate_limits(mut self, rate_limits: impl Into<UpdateRateLimits>) -> Self {
        self.rate_limits = Some(rate_limits.into());
        self
    }

    /// How many soft bounces of an address add a suppression for it; 0 means never.
    #[must_use]
    pub fn soft_bounce_limit(mut self, soft_bounce_limit: i64) -> Self {
        self.soft_bounce_limit = Some(soft_bounce_limit);
        self
    }

    /// The number of days within which soft bounces are counted together.
    #[must_use]
    pub fn soft_bounce_window_days(mut self, soft_bounce_window_days: i64) -> Self {
        self.soft_bounce_window_days = Some(soft_bounce_window_days);
        self
    }
}

/// The changes to a template. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateTemplateRequest {
    /// The name of the template. A partial that is used keeps its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The description of the template; null removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// Up to 20 tags of up to 100 characters each. They replace the present tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl UpdateTemplateRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { name: Default::default(), description: Default::default(), tags: Default::default() }
    }

    /// The name of the template.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The description of the template; null removes it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(Some(description.into()));
        self
    }

    /// Clears `description`.
    #[must_use]
    pub fn clear_description(mut self) -> Self {
        self.description = Some(None);
        self
    }

    /// Up to 20 tags of up to 100 characters each.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
}

/// The changes to a group. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateUnsubscribeGroupRequest {
    /// The name of the group, which recipients see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The description of the group; null removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// Whether the group is the default group; true replaces the present one.
    #[serde(rename = "isDefault", skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
}

impl UpdateUnsubscribeGroupRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { name: Default::default(), description: Default::default(), is_default: Default::default() }
    }

    /// The name of the group, which recipients see.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The description of the group; null removes it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(Some(description.into()));
        self
    }

    /// Clears `description`.
    #[must_use]
    pub fn clear_description(mut self) -> Self {
        self.description = Some(None);
        self
    }

    /// Whether the group is the default group; true replaces the present one.
    #[must_use]
    pub fn is_default(mut self, is_default: bool) -> Self {
        self.is_default = Some(is_default);
        self
    }
}

/// The changes to the user. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateUserRequest {
    /// The name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new password, of 12 to 128 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The present password. Required with a new one.
    #[serde(rename = "currentPassword", skip_serializing_if = "Option::is_none")]
    pub current_password: Option<Option<String>>,
}

impl UpdateUserRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { name: Default::default(), password: Default::default(), current_password: Default::default() }
    }

    /// The name of the user.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A new password, of 12 to 128 characters.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The present password.
    #[must_use]
    pub fn current_password(mut self, current_password: impl Into<String>) -> Self {
        self.current_password = Some(Some(current_password.into()));
        self
    }

    /// Clears `currentPassword`.
    #[must_use]
    pub fn clear_current_password(mut self) -> Self {
        self.current_password = Some(None);
        self
    }
}

/// The changes to an endpoint. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateWebhookEndpointRequest {
    /// A new HTTPS URL. It must respond within 5 seconds, with any status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The types of the events that the endpoint receives from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<WebhookEventType>>,
    /// The tags of the messages whose events the endpoint receives from now on; an empty list stands for all
    /// messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Whether the endpoint receives events. While it is false, new events are not delivered to it, and waiting
    /// deliveries keep waiting.
    #[serde(rename = "isActive", skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

impl UpdateWebhookEndpointRequest {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            url: Default::default(),
            events: Default::default(),
            tags: Default::default(),
            is_active: Default::default(),
        }
    }

    /// A new HTTPS URL.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The types of the events that the endpoint receives from now on.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = impl Into<WebhookEventType>>) -> Self {
        self.events = Some(events.into_iter().map(Into::into).collect());
        self
    }

    /// The tags of the messages whose events the endpoint receives from now on; an empty list stands for all
    /// messages.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the endpoint receives events.
    #[must_use]
    pub fn is_active(mut self, is_active: bool) -> Self {
        self.is_active = Some(is_active);
        self
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// The id.
    pub id: String,
    /// The address.
    pub email: String,
    /// The name of the user.
    pub name: String,
    /// Whether the user has a second factor.
    #[serde(rename = "totpEnabled")]
    pub totp_enabled: bool,
    /// Whether the user can sign in with a password.
    #[serde(rename = "hasPassword")]
    pub has_password: bool,
    /// Whether the user may see and change what belongs to the installation.
    #[serde(rename = "isOperator")]
    pub is_operator: bool,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The result of checking an account's credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValidationResult {
    /// Whether the provider accepted the credentials. `isActive` now has the same value.
    pub valid: bool,
    /// An email provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// One call to an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookAttempt {
    /// The id.
    pub id: String,
    /// When the call began.
    #[serde(rename = "startedAt")]
    pub started_at: DateTime<Utc>,
    /// The duration of the call, in milliseconds.
    #[serde(rename = "durationMs")]
    pub duration_ms: i64,
    /// The HTTP status; null if there was no response.
    #[serde(rename = "statusCode")]
    pub status_code: Option<i64>,
    /// The first KiB of the response, or the error of the call.
    pub answer: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The delivery of one event to one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookDelivery {
    /// The id of the delivery. The endpoint gets it as the header `webhook-id`.
    pub id: String,
    /// The webhook endpoint.
    #[serde(rename = "webhookEndpointId")]
    pub webhook_endpoint_id: String,
    /// The id of the message; null if the event is about no message.
    #[serde(rename = "messageId")]
    pub message_id: Option<String>,
    /// The id of the event.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// What a webhook reports.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
    /// message, or the recipient is no longer stored.
    #[serde(rename = "toHash")]
    pub to_hash: Option<String>,
    /// The status of the delivery.
    pub status: WebhookDeliveryStatus,
    /// The number of attempts since the delivery was created, or since it was last replayed after its end.
    #[serde(rename = "attemptCount")]
    pub attempt_count: i64,
    /// When the next attempt is due; null if the delivery has ended.
    #[serde(rename = "nextAttemptAt")]
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When the endpoint accepted the event, or the last attempt failed.
    #[serde(rename = "endedAt")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The newest 20 attempts, oldest first.
    pub attempts: Vec<WebhookAttempt>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A delivery with the body of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookDeliveryDetail {
    /// The id of the delivery. The endpoint gets it as the header `webhook-id`.
    pub id: String,
    /// The webhook endpoint.
    #[serde(rename = "webhookEndpointId")]
    pub webhook_endpoint_id: String,
    /// The id of the message; null if the event is about no message.
    #[serde(rename = "messageId")]
    pub message_id: Option<String>,
    /// The id of the event.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// What a webhook reports.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
    /// message, or the recipient is no longer stored.
    #[serde(rename = "toHash")]
    pub to_hash: Option<String>,
    /// The status of the delivery.
    pub status: WebhookDeliveryStatus,
    /// The number of attempts since the delivery was created, or since it was last replayed after its end.
    #[serde(rename = "attemptCount")]
    pub attempt_count: i64,
    /// When the next attempt is due; null if the delivery has ended.
    #[serde(rename = "nextAttemptAt")]
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When the endpoint accepted the event, or the last attempt failed.
    #[serde(rename = "endedAt")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The newest 20 attempts, oldest first.
    pub attempts: Vec<WebhookAttempt>,
    /// The body that is posted, as a call builds it now; null if the message or the recipient's address is no longer
    /// stored. The earlier calls posted the same, except for what was learned since: `providerType` before the
    /// message was sent.
    pub payload: Option<Map<String, Value>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A URL that receives events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookEndpoint {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The URL.
    pub url: String,
    /// The types of the events that the endpoint receives.
    pub events: Vec<WebhookEventType>,
    /// If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that
    /// are about no message are not filtered.
    pub tags: Vec<String>,
    /// Whether the endpoint receives events.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// Since when all deliveries have failed; null if the last one succeeded. After five days of failures the
    /// endpoint becomes inactive.
    #[serde(rename = "failingSince")]
    pub failing_since: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A webhook endpoint with its signing secret, which is returned only once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookEndpointWithSecret {
    /// The id.
    pub id: String,
    /// The organization that it belongs to.
    #[serde(rename = "organizationId")]
    pub organization_id: String,
    /// The URL.
    pub url: String,
    /// The types of the events that the endpoint receives.
    pub events: Vec<WebhookEventType>,
    /// If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that
    /// are about no message are not filtered.
    pub tags: Vec<String>,
    /// Whether the endpoint receives events.
    #[serde(rename = "isActive")]
    pub is_active: bool,
    /// Since when all deliveries have failed; null if the last one succeeded. After five days of failures the
    /// endpoint becomes inactive.
    #[serde(rename = "failingSince")]
    pub failing_since: Option<DateTime<Utc>>,
    /// When it was created.
    #[serde(rename = "createdAt")]
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: DateTime<Utc>,
    /// The secret that signs the deliveries. It cannot be retrieved again.
    pub secret: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The response of an endpoint to a test event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookTestResult {
    /// Whether the endpoint responded with a status from 200 to 299.
    pub success: bool,
    /// The HTTP status; 0 if there was no response.
    #[serde(rename = "statusCode")]
    pub status_code: i64,
    /// The response time in milliseconds, such as `123ms`.
    #[serde(rename = "responseTime")]
    pub response_time: String,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A worker that is registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Worker {
    /// The name of the worker's machine and process.
    pub name: String,
    /// When the worker registered.
    #[serde(rename = "startedAt")]
    pub started_at: DateTime<Utc>,
    /// When the leases of the worker end, if it sends no heartbeat.
    #[serde(rename = "leasedUntil")]
    pub leased_until: DateTime<Utc>,
    /// Whether the leases of the worker have ended.
    #[serde(rename = "isDead")]
    pub is_dead: bool,
    /// The number of chunks that the worker holds.
    pub chunks: i64,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

open_enum! {
    /// Why a valid request was not done: `details.reason` of every 409 and 422, with the status of each reason.
    ///
    /// - `ACCOUNT_OUTSIDE_REGION` - 422: the routing rule names an account that is not in its region;
    ///   `details.issues` says which.
    /// - `ADDRESS_NOT_PUBLIC` - 422: the host of the webhook URL has no public address.
    /// - `API_KEY_ENDED` - 409: the API key is revoked or expired.
    /// - `ATTACHMENT_NOT_FETCHED` - 422: the URL of an attachment gave no file; `details.issues` says which.
    /// - `CROSS_ORIGIN` - 403: the request with a session has not the header `X-Waypost-Csrf: 1`, or not the `Origin`
    ///   of this service.
    /// - `DOMAIN_BUSY` - 409: another request is changing the domain.
    /// - `DOMAIN_EXISTS` - 409: the account already has the domain.
    /// - `DOMAIN_NOT_VERIFIED` - 422: the sender's domain is not verified on the selected account.
    /// - `EVENT_WEBHOOK_BUSY` - 409: another request is registering the event webhook.
    /// - `IDEMPOTENCY_IN_PROGRESS` - 409: an earlier request with the idempotency key still runs.
    /// - `IDEMPOTENCY_KEY_REUSED` - 409: the idempotency key was used for another request.
    /// - `INVALID_CREDENTIALS` - 422: the provider rejected the credentials.
    /// - `INVITATION_EXISTS` - 409: the address has an invitation.
    /// - `LAST_OWNER` - 409: the organization has no other owner.
    /// - `MEMBER_EXISTS` - 409: the user is a member of the organization.
    /// - `MESSAGE_CONTENT_GONE` - 404, 409: the content of the message is no longer stored.
    /// - `MESSAGE_CONTENT_WITHHELD` - 404: the message invites somebody; its content is not shown.
    /// - `MESSAGE_FINISHED` - 409: all recipients of the message have the status FAILED.
    /// - `MESSAGE_NOT_FAILED` - 409: no recipient of the message has the status FAILED.
    /// - `MESSAGE_NOT_SCHEDULED` - 409: the message was not scheduled.
    /// - `MESSAGE_SENDING` - 409: the message is being sent.
    /// - `MESSAGE_SENT` - 409: the message was sent.
    /// - `NO_ACTIVE_PROVIDER` - 422: the organization has no active provider account, or none in the region of the
    ///   routing rule that matches.
    /// - `NOT_A_MEMBER` - 403: the user is no member of the organization, or of any.
    /// - `PARTIAL_EXISTS` - 409: a partial of this name exists.
    /// - `PASSWORD_NOT_SET` - 422: the user has no password and signs in at the OpenID Connect provider.
    /// - `PROVIDER_ACCOUNT_NOT_ACTIVE` - 422: the account that the message names does not exist or is not active.
    /// - `PROVIDER_CANNOT_CARRY` - 422: the selected account cannot carry a part of the message: its size, a header,
    ///   an attachment.
    /// - `PROVIDER_REFUSED` - 422: the provider refused the request.
    /// - `REFUSED_BEFORE` - 422: an earlier request with the idempotency key was refused.
    /// - `SECOND_FACTOR_ENABLED` - 409: the user has a second factor.
    /// - `SECOND_FACTOR_NOT_STARTED` - 409: the user has no second factor, or none to confirm.
    /// - `SECOND_FACTOR_REQUIRED` - 401: the password is right; the code of the user's second factor is missing.
    /// - `SECOND_FACTOR_WRONG` - 401, 422: the code of the second factor is wrong or was used.
    /// - `SESSION_REQUIRED` - 403: the operation requires a session; the caller is an API key.
    /// - `SUPPRESSION_EXISTS` - 409: the address is already suppressed.
    /// - `SUPPRESSION_LISTS_NOT_OFFERED` - 422: the provider of the account has no suppression lists that can be
    ///   read.
    /// - `TEMPLATE_IN_USE` - 409: current versions of templates use the layout or partial.
    /// - `TEMPLATE_IS_PART` - 422: the template is a layout or partial, which is not rendered itself.
    /// - `TEMPLATE_NOT_COMPOSABLE` - 422: a template cannot be composed with its layout and partials as they would
    ///   be; the message names it.
    /// - `TEMPLATE_NOT_FOUND` - 422: the template does not exist.
    /// - `TEMPLATE_NOT_RENDERABLE` - 422: the template cannot be rendered with these variables.
    /// - `TEMPLATE_WITHOUT_VERSION` - 422: the template has no version.
    /// - `TEST_KEY` - 409: the caller's API key is a test key, which does this to no live message or API key.
    /// - `TOO_MANY_DOMAINS` - 422: the account has the maximum number of domains.
    /// - `TOO_MANY_ROUTING_RULES` - 422: the organization has the maximum number of routing rules.
    /// - `TOO_MANY_TEMPLATE_USES` - 422: more templates use the layout or partial than are composed at once.
    /// - `TOO_MANY_WEBHOOK_ENDPOINTS` - 422: the organization has the maximum number of webhook endpoints.
    /// - `UNKNOWN_ID` - 422: the request names a record that does not exist; `details.issues` says which.
    /// - `UNKNOWN_UNSUBSCRIBE_GROUP` - 422: the unsubscribe group does not exist.
    /// - `URL_UNREACHABLE` - 422: no server responds at the webhook URL.
    /// - `USER_NOT_FOUND` - 422: there is no user with the address.
    /// - `WEBHOOK_ENDPOINT_INACTIVE` - 409: the webhook endpoint is not active.
    /// - `WRONG_PASSWORD` - 422: the password is wrong.
    ErrorReason {
        AccountOutsideRegion = "ACCOUNT_OUTSIDE_REGION",
        AddressNotPublic = "ADDRESS_NOT_PUBLIC",
        ApiKeyEnded = "API_KEY_ENDED",
        AttachmentNotFetched = "ATTACHMENT_NOT_FETCHED",
        CrossOrigin = "CROSS_ORIGIN",
        DomainBusy = "DOMAIN_BUSY",
        DomainExists = "DOMAIN_EXISTS",
        DomainNotVerified = "DOMAIN_NOT_VERIFIED",
        EventWebhookBusy = "EVENT_WEBHOOK_BUSY",
        IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS",
        IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED",
        InvalidCredentials = "INVALID_CREDENTIALS",
        InvitationExists = "INVITATION_EXISTS",
        LastOwner = "LAST_OWNER",
        MemberExists = "MEMBER_EXISTS",
        MessageContentGone = "MESSAGE_CONTENT_GONE",
        MessageContentWithheld = "MESSAGE_CONTENT_WITHHELD",
        MessageFinished = "MESSAGE_FINISHED",
        MessageNotFailed = "MESSAGE_NOT_FAILED",
        MessageNotScheduled = "MESSAGE_NOT_SCHEDULED",
        MessageSending = "MESSAGE_SENDING",
        MessageSent = "MESSAGE_SENT",
        NoActiveProvider = "NO_ACTIVE_PROVIDER",
        NotAMember = "NOT_A_MEMBER",
        PartialExists = "PARTIAL_EXISTS",
        PasswordNotSet = "PASSWORD_NOT_SET",
        ProviderAccountNotActive = "PROVIDER_ACCOUNT_NOT_ACTIVE",
        ProviderCannotCarry = "PROVIDER_CANNOT_CARRY",
        ProviderRefused = "PROVIDER_REFUSED",
        RefusedBefore = "REFUSED_BEFORE",
        SecondFactorEnabled = "SECOND_FACTOR_ENABLED",
        SecondFactorNotStarted = "SECOND_FACTOR_NOT_STARTED",
        SecondFactorRequired = "SECOND_FACTOR_REQUIRED",
        SecondFactorWrong = "SECOND_FACTOR_WRONG",
        SessionRequired = "SESSION_REQUIRED",
        SuppressionExists = "SUPPRESSION_EXISTS",
        SuppressionListsNotOffered = "SUPPRESSION_LISTS_NOT_OFFERED",
        TemplateInUse = "TEMPLATE_IN_USE",
        TemplateIsPart = "TEMPLATE_IS_PART",
        TemplateNotComposable = "TEMPLATE_NOT_COMPOSABLE",
        TemplateNotFound = "TEMPLATE_NOT_FOUND",
        TemplateNotRenderable = "TEMPLATE_NOT_RENDERABLE",
        TemplateWithoutVersion = "TEMPLATE_WITHOUT_VERSION",
        TestKey = "TEST_KEY",
        TooManyDomains = "TOO_MANY_DOMAINS",
        TooManyRoutingRules = "TOO_MANY_ROUTING_RULES",
        TooManyTemplateUses = "TOO_MANY_TEMPLATE_USES",
        TooManyWebhookEndpoints = "TOO_MANY_WEBHOOK_ENDPOINTS",
        UnknownId = "UNKNOWN_ID",
        UnknownUnsubscribeGroup = "UNKNOWN_UNSUBSCRIBE_GROUP",
        UrlUnreachable = "URL_UNREACHABLE",
        UserNotFound = "USER_NOT_FOUND",
        WebhookEndpointInactive = "WEBHOOK_ENDPOINT_INACTIVE",
        WrongPassword = "WRONG_PASSWORD",
    }
}

/// The message is accepted and queued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message and the recipient of an event.
    pub data: MessageEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The provider accepted the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SentEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message of an event, and the call to the provider.
    pub data: DeliveryEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The mailbox accepted the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeliveredEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message of an event, and the call to the provider.
    pub data: DeliveryEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message that was opened.
    pub data: OpenedEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A link of the message was followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClickedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message, and the link that was followed.
    pub data: ClickedEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The receiving server refused the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BouncedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message that an address did not get, and why.
    pub data: BouncedEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The recipient reported the message as spam.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComplainedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message of an event, and the call to the provider.
    pub data: DeliveryEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The recipient unsubscribed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsubscribedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message of an event, and the call to the provider.
    pub data: DeliveryEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message was not sent to the recipient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DroppedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message that an address did not get, and why.
    pub data: BouncedEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Sending or delivery is delayed, and tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeferredEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The message of an event, and the call to the provider.
    pub data: DeliveryEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// An address is suppressed from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SuppressionCreatedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The suppression of an event.
    pub data: SuppressionEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A suppression was removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SuppressionRemovedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The suppression of an event.
    pub data: SuppressionEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A sender domain became verified at its provider (source `provider`), or its DNS records are there again (source
/// `dns`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DomainVerifiedEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The sender domain of an event.
    pub data: DomainEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A sender domain is broken. With the source `provider`: it was verified and no longer is; the provider reports it
/// as unverified or no longer lists it, or the credentials no longer show it. With the source `dns`: two checks in a
/// row, ten minutes apart, missed DNS records that were there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DomainBrokenEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The sender domain of an event.
    pub data: DomainEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A provider account cannot send, or too many of its calls fail. One event is posted for each failure, until it
/// ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderFailingEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The provider account of an event, and its failure.
    pub data: ProviderFailureEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// A failure of a provider account ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderRecoveredEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The provider account of an event, and its failure.
    pub data: ProviderFailureEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// Waypost deactivated another webhook endpoint of the organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookEndpointDisabledEvent {
    /// The type of the event.
    pub event: String,
    /// When the event occurred.
    pub timestamp: DateTime<Utc>,
    /// The webhook endpoint that is inactive now.
    pub data: WebhookEndpointDisabledEventData,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message and the recipient of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageEventData {
    /// The message.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The address of the recipient.
    pub recipient: String,
    /// The address of the sender.
    pub from: String,
    /// The subject of the message.
    pub subject: String,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Present if the message is a test: no provider was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The metadata of the message, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The type of the provider.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message of an event, and the call to the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeliveryEventData {
    /// The message.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The address of the recipient.
    pub recipient: String,
    /// The address of the sender.
    pub from: String,
    /// The subject of the message.
    pub subject: String,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Present if the message is a test: no provider was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The metadata of the message, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The type of the provider.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// Why, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call to the provider, if that is known.
    #[serde(rename = "attemptId", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The id that the provider gave to the message, if that is known.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message that was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenedEventData {
    /// The message.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The address of the recipient.
    pub recipient: String,
    /// The address of the sender.
    pub from: String,
    /// The subject of the message.
    pub subject: String,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Present if the message is a test: no provider was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The metadata of the message, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The type of the provider.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// Why, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call to the provider, if that is known.
    #[serde(rename = "attemptId", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The id that the provider gave to the message, if that is known.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Whether it was a program and not a person, if that is known.
    #[serde(rename = "isBot", skip_serializing_if = "Option::is_none")]
    pub is_bot: Option<bool>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message, and the link that was followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClickedEventData {
    /// The message.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The address of the recipient.
    pub recipient: String,
    /// The address of the sender.
    pub from: String,
    /// The subject of the message.
    pub subject: String,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Present if the message is a test: no provider was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The metadata of the message, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The type of the provider.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// Why, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call to the provider, if that is known.
    #[serde(rename = "attemptId", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The id that the provider gave to the message, if that is known.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// The link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it was a program and not a person, if that is known.
    #[serde(rename = "isBot", skip_serializing_if = "Option::is_none")]
    pub is_bot: Option<bool>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The message that an address did not get, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BouncedEventData {
    /// The message.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The address of the recipient.
    pub recipient: String,
    /// The address of the sender.
    pub from: String,
    /// The subject of the message.
    pub subject: String,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Present if the message is a test: no provider was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// The metadata of the message, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The type of the provider.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// Why, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call to the provider, if that is known.
    #[serde(rename = "attemptId", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The id that the provider gave to the message, if that is known.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Why the address did not get the message.
    #[serde(rename = "bounceType", skip_serializing_if = "Option::is_none")]
    pub bounce_type: Option<BounceType>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The suppression of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SuppressionEventData {
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The suppression.
    #[serde(rename = "suppressionId")]
    pub suppression_id: String,
    /// The SHA-256 of the address in lower case, as lower-case hexadecimal.
    #[serde(rename = "emailHash")]
    pub email_hash: String,
    /// The group in which the address is suppressed; null stands for all mail.
    #[serde(rename = "unsubscribeGroupId")]
    pub unsubscribe_group_id: Option<String>,
    /// Why the address was suppressed.
    pub source: SuppressionSource,
    /// Only in a test event: `{"test": true}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The sender domain of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DomainEventData {
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The domain.
    #[serde(rename = "domainId")]
    pub domain_id: String,
    /// The name of the domain.
    pub domain: String,
    /// The account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The provider's verdict on the domain; `unknown` if the credentials do not show it.
    pub state: DomainState,
    /// Who judged the domain: the provider, or Waypost by its own look-ups in DNS.
    pub source: DomainEventSource,
    /// If the source is `dns` and the domain is broken: the records that DNS had and has no longer.
    pub records: Vec<LostDnsRecord>,
    /// Only in a test event: `{"test": true}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The provider account of an event, and its failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderFailureEventData {
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The account.
    #[serde(rename = "providerAccountId")]
    pub provider_account_id: String,
    /// The type of the provider.
    #[serde(rename = "providerType")]
    pub provider_type: ProviderType,
    /// The name of the account.
    #[serde(rename = "displayName")]
    pub display_name: String,
    /// Why the account fails.
    pub cause: ProviderFailureCause,
    /// When the failure began.
    #[serde(rename = "failingSince")]
    pub failing_since: DateTime<Utc>,
    /// Why, in the provider's words, if the cause is `ACCOUNT_UNUSABLE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only in a test event: `{"test": true}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The webhook endpoint that is inactive now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookEndpointDisabledEventData {
    /// The type of the event, as in `event`.
    #[serde(rename = "eventType")]
    pub event_type: WebhookEventType,
    /// The event. It is the same for every endpoint.
    #[serde(rename = "eventId")]
    pub event_id: String,
    /// The endpoint that is inactive now.
    #[serde(rename = "webhookEndpointId")]
    pub webhook_endpoint_id: String,
    /// Why the endpoint was deactivated.
    pub reason: WebhookDisabledReason,
    /// Since when all calls failed; null if none had failed before.
    #[serde(rename = "failingSince")]
    pub failing_since: Option<DateTime<Utc>>,
    /// Only in a test event: `{"test": true}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// The body of a webhook: an event, in the form of its type. More fields may be added to `data`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum WebhookEvent {
    /// `QUEUED`
    Queued(QueuedEvent),
    /// `SENT`
    Sent(SentEvent),
    /// `DELIVERED`
    Delivered(DeliveredEvent),
    /// `OPENED`
    Opened(OpenedEvent),
    /// `CLICKED`
    Clicked(ClickedEvent),
    /// `BOUNCED`
    Bounced(BouncedEvent),
    /// `COMPLAINED`
    Complained(ComplainedEvent),
    /// `UNSUBSCRIBED`
    Unsubscribed(UnsubscribedEvent),
    /// `DROPPED`
    Dropped(DroppedEvent),
    /// `DEFERRED`
    Deferred(DeferredEvent),
    /// `SUPPRESSION_CREATED`
    SuppressionCreated(SuppressionCreatedEvent),
    /// `SUPPRESSION_REMOVED`
    SuppressionRemoved(SuppressionRemovedEvent),
    /// `DOMAIN_VERIFIED`
    DomainVerified(DomainVerifiedEvent),
    /// `DOMAIN_BROKEN`
    DomainBroken(DomainBrokenEvent),
    /// `PROVIDER_FAILING`
    ProviderFailing(ProviderFailingEvent),
    /// `PROVIDER_RECOVERED`
    ProviderRecovered(ProviderRecoveredEvent),
    /// `WEBHOOK_ENDPOINT_DISABLED`
    WebhookEndpointDisabled(WebhookEndpointDisabledEvent),
    /// What this version does not know, as it came.
    Other(Value),
}

impl WebhookEvent {
    /// The `event`, which says what it is.
    #[must_use]
    pub fn event(&self) -> &str {
        match self {
            Self::Queued(_) => "QUEUED",
            Self::Sent(_) => "SENT",
            Self::Delivered(_) => "DELIVERED",
            Self::Opened(_) => "OPENED",
            Self::Clicked(_) => "CLICKED",
            Self::Bounced(_) => "BOUNCED",
            Self::Complained(_) => "COMPLAINED",
            Self::Unsubscribed(_) => "UNSUBSCRIBED",
            Self::Dropped(_) => "DROPPED",
            Self::Deferred(_) => "DEFERRED",
            Self::SuppressionCreated(_) => "SUPPRESSION_CREATED",
            Self::SuppressionRemoved(_) => "SUPPRESSION_REMOVED",
            Self::DomainVerified(_) => "DOMAIN_VERIFIED",
            Self::DomainBroken(_) => "DOMAIN_BROKEN",
            Self::ProviderFailing(_) => "PROVIDER_FAILING",
            Self::ProviderRecovered(_) => "PROVIDER_RECOVERED",
            Self::WebhookEndpointDisabled(_) => "WEBHOOK_ENDPOINT_DISABLED",
            Self::Other(value) => value["event"].as_str().unwrap_or_default(),
        }
    }
}

impl<'de> Deserialize<'de> for WebhookEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value["event"].as_str() {
            Some("QUEUED") => serde_json::from_value(value).map(Self::Queued),
            Some("SENT") => serde_json::from_value(value).map(Self::Sent),
            Some("DELIVERED") => serde_json::from_value(value).map(Self::Delivered),
            Some("OPENED") => serde_json::from_value(value).map(Self::Opened),
            Some("CLICKED") => serde_json::from_value(value).map(Self::Clicked),
            Some("BOUNCED") => serde_json::from_value(value).map(Self::Bounced),
            Some("COMPLAINED") => serde_json::from_value(value).map(Self::Complained),
            Some("UNSUBSCRIBED") => serde_json::from_value(value).map(Self::Unsubscribed),
            Some("DROPPED") => serde_json::from_value(value).map(Self::Dropped),
            Some("DEFERRED") => serde_json::from_value(value).map(Self::Deferred),
            Some("SUPPRESSION_CREATED") => serde_json::from_value(value).map(Self::SuppressionCreated),
            Some("SUPPRESSION_REMOVED") => serde_json::from_value(value).map(Self::SuppressionRemoved),
            Some("DOMAIN_VERIFIED") => serde_json::from_value(value).map(Self::DomainVerified),
            Some("DOMAIN_BROKEN") => serde_json::from_value(value).map(Self::DomainBroken),
            Some("PROVIDER_FAILING") => serde_json::from_value(value).map(Self::ProviderFailing),
            Some("PROVIDER_RECOVERED") => serde_json::from_value(value).map(Self::ProviderRecovered),
            Some("WEBHOOK_ENDPOINT_DISABLED") => serde_json::from_value(value).map(Self::WebhookEndpointDisabled),
            _ => Ok(Self::Other(value)),
        }
        .map_err(D::Error::custom)
    }
}

impl From<QueuedEvent> for WebhookEvent {
    fn from(value: QueuedEvent) -> Self {
        Self::Queued(value)
    }
}

impl From<SentEvent> for WebhookEvent {
    fn from(value: SentEvent) -> Self {
        Self::Sent(value)
    }
}

impl From<DeliveredEvent> for WebhookEvent {
    fn from(value: DeliveredEvent) -> Self {
        Self::Delivered(value)
    }
}

impl From<OpenedEvent> for WebhookEvent {
    fn from(value: OpenedEvent) -> Self {
        Self::Opened(value)
    }
}

impl From<ClickedEvent> for WebhookEvent {
    fn from(value: ClickedEvent) -> Self {
        Self::Clicked(value)
    }
}

impl From<BouncedEvent> for WebhookEvent {
    fn from(value: BouncedEvent) -> Self {
        Self::Bounced(value)
    }
}

impl From<ComplainedEvent> for WebhookEvent {
    fn from(value: ComplainedEvent) -> Self {
        Self::Complained(value)
    }
}

impl From<UnsubscribedEvent> for WebhookEvent {
    fn from(value: UnsubscribedEvent) -> Self {
        Self::Unsubscribed(value)
    }
}

impl From<DroppedEvent> for WebhookEvent {
    fn from(value: DroppedEvent) -> Self {
        Self::Dropped(value)
    }
}

impl From<DeferredEvent> for WebhookEvent {
    fn from(value: DeferredEvent) -> Self {
        Self::Deferred(value)
    }
}

impl From<SuppressionCreatedEvent> for WebhookEvent {
    fn from(value: SuppressionCreatedEvent) -> Self {
        Self::SuppressionCreated(value)
    }
}

impl From<SuppressionRemovedEvent> for WebhookEvent {
    fn from(value: SuppressionRemovedEvent) -> Self {
        Self::SuppressionRemoved(value)
    }
}

impl From<DomainVerifiedEvent> for WebhookEvent {
    fn from(value: DomainVerifiedEvent) -> Self {
        Self::DomainVerified(value)
    }
}

impl From<DomainBrokenEvent> for WebhookEvent {
    fn from(value: DomainBrokenEvent) -> Self {
        Self::DomainBroken(value)
    }
}

impl From<ProviderFailingEvent> for WebhookEvent {
    fn from(value: ProviderFailingEvent) -> Self {
        Self::ProviderFailing(value)
    }
}

impl From<ProviderRecoveredEvent> for WebhookEvent {
    fn from(value: ProviderRecoveredEvent) -> Self {
        Self::ProviderRecovered(value)
    }
}

impl From<WebhookEndpointDisabledEvent> for WebhookEvent {
    fn from(value: WebhookEndpointDisabledEvent) -> Self {
        Self::WebhookEndpointDisabled(value)
    }
}

open_enum! {
    /// How far a message, or its copy to one recipient, is.
    MessageStatus {
        Queued = "QUEUED",
        Sending = "SENDING",
        Sent = "SENT",
        Delivered = "DELIVERED",
        Bounced = "BOUNCED",
        Failed = "FAILED",
    }
}

open_enum! {
    /// The length of the buckets of a series.
    MetricsGranularity {
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

open_enum! {
    /// By what the counts are grouped.
    MetricsGroupBy {
        Provider = "provider",
        Domain = "domain",
        Template = "template",
        Account = "account",
        Tag = "tag",
        RecipientDomain = "recipientDomain",
    }
}

open_enum! {
    /// How far back the health of a provider account is counted: 15 minutes, a day or a week.
    ProviderHealthPeriod {
        N15m = "15m",
        Day = "day",
        Week = "week",
    }
}

open_enum! {
    /// A language of the pages for recipients.
    PageLanguage {
        En = "en",
        De = "de",
        Fr = "fr",
        Es = "es",
    }
}

open_enum! {
    /// Why an address is suppressed.
    SuppressionSource {
        Bounce = "BOUNCE",
        Complaint = "COMPLAINT",
        Manual = "MANUAL",
        Import = "IMPORT",
        Unsubscribe = "UNSUBSCRIBE",
    }
}

open_enum! {
    /// How far the delivery of an event to an endpoint is.
    WebhookDeliveryStatus {
        Pending = "PENDING",
        Delivered = "DELIVERED",
        Failed = "FAILED",
    }
}

open_enum! {
    /// What a webhook reports.
    WebhookEventType {
        Queued = "QUEUED",
        Sent = "SENT",
        Delivered = "DELIVERED",
        Opened = "OPENED",
        Clicked = "CLICKED",
        Bounced = "BOUNCED",
        Complained = "COMPLAINED",
        Unsubscribed = "UNSUBSCRIBED",
        Dropped = "DROPPED",
        Deferred = "DEFERRED",
        SuppressionCreated = "SUPPRESSION_CREATED",
        SuppressionRemoved = "SUPPRESSION_REMOVED",
        DomainVerified = "DOMAIN_VERIFIED",
        DomainBroken = "DOMAIN_BROKEN",
        ProviderFailing = "PROVIDER_FAILING",
        ProviderRecovered = "PROVIDER_RECOVERED",
        WebhookEndpointDisabled = "WEBHOOK_ENDPOINT_DISABLED",
    }
}

open_enum! {
    /// What an API key may do.
    Permission {
        Send = "SEND",
        TemplatesRead = "TEMPLATES_READ",
        TemplatesWrite = "TEMPLATES_WRITE",
        ProvidersRead = "PROVIDERS_READ",
        ProvidersWrite = "PROVIDERS_WRITE",
        MetricsRead = "METRICS_READ",
        SettingsWrite = "SETTINGS_WRITE",
        ContentRead = "CONTENT_READ",
        MembersWrite = "MEMBERS_WRITE",
    }
}

open_enum! {
    /// Who made a change: a client with an API key, a user, a recipient by a link in a message, or Waypost itself.
    AuditActorType {
        ApiKey = "api_key",
        User = "user",
        Recipient = "recipient",
        System = "system",
    }
}

open_enum! {
    /// Whether each recipient gets a mail of their own (`private`), or all get one mail and see each other
    /// (`shared`).
    DeliveryMode {
        Private = "private",
        Shared = "shared",
    }
}

open_enum! {
    /// What kind of mail a message is.
    MessageClass {
        Transactional = "transactional",
        Bulk = "bulk",
    }
}

open_enum! {
    /// What happens to a test message.
    TestOutcome {
        Delivered = "delivered",
        Bounced = "bounced",
        Complained = "complained",
        Deferred = "deferred",
        Failed = "failed",
        Suppressed = "suppressed",
        Unknown = "unknown",
        Failover = "failover",
    }
}

open_enum! {
    /// Whether a message is queued, or not sent because all its recipients are suppressed.
    SendStatus {
        Queued = "queued",
        Suppressed = "suppressed",
    }
}

open_enum! {
    /// An email provider.
    ProviderType {
        Sendgrid = "SENDGRID",
        Postmark = "POSTMARK",
        Mailgun = "MAILGUN",
        Ses = "SES",
        Smtp = "SMTP",
    }
}

open_enum! {
    /// Where the system of a provider is that takes the mail of an account.
    AccountRegion {
        Eu = "eu",
        Us = "us",
    }
}

open_enum! {
    /// What a member of an organization may do. `OWNER`: everything. `ADMIN`: everything but the members.
    /// `DEVELOPER`: `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `METRICS_READ`, `PROVIDERS_READ` and `CONTENT_READ`.
    /// `VIEWER`: `METRICS_READ`, `TEMPLATES_READ` and `PROVIDERS_READ`.
    Role {
        Owner = "OWNER",
        Admin = "ADMIN",
        Developer = "DEVELOPER",
        Viewer = "VIEWER",
    }
}

open_enum! {
    /// Whether a message needs any of a rule's tags, or all of them.
    TagMatch {
        Any = "any",
        All = "all",
    }
}

open_enum! {
    /// Who takes the mail of a domain: `google` for Gmail and Google Workspace, `microsoft` for Outlook.com and
    /// Microsoft 365, `yahoo` for Yahoo Mail and AOL Mail, or any `other`.
    MailboxProvider {
        Google = "google",
        Microsoft = "microsoft",
        Yahoo = "yahoo",
        OtherValue = "other",
    }
}

open_enum! {
    /// Which messages of a routing rule always have the same target: none, those to one domain, or those from one
    /// sender.
    RoutingStickiness {
        None = "none",
        RecipientDomain = "recipientDomain",
        Sender = "sender",
    }
}

open_enum! {
    /// Whether the targets of a routing rule share its messages by their weights alone, or also by their health.
    RoutingPreference {
        Weight = "weight",
        Health = "health",
    }
}

open_enum! {
    /// What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it
    /// waits (`wait`).
    RoutingOverCap {
        Next = "next",
        Wait = "wait",
    }
}

open_enum! {
    /// What is done with a message if the provider's answer was lost, so that nobody knows whether it was accepted.
    OnUnknown {
        Wait = "wait",
        Resend = "resend",
        Fail = "fail",
    }
}

open_enum! {
    /// A `TEMPLATE` makes messages; a `LAYOUT` or a `PARTIAL` is a part of templates.
    TemplateType {
        Template = "TEMPLATE",
        Layout = "LAYOUT",
        Partial = "PARTIAL",
    }
}

open_enum! {
    /// Whether the provider verified the domain; `unknown` if the credentials do not show it.
    DomainState {
        Verified = "verified",
        Unverified = "unverified",
        Unknown = "unknown",
    }
}

open_enum! {
    /// The type of a DNS record.
    DnsRecordType {
        Txt = "TXT",
        Cname = "CNAME",
        Mx = "MX",
    }
}

open_enum! {
    /// What a DNS record is for.
    DnsRecordPurpose {
        Dkim = "DKIM",
        Spf = "SPF",
        ReturnPath = "RETURN_PATH",
        Tracking = "TRACKING",
        Dmarc = "DMARC",
        Ownership = "OWNERSHIP",
    }
}

open_enum! {
    /// Whether the provider found the DNS record.
    DnsRecordStatus {
        Pending = "pending",
        Verified = "verified",
        Failed = "failed",
    }
}

open_enum! {
    /// Whether DNS has a record: it does (`match`), has another there (`mismatch`), or none (`missing`); `unknown` if
    /// DNS was not or could not be asked.
    DnsFoundStatus {
        Match = "match",
        Mismatch = "mismatch",
        Missing = "missing",
        Unknown = "unknown",
    }
}

open_enum! {
    /// The kind of an error, for programs.
    ErrorCode {
        ValidationError = "VALIDATION_ERROR",
        AuthenticationError = "AUTHENTICATION_ERROR",
        Forbidden = "FORBIDDEN",
        NotFound = "NOT_FOUND",
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        Conflict = "CONFLICT",
        PayloadTooLarge = "PAYLOAD_TOO_LARGE",
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
        ProviderInvalidCredentials = "PROVIDER_INVALID_CREDENTIALS",
        RateLimitExceeded = "RATE_LIMIT_EXCEEDED",
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        InternalError = "INTERNAL_ERROR",
    }
}

open_enum! {
    /// What an API key or a session may do. Only a session of an operator has `OPERATOR`.
    CallerPermission {
        Send = "SEND",
        TemplatesRead = "TEMPLATES_READ",
        TemplatesWrite = "TEMPLATES_WRITE",
        ProvidersRead = "PROVIDERS_READ",
        ProvidersWrite = "PROVIDERS_WRITE",
        MetricsRead = "METRICS_READ",
        SettingsWrite = "SETTINGS_WRITE",
        ContentRead = "CONTENT_READ",
        MembersWrite = "MEMBERS_WRITE",
        Operator = "OPERATOR",
    }
}

open_enum! {
    /// How a call to a provider ended; `PENDING` while it has not, `UNKNOWN` if its answer was lost.
    SendAttemptOutcome {
        Accepted = "ACCEPTED",
        Rejected = "REJECTED",
        Throttled = "THROTTLED",
        Unavailable = "UNAVAILABLE",
        Unknown = "UNKNOWN",
        Pending = "PENDING",
    }
}

open_enum! {
    /// What happened to a message.
    EventType {
        Queued = "QUEUED",
        Sent = "SENT",
        Delivered = "DELIVERED",
        Opened = "OPENED",
        Clicked = "CLICKED",
        Bounced = "BOUNCED",
        Complained = "COMPLAINED",
        Unsubscribed = "UNSUBSCRIBED",
        Dropped = "DROPPED",
        Deferred = "DEFERRED",
    }
}

open_enum! {
    /// Why an address did not get a message: it does not exist, it could not be delivered to for now, or the
    /// receiving server blocked the message.
    BounceType {
        Hard = "hard",
        Soft = "soft",
        Block = "block",
    }
}

open_enum! {
    /// Whether calls to a provider account are made.
    ProviderCircuitState {
        Closed = "CLOSED",
        Open = "OPEN",
        HalfOpen = "HALF_OPEN",
    }
}

open_enum! {
    /// `CALLS_FAILED`: too many calls failed. `PROVIDER_PAUSE`: the provider named a time for which it wants no
    /// calls. `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account.
    ProviderCircuitCause {
        CallsFailed = "CALLS_FAILED",
        ProviderPause = "PROVIDER_PAUSE",
        AccountUnusable = "ACCOUNT_UNUSABLE",
    }
}

open_enum! {
    /// `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many calls
    /// failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider refuses the
    /// credentials. An account may fail for several causes; each ends by itself.
    ProviderFailureCause {
        AccountUnusable = "ACCOUNT_UNUSABLE",
        CallsFailed = "CALLS_FAILED",
        InvalidCredentials = "INVALID_CREDENTIALS",
    }
}

open_enum! {
    /// In which field a message names the recipient.
    RecipientKind {
        To = "TO",
        Cc = "CC",
        Bcc = "BCC",
    }
}

open_enum! {
    /// How far the ramp of a target is: its first day is to come; it grows; it is held because a rate is beyond its
    /// bound; or it has reached the cap of the target.
    RoutingRampState {
        NotBegun = "notBegun",
        Growing = "growing",
        Held = "held",
        Finished = "finished",
    }
}

open_enum! {
    /// What happened to the ramp of a target.
    RoutingRampAction {
        Begin = "begin",
        Step = "step",
        Hold = "hold",
        Halve = "halve",
        Resume = "resume",
        Finish = "finish",
    }
}

open_enum! {
    /// What DNS has of the records of a sender domain.
    SenderDomainStatus {
        Complete = "complete",
        Incomplete = "incomplete",
        Broken = "broken",
        Unknown = "unknown",
    }
}

open_enum! {
    /// What is wrong with a sender domain as a whole.
    SenderDomainConflictCode {
        SpfMultiple = "SPF_MULTIPLE",
        SpfInvalid = "SPF_INVALID",
        SpfTooManyLookups = "SPF_TOO_MANY_LOOKUPS",
        SpfTooManyVoidLookups = "SPF_TOO_MANY_VOID_LOOKUPS",
        SpfMissingInclude = "SPF_MISSING_INCLUDE",
        DkimSelectorShared = "DKIM_SELECTOR_SHARED",
        CnameShared = "CNAME_SHARED",
        ReturnPathShared = "RETURN_PATH_SHARED",
        CnameWithOtherRecords = "CNAME_WITH_OTHER_RECORDS",
        DmarcMissing = "DMARC_MISSING",
        DmarcMultiple = "DMARC_MULTIPLE",
        DmarcInvalid = "DMARC_INVALID",
        DmarcUnaligned = "DMARC_UNALIGNED",
    }
}

open_enum! {
    /// What receivers do with mail that does not pass DMARC.
    DmarcPolicy {
        None = "none",
        Quarantine = "quarantine",
        Reject = "reject",
    }
}

open_enum! {
    /// Whether receivers accept the DMARC record of a domain.
    DmarcStatus {
        Valid = "valid",
        Missing = "missing",
        Multiple = "multiple",
        Invalid = "invalid",
        Unknown = "unknown",
    }
}

open_enum! {
    /// Whether receivers accept the SPF record of a domain.
    SpfStatus {
        Valid = "valid",
        Missing = "missing",
        Multiple = "multiple",
        Invalid = "invalid",
        TooManyLookups = "tooManyLookups",
        TooManyVoidLookups = "tooManyVoidLookups",
        Unknown = "unknown",
    }
}

open_enum! {
    /// What is done with a message whose sender has a domain that no provider account has verified.
    UnverifiedDomains {
        Reject = "reject",
        Accept = "accept",
    }
}

open_enum! {
    /// How far back a simulation looks at messages: an hour, a day or a week.
    RoutingSimulationPeriod {
        Hour = "hour",
        Day = "day",
        Week = "week",
    }
}

open_enum! {
    /// Who judged a domain: the provider, or Waypost by its own look-ups in DNS.
    DomainEventSource {
        Provider = "provider",
        Dns = "dns",
    }
}

open_enum! {
    /// `GONE`: the endpoint answered 410. `FAILING`: all calls failed for five days.
    WebhookDisabledReason {
        Gone = "GONE",
        Failing = "FAILING",
    }
}

/// What is called `Addresses` in the API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Addresses {
    /// A text
    Text(String),
    /// Several
    List(Vec<String>),
}

impl From<&str> for Addresses {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for Addresses {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<String> for Addresses {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<T: Into<String>> From<Vec<T>> for Addresses {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Addresses {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<String>> FromIterator<T> for Addresses {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// What is called `DnsRecord` in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DnsRecord {
    /// The type of the record.
    pub r#type: DnsRecordType,
    /// The full name of the record.
    pub name: String,
    /// The value of the record.
    pub value: String,
    /// The priority of an MX record; null for other types.
    pub priority: Option<i64>,
    /// What the record is for.
    pub purpose: DnsRecordPurpose,
    /// Whether the provider found the record.
    pub status: DnsRecordStatus,
    /// The values that DNS had there at the last check; of SPF and DMARC, the records of that kind.
    pub found: Vec<String>,
    /// Whether DNS had the record at the last check; `unknown` if DNS was not or could not be asked.
    #[serde(rename = "foundStatus")]
    pub found_status: DnsFoundStatus,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What is called `ErrorDetails` in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorDetails {
    /// The first 100 mistakes of an invalid request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<ErrorIssue>>,
    /// With 403: the permission that the API key lacks.
    #[serde(rename = "requiredPermission", skip_serializing_if = "Option::is_none")]
    pub required_permission: Option<CallerPermission>,
    /// The provider that refused the request.
    #[serde(rename = "providerType", skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<ProviderType>,
    /// Of an import that ended early: the number of newly suppressed addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<i64>,
    /// Of an import that ended early: the number of addresses that were already suppressed.
    #[serde(rename = "alreadyThere", skip_serializing_if = "Option::is_none")]
    pub already_there: Option<i64>,
    /// Of an import that ended early: the number of entries that could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<i64>,
    /// Of an import that ended early: where to continue.
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Why a valid request was not done: `details.reason` of every 409 and 422, with the status of each reason.
    ///
    /// - `ACCOUNT_OUTSIDE_REGION` - 422: the routing rule names an account that is not in its region;
    ///   `details.issues` says which.
    /// - `ADDRESS_NOT_PUBLIC` - 422: the host of the webhook URL has no public address.
    /// - `API_KEY_ENDED` - 409: the API key is revoked or expired.
    /// - `ATTACHMENT_NOT_FETCHED` - 422: the URL of an attachment gave no file; `details.issues` says which.
    /// - `CROSS_ORIGIN` - 403: the request with a session has not the header `X-Waypost-Csrf: 1`, or not the `Origin`
    ///   of this service.
    /// - `DOMAIN_BUSY` - 409: another request is changing the domain.
    /// - `DOMAIN_EXISTS` - 409: the account already has the domain.
    /// - `DOMAIN_NOT_VERIFIED` - 422: the sender's domain is not verified on the selected account.
    /// - `EVENT_WEBHOOK_BUSY` - 409: another request is registering the event webhook.
    /// - `IDEMPOTENCY_IN_PROGRESS` - 409: an earlier request with the idempotency key still runs.
    /// - `IDEMPOTENCY_KEY_REUSED` - 409: the idempotency key was used for another request.
    /// - `INVALID_CREDENTIALS` - 422: the provider rejected the credentials.
    /// - `INVITATION_EXISTS` - 409: the address has an invitation.
    /// - `LAST_OWNER` - 409: the organization has no other owner.
    /// - `MEMBER_EXISTS` - 409: the user is a member of the organization.
    /// - `MESSAGE_CONTENT_GONE` - 404, 409: the content of the message is no longer stored.
    /// - `MESSAGE_CONTENT_WITHHELD` - 404: the message invites somebody; its content is not shown.
    /// - `MESSAGE_FINISHED` - 409: all recipients of the message have the status FAILED.
    /// - `MESSAGE_NOT_FAILED` - 409: no recipient of the message has the status FAILED.
    /// - `MESSAGE_NOT_SCHEDULED` - 409: the message was not scheduled.
    /// - `MESSAGE_SENDING` - 409: the message is being sent.
    /// - `MESSAGE_SENT` - 409: the message was sent.
    /// - `NO_ACTIVE_PROVIDER` - 422: the organization has no active provider account, or none in the region of the
    ///   routing rule that matches.
    /// - `NOT_A_MEMBER` - 403: the user is no member of the organization, or of any.
    /// - `PARTIAL_EXISTS` - 409: a partial of this name exists.
    /// - `PASSWORD_NOT_SET` - 422: the user has no password and signs in at the OpenID Connect provider.
    /// - `PROVIDER_ACCOUNT_NOT_ACTIVE` - 422: the account that the message names does not exist or is not active.
    /// - `PROVIDER_CANNOT_CARRY` - 422: the selected account cannot carry a part of the message: its size, a header,
    ///   an attachment.
    /// - `PROVIDER_REFUSED` - 422: the provider refused the request.
    /// - `REFUSED_BEFORE` - 422: an earlier request with the idempotency key was refused.
    /// - `SECOND_FACTOR_ENABLED` - 409: the user has a second factor.
    /// - `SECOND_FACTOR_NOT_STARTED` - 409: the user has no second factor, or none to confirm.
    /// - `SECOND_FACTOR_REQUIRED` - 401: the password is right; the code of the user's second factor is missing.
    /// - `SECOND_FACTOR_WRONG` - 401, 422: the code of the second factor is wrong or was used.
    /// - `SESSION_REQUIRED` - 403: the operation requires a session; the caller is an API key.
    /// - `SUPPRESSION_EXISTS` - 409: the address is already suppressed.
    /// - `SUPPRESSION_LISTS_NOT_OFFERED` - 422: the provider of the account has no suppression lists that can be
    ///   read.
    /// - `TEMPLATE_IN_USE` - 409: current versions of templates use the layout or partial.
    /// - `TEMPLATE_IS_PART` - 422: the template is a layout or partial, which is not rendered itself.
    /// - `TEMPLATE_NOT_COMPOSABLE` - 422: a template cannot be composed with its layout and partials as they would
    ///   be; the message names it.
    /// - `TEMPLATE_NOT_FOUND` - 422: the template does not exist.
    /// - `TEMPLATE_NOT_RENDERABLE` - 422: the template cannot be rendered with these variables.
    /// - `TEMPLATE_WITHOUT_VERSION` - 422: the template has no version.
    /// - `TEST_KEY` - 409: the caller's API key is a test key, which does this to no live message or API key.
    /// - `TOO_MANY_DOMAINS` - 422: the account has the maximum number of domains.
    /// - `TOO_MANY_ROUTING_RULES` - 422: the organization has the maximum number of routing rules.
    /// - `TOO_MANY_TEMPLATE_USES` - 422: more templates use the layout or partial than are composed at once.
    /// - `TOO_MANY_WEBHOOK_ENDPOINTS` - 422: the organization has the maximum number of webhook endpoints.
    /// - `UNKNOWN_ID` - 422: the request names a record that does not exist; `details.issues` says which.
    /// - `UNKNOWN_UNSUBSCRIBE_GROUP` - 422: the unsubscribe group does not exist.
    /// - `URL_UNREACHABLE` - 422: no server responds at the webhook URL.
    /// - `USER_NOT_FOUND` - 422: there is no user with the address.
    /// - `WEBHOOK_ENDPOINT_INACTIVE` - 409: the webhook endpoint is not active.
    /// - `WRONG_PASSWORD` - 422: the password is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ErrorReason>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What is called `ErrorIssue` in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorIssue {
    /// Where in the request, such as `to.3`; empty for the whole.
    pub path: String,
    /// What is wrong, for people.
    pub message: String,
    /// The line of a mistake in a source of a template, from 1; absent if it is not known or not one of this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// The column of the mistake in this line, in characters, from 1; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<i64>,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What is called `EventSecrets` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct EventSecrets {
    /// SENDGRID: the verification key of the event webhook, as SendGrid shows it.
    #[serde(rename = "publicKey", skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// MAILGUN: the HTTP webhook signing key of the account.
    #[serde(rename = "signingKey", skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<String>,
    /// SES: the ARN of the SNS topic that the configuration set publishes to. It must be in the region of the
    /// account.
    #[serde(rename = "topicArn", skip_serializing_if = "Option::is_none")]
    pub topic_arn: Option<String>,
}

impl EventSecrets {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { public_key: Default::default(), signing_key: Default::default(), topic_arn: Default::default() }
    }

    /// SENDGRID: the verification key of the event webhook, as SendGrid shows it.
    #[must_use]
    pub fn public_key(mut self, public_key: impl Into<String>) -> Self {
        self.public_key = Some(public_key.into());
        self
    }

    /// MAILGUN: the HTTP webhook signing key of the account.
    #[must_use]
    pub fn signing_key(mut self, signing_key: impl Into<String>) -> Self {
        self.signing_key = Some(signing_key.into());
        self
    }

    /// SES: the ARN of the SNS topic that the configuration set publishes to.
    #[must_use]
    pub fn topic_arn(mut self, topic_arn: impl Into<String>) -> Self {
        self.topic_arn = Some(topic_arn.into());
        self
    }
}

/// What is called `LostDnsRecord` in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LostDnsRecord {
    /// The type of the record.
    pub r#type: DnsRecordType,
    /// The full name of the record.
    pub name: String,
    /// What the record is for.
    pub purpose: DnsRecordPurpose,
    /// Whether DNS has another record there (`mismatch`) or none (`missing`).
    #[serde(rename = "foundStatus")]
    pub found_status: DnsFoundStatus,

    /// The fields that this version does not know.
    #[serde(flatten)]
    pub unknown_fields: Map<String, Value>,
}

/// What is called `MailgunCredentials` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct MailgunCredentials {
    /// The API key.
    #[serde(rename = "apiKey")]
    pub api_key: String,
    /// The sending domain.
    pub domain: String,
    /// `us` (the default) or `eu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl MailgunCredentials {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(api_key: impl Into<String>, domain: impl Into<String>) -> Self {
        Self { api_key: api_key.into(), domain: domain.into(), region: Default::default() }
    }

    /// `us` (the default) or `eu`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }
}

/// What is called `PostmarkCredentials` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct PostmarkCredentials {
    /// The token of the server.
    #[serde(rename = "serverToken")]
    pub server_token: String,
    /// The token of the account, which is needed to list and add domains.
    #[serde(rename = "accountToken", skip_serializing_if = "Option::is_none")]
    pub account_token: Option<String>,
    /// The message stream to send through.
    #[serde(rename = "messageStream", skip_serializing_if = "Option::is_none")]
    pub message_stream: Option<String>,
}

impl PostmarkCredentials {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(server_token: impl Into<String>) -> Self {
        Self {
            server_token: server_token.into(),
            account_token: Default::default(),
            message_stream: Default::default(),
        }
    }

    /// The token of the account, which is needed to list and add domains.
    #[must_use]
    pub fn account_token(mut self, account_token: impl Into<String>) -> Self {
        self.account_token = Some(account_token.into());
        self
    }

    /// The message stream to send through.
    #[must_use]
    pub fn message_stream(mut self, message_stream: impl Into<String>) -> Self {
        self.message_stream = Some(message_stream.into());
        self
    }
}

/// What is called `ProviderCredentials` in the API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ProviderCredentials {
    /// [`SendgridCredentials`]
    Sendgrid(SendgridCredentials),
    /// [`PostmarkCredentials`]
    Postmark(PostmarkCredentials),
    /// [`MailgunCredentials`]
    Mailgun(MailgunCredentials),
    /// [`SesCredentials`]
    Ses(SesCredentials),
    /// [`SmtpCredentials`]
    Smtp(SmtpCredentials),
}

impl From<SendgridCredentials> for ProviderCredentials {
    fn from(value: SendgridCredentials) -> Self {
        Self::Sendgrid(value)
    }
}

impl From<PostmarkCredentials> for ProviderCredentials {
    fn from(value: PostmarkCredentials) -> Self {
        Self::Postmark(value)
    }
}

impl From<MailgunCredentials> for ProviderCredentials {
    fn from(value: MailgunCredentials) -> Self {
        Self::Mailgun(value)
    }
}

impl From<SesCredentials> for ProviderCredentials {
    fn from(value: SesCredentials) -> Self {
        Self::Ses(value)
    }
}

impl From<SmtpCredentials> for ProviderCredentials {
    fn from(value: SmtpCredentials) -> Self {
        Self::Smtp(value)
    }
}

/// What is called `Recipients` in the API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Recipients {
    /// A text
    Text(String),
    /// Several
    List(Vec<RecipientsItem>),
}

impl From<&str> for Recipients {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for Recipients {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<String> for Recipients {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl Default for Recipients {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<T: Into<RecipientsItem>> From<Vec<T>> for Recipients {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<RecipientsItem>, const N: usize> From<[T; N]> for Recipients {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<RecipientsItem>> FromIterator<T> for Recipients {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl From<MessageRecipient> for Recipients {
    fn from(item: MessageRecipient) -> Self {
        Self::from([item])
    }
}

/// One of several forms of a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RecipientsItem {
    /// A text
    Text(String),
    /// [`MessageRecipient`]
    MessageRecipient(MessageRecipient),
}

impl From<&str> for RecipientsItem {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for RecipientsItem {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<String> for RecipientsItem {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<MessageRecipient> for RecipientsItem {
    fn from(value: MessageRecipient) -> Self {
        Self::MessageRecipient(value)
    }
}

/// What is called `SendgridCredentials` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SendgridCredentials {
    /// The API key.
    #[serde(rename = "apiKey")]
    pub api_key: String,
    /// `global` (the default) or `eu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl SendgridCredentials {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(api_key: impl Into<String>) -> Self {
        Self { api_key: api_key.into(), region: Default::default() }
    }

    /// `global` (the default) or `eu`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }
}

/// What is called `SesCredentials` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SesCredentials {
    /// The id of the access key.
    #[serde(rename = "accessKeyId")]
    pub access_key_id: String,
    /// The secret access key.
    #[serde(rename = "secretAccessKey")]
    pub secret_access_key: String,
    /// The session token of temporary credentials.
    #[serde(rename = "sessionToken", skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// The configuration set that publishes events.
    #[serde(rename = "configurationSet", skip_serializing_if = "Option::is_none")]
    pub configuration_set: Option<String>,
    /// The region, such as `eu-central-1`.
    pub region: String,
}

impl SesCredentials {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        region: impl Into<String>,
    ) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token: Default::default(),
            configuration_set: Default::default(),
            region: region.into(),
        }
    }

    /// The session token of temporary credentials.
    #[must_use]
    pub fn session_token(mut self, session_token: impl Into<String>) -> Self {
        self.session_token = Some(session_token.into());
        self
    }

    /// The configuration set that publishes events.
    #[must_use]
    pub fn configuration_set(mut self, configuration_set: impl Into<String>) -> Self {
        self.configuration_set = Some(configuration_set.into());
        self
    }
}

/// What is called `SmtpCredentials` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct SmtpCredentials {
    /// The host name or IP address of the mail server.
    pub host: String,
    /// The port. The default is 587, with `tls` `implicit` 465, with `none` 25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// The user name to log in with, together with `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password of `username`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// `starttls` (the default), `implicit` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
}

impl SmtpCredentials {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: Default::default(),
            username: Default::default(),
            password: Default::default(),
            tls: Default::default(),
        }
    }

    /// The port.
    #[must_use]
    pub fn port(mut self, port: i64) -> Self {
        self.port = Some(port);
        self
    }

    /// The user name to log in with, together with `password`.
    #[must_use]
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.username = Some(username.into());
        self
    }

    /// The password of `username`.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// `starttls` (the default), `implicit` or `none`.
    #[must_use]
    pub fn tls(mut self, tls: impl Into<String>) -> Self {
        self.tls = Some(tls.into());
        self
    }
}

/// What is called `Tracking` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct Tracking {
    /// Whether opens are tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens: Option<bool>,
    /// Whether clicks are tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clicks: Option<bool>,
}

impl Tracking {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { opens: Default::default(), clicks: Default::default() }
    }

    /// Whether opens are tracked.
    #[must_use]
    pub fn opens(mut self, opens: bool) -> Self {
        self.opens = Some(opens);
        self
    }

    /// Whether clicks are tracked.
    #[must_use]
    pub fn clicks(mut self, clicks: bool) -> Self {
        self.clicks = Some(clicks);
        self
    }
}

/// What is called `UpdateRateLimits` in the API.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct UpdateRateLimits {
    /// Sends per second.
    #[serde(rename = "sendPerSecond", skip_serializing_if = "Option::is_none")]
    pub send_per_second: Option<Option<i64>>,
    /// Other requests per second.
    #[serde(rename = "otherPerSecond", skip_serializing_if = "Option::is_none")]
    pub other_per_second: Option<Option<i64>>,
}

impl UpdateRateLimits {
    /// Makes it from what it needs.
    #[must_use]
    pub fn new() -> Self {
        Self { send_per_second: Default::default(), other_per_second: Default::default() }
    }

    /// Sends per second.
    #[must_use]
    pub fn send_per_second(mut self, send_per_second: i64) -> Self {
        self.send_per_second = Some(Some(send_per_second));
        self
    }

    /// Clears `sendPerSecond`.
    #[must_use]
    pub fn clear_send_per_second(mut self) -> Self {
        self.send_per_second = Some(None);
        self
    }

    /// Other requests per second.
    #[must_use]
    pub fn other_per_second(mut self, other_per_second: i64) -> Self {
        self.other_per_second = Some(Some(other_per_second));
        self
    }

    /// Clears `otherPerSecond`.
    #[must_use]
    pub fn clear_other_per_second(mut self) -> Self {
        self.other_per_second = Some(None);
        self
    }
}

/// The parameters of "List messages".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListMessagesParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Tests only, or live messages only. The default is whether the API key is a test key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<bool>,
    /// Only messages with one of these statuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<MessageStatus>>,
    /// Only messages whose subject contains this text. Upper and lower case are not distinguished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Only messages to this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// Only messages from this address, or from all addresses of this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only messages with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only messages with this template.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Only messages of this provider account: the `providerAccountId` of the list.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Only messages for which a provider returned this message id, for any recipient.
    #[serde(rename = "providerMessageId", skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Only messages accepted at or after this time, in whole milliseconds.
    #[serde(rename = "createdFrom", skip_serializing_if = "Option::is_none")]
    pub created_from: Option<DateTime<Utc>>,
    /// Only messages accepted before this time, in whole milliseconds. A date without a time includes that whole day.
    #[serde(rename = "createdTo", skip_serializing_if = "Option::is_none")]
    pub created_to: Option<DateTime<Utc>>,
}

impl<A> Call<A, ListMessagesParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }

    /// Tests only, or live messages only.
    pub fn test(mut self, test: bool) -> Self {
        self.params.test = Some(test);
        self
    }

    /// Only messages with one of these statuses.
    pub fn status(mut self, status: impl IntoIterator<Item = impl Into<MessageStatus>>) -> Self {
        self.params.status = Some(status.into_iter().map(Into::into).collect());
        self
    }

    /// Only messages whose subject contains this text.
    pub fn search(mut self, search: impl Into<String>) -> Self {
        self.params.search = Some(search.into());
        self
    }

    /// Only messages to this address.
    pub fn recipient(mut self, recipient: impl Into<String>) -> Self {
        self.params.recipient = Some(recipient.into());
        self
    }

    /// Only messages from this address, or from all addresses of this domain.
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// Only messages with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.params.tag = Some(tag.into());
        self
    }

    /// Only messages with this template.
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.params.template_id = Some(template_id.into());
        self
    }

    /// Only messages of this provider account: the `providerAccountId` of the list.
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.params.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Only messages for which a provider returned this message id, for any recipient.
    pub fn provider_message_id(mut self, provider_message_id: impl Into<String>) -> Self {
        self.params.provider_message_id = Some(provider_message_id.into());
        self
    }

    /// Only messages accepted at or after this time, in whole milliseconds.
    pub fn created_from(mut self, created_from: impl Into<DateTime<Utc>>) -> Self {
        self.params.created_from = Some(created_from.into());
        self
    }

    /// Only messages accepted before this time, in whole milliseconds.
    pub fn created_to(mut self, created_to: impl Into<DateTime<Utc>>) -> Self {
        self.params.created_to = Some(created_to.into());
        self
    }
}

/// The parameters of "List a message's recipients".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListMessageRecipientsParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListMessageRecipientsParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}

/// The parameters of "Get a message's content".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct GetMessageContentParams {
    /// The position of a recipient in the send request, from 0: the content as rendered for this recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
}

impl<A> Call<A, GetMessageContentParams> {
    /// The position of a recipient in the send request, from 0: the content as rendered for this recipient.
    pub fn position(mut self, position: i64) -> Self {
        self.params.position = Some(position);
        self
    }
}

/// The parameters of "List a message's webhook deliveries".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListMessageWebhookDeliveriesParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListMessageWebhookDeliveriesParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}

/// The parameters of "Get metrics over time".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct GetMetricsParams {
    /// The start of the period. The default is 30 days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// The end of the period. The default is now. A date without a time includes that whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// The length of a bucket. The default is `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<MetricsGranularity>,
    /// Only messages with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only recipients whose mail went through this provider account.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Only messages with this template.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    /// The default is UTC.
    #[serde(rename = "timeZone", skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl<A> Call<A, GetMetricsParams> {
    /// The start of the period.
    pub fn from(mut self, from: impl Into<DateTime<Utc>>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// The end of the period.
    pub fn to(mut self, to: impl Into<DateTime<Utc>>) -> Self {
        self.params.to = Some(to.into());
        self
    }

    /// The length of a bucket.
    pub fn granularity(mut self, granularity: impl Into<MetricsGranularity>) -> Self {
        self.params.granularity = Some(granularity.into());
        self
    }

    /// Only messages with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.params.tag = Some(tag.into());
        self
    }

    /// Only recipients whose mail went through this provider account.
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.params.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Only messages with this template.
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.params.template_id = Some(template_id.into());
        self
    }

    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    pub fn time_zone(mut self, time_zone: impl Into<String>) -> Self {
        self.params.time_zone = Some(time_zone.into());
        self
    }
}

/// The parameters of "Get metrics by provider, domain, template, account, tag or recipient domain".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct GetMetricsBreakdownParams {
    /// The start of the period. The default is 30 days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// The end of the period. The default is now. A date without a time includes that whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// What to group by. The default is `provider`.
    #[serde(rename = "groupBy", skip_serializing_if = "Option::is_none")]
    pub group_by: Option<MetricsGroupBy>,
    /// Only messages with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only recipients whose mail went through this provider account.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Only messages with this template.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    /// The default is UTC.
    #[serde(rename = "timeZone", skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl<A> Call<A, GetMetricsBreakdownParams> {
    /// The start of the period.
    pub fn from(mut self, from: impl Into<DateTime<Utc>>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// The end of the period.
    pub fn to(mut self, to: impl Into<DateTime<Utc>>) -> Self {
        self.params.to = Some(to.into());
        self
    }

    /// What to group by.
    pub fn group_by(mut self, group_by: impl Into<MetricsGroupBy>) -> Self {
        self.params.group_by = Some(group_by.into());
        self
    }

    /// Only messages with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.params.tag = Some(tag.into());
        self
    }

    /// Only recipients whose mail went through this provider account.
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.params.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Only messages with this template.
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.params.template_id = Some(template_id.into());
        self
    }

    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    pub fn time_zone(mut self, time_zone: impl Into<String>) -> Self {
        self.params.time_zone = Some(time_zone.into());
        self
    }
}

/// The parameters of "Get total metrics".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct GetMetricsSummaryParams {
    /// The start of the period. The default is 30 days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// The end of the period. The default is now. A date without a time includes that whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
    /// Only messages with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only recipients whose mail went through this provider account.
    #[serde(rename = "providerAccountId", skip_serializing_if = "Option::is_none")]
    pub provider_account_id: Option<String>,
    /// Only messages with this template.
    #[serde(rename = "templateId", skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    /// The default is UTC.
    #[serde(rename = "timeZone", skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl<A> Call<A, GetMetricsSummaryParams> {
    /// The start of the period.
    pub fn from(mut self, from: impl Into<DateTime<Utc>>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// The end of the period.
    pub fn to(mut self, to: impl Into<DateTime<Utc>>) -> Self {
        self.params.to = Some(to.into());
        self
    }

    /// Only messages with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.params.tag = Some(tag.into());
        self
    }

    /// Only recipients whose mail went through this provider account.
    pub fn provider_account_id(mut self, provider_account_id: impl Into<String>) -> Self {
        self.params.provider_account_id = Some(provider_account_id.into());
        self
    }

    /// Only messages with this template.
    pub fn template_id(mut self, template_id: impl Into<String>) -> Self {
        self.params.template_id = Some(template_id.into());
        self
    }

    /// The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database.
    pub fn time_zone(mut self, time_zone: impl Into<String>) -> Self {
        self.params.time_zone = Some(time_zone.into());
        self
    }
}

/// The parameters of "Get the health of a provider account by recipient domain".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct GetProviderHealthByDomainParams {
    /// How far back to count: 15 minutes, a day or a week. The default is `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<ProviderHealthPeriod>,
}

impl<A> Call<A, GetProviderHealthByDomainParams> {
    /// How far back to count: 15 minutes, a day or a week.
    pub fn window(mut self, window: impl Into<ProviderHealthPeriod>) -> Self {
        self.params.window = Some(window.into());
        self
    }
}

/// The parameters of "List API keys".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListApiKeysParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListApiKeysParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}

/// The parameters of "List the audit log".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListAuditLogsParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only entries with this action, such as `provider.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only entries with this target type, such as `provider`.
    #[serde(rename = "targetType", skip_serializing_if = "Option::is_none")]
    pub target_type: Option<String>,
    /// Only entries with this target id.
    #[serde(rename = "targetId", skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,
    /// Only entries at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// Only entries before this time. A date without a time includes that whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
}

impl<A> Call<A, ListAuditLogsParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }

    /// Only entries with this action, such as `provider.created`.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.params.action = Some(action.into());
        self
    }

    /// Only entries with this target type, such as `provider`.
    pub fn target_type(mut self, target_type: impl Into<String>) -> Self {
        self.params.target_type = Some(target_type.into());
        self
    }

    /// Only entries with this target id.
    pub fn target_id(mut self, target_id: impl Into<String>) -> Self {
        self.params.target_id = Some(target_id.into());
        self
    }

    /// Only entries at or after this time.
    pub fn from(mut self, from: impl Into<DateTime<Utc>>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// Only entries before this time.
    pub fn to(mut self, to: impl Into<DateTime<Utc>>) -> Self {
        self.params.to = Some(to.into());
        self
    }
}

/// The parameters of "List templates".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListTemplatesParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListTemplatesParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}

/// The parameters of "Preview the page of an unsubscribe link".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct PreviewUnsubscribePageParams {
    /// The language of the page. The default is `en`. Recipients get the one that their browser asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<PageLanguage>,
}

impl<A> Call<A, PreviewUnsubscribePageParams> {
    /// The language of the page.
    pub fn language(mut self, language: impl Into<PageLanguage>) -> Self {
        self.params.language = Some(language.into());
        self
    }
}

/// The parameters of "List suppressions".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListSuppressionsParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only suppressions of this address: for all messages, and in groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Only suppressions with this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SuppressionSource>,
    /// Only suppressions of this unsubscribe group.
    #[serde(rename = "groupId", skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// Only suppressions created at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

impl<A> Call<A, ListSuppressionsParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }

    /// Only suppressions of this address: for all messages, and in groups.
    pub fn email(mut self, email: impl Into<String>) -> Self {
        self.params.email = Some(email.into());
        self
    }

    /// Only suppressions with this source.
    pub fn source(mut self, source: impl Into<SuppressionSource>) -> Self {
        self.params.source = Some(source.into());
        self
    }

    /// Only suppressions of this unsubscribe group.
    pub fn group_id(mut self, group_id: impl Into<String>) -> Self {
        self.params.group_id = Some(group_id.into());
        self
    }

    /// Only suppressions created at or after this time.
    pub fn since(mut self, since: impl Into<DateTime<Utc>>) -> Self {
        self.params.since = Some(since.into());
        self
    }
}

/// The parameters of "Import suppressions".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ImportSuppressionsParams {
    /// For a CSV file: the unsubscribe group that the suppressions apply to. The default is all messages.
    #[serde(rename = "unsubscribeGroupId", skip_serializing_if = "Option::is_none")]
    pub unsubscribe_group_id: Option<String>,
}

impl<A> Call<A, ImportSuppressionsParams> {
    /// For a CSV file: the unsubscribe group that the suppressions apply to.
    pub fn unsubscribe_group_id(mut self, unsubscribe_group_id: impl Into<String>) -> Self {
        self.params.unsubscribe_group_id = Some(unsubscribe_group_id.into());
        self
    }
}

/// The parameters of "Export suppressions".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ExportSuppressionsParams {
    /// Only suppressions with this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SuppressionSource>,
    /// Only suppressions of this unsubscribe group.
    #[serde(rename = "groupId", skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
}

impl<A> Call<A, ExportSuppressionsParams> {
    /// Only suppressions with this source.
    pub fn source(mut self, source: impl Into<SuppressionSource>) -> Self {
        self.params.source = Some(source.into());
        self
    }

    /// Only suppressions of this unsubscribe group.
    pub fn group_id(mut self, group_id: impl Into<String>) -> Self {
        self.params.group_id = Some(group_id.into());
        self
    }
}

/// The parameters of "List a webhook endpoint's deliveries".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListWebhookDeliveriesParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only deliveries with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<WebhookDeliveryStatus>,
    /// Only deliveries of the events of this message.
    #[serde(rename = "messageId", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Only deliveries of events of this type.
    #[serde(rename = "eventType", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<WebhookEventType>,
    /// Only deliveries created at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DateTime<Utc>>,
    /// Only deliveries created before this time. A date without a time includes that whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DateTime<Utc>>,
}

impl<A> Call<A, ListWebhookDeliveriesParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }

    /// Only deliveries with this status.
    pub fn status(mut self, status: impl Into<WebhookDeliveryStatus>) -> Self {
        self.params.status = Some(status.into());
        self
    }

    /// Only deliveries of the events of this message.
    pub fn message_id(mut self, message_id: impl Into<String>) -> Self {
        self.params.message_id = Some(message_id.into());
        self
    }

    /// Only deliveries of events of this type.
    pub fn event_type(mut self, event_type: impl Into<WebhookEventType>) -> Self {
        self.params.event_type = Some(event_type.into());
        self
    }

    /// Only deliveries created at or after this time.
    pub fn from(mut self, from: impl Into<DateTime<Utc>>) -> Self {
        self.params.from = Some(from.into());
        self
    }

    /// Only deliveries created before this time.
    pub fn to(mut self, to: impl Into<DateTime<Utc>>) -> Self {
        self.params.to = Some(to.into());
        self
    }
}

/// The parameters of "Sign out".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct DeleteSessionParams {
    /// Whether to end all sessions of the user. The default is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everywhere: Option<bool>,
}

impl<A> Call<A, DeleteSessionParams> {
    /// Whether to end all sessions of the user.
    pub fn everywhere(mut self, everywhere: bool) -> Self {
        self.params.everywhere = Some(everywhere);
        self
    }
}

/// The parameters of "List members".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListMembersParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListMembersParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}

/// The parameters of "List invitations".
#[derive(Debug, Clone, Default, PartialEq, Serialize)]

pub struct ListInvitationsParams {
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    /// The number of items per page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
    /// beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<A> Call<A, ListInvitationsParams> {
    /// The page number, from 1.
    pub fn page(mut self, page: i64) -> Self {
        self.params.page = Some(page);
        self
    }

    /// The number of items per page.
    pub fn limit(mut self, limit: i64) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// The `nextCursor` of the page before, instead of `page`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params.cursor = Some(cursor.into());
        self
    }
}
