// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

//! The groups of operations. [`Waypost`](crate::Waypost) has a method for each.

use std::sync::Arc;

use reqwest::Method;
use serde::Serialize;

use crate::generated::types;
use crate::runtime::call::{Call, Download, Page};
use crate::runtime::http::{Http, Request};

/// Accepted messages, their recipients and their history.
#[derive(Debug, Clone)]
pub struct Messages {
    http: Arc<Http>,
}

impl Messages {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// The recipients.
    #[must_use]
    pub fn recipients(&self) -> MessagesRecipients {
        MessagesRecipients::new(&self.http)
    }

    /// The attachments.
    #[must_use]
    pub fn attachments(&self) -> MessagesAttachments {
        MessagesAttachments::new(&self.http)
    }

    /// The webhook deliveries.
    #[must_use]
    pub fn webhook_deliveries(&self) -> MessagesWebhookDeliveries {
        MessagesWebhookDeliveries::new(&self.http)
    }

    /// Send a message.
    ///
    /// Requires the permission `SEND`. The response 202 means that the message is stored and will be sent, even if
    /// servers fail in between. Suppressed recipients are dropped; if all recipients are suppressed, the status is
    /// `suppressed` and no message is created.
    pub fn send(&self, request: &types::SendMessageRequest) -> Call<types::SendMessageResponse> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/send",
                content: Some(json(request)),
                idempotent: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Send a batch of messages.
    ///
    /// Requires the permission `SEND`. Each message is validated and queued separately. A message that is rejected
    /// has an `error` in its place in `results`.
    pub fn send_batch(&self, request: &types::SendBatchRequest) -> Call<types::SendBatchResponse> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/emails/batch",
                content: Some(json(request)),
                idempotent: true,
                ..Request::default()
            },
            (),
        )
    }

    /// List messages.
    ///
    /// Requires the permission `METRICS_READ`. The newest message comes first. Tests are in a list of their own.
    ///
    /// All filters can be combined. Without `search`, `recipient`, `from`, `tag`, `templateId`, `providerAccountId`
    /// and `providerMessageId`, `total` is the number of all matching messages. With one of them, `total` counts at
    /// most the newest 2,000 matching messages, and so do the pages; `nextCursor` leads to the older ones, except
    /// with `search`.
    ///
    /// A search text without three consecutive letters or digits is searched in the newest 30,000 messages only,
    /// unless a filter other than `status` and the times is given. A search with `status` covers the newest 30,000
    /// messages and at least the newest 4,000 with this status, if the text is such a short one or if more than 2,000
    /// messages of any status match it. The same holds for times and several statuses, with 20,000 messages in place
    /// of the 2,000.
    pub fn list(&self) -> Call<Page<types::MessageSummary>, types::ListMessagesParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/messages", ..Request::default() },
            types::ListMessagesParams::default(),
        )
    }

    /// Get a message with its history.
    ///
    /// Requires the permission `METRICS_READ`.
    ///
    /// - `id`: The id of the message.
    pub fn get(&self, id: &str) -> Call<types::MessageDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Move the time of a scheduled message.
    ///
    /// Requires the permission `SEND`. Returns 409 if the message was not scheduled, or if sending it has begun.
    ///
    /// - `id`: The id of the message.
    pub fn update(&self, id: &str, request: &types::UpdateMessageRequest) -> Call<types::MessageDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/messages/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Retry a failed message.
    ///
    /// Requires the permission `SEND`. Queues the recipients with the status FAILED again, with all attempts and the
    /// full retry period, as at acceptance. Recipients that are suppressed now are dropped again. Returns 409 if no
    /// recipient has the status FAILED, so repeating the request sends nothing twice.
    ///
    /// - `id`: The id of the message.
    pub fn retry(&self, id: &str) -> Call<types::MessageDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/messages/{id}/retry",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Cancel a message.
    ///
    /// Requires the permission `SEND`. Cancels the recipients that wait, whether the message is scheduled, queued or
    /// being retried: they get the status FAILED and an event DROPPED with the reason `CANCELLED`, and the message is
    /// not sent to them. Recipients to whom it was sent, or is just being sent, are left as they are. Returns 409 if
    /// no recipient can be cancelled. Repeating the request changes nothing and succeeds again.
    ///
    /// - `id`: The id of the message.
    pub fn cancel(&self, id: &str) -> Call<types::CancelledMessage> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/messages/{id}/cancel",
                path: vec![id.to_owned()],
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a message's content.
    ///
    /// Requires the permission `CONTENT_READ`. The audit log records each request. The content of a message is stored
    /// for a shorter time than the message: afterwards the response is 404 with `details.reason`
    /// `MESSAGE_CONTENT_GONE`.
    ///
    /// - `id`: The id of the message.
    pub fn get_content(&self, id: &str) -> Call<types::MessageContentView, types::GetMessageContentParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}/content",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            types::GetMessageContentParams::default(),
        )
    }
}

/// The recipients.
#[derive(Debug, Clone)]
pub struct MessagesRecipients {
    http: Arc<Http>,
}

impl MessagesRecipients {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List a message's recipients.
    ///
    /// Requires the permission `METRICS_READ`. The recipients are in the order of the send request.
    ///
    /// - `message_id`: The id of the message.
    pub fn list(&self, message_id: &str) -> Call<Page<types::RecipientDetail>, types::ListMessageRecipientsParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}/recipients",
                path: vec![message_id.to_owned()],
                ..Request::default()
            },
            types::ListMessageRecipientsParams::default(),
        )
    }
}

/// The attachments.
#[derive(Debug, Clone)]
pub struct MessagesAttachments {
    http: Arc<Http>,
}

