//! Webhooks in the document: the schema `WebhookEvent` with a variant for each type of event,
//! and the request that posts it. OpenAPI 3.0 has no place for requests to the customer, so
//! it stands in `x-webhooks`, which tools know from before 3.1. The examples come from the
//! code that builds real bodies.

use serde_json::{Map, Value, json};
use waypost_core::provider::event::BounceType;
use waypost_core::provider::kind::ProviderType;
use waypost_core::sender_domain::record::FoundStatus;
use waypost_core::suppression::SuppressionSource;
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_core::webhook::example;

/// The field of the body that tells the variants apart.
const TYPE: &str = "event";

/// Adds the schemas and the request.
pub(super) fn complete(document: &mut Value) {
    let types = WebhookEventType::ALL;
    let schemas = &mut document["components"]["schemas"];
    for event_type in types {
        schemas[schema_name(event_type)] = variant(event_type);
    }
    for data in EventData::ALL {
        schemas[data.name()] = data.schema();
    }
    let references: Map<String, Value> = types
        .iter()
        .map(|event_type| {
            (
                event_type.to_string(),
                json!(schema_reference(&schema_name(*event_type))),
            )
        })
        .collect();
    let variants = references.values();
    schemas["WebhookEvent"] = json!({
        "description": "The body of a webhook: an event, in the form of its type. More fields may be added to `data`.",
        "oneOf": variants.map(|reference| json!({ "$ref": reference })).collect::<Vec<_>>(),
        "discriminator": { "propertyName": TYPE, "mapping": references },
    });
    let examples: Map<String, Value> = types
        .iter()
        .map(|event_type| {
            let example = json!({ "summary": summary(*event_type), "value": body(*event_type) });
            (event_type.to_string(), example)
        })
        .collect();
    document["x-webhooks"] = json!({ "event": { "post": post(&examples) } });
}

/// `SUPPRESSION_CREATED` becomes `SuppressionCreatedEvent`.
fn schema_name(event_type: WebhookEventType) -> String {
    let words = event_type.as_str().split('_');
    let capitalized = words.map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_lowercase())
    });
    format!("{}Event", capitalized.collect::<String>())
}

fn schema_reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

fn body(event_type: WebhookEventType) -> Value {
    serde_json::from_slice(&example::body(event_type)).expect("a body is JSON")
}

/// The schema of an event of one type.
fn variant(event_type: WebhookEventType) -> Value {
    json!({
        "type": "object",
        "description": summary(event_type),
        "required": [TYPE, "timestamp", "data"],
        "properties": {
            TYPE: {
                "type": "string",
                "description": "The type of the event.",
                "enum": [event_type.as_str()],
                "example": event_type.as_str(),
            },
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When the event occurred.",
                "example": "2026-11-20T12:00:00.000Z",
            },
            "data": { "$ref": schema_reference(EventData::of(event_type).name()) },
        },
    })
}

/// What an event of this type says.
fn summary(event_type: WebhookEventType) -> &'static str {
    match event_type {
        WebhookEventType::Queued => "The message is accepted and queued.",
        WebhookEventType::Sent => "The provider accepted the message.",
        WebhookEventType::Delivered => "The mailbox accepted the message.",
        WebhookEventType::Opened => "The message was opened.",
        WebhookEventType::Clicked => "A link of the message was followed.",
        WebhookEventType::Bounced => "The receiving server refused the message.",
        WebhookEventType::Complained => "The recipient reported the message as spam.",
        WebhookEventType::Unsubscribed => "The recipient unsubscribed.",
        WebhookEventType::Dropped => "The message was not sent to the recipient.",
        WebhookEventType::Deferred => "Sending or delivery is delayed, and tried again.",
        WebhookEventType::SuppressionCreated => "An address is suppressed from now on.",
        WebhookEventType::SuppressionRemoved => "A suppression was removed.",
        WebhookEventType::DomainVerified => {
            "A sender domain became verified at its provider (source `provider`), or its DNS records are there again (source `dns`)."
        }
        WebhookEventType::DomainBroken => {
            "A sender domain is broken. With the source `provider`: it was verified and no longer is; the provider reports it as unverified or no longer lists it, or the credentials no longer show it. With the source `dns`: two checks in a row, ten minutes apart, missed DNS records that were there."
        }
        WebhookEventType::ProviderFailing => {
            "A provider account cannot send, or too many of its calls fail. One event is posted for each failure, until it ends."
        }
        WebhookEventType::ProviderRecovered => "A failure of a provider account ended.",
        WebhookEventType::WebhookEndpointDisabled => {
            "Waypost deactivated another webhook endpoint of the organization."
        }
    }
}

