//! Why something that is well formed was not done, as a word for programs: the
//! `details.reason` of every 409 and 422. The list is closed; the document shows it as
//! `ErrorReason`.

use serde::Serialize;

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident => $word:literal,)+) => {
        /// Why something was not done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Reason {
            $($(#[$doc])+ $name,)+
        }

        impl Reason {
            /// All reasons.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word on the wire.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

reasons! {
    /// 422: the webhook's host has no public address.
    AddressNotPublic => "ADDRESS_NOT_PUBLIC",
    /// 409: the key was revoked or has expired.
    ApiKeyEnded => "API_KEY_ENDED",
    /// 409: another request changes the domain.
    DomainBusy => "DOMAIN_BUSY",
    /// 409: the account has the domain.
    DomainExists => "DOMAIN_EXISTS",
    /// 422: the sender's domain is not verified on the account.
    DomainNotVerified => "DOMAIN_NOT_VERIFIED",
    /// 409: another request registers the event webhook.
    EventWebhookBusy => "EVENT_WEBHOOK_BUSY",
    /// 409: an earlier request with the key still runs.
    IdempotencyInProgress => "IDEMPOTENCY_IN_PROGRESS",
    /// 409: the key was used for another request.
    IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
    /// 422: the provider refused the credentials.
    InvalidCredentials => "INVALID_CREDENTIALS",
    /// 409: the message's content is not kept any more.
    MessageContentGone => "MESSAGE_CONTENT_GONE",
    /// 409: no recipient of the message is FAILED.
    MessageNotFailed => "MESSAGE_NOT_FAILED",
    /// 422: there is no account to send through.
    NoActiveProvider => "NO_ACTIVE_PROVIDER",
    /// 422: the provider refused what it was asked to do.
    ProviderRefused => "PROVIDER_REFUSED",
    /// 422: an earlier request with the key was refused.
    RefusedBefore => "REFUSED_BEFORE",
    /// 409: the address is suppressed there.
    SuppressionExists => "SUPPRESSION_EXISTS",
    /// 422: there is no template with that id.
    TemplateNotFound => "TEMPLATE_NOT_FOUND",
    /// 422: the template cannot be rendered with these variables.
    TemplateNotRenderable => "TEMPLATE_NOT_RENDERABLE",
    /// 422: the template has no version.
    TemplateWithoutVersion => "TEMPLATE_WITHOUT_VERSION",
    /// 422: the account has as many domains as it may.
    TooManyDomains => "TOO_MANY_DOMAINS",
    /// 422: the organization has as many routing rules as it may.
    TooManyRoutingRules => "TOO_MANY_ROUTING_RULES",
    /// 422: the organization has as many webhook endpoints as it may.
    TooManyWebhookEndpoints => "TOO_MANY_WEBHOOK_ENDPOINTS",
    /// 422: an id of the request names nothing.
    UnknownId => "UNKNOWN_ID",
    /// 422: there is no unsubscribe group with that id.
    UnknownUnsubscribeGroup => "UNKNOWN_UNSUBSCRIBE_GROUP",
    /// 422: nobody answers at the webhook's URL.
    UrlUnreachable => "URL_UNREACHABLE",
    /// 409: the webhook endpoint is switched off.
    WebhookEndpointInactive => "WEBHOOK_ENDPOINT_INACTIVE",
}

impl Reason {
    /// Seconds after which the same request may succeed, where it is only too early.
    pub(crate) fn retry_after_seconds(self) -> Option<u32> {
        let is_passing = [
            Self::DomainBusy,
            Self::EventWebhookBusy,
            Self::IdempotencyInProgress,
        ];
        is_passing.contains(&self).then_some(1)
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