impl MessagesAttachments {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List a message's attachments.
    ///
    /// Requires the permission `CONTENT_READ`. The attachments are in the order of the send request. Each request is
    /// recorded in the audit log. If the content of the message is no longer stored, the response is 404 with the
    /// reason `MESSAGE_CONTENT_GONE`.
    ///
    /// - `message_id`: The id of the message.
    pub fn list(&self, message_id: &str) -> Call<Page<types::AttachmentDetail>> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}/attachments",
                path: vec![message_id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Download an attachment.
    ///
    /// Requires the permission `CONTENT_READ`. Each request is recorded in the audit log. If the content of the
    /// message is no longer stored, the response is 404 with the reason `MESSAGE_CONTENT_GONE`.
    ///
    /// - `message_id`: The id of the message.
    /// - `index`: The place of the attachment in the list, from 0.
    pub fn download(&self, message_id: &str, index: &str) -> Call<Download> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}/attachments/{index}",
                path: vec![message_id.to_owned(), index.to_owned()],
                ..Request::default()
            },
            (),
        )
    }
}

/// The webhook deliveries.
#[derive(Debug, Clone)]
pub struct MessagesWebhookDeliveries {
    http: Arc<Http>,
}

impl MessagesWebhookDeliveries {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List a message's webhook deliveries.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The deliveries of the message's events to all webhook endpoints, the
    /// newest first, each with its attempts.
    ///
    /// - `message_id`: The id of the message.
    pub fn list(
        &self,
        message_id: &str,
    ) -> Call<Page<types::WebhookDelivery>, types::ListMessageWebhookDeliveriesParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/messages/{id}/webhook-deliveries",
                path: vec![message_id.to_owned()],
                ..Request::default()
            },
            types::ListMessageWebhookDeliveriesParams::default(),
        )
    }
}

/// Counts and rates of sent, delivered, opened, clicked, bounced and reported messages.
#[derive(Debug, Clone)]
pub struct Metrics {
    http: Arc<Http>,
}

impl Metrics {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Get metrics over time.
    ///
    /// Requires the permission `METRICS_READ`. Each hour that the period from `from` to `to` touches is counted
    /// whole, so the sums of the three metrics operations agree. The first and the last bucket contain only these
    /// hours. A response has at most 10,000 buckets. At most two of `tag`, `providerAccountId` and `templateId` can
    /// be given.
    pub fn get(&self) -> Call<types::MetricsSeries, types::GetMetricsParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/metrics", ..Request::default() },
            types::GetMetricsParams::default(),
        )
    }

    /// Get metrics by provider, domain, template, account, tag or recipient domain.
    ///
    /// Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. A message with two tags
    /// counts for both. One of `tag`, `providerAccountId` and `templateId` can be given beside `groupBy`, or a second
    /// one that is also the one to group by. `recipientDomain` goes with `providerAccountId` alone.
    pub fn get_breakdown(&self) -> Call<types::MetricsBreakdown, types::GetMetricsBreakdownParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/metrics/breakdown", ..Request::default() },
            types::GetMetricsBreakdownParams::default(),
        )
    }

    /// Get total metrics.
    ///
    /// Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. At most two of `tag`,
    /// `providerAccountId` and `templateId` can be given.
    pub fn get_summary(&self) -> Call<types::MetricsSummary, types::GetMetricsSummaryParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/metrics/summary", ..Request::default() },
            types::GetMetricsSummaryParams::default(),
        )
    }
}

/// Connected accounts at email providers, their domains and event webhooks.
#[derive(Debug, Clone)]
pub struct Providers {
    http: Arc<Http>,
}

impl Providers {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// The domains.
    #[must_use]
    pub fn domains(&self) -> ProvidersDomains {
        ProvidersDomains::new(&self.http)
    }

    /// The suppressions.
    #[must_use]
    pub fn suppressions(&self) -> ProvidersSuppressions {
        ProvidersSuppressions::new(&self.http)
    }

    /// List provider accounts.
    ///
    /// Requires the permission `PROVIDERS_READ`. The oldest account comes first. Without a matching routing rule, the
    /// first active account sends.
    pub fn list(&self) -> Call<Page<types::ProviderAccount>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/providers", ..Request::default() }, ())
    }

    /// Connect a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. The credentials are checked with the provider, encrypted and
    /// stored, and the domains of the account are imported. For SENDGRID, POSTMARK and MAILGUN the event webhook is
    /// registered with the provider; `eventWebhook` has the result.
    pub fn create(&self, request: &types::ConnectProviderRequest) -> Call<types::ConnectedProvider> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a provider account.
    ///
    /// Requires the permission `PROVIDERS_READ`.
    ///
    /// - `id`: The id of the provider account.
    pub fn get(&self, id: &str) -> Call<types::ProviderAccount> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/providers/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    ///
    /// - `id`: The id of the provider account.
    pub fn update(&self, id: &str, request: &types::UpdateProviderRequest) -> Call<types::ProviderAccount> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/providers/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Waiting messages of the account are sent by another active account.
    /// In routing rules the first fallback replaces the account; a rule without a fallback becomes inactive.
    ///
    /// - `id`: The id of the provider account.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/providers/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Check a provider account's credentials.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Checks the credentials with the provider, sets `isActive` to the
    /// result and updates the domains. If the provider gives no clear answer, the response is 503 and nothing
    /// changes.
    ///
    /// - `id`: The id of the provider account.
    pub fn validate(&self, id: &str) -> Call<types::ValidationResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers/{id}/validate",
                path: vec![id.to_owned()],
                repeatable: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Register the event webhook.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. For SENDGRID, POSTMARK and MAILGUN this registers the account's
    /// `webhookUrl` with the provider and stores the secrets that verify its events; a repeated request updates the
    /// same webhook. For SES nothing is called, and `steps` lists what to set up. If the provider refuses, for
    /// example because the API key lacks a permission, the response is 422 and lists the steps to take by hand.
    ///
    /// - `id`: The id of the provider account.
    pub fn register_event_webhook(&self, id: &str) -> Call<types::EventWebhookResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers/{id}/event-webhook",
                path: vec![id.to_owned()],
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// List the health of provider accounts.
    ///
    /// Requires the permission `PROVIDERS_READ`. The oldest account comes first.
    pub fn list_health(&self) -> Call<Page<types::ProviderHealth>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/providers/health", ..Request::default() }, ())
    }

    /// Get the health of a provider account.
    ///
    /// Requires the permission `PROVIDERS_READ`. Whether calls are made, what is wrong, how the calls of the last 15
    /// minutes ended, and what became of the account's mail in 15 minutes, a day and a week.
    ///
    /// - `id`: The id of the provider account.
    pub fn get_health(&self, id: &str) -> Call<types::ProviderHealthDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/providers/{id}/health",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get the health of a provider account by recipient domain.
    ///
    /// Requires the permission `PROVIDERS_READ`. What became of the account's mail to each recipient domain. The
    /// quarters of an hour that the window touches count whole, so `sent`, `delivered`, `bounced` and `complained`
    /// agree with the metrics of the same time. Tests are not counted.
    ///
    /// - `id`: The id of the provider account.
    pub fn get_health_by_domain(
        &self,
        id: &str,
    ) -> Call<types::ProviderHealthByDomain, types::GetProviderHealthByDomainParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/providers/{id}/health/domains",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            types::GetProviderHealthByDomainParams::default(),
        )
    }
}