/// What the `data` of an event holds.
#[derive(Debug, Clone, Copy)]
enum EventData {
    Message,
    Delivery,
    Open,
    Click,
    Bounce,
    Suppression,
    Domain,
    ProviderFailure,
    EndpointDisabled,
}

impl EventData {
    const ALL: [Self; 9] = [
        Self::Message,
        Self::Delivery,
        Self::Open,
        Self::Click,
        Self::Bounce,
        Self::Suppression,
        Self::Domain,
        Self::ProviderFailure,
        Self::EndpointDisabled,
    ];

    fn of(event_type: WebhookEventType) -> Self {
        match event_type {
            WebhookEventType::Queued => Self::Message,
            WebhookEventType::Sent
            | WebhookEventType::Delivered
            | WebhookEventType::Complained
            | WebhookEventType::Unsubscribed
            | WebhookEventType::Deferred => Self::Delivery,
            WebhookEventType::Opened => Self::Open,
            WebhookEventType::Clicked => Self::Click,
            WebhookEventType::Bounced | WebhookEventType::Dropped => Self::Bounce,
            WebhookEventType::SuppressionCreated | WebhookEventType::SuppressionRemoved => {
                Self::Suppression
            }
            WebhookEventType::DomainVerified | WebhookEventType::DomainBroken => Self::Domain,
            WebhookEventType::ProviderFailing | WebhookEventType::ProviderRecovered => {
                Self::ProviderFailure
            }
            WebhookEventType::WebhookEndpointDisabled => Self::EndpointDisabled,
        }
    }

    /// The name of the schema.
    fn name(self) -> &'static str {
        match self {
            Self::Message => "MessageEventData",
            Self::Delivery => "DeliveryEventData",
            Self::Open => "OpenedEventData",
            Self::Click => "ClickedEventData",
            Self::Bounce => "BouncedEventData",
            Self::Suppression => "SuppressionEventData",
            Self::Domain => "DomainEventData",
            Self::ProviderFailure => "ProviderFailureEventData",
            Self::EndpointDisabled => "WebhookEndpointDisabledEventData",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Message => "The message and the recipient of an event.",
            Self::Delivery => "The message of an event, and the call to the provider.",
            Self::Open => "The message that was opened.",
            Self::Click => "The message, and the link that was followed.",
            Self::Bounce => "The message that an address did not get, and why.",
            Self::Suppression => "The suppression of an event.",
            Self::Domain => "The sender domain of an event.",
            Self::ProviderFailure => "The provider account of an event, and its failure.",
            Self::EndpointDisabled => "The webhook endpoint that is inactive now.",
        }
    }

    /// What this has further fields than.
    fn base(self) -> Option<Self> {
        match self {
            Self::Delivery => Some(Self::Message),
            Self::Open | Self::Click | Self::Bounce => Some(Self::Delivery),
            Self::Message
            | Self::Suppression
            | Self::Domain
            | Self::ProviderFailure
            | Self::EndpointDisabled => None,
        }
    }

    /// The own fields that are always present.
    fn required(self) -> &'static [&'static str] {
        match self {
            Self::Message => &[
                "messageId",
                "eventType",
                "recipient",
                "from",
                "subject",
                "eventId",
                "tags",
            ],
            Self::Delivery | Self::Open | Self::Click | Self::Bounce => &[],
            Self::Suppression => &[
                "eventType",
                "eventId",
                "suppressionId",
                "emailHash",
                "unsubscribeGroupId",
                "source",
            ],
            Self::Domain => &[
                "eventType",
                "eventId",
                "domainId",
                "domain",
                "providerAccountId",
                "state",
                "source",
                "records",
            ],
            Self::ProviderFailure => &[
                "eventType",
                "eventId",
                "providerAccountId",
                "providerType",
                "displayName",
                "cause",
                "failingSince",
            ],
            Self::EndpointDisabled => &[
                "eventType",
                "eventId",
                "webhookEndpointId",
                "reason",
                "failingSince",
            ],
        }
    }

    /// The own fields that may be absent.
    fn optional(self) -> &'static [&'static str] {
        match self {
            Self::Message => &["test", "metadata", "providerType"],
            Self::Delivery => &["reason", "attemptId", "providerMessageId"],
            Self::Open => &["isBot"],
            Self::Click => &["url", "isBot"],
            Self::Bounce => &["bounceType"],
            Self::Suppression | Self::Domain | Self::EndpointDisabled => &["metadata"],
            Self::ProviderFailure => &["reason", "metadata"],
        }
    }

    fn is_of_message(self) -> bool {
        matches!(self, Self::Message) || self.base().is_some()
    }

    fn schema(self) -> Value {
        let names = self.required().iter().chain(self.optional());
        let properties: Map<String, Value> = names
            .map(|name| ((*name).to_owned(), self.field(name)))
            .collect();
        let mut own = json!({ "type": "object", "properties": properties });
        if !self.required().is_empty() {
            own["required"] = json!(self.required());
        }
        match self.base() {
            None => {
                own["description"] = json!(self.description());
                own
            }
            Some(base) => json!({
                "description": self.description(),
                "allOf": [{ "$ref": schema_reference(base.name()) }, own],
            }),
        }
    }

    fn field(self, name: &str) -> Value {
        match name {
            "metadata" if !self.is_of_message() => json!({
                "type": "object",
                "additionalProperties": true,
                "description": "Only in a test event: `{\"test\": true}`.",
                "example": { "test": true },
            }),
            "reason" if matches!(self, Self::EndpointDisabled) => {
                words(&["GONE", "FAILING"], "Why the endpoint was deactivated.")
            }
            "failingSince" if matches!(self, Self::EndpointDisabled) => json!({
                "type": "string",
                "format": "date-time",
                "nullable": true,
                "description": "Since when all calls failed; null if none had failed before.",
                "example": "2026-11-15T12:00:00.000Z",
            }),
            "source" if matches!(self, Self::Domain) => words(
                &["provider", "dns"],
                "Who judged the domain: the provider, or Waypost by its own look-ups in DNS.",
            ),
            _ if self.is_of_message() => message_field(name),
            _ => organization_field(name),
        }
    }
}

