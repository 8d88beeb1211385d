//! The operations that require an API key or a session, or begin one; one module per resource.

pub(crate) mod api_keys;
pub(crate) mod audit_logs;
pub(crate) mod erasures;
pub(crate) mod installation;
mod invitation_mail;
pub(crate) mod invitations;
pub(crate) mod members;
pub(crate) mod message_attachments;
pub(crate) mod message_changes;
pub(crate) mod message_content;
pub(crate) mod message_webhook_deliveries;
pub(crate) mod messages;
pub(crate) mod metrics;
pub(crate) mod oidc;
pub(crate) mod password_resets;
pub(crate) mod provider_health;
pub(crate) mod provider_management;
pub(crate) mod provider_suppressions;
pub(crate) mod providers;
pub(crate) mod route_resolution;
pub(crate) mod route_simulation;
pub(crate) mod routing_progress;
pub(crate) mod routing_rule_view;
pub(crate) mod routing_rules;
pub(crate) mod send;
pub(crate) mod send_request;
pub(crate) mod sender_domains;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod suppression_export;
pub(crate) mod suppressions;
pub(crate) mod template_drafts;
pub(crate) mod template_tests;
pub(crate) mod template_uses;
pub(crate) mod template_versions;
pub(crate) mod templates;
pub(crate) mod unsubscribe_groups;
pub(crate) mod user;
pub(crate) mod webhook_deliveries;
pub(crate) mod webhook_endpoints;

use poem_openapi::Tags;

/// The sections of the document.
#[derive(Tags)]
pub(crate) enum Section {
    /// Send one message or a batch of messages.
    Sending,
    /// Accepted messages, their recipients and their history.
    Messages,
    /// Counts and rates of sent, delivered, opened, clicked, bounced and reported
    /// messages.
    Metrics,
    /// Connected accounts at email providers, their domains and event webhooks.
    Providers,
    /// Rules that select the provider account of a message.
    #[oai(rename = "Routing rules")]
    RoutingRules,
    /// API keys, their permissions and their rotation.
    #[oai(rename = "API keys")]
    ApiKeys,
    /// The settings of the organization.
    Settings,
    /// Sign in and out, and switch the organization.
    Session,
    /// The signed-in user: name, password and second factor.
    User,
    /// The users of the organization and their roles.
    Members,
    /// Links by which people become members of the organization.
    Invitations,
    /// Links by which users set a new password.
    #[oai(rename = "Password resets")]
    PasswordResets,
    /// What belongs to the installation: tasks, workers, queues and dead jobs.
    Operator,
    /// The record of all changes: who changed what, and when.
    #[oai(rename = "Audit log")]
    AuditLog,
    /// Reusable message bodies with variables, and their versions.
    Templates,
    /// Kinds of messages that recipients can unsubscribe from.
    #[oai(rename = "Unsubscribe groups")]
    UnsubscribeGroups,
    /// Addresses that receive no messages.
    Suppressions,
    /// Erase what is stored of a person.
    Erasures,
    /// The unsubscribe links in messages. They require no API key.
    #[oai(rename = "Unsubscribe links")]
    UnsubscribeLinks,
    /// The tracking pixels and tracked links in messages. They require no API key.
    #[oai(rename = "Tracking links")]
    TrackingLinks,
    /// URLs that receive events, their deliveries and secrets.
    #[oai(rename = "Webhook endpoints")]
    WebhookEndpoints,
    /// The events that providers post about sent messages.
    #[oai(rename = "Provider events")]
    ProviderEvents,
}