/// The domains.
#[derive(Debug, Clone)]
pub struct ProvidersDomains {
    http: Arc<Http>,
}

impl ProvidersDomains {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List a provider account's domains.
    ///
    /// Requires the permission `PROVIDERS_READ`.
    ///
    /// - `provider_id`: The id of the provider account.
    pub fn list(&self, provider_id: &str) -> Call<Page<types::DomainVerification>> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/providers/{id}/domains",
                path: vec![provider_id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Add a domain to a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Adds the domain at the provider, if it is not there yet, and
    /// returns the DNS records to publish. If the credentials give no access to domains, the domain is only stored,
    /// with the state `unknown`. Unverified domains are checked every few minutes for an hour, then every hour.
    ///
    /// - `provider_id`: The id of the provider account.
    pub fn create(
        &self,
        provider_id: &str,
        request: &types::CreateProviderDomainRequest,
    ) -> Call<types::DomainVerification> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers/{id}/domains",
                path: vec![provider_id.to_owned()],
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Check a domain of a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Asks the provider to check DNS now, if its API allows that, and
    /// updates the state and the DNS records.
    ///
    /// - `provider_id`: The id of the provider account.
    /// - `domain_id`: The id of the domain.
    pub fn verify(&self, provider_id: &str, domain_id: &str) -> Call<types::DomainVerification> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers/{id}/domains/{domainId}/verify",
                path: vec![provider_id.to_owned(), domain_id.to_owned()],
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a domain from a provider account.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Removes the domain at the provider too, unless the credentials give
    /// no access to domains. The sending domain of a MAILGUN account cannot be removed.
    ///
    /// - `provider_id`: The id of the provider account.
    /// - `domain_id`: The id of the domain.
    pub fn delete(&self, provider_id: &str, domain_id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/providers/{id}/domains/{domainId}",
                path: vec![provider_id.to_owned(), domain_id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }
}

/// The suppressions.
#[derive(Debug, Clone)]
pub struct ProvidersSuppressions {
    http: Arc<Http>,
}

impl ProvidersSuppressions {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Import a provider account's suppressions.
    ///
    /// Requires the permission `PROVIDERS_WRITE`, and `SETTINGS_WRITE`. Suppresses the addresses in the lists that
    /// the provider keeps: bounces, complaints and unsubscribes from all messages, with the sources BOUNCE, COMPLAINT
    /// and UNSUBSCRIBE. One request reads up to 100 pages, and for 30 seconds; if `nextCursor` is not null, send it
    /// in the next request. If the provider fails, `details` of the error says what was imported until then, and
    /// where to continue. An import can be repeated. SMTP accounts have no lists.
    ///
    /// - `provider_id`: The id of the provider account.
    pub fn import(
        &self,
        provider_id: &str,
        request: Option<&types::ImportProviderSuppressionsRequest>,
    ) -> Call<types::ProviderImportResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/providers/{id}/suppressions/import",
                path: vec![provider_id.to_owned()],
                content: request.map(json),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The sender domains.
#[derive(Debug, Clone)]
pub struct SenderDomains {
    http: Arc<Http>,
}

impl SenderDomains {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List sender domains.
    ///
    /// Requires the permission `PROVIDERS_READ`. The domains of all provider accounts, each once, in the order of
    /// their names, with what the last check of DNS found.
    pub fn list(&self) -> Call<Page<types::SenderDomainSummary>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/sender-domains", ..Request::default() }, ())
    }

    /// Get a sender domain.
    ///
    /// Requires the permission `PROVIDERS_READ`. Compares what DNS had at the last check with the records that the
    /// accounts want now. The scheduler checks every domain (`WAYPOST_DNS_CHECK_INTERVAL`). Sending does not depend
    /// on it: there the provider's verdict decides.
    ///
    /// - `domain`: The domain name.
    pub fn get(&self, domain: &str) -> Call<types::SenderDomain> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/sender-domains/{domain}",
                path: vec![domain.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Check a sender domain.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. Asks DNS now, within 20 seconds; the providers are not asked. What
    /// could not be looked up is `unknown`.
    ///
    /// - `domain`: The domain name.
    pub fn check(&self, domain: &str) -> Call<types::SenderDomain> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/sender-domains/{domain}/check",
                path: vec![domain.to_owned()],
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// Rules that select the provider account of a message.
#[derive(Debug, Clone)]
pub struct RoutingRules {
    http: Arc<Http>,
}

impl RoutingRules {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List routing rules.
    ///
    /// Requires the permission `PROVIDERS_READ`. The rules are in the order in which they are checked.
    pub fn list(&self) -> Call<Page<types::RoutingRule>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/routing-rules", ..Request::default() }, ())
    }

    /// Create a routing rule.
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    pub fn create(&self, request: &types::CreateRoutingRuleRequest) -> Call<types::RoutingRule> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/routing-rules",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a routing rule.
    ///
    /// Requires the permission `PROVIDERS_READ`.
    ///
    /// - `id`: The id of the routing rule.
    pub fn get(&self, id: &str) -> Call<types::RoutingRule> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/routing-rules/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change a routing rule.
    ///
    /// Requires the permission `PROVIDERS_WRITE`. The change takes effect at once.
    ///
    /// - `id`: The id of the routing rule.
    pub fn update(&self, id: &str, request: &types::UpdateRoutingRuleRequest) -> Call<types::RoutingRule> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/routing-rules/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a routing rule.
    ///
    /// Requires the permission `PROVIDERS_WRITE`.
    ///
    /// - `id`: The id of the routing rule.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/routing-rules/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Resolve the route of a message.
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns the account that would send the message, and why. Nothing is
    /// sent.
    pub fn resolve(&self, request: &types::ResolveRouteRequest) -> Call<types::RouteResolution> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/routing-rules/resolve",
                content: Some(json(request)),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Simulate routing rules.
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns what the live messages of the last hour, day or week would
    /// have done under other rules: the recipients of each account, and those over caps. Nothing is sent and nothing
    /// is changed.
    pub fn simulate(&self, request: Option<&types::SimulateRoutingRequest>) -> Call<types::RoutingSimulation> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/routing-rules/simulate",
                content: request.map(json),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get the progress of a routing rule.
    ///
    /// Requires the permission `PROVIDERS_READ`. Returns what the targets of the rule used of their caps, and how far
    /// their ramps are.
    ///
    /// - `id`: The id of the routing rule.
    pub fn get_progress(&self, id: &str) -> Call<types::RoutingProgress> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/routing-rules/{id}/progress",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// API keys, their permissions and their rotation.
#[derive(Debug, Clone)]
pub struct ApiKeys {
    http: Arc<Http>,
}

impl ApiKeys {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List API keys.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest key comes first. Revoked keys are included.
    pub fn list(&self) -> Call<Page<types::ApiKey>, types::ListApiKeysParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/api-keys", ..Request::default() },
            types::ListApiKeysParams::default(),
        )
    }

    /// Create an API key.
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the new key. Returns 409 if the calling key
    /// is a test key and the new one is not.
    pub fn create(&self, request: &types::CreateApiKeyRequest) -> Call<types::ApiKeyWithSecret> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/api-keys",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get an API key.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    ///
    /// - `id`: The id of the API key.
    pub fn get(&self, id: &str) -> Call<types::ApiKey> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/api-keys/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change an API key.
    ///
    /// Requires the permission `SETTINGS_WRITE`, every permission of the key, and every permission that the change
    /// adds. A key can change itself. The change takes effect within five seconds.
    ///
    /// - `id`: The id of the API key.
    pub fn update(&self, id: &str, request: &types::UpdateApiKeyRequest) -> Call<types::ApiKey> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/api-keys/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Revoke an API key.
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the key. The key stops working within five
    /// seconds. Its record remains, with `revokedAt`.
    ///
    /// - `id`: The id of the API key.
    pub fn revoke(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/api-keys/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Rotate an API key.
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the key. The key gets a new secret. The old
    /// secret keeps working until the grace period ends.
    ///
    /// - `id`: The id of the API key.
    pub fn rotate(&self, id: &str, request: Option<&types::RotateApiKeyRequest>) -> Call<types::ApiKeyWithSecret> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/api-keys/{id}/rotate",
                path: vec![id.to_owned()],
                content: request.map(json),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The settings of the organization.
#[derive(Debug, Clone)]
pub struct Settings {
    http: Arc<Http>,
}

impl Settings {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Get the settings.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    pub fn get(&self) -> Call<types::Settings> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/settings", data: true, ..Request::default() },
            (),
        )
    }

    /// Change the settings.
    ///
    /// Requires the permission `SETTINGS_WRITE`. `unverifiedDomains`, `trackOpens` and `trackClicks` take effect at
    /// once, `rateLimits` within a few seconds, and `retentionDays` within minutes. Deleted messages cannot be
    /// restored.
    pub fn update(&self, request: &types::UpdateSettingsRequest) -> Call<types::Settings> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/settings",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The audit logs.
#[derive(Debug, Clone)]
pub struct AuditLogs {
    http: Arc<Http>,
}

impl AuditLogs {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List the audit log.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest entry comes first. Every change through the API has an
    /// entry.
    pub fn list(&self) -> Call<Page<types::AuditLogEntry>, types::ListAuditLogsParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/audit-logs", ..Request::default() },
            types::ListAuditLogsParams::default(),
        )
    }
}

/// Reusable message bodies with variables, and their versions.
#[derive(Debug, Clone)]
pub struct Templates {
    http: Arc<Http>,
}

impl Templates {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// The versions.
    #[must_use]
    pub fn versions(&self) -> TemplatesVersions {
        TemplatesVersions::new(&self.http)
    }