fn message_field(name: &str) -> Value {
    match name {
        "messageId" => id("01a1fbfa-b12e-763c-a29e-ce02006ba541", "The message."),
        "recipient" => text("ada@example.org", "The address of the recipient."),
        "from" => text("shop@example.com", "The address of the sender."),
        "subject" => text("Your receipt", "The subject of the message."),
        "tags" => json!({
            "type": "array",
            "items": { "type": "string", "example": "receipts" },
            "description": "The tags of the message.",
        }),
        "metadata" => json!({
            "type": "object",
            "additionalProperties": true,
            "description": "The metadata of the message, if it has any.",
            "example": { "order": "1042" },
        }),
        "test" => json!({
            "type": "boolean",
            "enum": [true],
            "description": "Present if the message is a test: no provider was called.",
            "example": true,
        }),
        "bounceType" => words(
            &[BounceType::Hard, BounceType::Soft, BounceType::Block].map(BounceType::as_str),
            "Why the address did not get the message.",
        ),
        "reason" => text("550 5.1.1 no such user", "Why, if that is known."),
        "url" => text("https://example.com/orders/1042", "The link."),
        "isBot" => json!({
            "type": "boolean",
            "description": "Whether it was a program and not a person, if that is known.",
            "example": false,
        }),
        "attemptId" => id(
            "01a1fbfa-b12e-763c-a29e-ce02006ba543",
            "The call to the provider, if that is known.",
        ),
        "providerMessageId" => text(
            "vTq7hGw3QmS8kLx0ZyN2Ug",
            "The id that the provider gave to the message, if that is known.",
        ),
        _ => common_field(name),
    }
}

fn organization_field(name: &str) -> Value {
    match name {
        "suppressionId" => id("01a1fbfa-b12e-763c-a29e-ce02006ba546", "The suppression."),
        "emailHash" => text(
            "cfe00dde46ef942601ffafb9e2825e802858b460e586b8305b344c1eb826357d",
            "The SHA-256 of the address in lower case, as lower-case hexadecimal.",
        ),
        "unsubscribeGroupId" => json!({
            "type": "string",
            "format": "uuid",
            "nullable": true,
            "description": "The group in which the address is suppressed; null stands for all mail.",
            "example": "01a1fbfa-b12e-763c-a29e-ce02006ba547",
        }),
        "source" => words(
            &SuppressionSource::ALL.map(SuppressionSource::as_str),
            "Why the address was suppressed.",
        ),
        "domainId" => id("01a1fbfa-b12e-763c-a29e-ce02006ba545", "The domain."),
        "domain" => text("example.com", "The name of the domain."),
        "state" => words(
            &["verified", "unverified", "unknown"],
            "The provider's verdict on the domain; `unknown` if the credentials do not show it.",
        ),
        "providerAccountId" => id("01a1fbfa-b12e-763c-a29e-ce02006ba544", "The account."),
        "records" => lost_records(),
        "displayName" => text("Main account", "The name of the account."),
        "cause" => words(
            &["ACCOUNT_UNUSABLE", "CALLS_FAILED", "INVALID_CREDENTIALS"],
            "Why the account fails.",
        ),
        "reason" => text(
            "access forbidden",
            "Why, in the provider's words, if the cause is `ACCOUNT_UNUSABLE`.",
        ),
        "failingSince" => json!({
            "type": "string",
            "format": "date-time",
            "description": "When the failure began.",
            "example": "2026-11-20T11:58:30.000Z",
        }),
        "webhookEndpointId" => id(
            "01a1fbfa-b12e-763c-a29e-ce02006ba554",
            "The endpoint that is inactive now.",
        ),
        _ => common_field(name),
    }
}

