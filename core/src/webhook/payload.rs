//! The body of a webhook call. Pure.

use bytes::Bytes;
use chrono::SecondsFormat;
use serde::Serialize;
use serde_json::{Map, Value};

use super::event_type::WebhookEventType;
use crate::clock::Timestamp;
use crate::event::{ATTEMPT_ID, PROVIDER_MESSAGE_ID};
use crate::ids::{EventId, MessageId};
use crate::provider::kind::ProviderType;

/// An event of one recipient, with everything that the endpoint receives.
#[derive(Clone)]
pub struct Payload<'a> {
    pub event_id: EventId,
    pub event_type: WebhookEventType,
    pub occurred_at: Timestamp,
    pub message_id: MessageId,
    pub recipient: &'a str,
    pub from: &'a str,
    pub subject: &'a str,
    pub tags: &'a [String],
    /// The metadata of the message.
    pub metadata: Option<&'a Value>,
    /// Whether the message is a test.
    pub is_test: bool,
    /// The provider that the message was sent through.
    pub provider_type: Option<ProviderType>,
    /// The event's data (`events.data`). The body contains only its `bounceType`,
    /// `reason`, `url`, `isBot`, `attemptId` and `providerMessageId`.
    pub event_data: Option<&'a Value>,
}

#[derive(Serialize)]
struct PayloadBody<'a> {
    event: &'a str,
    timestamp: String,
    data: PayloadData<'a>,
}

/// The fields that the API documents are always present; the others only with a value.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PayloadData<'a> {
    message_id: MessageId,
    event_type: &'a str,
    recipient: &'a str,
    from: &'a str,
    subject: &'a str,
    event_id: EventId,
    tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounce_type: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_bot: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_message_id: Option<&'a Value>,
}

impl Payload<'_> {
    /// The body of the call, as JSON.
    #[must_use]
    pub fn body(&self) -> Bytes {
        let event_field = |name: &str| {
            let value = self.event_data.and_then(|data| data.get(name));
            value.filter(|value| !value.is_null())
        };
        let event = self.event_type.as_str();
        let body = PayloadBody {
            event,
            timestamp: self
                .occurred_at
                .to_rfc3339_opts(SecondsFormat::Millis, true),
            data: PayloadData {
                message_id: self.message_id,
                event_type: event,
                recipient: self.recipient,
                from: self.from,
                subject: self.subject,
                event_id: self.event_id,
                tags: self.tags,
                test: self.is_test.then_some(true),
                metadata: self.metadata.filter(|metadata| !metadata.is_null()),
                provider_type: self.provider_type.map(ProviderType::as_str),
                bounce_type: event_field("bounceType"),
                reason: event_field("reason"),
                url: event_field("url"),
                is_bot: event_field("isBot"),
                attempt_id: event_field(ATTEMPT_ID),
                provider_message_id: event_field(PROVIDER_MESSAGE_ID),
            },
        };
        let bytes = serde_json::to_vec(&body).expect("texts and JSON values can be written");
        Bytes::from(bytes)
    }
}

/// An event about the organization, with everything that the endpoint receives.
#[derive(Clone, Copy)]
pub struct OrganizationPayload<'a> {
    pub event_id: EventId,
    pub event_type: WebhookEventType,
    pub occurred_at: Timestamp,
    /// What the event says: fields that depend on its type.
    pub content: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct OrganizationBody<'a> {
    event: &'a str,
    timestamp: String,
    data: OrganizationData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrganizationData<'a> {
    event_type: &'a str,
    event_id: EventId,
    #[serde(flatten)]
    content: &'a Map<String, Value>,
}

impl OrganizationPayload<'_> {
    /// The body of the call, as JSON.
    #[must_use]
    pub fn body(&self) -> Bytes {
        let event = self.event_type.as_str();
        let body = OrganizationBody {
            event,
            timestamp: self
                .occurred_at
                .to_rfc3339_opts(SecondsFormat::Millis, true),
            data: OrganizationData {
                event_type: event,
                event_id: self.event_id,
                content: self.content,
            },
        };
        let bytes = serde_json::to_vec(&body).expect("texts and JSON values can be written");
        Bytes::from(bytes)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn event<'a>() -> Payload<'a> {
        Payload {
            event_id: EventId(Uuid::from_u128(1)),
            event_type: WebhookEventType::Delivered,
            occurred_at: DateTime::from_timestamp_millis(1_795_000_000_042).unwrap(),
            message_id: MessageId(Uuid::from_u128(2)),
            recipient: "ada@example.com",
            from: "shop@example.org",
            subject: "Your \"receipt\"",
            tags: &[],
            metadata: None,
            is_test: false,
            provider_type: None,
            event_data: None,
        }
    }

    #[test]
    fn the_documented_fields_are_always_present_and_come_first() {
        let body = event().body();
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            concat!(
                r#"{"event":"DELIVERED","timestamp":"2026-11-18T11:06:40.042Z","data":{"#,
                r#""messageId":"00000000-0000-0000-0000-000000000002","eventType":"DELIVERED","#,
                r#""recipient":"ada@example.com","from":"shop@example.org","#,
                r#""subject":"Your \"receipt\"","#,
                r#""eventId":"00000000-0000-0000-0000-000000000001","tags":[]}}"#,
            )
        );
    }

    #[test]
    fn an_event_about_the_organization_has_no_fields_of_a_message() {
        let mut content = Map::new();
        content.insert("suppressionId".to_owned(), json!("7"));
        content.insert("unsubscribeGroupId".to_owned(), Value::Null);
        let message = event();
        let payload = OrganizationPayload {
            event_id: message.event_id,
            event_type: WebhookEventType::SuppressionRemoved,
            occurred_at: message.occurred_at,
            content: &content,
        };
        assert_eq!(
            std::str::from_utf8(&payload.body()).unwrap(),
            concat!(
                r#"{"event":"SUPPRESSION_REMOVED","timestamp":"2026-11-18T11:06:40.042Z","data":{"#,
                r#""eventType":"SUPPRESSION_REMOVED","eventId":"00000000-0000-0000-0000-000000000001","#,
                r#""suppressionId":"7","unsubscribeGroupId":null}}"#,
            )
        );
    }

    #[test]
    fn only_documented_fields_of_the_event_data_are_sent() {
        let tags = ["receipts".to_owned()];
        let (metadata, event_data) = (
            json!({ "order": 7 }),
            json!({ "bounceType": "hard", "reason": "550 no such user", "url": null, "isBot": false, "userAgent": "x" }),
        );
        let payload = Payload {
            event_type: WebhookEventType::Bounced,
            tags: &tags,
            metadata: Some(&metadata),
            is_test: true,
            provider_type: Some(ProviderType::Ses),
            event_data: Some(&event_data),
            ..event()
        };
        let body: Value = serde_json::from_slice(&payload.body()).unwrap();
        assert_eq!(
            body["data"],
            json!({
                "messageId": "00000000-0000-0000-0000-000000000002",
                "eventType": "BOUNCED",
                "recipient": "ada@example.com",
                "from": "shop@example.org",
                "subject": "Your \"receipt\"",
                "eventId": "00000000-0000-0000-0000-000000000001",
                "tags": ["receipts"],
                "test": true,
                "metadata": { "order": 7 },
                "providerType": "SES",
                "bounceType": "hard",
                "reason": "550 no such user",
                "isBot": false,
            })
        );
    }
}