    /// List templates.
    ///
    /// Requires the permission `TEMPLATES_READ`. The newest template comes first.
    pub fn list(&self) -> Call<Page<types::Template>, types::ListTemplatesParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/templates", ..Request::default() },
            types::ListTemplatesParams::default(),
        )
    }

    /// Create a template.
    ///
    /// Requires the permission `TEMPLATES_WRITE`. The template can be used once it has a version.
    pub fn create(&self, request: &types::CreateTemplateRequest) -> Call<types::Template> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a template.
    ///
    /// Requires the permission `TEMPLATES_READ`. `currentVersion` has the content.
    ///
    /// - `id`: The id of the template.
    pub fn get(&self, id: &str) -> Call<types::TemplateDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/templates/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change a template.
    ///
    /// Requires the permission `TEMPLATES_WRITE`. To change the content, add a version.
    ///
    /// - `id`: The id of the template.
    pub fn update(&self, id: &str, request: &types::UpdateTemplateRequest) -> Call<types::Template> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/templates/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a template.
    ///
    /// Requires the permission `TEMPLATES_WRITE`. Removes all versions of the template too. Messages that were
    /// already accepted are sent as they are. A layout or partial that a current version uses is not removed (409).
    ///
    /// - `id`: The id of the template.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/templates/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Preview a template.
    ///
    /// Requires the permission `TEMPLATES_READ`. Renders a version; nothing is sent. Missing variables render as
    /// empty text.
    ///
    /// - `id`: The id of the template.
    pub fn preview(&self, id: &str, request: Option<&types::PreviewTemplateRequest>) -> Call<types::TemplatePreview> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates/{id}/preview",
                path: vec![id.to_owned()],
                content: request.map(json),
                repeatable: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Roll back to a template version.
    ///
    /// Requires the permission `TEMPLATES_WRITE`. Makes this version the current one of its language. It is composed
    /// with its layout and partials as they are now. No version is added or removed.
    ///
    /// - `id`: The id of the template.
    /// - `version_id`: The id of the template version.
    pub fn rollback(&self, id: &str, version_id: &str) -> Call<types::RolledBack> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates/{id}/rollback/{versionId}",
                path: vec![id.to_owned(), version_id.to_owned()],
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// List what uses a layout or partial.
    ///
    /// Requires the permission `TEMPLATES_READ`. Lists up to 1,000 current versions that the layout or partial is in,
    /// also those in which another partial brought it. A template that is neither is in none.
    ///
    /// - `id`: The id of the layout or partial.
    pub fn list_uses(&self, id: &str) -> Call<Page<types::TemplateUse>> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/templates/{id}/used-by",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Preview a draft of a template version.
    ///
    /// Requires the permission `TEMPLATES_READ`. Checks and renders the content as if it were a new version of the
    /// template, with the layout and the partials as they are now. The content of a layout or partial is rendered as
    /// that of a template. Nothing is stored or sent. If a source is wrong, `details.issues` names its line.
    ///
    /// - `id`: The id of the template.
    pub fn preview_draft(
        &self,
        id: &str,
        request: &types::PreviewTemplateDraftRequest,
    ) -> Call<types::TemplatePreview> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates/{id}/preview-draft",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                repeatable: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Send a template to try it out.
    ///
    /// Requires the permission `SEND`, and `TEMPLATES_READ`. Sends a real message, by the same rules as `POST
    /// /v1/send`. Its subject begins with `[Test] `, its tag is `template-test`, and `{{unsubscribeUrl}}` is an
    /// example, unless `variables` defines it.
    ///
    /// - `id`: The id of the template.
    pub fn send_test(&self, id: &str, request: &types::SendTemplateTestRequest) -> Call<types::SendMessageResponse> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates/{id}/test-send",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                idempotent: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The versions.