fn lost_records() -> Value {
    json!({
        "type": "array",
        "items": {
            "title": "LostDnsRecord",
            "type": "object",
            "required": ["type", "name", "purpose", "foundStatus"],
            "properties": {
                "type": words(&["TXT", "CNAME", "MX"], "The type of the record."),
                "name": text("k1._domainkey.example.com", "The full name of the record."),
                "purpose": words(
                    &["DKIM", "SPF", "RETURN_PATH", "TRACKING", "DMARC", "OWNERSHIP"],
                    "What the record is for.",
                ),
                "foundStatus": words(
                    &FoundStatus::NAMES,
                    "Whether DNS has another record there (`mismatch`) or none (`missing`).",
                ),
            },
        },
        "description": "If the source is `dns` and the domain is broken: the records that DNS had and has no longer.",
    })
}

fn common_field(name: &str) -> Value {
    match name {
        "eventId" => id(
            "01a1fbfa-b12e-763c-a29e-ce02006ba556",
            "The event. It is the same for every endpoint.",
        ),
        "eventType" => words(
            &WebhookEventType::ALL.map(WebhookEventType::as_str),
            "The type of the event, as in `event`.",
        ),
        "providerType" => words(
            &ProviderType::ALL.map(ProviderType::as_str),
            "The type of the provider.",
        ),
        _ => unreachable!("{name} has a schema"),
    }
}

fn text(example: &str, description: &str) -> Value {
    json!({ "type": "string", "description": description, "example": example })
}

fn id(example: &str, description: &str) -> Value {
    json!({ "type": "string", "format": "uuid", "description": description, "example": example })
}

fn words(words: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": description, "example": words[0] })
}

/// The request to the customer's server.
fn post(examples: &Map<String, Value>) -> Value {
    let header = |name: &str, required: bool, example: &str, description: &str| {
        json!({
            "name": name,
            "in": "header",
            "required": required,
            "description": description,
            "schema": { "type": "string", "example": example },
        })
    };
    json!({
        "operationId": "receive_event",
        "security": [],
        "summary": "An event",
        "description": "Waypost posts each event to the active webhook endpoints that subscribed to its type. A delivery may \
                        be repeated, and deliveries come in any order. Verify the signature before you read the body.",
        "tags": ["Webhook endpoints"],
        "parameters": [
            header("X-Waypost-Signature", true, "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
                "The HMAC-SHA256 of `<X-Waypost-Timestamp>.<body>`, keyed with the endpoint's secret, in lower-case hexadecimal."),
            header("X-Waypost-Signature-Other", false, "1f1c8a3c1a7b0b1f3f0a8f6c7d5e4b3a291807f6e5d4c3b2a190f8e7d6c5b4a3",
                "During the grace period of a rotated secret: the same by the other secret."),
            header("X-Waypost-Timestamp", true, "1795176000", "When the call was signed, in Unix seconds."),
            header("X-Waypost-Event", true, "DELIVERED", "The type of the event."),
            header("webhook-id", true, "01a1fbfa-b12e-763c-a29e-ce02006ba555",
                "The id of the delivery (Standard Webhooks). It is the same when the delivery is repeated."),
            header("webhook-timestamp", true, "1795176000", "The same as `X-Waypost-Timestamp` (Standard Webhooks)."),
            header("webhook-signature", true, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
                "The signatures of Standard Webhooks, separated by spaces."),
        ],
        "requestBody": {
            "required": true,
            "content": {
                "application/json": {
                    "schema": { "$ref": "#/components/schemas/WebhookEvent" },
                    "examples": examples,
                },
            },
        },
        "responses": {
            "2XX": { "description": "The event is accepted." },
            "410": { "description": "The endpoint is gone. Waypost deactivates it." },
            "default": { "description": "The event is not accepted. Waypost posts it again later, ten times at most." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_the_fields_of_its_variant_and_no_others() {
        for event_type in WebhookEventType::ALL {
            let data = EventData::of(event_type);
            let parents = std::iter::successors(Some(data), |data| data.base());
            let parents: Vec<EventData> = parents.collect();
            let required = parents.iter().flat_map(|data| data.required());
            let optional = parents.iter().flat_map(|data| data.optional());
            let example = body(event_type);
            let example = example["data"].as_object().unwrap();
            for name in required.clone() {
                assert!(example.contains_key(*name), "{event_type}.{name}");
            }
            for name in example.keys() {
                let mut known = required.clone().chain(optional.clone());
                assert!(known.any(|known| known == name), "{event_type}.{name}");
            }
        }
    }
}
