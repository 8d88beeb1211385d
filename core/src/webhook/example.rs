//! Example events, one of each type, in the form of real ones: for the OpenAPI document, and
//! for tests of endpoints. Pure.

use bytes::Bytes;
use chrono::DateTime;
use serde_json::{Map, Value, json};
use uuid::{Uuid, uuid};

use super::event_type::WebhookEventType;
use super::payload::{OrganizationPayload, Payload};
use crate::clock::Timestamp;
use crate::ids::{EventId, MessageId};
use crate::provider::kind::ProviderType;

const EVENT: Uuid = uuid!("01a1fbfa-b12e-763c-a29e-ce02006ba556");
const MESSAGE: Uuid = uuid!("01a1fbfa-b12e-763c-a29e-ce02006ba541");
const ATTEMPT: &str = "01a1fbfa-b12e-763c-a29e-ce02006ba543";
const ACCOUNT: &str = "01a1fbfa-b12e-763c-a29e-ce02006ba544";
const DOMAIN: &str = "01a1fbfa-b12e-763c-a29e-ce02006ba545";
const SUPPRESSION: &str = "01a1fbfa-b12e-763c-a29e-ce02006ba546";
const ENDPOINT: &str = "01a1fbfa-b12e-763c-a29e-ce02006ba554";
const PROVIDER_MESSAGE: &str = "vTq7hGw3QmS8kLx0ZyN2Ug";
const ADDRESS_HASH: &str = "cfe00dde46ef942601ffafb9e2825e802858b460e586b8305b344c1eb826357d";
const FAILING_SINCE: &str = "2026-11-20T11:58:30.000Z";
/// 2026-11-20T12:00:00Z.
const OCCURRED_AT_SECONDS: i64 = 1_795_176_000;

/// The body of an example event.
#[must_use]
pub fn body(event_type: WebhookEventType) -> Bytes {
    let occurred_at: Timestamp =
        DateTime::from_timestamp(OCCURRED_AT_SECONDS, 0).expect("the time is in range");
    let event_id = EventId(EVENT);
    if !event_type.is_of_message() {
        let payload = OrganizationPayload {
            event_id,
            event_type,
            occurred_at,
            content: &organization_content(event_type),
        };
        return payload.body();
    }
    let metadata = json!({ "order": "1042" });
    let event_data = message_event_data(event_type);
    let payload = Payload {
        event_id,
        event_type,
        occurred_at,
        message_id: MessageId(MESSAGE),
        recipient: "ada@example.org",
        from: "shop@example.com",
        subject: "Your receipt",
        tags: &["receipts".to_owned()],
        metadata: Some(&metadata),
        is_test: false,
        provider_type: Some(ProviderType::Sendgrid),
        event_data: event_data.as_ref(),
    };
    payload.body()
}

/// What an example event of a message says beyond the message.
fn message_event_data(event_type: WebhookEventType) -> Option<Value> {
    let data = match event_type {
        WebhookEventType::Sent
        | WebhookEventType::Delivered
        | WebhookEventType::Complained
        | WebhookEventType::Unsubscribed => {
            json!({ "attemptId": ATTEMPT, "providerMessageId": PROVIDER_MESSAGE })
        }
        WebhookEventType::Opened => json!({
            "attemptId": ATTEMPT,
            "providerMessageId": PROVIDER_MESSAGE,
            "isBot": false,
        }),
        WebhookEventType::Clicked => json!({
            "attemptId": ATTEMPT,
            "providerMessageId": PROVIDER_MESSAGE,
            "isBot": false,
            "url": "https://example.com/orders/1042",
        }),
        WebhookEventType::Bounced => json!({
            "attemptId": ATTEMPT,
            "providerMessageId": PROVIDER_MESSAGE,
            "bounceType": "hard",
            "reason": "550 5.1.1 no such user",
        }),
        WebhookEventType::Dropped => json!({
            "attemptId": ATTEMPT,
            "reason": "the provider refused the message",
        }),
        WebhookEventType::Deferred => json!({
            "attemptId": ATTEMPT,
            "reason": "the provider answered 429: too many requests",
        }),
        WebhookEventType::Queued
        | WebhookEventType::SuppressionCreated
        | WebhookEventType::SuppressionRemoved
        | WebhookEventType::DomainVerified
        | WebhookEventType::DomainBroken
        | WebhookEventType::ProviderFailing
        | WebhookEventType::ProviderRecovered
        | WebhookEventType::WebhookEndpointDisabled => return None,
    };
    Some(data)
}

/// What an example event about the organization says; nothing for the types of messages.
#[must_use]
pub fn organization_content(event_type: WebhookEventType) -> Map<String, Value> {
    let suppression = || {
        json!({
            "suppressionId": SUPPRESSION,
            "emailHash": ADDRESS_HASH,
            "unsubscribeGroupId": null,
            "source": "BOUNCE",
        })
    };
    let domain = |state: &str| {
        json!({
            "domainId": DOMAIN,
            "domain": "example.com",
            "providerAccountId": ACCOUNT,
            "state": state,
            "source": "provider",
            "records": [],
        })
    };
    let account = |further: Value| {
        let mut content = json!({
            "providerAccountId": ACCOUNT,
            "providerType": "SENDGRID",
            "displayName": "Main account",
            "cause": "ACCOUNT_UNUSABLE",
            "failingSince": FAILING_SINCE,
        });
        let further = further.as_object().into_iter().flatten();
        further.for_each(|(name, value)| content[name] = value.clone());
        content
    };
    let content = match event_type {
        WebhookEventType::SuppressionCreated | WebhookEventType::SuppressionRemoved => {
            suppression()
        }
        WebhookEventType::DomainVerified => domain("verified"),
        WebhookEventType::DomainBroken => domain("unverified"),
        WebhookEventType::ProviderFailing => account(json!({ "reason": "access forbidden" })),
        WebhookEventType::ProviderRecovered => account(json!({})),
        WebhookEventType::WebhookEndpointDisabled => json!({
            "webhookEndpointId": ENDPOINT,
            "reason": "FAILING",
            "failingSince": FAILING_SINCE,
        }),
        WebhookEventType::Queued
        | WebhookEventType::Sent
        | WebhookEventType::Delivered
        | WebhookEventType::Opened
        | WebhookEventType::Clicked
        | WebhookEventType::Bounced
        | WebhookEventType::Complained
        | WebhookEventType::Unsubscribed
        | WebhookEventType::Dropped
        | WebhookEventType::Deferred => json!({}),
    };
    match content {
        Value::Object(content) => content,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