#[derive(Debug, Clone)]
pub struct TemplatesVersions {
    http: Arc<Http>,
}

impl TemplatesVersions {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Add a version to a template.
    ///
    /// Requires the permission `TEMPLATES_WRITE`. The version gets the next number and becomes the current one of its
    /// language. Its sources are checked now. A version of a layout or partial is put into the current versions that
    /// use it, at once; if one of them cannot be composed with it, it is refused (422).
    ///
    /// - `template_id`: The id of the template.
    pub fn create(
        &self,
        template_id: &str,
        request: &types::CreateTemplateVersionRequest,
    ) -> Call<types::TemplateVersion> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/templates/{id}/versions",
                path: vec![template_id.to_owned()],
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// List a template's versions.
    ///
    /// Requires the permission `TEMPLATES_READ`. The newest version comes first. The content is not included.
    ///
    /// - `template_id`: The id of the template.
    pub fn list(&self, template_id: &str) -> Call<types::TemplateVersionList> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/templates/{id}/versions",
                path: vec![template_id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Get a template version.
    ///
    /// Requires the permission `TEMPLATES_READ`.
    ///
    /// - `template_id`: The id of the template.
    /// - `version_id`: The id of the template version.
    pub fn get(&self, template_id: &str, version_id: &str) -> Call<types::TemplateVersion> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/templates/{id}/versions/{versionId}",
                path: vec![template_id.to_owned(), version_id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// Kinds of messages that recipients can unsubscribe from.
#[derive(Debug, Clone)]
pub struct UnsubscribeGroups {
    http: Arc<Http>,
}

impl UnsubscribeGroups {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List unsubscribe groups.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The oldest group comes first.
    pub fn list(&self) -> Call<Page<types::UnsubscribeGroup>> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/unsubscribe-groups", ..Request::default() },
            (),
        )
    }

    /// Create an unsubscribe group.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    pub fn create(&self, request: &types::CreateUnsubscribeGroupRequest) -> Call<types::UnsubscribeGroup> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/unsubscribe-groups",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get an unsubscribe group.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    ///
    /// - `id`: The id of the unsubscribe group.
    pub fn get(&self, id: &str) -> Call<types::UnsubscribeGroup> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/unsubscribe-groups/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change an unsubscribe group.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    ///
    /// - `id`: The id of the unsubscribe group.
    pub fn update(&self, id: &str, request: &types::UpdateUnsubscribeGroupRequest) -> Call<types::UnsubscribeGroup> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/unsubscribe-groups/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove an unsubscribe group.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The suppressions of the group are deleted too.
    ///
    /// - `id`: The id of the unsubscribe group.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/unsubscribe-groups/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Preview the page of an unsubscribe link.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The page that a recipient sees after unsubscribing from the group,
    /// with the organization's name and colour and a made-up sender and address. Nothing is changed.
    ///
    /// - `id`: The id of the unsubscribe group.
    pub fn preview_page(&self, id: &str) -> Call<types::PagePreview, types::PreviewUnsubscribePageParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/unsubscribe-groups/{id}/page-preview",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            types::PreviewUnsubscribePageParams::default(),
        )
    }
}

