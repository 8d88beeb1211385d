//! Webhooks in the document: the schema `WebhookEvent` with a variant for each type of event,
//! and the request that posts it. OpenAPI 3.0 has no place for requests to the customer, so
//! it stands in `x-webhooks`, which tools know from before 3.1. The examples come from the
//! code that builds real bodies.

use serde_json::{Map, Value, json};
use waypost_core::provider::domain::DomainState;
use waypost_core::provider::event::BounceType;
use waypost_core::provider::kind::ProviderType;
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
    let references: Map<String, Value> = types
        .iter()
        .map(|event_type| (event_type.to_string(), json!(reference(*event_type))))
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

fn reference(event_type: WebhookEventType) -> String {
    format!("#/components/schemas/{}", schema_name(event_type))
}

fn body(event_type: WebhookEventType) -> Value {
    serde_json::from_slice(&example::body(event_type)).expect("a body is JSON")
}

/// The schema of an event of one type.
fn variant(event_type: WebhookEventType) -> Value {
    let (required, optional) = fields(event_type);
    let mut properties = Map::new();
    for name in required.iter().chain(&optional) {
        properties.insert((*name).to_owned(), field(name, event_type));
    }
    json!({
        "type": "object",
        "title": schema_name(event_type),
        "description": summary(event_type),
        "required": [TYPE, "timestamp", "data"],
        "properties": {
            TYPE: { "type": "string", "enum": [event_type.as_str()], "example": event_type.as_str() },
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When the event occurred.",
                "example": "2026-11-20T12:00:00.000Z",
            },
            "data": { "type": "object", "required": required, "properties": properties },
        },
        "example": body(event_type),
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
        WebhookEventType::DomainVerified => "A sender domain became verified.",
        WebhookEventType::DomainBroken => {
            "A sender domain that was verified no longer is: the provider reports it as unverified or no longer lists it, or the credentials no longer show it."
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

/// The fields of `data`: those that are always present, and the others.
fn fields(event_type: WebhookEventType) -> (Vec<&'static str>, Vec<&'static str>) {
    let message = |further: &[&'static str]| {
        let required = vec![
            "messageId",
            "eventType",
            "recipient",
            "from",
            "subject",
            "eventId",
            "tags",
        ];
        let optional = [&["test", "metadata", "providerType"], further].concat();
        (required, optional)
    };
    let organization = |required: &[&'static str], optional: &[&'static str]| {
        let required = [&["eventType", "eventId"], required].concat();
        (required, [optional, &["metadata"]].concat())
    };
    let account = [
        "providerAccountId",
        "providerType",
        "displayName",
        "cause",
        "failingSince",
    ];
    match event_type {
        WebhookEventType::Queued => message(&[]),
        WebhookEventType::Sent
        | WebhookEventType::Delivered
        | WebhookEventType::Complained
        | WebhookEventType::Unsubscribed
        | WebhookEventType::Deferred => message(&["reason", "attemptId", "providerMessageId"]),
        WebhookEventType::Opened => message(&["reason", "isBot", "attemptId", "providerMessageId"]),
        WebhookEventType::Clicked => {
            message(&["reason", "url", "isBot", "attemptId", "providerMessageId"])
        }
        WebhookEventType::Bounced | WebhookEventType::Dropped => {
            message(&["bounceType", "reason", "attemptId", "providerMessageId"])
        }
        WebhookEventType::SuppressionCreated | WebhookEventType::SuppressionRemoved => {
            let suppression = ["suppressionId", "emailHash", "unsubscribeGroupId", "source"];
            organization(&suppression, &[])
        }
        WebhookEventType::DomainVerified | WebhookEventType::DomainBroken => {
            organization(&["domainId", "domain", "providerAccountId", "state"], &[])
        }
        WebhookEventType::ProviderFailing => organization(&account, &["reason"]),
        WebhookEventType::ProviderRecovered => organization(&account, &[]),
        WebhookEventType::WebhookEndpointDisabled => {
            organization(&["webhookEndpointId", "reason", "failingSince"], &[])
        }
    }
}

/// The schema of a field of `data`.
fn field(name: &str, event_type: WebhookEventType) -> Value {
    match name {
        "eventType" => {
            json!({ "type": "string", "enum": [event_type.as_str()], "example": event_type.as_str() })
        }
        "metadata" if !event_type.is_of_message() => json!({
            "type": "object",
            "additionalProperties": true,
            "description": "Only in a test event: `{\"test\": true}`.",
            "example": { "test": true },
        }),
        "state" if event_type == WebhookEventType::DomainVerified => words(
            &[DomainState::Verified.as_str()],
            "The state of the domain.",
        ),
        "reason" if event_type == WebhookEventType::WebhookEndpointDisabled => words(
            &["GONE", "FAILING"],
            "`GONE`: the endpoint answered 410. `FAILING`: all calls failed for five days.",
        ),
        "failingSince" if event_type == WebhookEventType::WebhookEndpointDisabled => json!({
            "type": "string",
            "format": "date-time",
            "nullable": true,
            "description": "Since when all calls failed; null if none had failed before.",
            "example": "2026-11-15T12:00:00.000Z",
        }),
        _ if event_type.is_of_message() => message_field(name),
        _ => organization_field(name),
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
            &[DomainState::Unverified, DomainState::Unknown].map(DomainState::as_str),
            "The state of the domain; `unknown` if the credentials do not show it.",
        ),
        "providerAccountId" => id("01a1fbfa-b12e-763c-a29e-ce02006ba544", "The account."),
        "displayName" => text("Main account", "The name of the account."),
        "cause" => words(
            &["ACCOUNT_UNUSABLE", "CALLS_FAILED", "INVALID_CREDENTIALS"],
            "`ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many \
             calls failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider \
             refuses the credentials. An account may fail for several causes; each ends by itself.",
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

fn common_field(name: &str) -> Value {
    match name {
        "eventId" => id(
            "01a1fbfa-b12e-763c-a29e-ce02006ba556",
            "The event. It is the same for every endpoint.",
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
            let (required, optional) = fields(event_type);
            let example = body(event_type);
            let data = example["data"].as_object().unwrap();
            for name in &required {
                assert!(data.contains_key(*name), "{event_type}.{name}");
            }
            for name in data.keys() {
                let is_known = required.iter().chain(&optional).any(|known| known == name);
                assert!(is_known, "{event_type}.{name}");
            }
        }
    }
}
