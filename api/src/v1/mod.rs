//! The operations of the contract, one module per resource.

pub(crate) mod api_keys;
pub(crate) mod audit_logs;
pub(crate) mod messages;
pub(crate) mod metrics;
pub(crate) mod provider_management;
pub(crate) mod providers;
pub(crate) mod routing_rules;
pub(crate) mod send;
pub(crate) mod settings;
pub(crate) mod suppressions;
pub(crate) mod template_versions;
pub(crate) mod templates;
pub(crate) mod unsubscribe_groups;
pub(crate) mod webhook_deliveries;
pub(crate) mod webhook_endpoints;

use poem_openapi::Tags;

/// The sections of the document.
#[derive(Tags)]
pub(crate) enum Section {
    /// Sending messages.
    Sending,
    /// Accepted messages and their history.
    Messages,
    /// How many copies were sent, delivered, opened.
    Metrics,
    /// Connected accounts at providers.
    Providers,
    /// Which account takes which messages.
    RoutingRules,
    /// API keys and what they may do.
    ApiKeys,
    /// The organization's own switches.
    Settings,
    /// Who changed what.
    AuditLog,
    /// Subjects and bodies written once, and their versions.
    Templates,
    /// Subjects that recipients may unsubscribe from.
    #[oai(rename = "Unsubscribe groups")]
    UnsubscribeGroups,
    /// Addresses that are not sent to.
    Suppressions,
    /// The links that recipients follow, without a key.
    #[oai(rename = "Unsubscribe links")]
    UnsubscribeLinks,
    /// Pixels and links in messages, without a key.
    #[oai(rename = "Tracking links")]
    TrackingLinks,
    /// URLs that events are posted to.
    #[oai(rename = "Webhook endpoints")]
    WebhookEndpoints,
    /// What providers tell of the mail that they took.
    #[oai(rename = "Provider events")]
    ProviderEvents,
}