/// Addresses that receive no messages.
#[derive(Debug, Clone)]
pub struct Suppressions {
    http: Arc<Http>,
}

impl Suppressions {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List suppressions.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest suppression comes first.
    pub fn list(&self) -> Call<Page<types::Suppression>, types::ListSuppressionsParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/suppressions", ..Request::default() },
            types::ListSuppressionsParams::default(),
        )
    }

    /// Suppress an address.
    ///
    /// Requires the permission `SETTINGS_WRITE`. From now on nothing is sent to the address, including messages that
    /// were already accepted.
    pub fn create(&self, request: &types::CreateSuppressionRequest) -> Call<types::Suppression> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/suppressions",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Import suppressions.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is JSON,
    /// or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns: `email`, or
    /// `emailHash` as in an export; optionally `source` (one of the sources; the default is IMPORT) and `createdAt`
    /// (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source. Other columns are
    /// ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.
    pub fn import(
        &self,
        request: &types::ImportSuppressionsRequest,
    ) -> Call<types::ImportResult, types::ImportSuppressionsParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/suppressions/import",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            types::ImportSuppressionsParams::default(),
        )
    }

    /// Import suppressions.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is JSON,
    /// or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns: `email`, or
    /// `emailHash` as in an export; optionally `source` (one of the sources; the default is IMPORT) and `createdAt`
    /// (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source. Other columns are
    /// ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.
    ///
    /// This takes a text of the type `text/csv`.
    pub fn import_csv(&self, text: impl Into<String>) -> Call<types::ImportResult, types::ImportSuppressionsParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/suppressions/import",
                content: Some(("text/csv", text.into().into_bytes())),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            types::ImportSuppressionsParams::default(),
        )
    }

    /// Remove the suppressions of many addresses.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Messages can be sent to the addresses again, unless they are
    /// suppressed in the group of a message. Without `unsubscribeGroupId` the suppressions for all messages are
    /// removed.
    pub fn remove(&self, request: &types::RemoveSuppressionsRequest) -> Call<types::RemovalResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/suppressions/remove",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a suppression.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Messages can be sent to the address again.
    ///
    /// - `id`: The id of the suppression.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/suppressions/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Export suppressions.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Addresses are stored as hashes, so the export holds `emailHash` and
    /// no address. A CSV file with the columns `emailHash`, `source` and `createdAt` can be imported again.
    /// Suppressions that are added while the export runs are not in it.
    pub fn export(&self) -> Call<Download, types::ExportSuppressionsParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/suppressions/export", ..Request::default() },
            types::ExportSuppressionsParams::default(),
        )
    }
}

/// Erase what is stored of a person.
#[derive(Debug, Clone)]
pub struct Erasures {
    http: Arc<Http>,
}

impl Erasures {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Erase a person.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Erases the address and the details of events of all messages to the
    /// person, for good. A message to this person alone, and a message whose recipients see each other, also loses
    /// its subject, bodies, headers, metadata and references to attachments; any other message loses them with its
    /// last recipient. Messages that are still being sent are left as they are and counted in `pending`. Suppressions
    /// of the address stay: only its hash is stored. The audit log records the hash, too. The request can be
    /// repeated.
    pub fn erase_person(&self, request: &types::ErasePersonRequest) -> Call<types::ErasureResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/erasures",
                content: Some(json(request)),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// URLs that receive events, their deliveries and secrets.
#[derive(Debug, Clone)]
pub struct WebhookEndpoints {
    http: Arc<Http>,
}

impl WebhookEndpoints {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// The deliveries.
    #[must_use]
    pub fn deliveries(&self) -> WebhookEndpointsDeliveries {
        WebhookEndpointsDeliveries::new(&self.http)
    }

    /// List webhook endpoints.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The oldest endpoint comes first.
    pub fn list(&self) -> Call<Page<types::WebhookEndpoint>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/webhook-endpoints", ..Request::default() }, ())
    }

    /// Create a webhook endpoint.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The URL is checked first: with a HEAD request, and with an empty
    /// POST if the connection is closed on HEAD. Its host must have a public address. Only this response contains the
    /// signing secret.
    pub fn create(&self, request: &types::CreateWebhookEndpointRequest) -> Call<types::WebhookEndpointWithSecret> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/webhook-endpoints",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a webhook endpoint.
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn get(&self, id: &str) -> Call<types::WebhookEndpoint> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/webhook-endpoints/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change a webhook endpoint.
    ///
    /// Requires the permission `SETTINGS_WRITE`. A new URL is checked first, as at creation. Deliveries that wait for
    /// an inactive endpoint are made when it becomes active again.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn update(&self, id: &str, request: &types::UpdateWebhookEndpointRequest) -> Call<types::WebhookEndpoint> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/webhook-endpoints/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a webhook endpoint.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Waiting deliveries of the endpoint are dropped.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/webhook-endpoints/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Test a webhook endpoint.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Posts an example event, of the first type that the endpoint
    /// receives, signed like a real one and with `data.metadata.test` set to true. An inactive endpoint can be tested
    /// too. A failed test is not retried.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn test(&self, id: &str) -> Call<types::WebhookTestResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/webhook-endpoints/{id}/test",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Rotate a webhook endpoint's secret.
    ///
    /// Requires the permission `SETTINGS_WRITE`. Only this response contains the new secret. Until the grace period
    /// ends, both secrets sign. `webhook-signature` contains both signatures. `X-Waypost-Signature` is made with the
    /// new secret in the first attempt of a delivery, with the old secret in the second, and so on in turn;
    /// `X-Waypost-Signature-Other` is made with the other secret.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn rotate_secret(
        &self,
        id: &str,
        request: Option<&types::RotateWebhookSecretRequest>,
    ) -> Call<types::WebhookEndpointWithSecret> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/webhook-endpoints/{id}/rotate-secret",
                path: vec![id.to_owned()],
                content: request.map(json),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Replay the deliveries of a period.
    ///
    /// Requires the permission `SETTINGS_WRITE`. All deliveries created in the period are due again at once. With
    /// `"status": "FAILED"`, successful deliveries are not repeated.
    ///
    /// - `id`: The id of the webhook endpoint.
    pub fn replay(&self, id: &str, request: &types::ReplayWebhooksRequest) -> Call<types::ReplayResult> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/webhook-endpoints/{id}/replay",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The deliveries.
