//! The closed list of reasons: `details.reason` of every 409 and 422 and of some 401, 403 and
//! 404, for programs. The document lists them as `ErrorReason`.

use serde::Serialize;

macro_rules! reasons {
    ($($name:ident => $word:literal: $meaning:literal,)+) => {
        /// Why a request was not done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Reason {
            $(#[doc = $meaning] $name,)+
        }

        impl Reason {
            /// All reasons.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in a response.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The meaning, with its status, for the document.
            pub(crate) fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)+
                }
            }
        }
    };
}

reasons! {
    AccountOutsideRegion => "ACCOUNT_OUTSIDE_REGION": "422: the routing rule names an account that is not in its region; `details.issues` says which.",
    AddressNotPublic => "ADDRESS_NOT_PUBLIC": "422: the host of the webhook URL has no public address.",
    ApiKeyEnded => "API_KEY_ENDED": "409: the API key is revoked or expired.",
    AttachmentNotFetched => "ATTACHMENT_NOT_FETCHED": "422: the URL of an attachment gave no file; `details.issues` says which.",
    CrossOrigin => "CROSS_ORIGIN": "403: the request with a session has not the header `X-Waypost-Csrf: 1`, or not the `Origin` of this service.",
    DomainBusy => "DOMAIN_BUSY": "409: another request is changing the domain.",
    DomainExists => "DOMAIN_EXISTS": "409: the account already has the domain.",
    DomainNotVerified => "DOMAIN_NOT_VERIFIED": "422: the sender's domain is not verified on the selected account.",
    EventWebhookBusy => "EVENT_WEBHOOK_BUSY": "409: another request is registering the event webhook.",
    IdempotencyInProgress => "IDEMPOTENCY_IN_PROGRESS": "409: an earlier request with the idempotency key still runs.",
    IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED": "409: the idempotency key was used for another request.",
    InvalidCredentials => "INVALID_CREDENTIALS": "422: the provider rejected the credentials.",
    InvitationExists => "INVITATION_EXISTS": "409: the address has an invitation.",
    LastOwner => "LAST_OWNER": "409: the organization has no other owner.",
    MemberExists => "MEMBER_EXISTS": "409: the user is a member of the organization.",
    MessageContentGone => "MESSAGE_CONTENT_GONE": "404, 409: the content of the message is no longer stored.",
    MessageContentWithheld => "MESSAGE_CONTENT_WITHHELD": "404: the message invites somebody; its content is not shown.",
    MessageFinished => "MESSAGE_FINISHED": "409: all recipients of the message have the status FAILED.",
    MessageNotFailed => "MESSAGE_NOT_FAILED": "409: no recipient of the message has the status FAILED.",
    MessageNotScheduled => "MESSAGE_NOT_SCHEDULED": "409: the message was not scheduled.",
    MessageSending => "MESSAGE_SENDING": "409: the message is being sent.",
    MessageSent => "MESSAGE_SENT": "409: the message was sent.",
    NoActiveProvider => "NO_ACTIVE_PROVIDER": "422: the organization has no active provider account, or none in the region of the routing rule that matches.",
    NotAMember => "NOT_A_MEMBER": "403: the user is no member of the organization, or of any.",
    PartialExists => "PARTIAL_EXISTS": "409: a partial of this name exists.",
    PasswordNotSet => "PASSWORD_NOT_SET": "422: the user has no password and signs in at the OpenID Connect provider.",
    ProviderAccountNotActive => "PROVIDER_ACCOUNT_NOT_ACTIVE": "422: the account that the message names does not exist or is not active.",
    ProviderCannotCarry => "PROVIDER_CANNOT_CARRY": "422: the selected account cannot carry a part of the message: its size, a header, an attachment.",
    ProviderRefused => "PROVIDER_REFUSED": "422: the provider refused the request.",
    RefusedBefore => "REFUSED_BEFORE": "422: an earlier request with the idempotency key was refused.",
    SecondFactorEnabled => "SECOND_FACTOR_ENABLED": "409: the user has a second factor.",
    SecondFactorNotStarted => "SECOND_FACTOR_NOT_STARTED": "409: the user has no second factor, or none to confirm.",
    SecondFactorRequired => "SECOND_FACTOR_REQUIRED": "401: the password is right; the code of the user's second factor is missing.",
    SecondFactorWrong => "SECOND_FACTOR_WRONG": "401, 422: the code of the second factor is wrong or was used.",
    SessionRequired => "SESSION_REQUIRED": "403: the operation requires a session; the caller is an API key.",
    SuppressionExists => "SUPPRESSION_EXISTS": "409: the address is already suppressed.",
    SuppressionListsNotOffered => "SUPPRESSION_LISTS_NOT_OFFERED": "422: the provider of the account has no suppression lists that can be read.",
    TemplateInUse => "TEMPLATE_IN_USE": "409: current versions of templates use the layout or partial.",
    TemplateIsPart => "TEMPLATE_IS_PART": "422: the template is a layout or partial, which is not rendered itself.",
    TemplateNotComposable => "TEMPLATE_NOT_COMPOSABLE": "422: a template cannot be composed with its layout and partials as they would be; the message names it.",
    TemplateNotFound => "TEMPLATE_NOT_FOUND": "422: the template does not exist.",
    TemplateNotRenderable => "TEMPLATE_NOT_RENDERABLE": "422: the template cannot be rendered with these variables.",
    TemplateWithoutVersion => "TEMPLATE_WITHOUT_VERSION": "422: the template has no version.",
    TestKey => "TEST_KEY": "409: the caller's API key is a test key, which does this to no live message or API key.",
    TooManyDomains => "TOO_MANY_DOMAINS": "422: the account has the maximum number of domains.",
    TooManyRoutingRules => "TOO_MANY_ROUTING_RULES": "422: the organization has the maximum number of routing rules.",
    TooManyTemplateUses => "TOO_MANY_TEMPLATE_USES": "422: more templates use the layout or partial than are composed at once.",
    TooManyWebhookEndpoints => "TOO_MANY_WEBHOOK_ENDPOINTS": "422: the organization has the maximum number of webhook endpoints.",
    UnknownId => "UNKNOWN_ID": "422: the request names a record that does not exist; `details.issues` says which.",
    UnknownUnsubscribeGroup => "UNKNOWN_UNSUBSCRIBE_GROUP": "422: the unsubscribe group does not exist.",
    UrlUnreachable => "URL_UNREACHABLE": "422: no server responds at the webhook URL.",
    UserNotFound => "USER_NOT_FOUND": "422: there is no user with the address.",
    WebhookEndpointInactive => "WEBHOOK_ENDPOINT_INACTIVE": "409: the webhook endpoint is not active.",
    WrongPassword => "WRONG_PASSWORD": "422: the password is wrong.",
}

impl Reason {
    /// The value of `Retry-After` in seconds, if the same request may succeed later.
    pub(crate) fn retry_after_seconds(self) -> Option<u32> {
        let is_temporary = [
            Self::DomainBusy,
            Self::EventWebhookBusy,
            Self::IdempotencyInProgress,
        ];
        is_temporary.contains(&self).then_some(1)
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
