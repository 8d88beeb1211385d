// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

use std::sync::Arc;

use crate::generated::errors::Error;
use crate::generated::resources;
use crate::runtime::http::{Http, Options};

/// A client of one Waypost, with one API key. A clone shares its connections.
///
/// ```no_run
/// # async fn example() -> Result<(), waypost::Error> {
/// use waypost::{Waypost, types::SendMessageRequest};
///
/// let waypost = Waypost::from_env()?; // WAYPOST_API_KEY and WAYPOST_URL
/// let mail = SendMessageRequest::new("ada@example.org").from("shop@example.com").subject("Hello").text("Hello, Ada");
/// waypost.messages().send(&mail).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Waypost {
    http: Arc<Http>,
}

impl Waypost {
    /// A client of the Waypost at the address in `WAYPOST_URL`, with the API key in `WAYPOST_API_KEY`.
    pub fn from_env() -> Result<Self, Error> {
        Self::with(Options::default())
    }

    /// A client with this API key, of the Waypost at this address.
    pub fn new(api_key: impl Into<String>, base_url: impl Into<String>) -> Result<Self, Error> {
        Self::with(Options { api_key: Some(api_key.into()), base_url: Some(base_url.into()), ..Options::default() })
    }

    /// A client with these options.
    pub fn with(options: Options) -> Result<Self, Error> {
        Http::new(options).map(|http| Self { http: Arc::new(http) })
    }

    /// Accepted messages, their recipients and their history.
    #[must_use]
    pub fn messages(&self) -> resources::Messages {
        resources::Messages::new(&self.http)
    }

    /// Counts and rates of sent, delivered, opened, clicked, bounced and reported messages.
    #[must_use]
    pub fn metrics(&self) -> resources::Metrics {
        resources::Metrics::new(&self.http)
    }

    /// Connected accounts at email providers, their domains and event webhooks.
    #[must_use]
    pub fn providers(&self) -> resources::Providers {
        resources::Providers::new(&self.http)
    }

    /// The sender domains.
    #[must_use]
    pub fn sender_domains(&self) -> resources::SenderDomains {
        resources::SenderDomains::new(&self.http)
    }

    /// Rules that select the provider account of a message.
    #[must_use]
    pub fn routing_rules(&self) -> resources::RoutingRules {
        resources::RoutingRules::new(&self.http)
    }

    /// API keys, their permissions and their rotation.
    #[must_use]
    pub fn api_keys(&self) -> resources::ApiKeys {
        resources::ApiKeys::new(&self.http)
    }

    /// The settings of the organization.
    #[must_use]
    pub fn settings(&self) -> resources::Settings {
        resources::Settings::new(&self.http)
    }

    /// The audit logs.
    #[must_use]
    pub fn audit_logs(&self) -> resources::AuditLogs {
        resources::AuditLogs::new(&self.http)
    }

    /// Reusable message bodies with variables, and their versions.
    #[must_use]
    pub fn templates(&self) -> resources::Templates {
        resources::Templates::new(&self.http)
    }

    /// Kinds of messages that recipients can unsubscribe from.
    #[must_use]
    pub fn unsubscribe_groups(&self) -> resources::UnsubscribeGroups {
        resources::UnsubscribeGroups::new(&self.http)
    }

    /// Addresses that receive no messages.
    #[must_use]
    pub fn suppressions(&self) -> resources::Suppressions {
        resources::Suppressions::new(&self.http)
    }

    /// Erase what is stored of a person.
    #[must_use]
    pub fn erasures(&self) -> resources::Erasures {
        resources::Erasures::new(&self.http)
    }

    /// URLs that receive events, their deliveries and secrets.
    #[must_use]
    pub fn webhook_endpoints(&self) -> resources::WebhookEndpoints {
        resources::WebhookEndpoints::new(&self.http)
    }

    /// Sign in and out, and switch the organization.
    #[must_use]
    pub fn session(&self) -> resources::Session {
        resources::Session::new(&self.http)
    }

    /// The signed-in user: name, password and second factor.
    #[must_use]
    pub fn user(&self) -> resources::User {
        resources::User::new(&self.http)
    }

    /// The users of the organization and their roles.
    #[must_use]
    pub fn members(&self) -> resources::Members {
        resources::Members::new(&self.http)
    }

    /// Links by which people become members of the organization.
    #[must_use]
    pub fn invitations(&self) -> resources::Invitations {
        resources::Invitations::new(&self.http)
    }

    /// Links by which users set a new password.
    #[must_use]
    pub fn password_resets(&self) -> resources::PasswordResets {
        resources::PasswordResets::new(&self.http)
    }

    /// What belongs to the installation: tasks, workers, queues and dead jobs.
    #[must_use]
    pub fn operator(&self) -> resources::Operator {
        resources::Operator::new(&self.http)
    }
}