#[derive(Debug, Clone)]
pub struct WebhookEndpointsDeliveries {
    http: Arc<Http>,
}

impl WebhookEndpointsDeliveries {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List a webhook endpoint's deliveries.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest delivery comes first, each with its attempts.
    ///
    /// - `webhook_endpoint_id`: The id of the webhook endpoint.
    pub fn list(
        &self,
        webhook_endpoint_id: &str,
    ) -> Call<Page<types::WebhookDelivery>, types::ListWebhookDeliveriesParams> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/webhook-endpoints/{id}/deliveries",
                path: vec![webhook_endpoint_id.to_owned()],
                ..Request::default()
            },
            types::ListWebhookDeliveriesParams::default(),
        )
    }

    /// Get a webhook delivery.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The delivery has its attempts and the body that is posted.
    ///
    /// - `webhook_endpoint_id`: The id of the webhook endpoint.
    /// - `delivery_id`: The id of the webhook delivery.
    pub fn get(&self, webhook_endpoint_id: &str, delivery_id: &str) -> Call<types::WebhookDeliveryDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}",
                path: vec![webhook_endpoint_id.to_owned(), delivery_id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Replay a webhook delivery.
    ///
    /// Requires the permission `SETTINGS_WRITE`. The delivery is due again at once, with all attempts, even if it
    /// succeeded before. The endpoint gets the same `webhook-id`.
    ///
    /// - `webhook_endpoint_id`: The id of the webhook endpoint.
    /// - `delivery_id`: The id of the webhook delivery.
    pub fn replay(&self, webhook_endpoint_id: &str, delivery_id: &str) -> Call<types::WebhookDelivery> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay",
                path: vec![webhook_endpoint_id.to_owned(), delivery_id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// Sign in and out, and switch the organization.
#[derive(Debug, Clone)]
pub struct Session {
    http: Arc<Http>,
}

impl Session {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List the ways to sign in.
    ///
    /// Requires no API key and no session.
    pub fn list_sign_in_methods(&self) -> Call<types::SignInMethods> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/session/methods", data: true, ..Request::default() },
            (),
        )
    }

    /// Sign in.
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Sets the cookie of a new session, in
    /// the organization that the user was last in. Ten wrong passwords or codes within 15 minutes lock the account
    /// for the rest of that time.
    pub fn create(&self, request: &types::CreateSessionRequest) -> Call<types::Session> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/session",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get the session.
    ///
    /// Requires a session.
    pub fn get(&self) -> Call<types::Session> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/session", data: true, ..Request::default() },
            (),
        )
    }

    /// Switch the organization.
    ///
    /// Requires a session. Sets the cookie of a new session in the other organization; the old one ends.
    pub fn update(&self, request: &types::UpdateSessionRequest) -> Call<types::Session> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/session",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Sign out.
    ///
    /// Requires a session. Ends the session, and removes its cookie.
    pub fn delete(&self) -> Call<types::Success, types::DeleteSessionParams> {
        Call::new(
            &self.http,
            Request { method: Method::DELETE, route: "/v1/session", ..Request::default() },
            types::DeleteSessionParams::default(),
        )
    }
}

/// The signed-in user: name, password and second factor.
#[derive(Debug, Clone)]
pub struct User {
    http: Arc<Http>,
}

impl User {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Change the user.
    ///
    /// Requires a session. A new password ends the user's other sessions.
    pub fn update(&self, request: &types::UpdateUserRequest) -> Call<types::User> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/user",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Begin a second factor.
    ///
    /// Requires a session. Makes the secret of an authenticator (TOTP). It has no effect until it is confirmed; a
    /// secret that was not confirmed is replaced.
    pub fn start_totp(&self, request: &types::StartTotpRequest) -> Call<types::TotpEnrolment> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/user/totp",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Confirm a second factor.
    ///
    /// Requires a session. From now on a sign-in with the password requires a code. Only this response contains the
    /// recovery codes.
    pub fn confirm_totp(&self, request: &types::ConfirmTotpRequest) -> Call<types::RecoveryCodes> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/user/totp/confirm",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove the second factor.
    ///
    /// Requires a session.
    pub fn disable_totp(&self, request: &types::DisableTotpRequest) -> Call<types::User> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/user/totp/disable",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// The users of the organization and their roles.
#[derive(Debug, Clone)]
pub struct Members {
    http: Arc<Http>,
}

impl Members {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List members.
    ///
    /// Requires the permission `MEMBERS_WRITE`. The newest member comes first.
    pub fn list(&self) -> Call<Page<types::Member>, types::ListMembersParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/members", ..Request::default() },
            types::ListMembersParams::default(),
        )
    }

    /// Add a member.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. Makes somebody a member who is a
    /// user of this installation already; others are invited.
    pub fn create(&self, request: &types::CreateMemberRequest) -> Call<types::Member> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/members",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get a member.
    ///
    /// Requires the permission `MEMBERS_WRITE`.
    ///
    /// - `id`: The id of the member.
    pub fn get(&self, id: &str) -> Call<types::Member> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/members/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change the role of a member.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The last owner
    /// stays one. The change takes effect within five seconds.
    ///
    /// - `id`: The id of the member.
    pub fn update(&self, id: &str, request: &types::UpdateMemberRequest) -> Call<types::Member> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/members/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Remove a member.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the member's role. The last owner cannot be
    /// removed. The sessions of the user in the organization end.
    ///
    /// - `id`: The id of the member.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/members/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }
}

