//! The types of events that endpoints subscribe to: the ten of messages, and those that are
//! about the organization and not about a message. An endpoint gets a type only if it names
//! it.

use std::fmt;

use crate::event::EventType;

/// The type of an event, in subscriptions and webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "event_type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WebhookEventType {
    Queued,
    Sent,
    Delivered,
    Opened,
    Clicked,
    Bounced,
    Complained,
    Unsubscribed,
    Dropped,
    Deferred,
    SuppressionCreated,
    SuppressionRemoved,
    DomainVerified,
    /// A domain that was verified no longer is.
    DomainBroken,
    /// A provider account cannot send, or too many of its calls fail.
    ProviderFailing,
    ProviderRecovered,
    /// Waypost deactivated another endpoint of the organization.
    WebhookEndpointDisabled,
}

impl WebhookEventType {
    /// All types, in the order of the API.
    pub const ALL: [Self; 17] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Opened,
        Self::Clicked,
        Self::Bounced,
        Self::Complained,
        Self::Unsubscribed,
        Self::Dropped,
        Self::Deferred,
        Self::SuppressionCreated,
        Self::SuppressionRemoved,
        Self::DomainVerified,
        Self::DomainBroken,
        Self::ProviderFailing,
        Self::ProviderRecovered,
        Self::WebhookEndpointDisabled,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => EventType::Queued.as_str(),
            Self::Sent => EventType::Sent.as_str(),
            Self::Delivered => EventType::Delivered.as_str(),
            Self::Opened => EventType::Opened.as_str(),
            Self::Clicked => EventType::Clicked.as_str(),
            Self::Bounced => EventType::Bounced.as_str(),
            Self::Complained => EventType::Complained.as_str(),
            Self::Unsubscribed => EventType::Unsubscribed.as_str(),
            Self::Dropped => EventType::Dropped.as_str(),
            Self::Deferred => EventType::Deferred.as_str(),
            Self::SuppressionCreated => "SUPPRESSION_CREATED",
            Self::SuppressionRemoved => "SUPPRESSION_REMOVED",
            Self::DomainVerified => "DOMAIN_VERIFIED",
            Self::DomainBroken => "DOMAIN_BROKEN",
            Self::ProviderFailing => "PROVIDER_FAILING",
            Self::ProviderRecovered => "PROVIDER_RECOVERED",
            Self::WebhookEndpointDisabled => "WEBHOOK_ENDPOINT_DISABLED",
        }
    }

    /// Whether events of the type are about a message.
    #[must_use]
    pub fn is_of_message(self) -> bool {
        match self {
            Self::Queued
            | Self::Sent
            | Self::Delivered
            | Self::Opened
            | Self::Clicked
            | Self::Bounced
            | Self::Complained
            | Self::Unsubscribed
            | Self::Dropped
            | Self::Deferred => true,
            Self::SuppressionCreated
            | Self::SuppressionRemoved
            | Self::DomainVerified
            | Self::DomainBroken
            | Self::ProviderFailing
            | Self::ProviderRecovered
            | Self::WebhookEndpointDisabled => false,
        }
    }
}

impl fmt::Display for WebhookEventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_messages_come_first_under_their_names() {
        let names = WebhookEventType::ALL.map(WebhookEventType::as_str);
        let of_messages = EventType::ALL.map(EventType::as_str);
        assert_eq!(names[..of_messages.len()], of_messages);
        for event_type in WebhookEventType::ALL {
            let is_known = of_messages.contains(&event_type.as_str());
            assert_eq!(event_type.is_of_message(), is_known, "{event_type}");
        }
    }
}