/// Links by which people become members of the organization.
#[derive(Debug, Clone)]
pub struct Invitations {
    http: Arc<Http>,
}

impl Invitations {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List invitations.
    ///
    /// Requires the permission `MEMBERS_WRITE`. The newest invitation comes first. Those that are accepted or expired
    /// are not listed.
    pub fn list(&self) -> Call<Page<types::Invitation>, types::ListInvitationsParams> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/invitations", ..Request::default() },
            types::ListInvitationsParams::default(),
        )
    }

    /// Invite somebody.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. The link is sent to the address if
    /// the operator has set a sender for invitations and the organization can send from it.
    pub fn create(&self, request: &types::CreateInvitationRequest) -> Call<types::InvitationWithUrl> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/invitations",
                content: Some(json(request)),
                idempotent: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Get an invitation.
    ///
    /// Requires the permission `MEMBERS_WRITE`.
    ///
    /// - `id`: The id of the invitation.
    pub fn get(&self, id: &str) -> Call<types::Invitation> {
        Call::new(
            &self.http,
            Request {
                method: Method::GET,
                route: "/v1/invitations/{id}",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Change the role of an invitation.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The link stays
    /// the same.
    ///
    /// - `id`: The id of the invitation.
    pub fn update(&self, id: &str, request: &types::UpdateInvitationRequest) -> Call<types::Invitation> {
        Call::new(
            &self.http,
            Request {
                method: Method::PATCH,
                route: "/v1/invitations/{id}",
                path: vec![id.to_owned()],
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Withdraw an invitation.
    ///
    /// Requires the permission `MEMBERS_WRITE` and every permission of the role. The link stops working.
    ///
    /// - `id`: The id of the invitation.
    pub fn delete(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/invitations/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }

    /// Look up an invitation.
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
    /// used or expired.
    pub fn look_up(&self, request: &types::LookUpInvitationRequest) -> Call<types::InvitationDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/invitations/look-up",
                content: Some(json(request)),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Accept an invitation.
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Makes the person a member, as a new
    /// user if there is none with the address, and sets the cookie of a new session.
    pub fn accept(&self, request: &types::AcceptInvitationRequest) -> Call<types::Session> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/invitations/accept",
                content: Some(json(request)),
                data: true,
                ..Request::default()
            },
            (),
        )
    }
}

/// Links by which users set a new password.
#[derive(Debug, Clone)]
pub struct PasswordResets {
    http: Arc<Http>,
}

impl PasswordResets {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// Look up a link that sets a password.
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
    /// used or expired.
    pub fn look_up(&self, request: &types::LookUpPasswordResetRequest) -> Call<types::PasswordResetDetail> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/password-resets/look-up",
                content: Some(json(request)),
                repeatable: true,
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Set a password by a link.
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Ends all sessions of the user, who
    /// then signs in with the new password. The second factor stays.
    pub fn accept(&self, request: &types::AcceptPasswordResetRequest) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/password-resets/accept",
                content: Some(json(request)),
                ..Request::default()
            },
            (),
        )
    }
}

/// What belongs to the installation: tasks, workers, queues and dead jobs.
#[derive(Debug, Clone)]
pub struct Operator {
    http: Arc<Http>,
}

impl Operator {
    pub(crate) fn new(http: &Arc<Http>) -> Self {
        Self { http: Arc::clone(http) }
    }

    /// List the scheduler's tasks.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Each task is listed with its last
    /// run.
    pub fn list_tasks(&self) -> Call<Page<types::SchedulerTask>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/operator/tasks", ..Request::default() }, ())
    }

    /// List the workers.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Each worker is listed with its
    /// lease and the number of its chunks.
    pub fn list_workers(&self) -> Call<Page<types::Worker>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/operator/workers", ..Request::default() }, ())
    }

    /// List the queues.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Returns 503 if Redis is away.
    pub fn list_queues(&self) -> Call<Page<types::JobQueue>> {
        Call::new(&self.http, Request { method: Method::GET, route: "/v1/operator/queues", ..Request::default() }, ())
    }

    /// List the dead jobs.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Lists up to 1,000 chunks of
    /// messages that no worker takes any more.
    pub fn list_dead_jobs(&self) -> Call<Page<types::DeadJob>> {
        Call::new(
            &self.http,
            Request { method: Method::GET, route: "/v1/operator/dead-jobs", ..Request::default() },
            (),
        )
    }

    /// Retry the dead jobs of a message.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. The jobs are due again, and lost
    /// workers are counted from 0.
    ///
    /// - `id`: The id of the message.
    pub fn retry_dead_jobs(&self, id: &str) -> Call<types::RetriedDeadJobs> {
        Call::new(
            &self.http,
            Request {
                method: Method::POST,
                route: "/v1/operator/dead-jobs/{id}/retry",
                path: vec![id.to_owned()],
                data: true,
                ..Request::default()
            },
            (),
        )
    }

    /// Drop the dead jobs of a message.
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Recipients that the message was not
    /// sent to become FAILED.
    ///
    /// - `id`: The id of the message.
    pub fn delete_dead_jobs(&self, id: &str) -> Call<types::Success> {
        Call::new(
            &self.http,
            Request {
                method: Method::DELETE,
                route: "/v1/operator/dead-jobs/{id}",
                path: vec![id.to_owned()],
                ..Request::default()
            },
            (),
        )
    }
}

fn json(body: &impl Serialize) -> (&'static str, Vec<u8>) {
    ("application/json", serde_json::to_vec(body).expect("requests are made of what JSON has"))
}
