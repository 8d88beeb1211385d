# Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.
# pyright: reportUnusedImport=false
"""The types of requests and answers.

Answers are objects with attributes, such as `MessageDetail`. What lists of a request hold are dicts, such as
`BatchMessage`. A newer Waypost may send values that a `Literal` does not have: they pass through as they are.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._runtime.model import Model

ErrorReason = Union[
    Literal[
        "ACCOUNT_OUTSIDE_REGION",
        "ADDRESS_NOT_PUBLIC",
        "API_KEY_ENDED",
        "ATTACHMENT_NOT_FETCHED",
        "CROSS_ORIGIN",
        "DOMAIN_BUSY",
        "DOMAIN_EXISTS",
        "DOMAIN_NOT_VERIFIED",
        "EVENT_WEBHOOK_BUSY",
        "IDEMPOTENCY_IN_PROGRESS",
        "IDEMPOTENCY_KEY_REUSED",
        "INVALID_CREDENTIALS",
        "INVITATION_EXISTS",
        "LAST_OWNER",
        "MEMBER_EXISTS",
        "MESSAGE_CONTENT_GONE",
        "MESSAGE_CONTENT_WITHHELD",
        "MESSAGE_FINISHED",
        "MESSAGE_NOT_FAILED",
        "MESSAGE_NOT_SCHEDULED",
        "MESSAGE_SENDING",
        "MESSAGE_SENT",
        "NO_ACTIVE_PROVIDER",
        "NOT_A_MEMBER",
        "PARTIAL_EXISTS",
        "PASSWORD_NOT_SET",
        "PROVIDER_ACCOUNT_NOT_ACTIVE",
        "PROVIDER_CANNOT_CARRY",
        "PROVIDER_REFUSED",
        "REFUSED_BEFORE",
        "SECOND_FACTOR_ENABLED",
        "SECOND_FACTOR_NOT_STARTED",
        "SECOND_FACTOR_REQUIRED",
        "SECOND_FACTOR_WRONG",
        "SESSION_REQUIRED",
        "SUPPRESSION_EXISTS",
        "SUPPRESSION_LISTS_NOT_OFFERED",
        "TEMPLATE_IN_USE",
        "TEMPLATE_IS_PART",
        "TEMPLATE_NOT_COMPOSABLE",
        "TEMPLATE_NOT_FOUND",
        "TEMPLATE_NOT_RENDERABLE",
        "TEMPLATE_WITHOUT_VERSION",
        "TEST_KEY",
        "TOO_MANY_DOMAINS",
        "TOO_MANY_ROUTING_RULES",
        "TOO_MANY_TEMPLATE_USES",
        "TOO_MANY_WEBHOOK_ENDPOINTS",
        "UNKNOWN_ID",
        "UNKNOWN_UNSUBSCRIBE_GROUP",
        "URL_UNREACHABLE",
        "USER_NOT_FOUND",
        "WEBHOOK_ENDPOINT_INACTIVE",
        "WRONG_PASSWORD",
    ],
    str,
]
"""Why a valid request was not done: `details.reason` of every 409 and 422, with the status of each reason.

- `ACCOUNT_OUTSIDE_REGION` - 422: the routing rule names an account that is not in its region; `details.issues`
says which.
- `ADDRESS_NOT_PUBLIC` - 422: the host of the webhook URL has no public address.
- `API_KEY_ENDED` - 409: the API key is revoked or expired.
- `ATTACHMENT_NOT_FETCHED` - 422: the URL of an attachment gave no file; `details.issues` says which.
- `CROSS_ORIGIN` - 403: the request with a session has not the header `X-Waypost-Csrf: 1`, or not the `Origin` of
this service.
- `DOMAIN_BUSY` - 409: another request is changing the domain.
- `DOMAIN_EXISTS` - 409: the account already has the domain.
- `DOMAIN_NOT_VERIFIED` - 422: the sender's domain is not verified on the selected account.
- `EVENT_WEBHOOK_BUSY` - 409: another request is registering the event webhook.
- `IDEMPOTENCY_IN_PROGRESS` - 409: an earlier request with the idempotency key still runs.
- `IDEMPOTENCY_KEY_REUSED` - 409: the idempotency key was used for another request.
- `INVALID_CREDENTIALS` - 422: the provider rejected the credentials.
- `INVITATION_EXISTS` - 409: the address has an invitation.
- `LAST_OWNER` - 409: the organization has no other owner.
- `MEMBER_EXISTS` - 409: the user is a member of the organization.
- `MESSAGE_CONTENT_GONE` - 404, 409: the content of the message is no longer stored.
- `MESSAGE_CONTENT_WITHHELD` - 404: the message invites somebody; its content is not shown.
- `MESSAGE_FINISHED` - 409: all recipients of the message have the status FAILED.
- `MESSAGE_NOT_FAILED` - 409: no recipient of the message has the status FAILED.
- `MESSAGE_NOT_SCHEDULED` - 409: the message was not scheduled.
- `MESSAGE_SENDING` - 409: the message is being sent.
- `MESSAGE_SENT` - 409: the message was sent.
- `NO_ACTIVE_PROVIDER` - 422: the organization has no active provider account, or none in the region of the routing
rule that matches.
- `NOT_A_MEMBER` - 403: the user is no member of the organization, or of any.
- `PARTIAL_EXISTS` - 409: a partial of this name exists.
- `PASSWORD_NOT_SET` - 422: the user has no password and signs in at the OpenID Connect provider.
- `PROVIDER_ACCOUNT_NOT_ACTIVE` - 422: the account that the message names does not exist or is not active.
- `PROVIDER_CANNOT_CARRY` - 422: the selected account cannot carry a part of the message: its size, a header, an
attachment.
- `PROVIDER_REFUSED` - 422: the provider refused the request.
- `REFUSED_BEFORE` - 422: an earlier request with the idempotency key was refused.
- `SECOND_FACTOR_ENABLED` - 409: the user has a second factor.
- `SECOND_FACTOR_NOT_STARTED` - 409: the user has no second factor, or none to confirm.
- `SECOND_FACTOR_REQUIRED` - 401: the password is right; the code of the user's second factor is missing.
- `SECOND_FACTOR_WRONG` - 401, 422: the code of the second factor is wrong or was used.
- `SESSION_REQUIRED` - 403: the operation requires a session; the caller is an API key.
- `SUPPRESSION_EXISTS` - 409: the address is already suppressed.
- `SUPPRESSION_LISTS_NOT_OFFERED` - 422: the provider of the account has no suppression lists that can be read.
- `TEMPLATE_IN_USE` - 409: current versions of templates use the layout or partial.
- `TEMPLATE_IS_PART` - 422: the template is a layout or partial, which is not rendered itself.
- `TEMPLATE_NOT_COMPOSABLE` - 422: a template cannot be composed with its layout and partials as they would be; the
message names it.
- `TEMPLATE_NOT_FOUND` - 422: the template does not exist.
- `TEMPLATE_NOT_RENDERABLE` - 422: the template cannot be rendered with these variables.
- `TEMPLATE_WITHOUT_VERSION` - 422: the template has no version.
- `TEST_KEY` - 409: the caller's API key is a test key, which does this to no live message or API key.
- `TOO_MANY_DOMAINS` - 422: the account has the maximum number of domains.
- `TOO_MANY_ROUTING_RULES` - 422: the organization has the maximum number of routing rules.
- `TOO_MANY_TEMPLATE_USES` - 422: more templates use the layout or partial than are composed at once.
- `TOO_MANY_WEBHOOK_ENDPOINTS` - 422: the organization has the maximum number of webhook endpoints.
- `UNKNOWN_ID` - 422: the request names a record that does not exist; `details.issues` says which.
- `UNKNOWN_UNSUBSCRIBE_GROUP` - 422: the unsubscribe group does not exist.
- `URL_UNREACHABLE` - 422: no server responds at the webhook URL.
- `USER_NOT_FOUND` - 422: there is no user with the address.
- `WEBHOOK_ENDPOINT_INACTIVE` - 409: the webhook endpoint is not active.
- `WRONG_PASSWORD` - 422: the password is wrong.
"""

MessageStatus = Union[
    Literal[
        "QUEUED",
        "SENDING",
        "SENT",
        "DELIVERED",
        "BOUNCED",
        "FAILED",
    ],
    str,
]
"""How far a message, or its copy to one recipient, is."""

MetricsGranularity = Union[
    Literal[
        "hour",
        "day",
        "week",
        "month",
    ],
    str,
]
"""The length of the buckets of a series."""

MetricsGroupBy = Union[
    Literal[
        "provider",
        "domain",
        "template",
        "account",
        "tag",
        "recipientDomain",
    ],
    str,
]
"""By what the counts are grouped."""

ProviderHealthPeriod = Union[
    Literal[
        "15m",
        "day",
        "week",
    ],
    str,
]
"""How far back the health of a provider account is counted: 15 minutes, a day or a week."""

PageLanguage = Union[
    Literal[
        "en",
        "de",
        "fr",
        "es",
    ],
    str,
]
"""A language of the pages for recipients."""

SuppressionSource = Union[
    Literal[
        "BOUNCE",
        "COMPLAINT",
        "MANUAL",
        "IMPORT",
        "UNSUBSCRIBE",
    ],
    str,
]
"""Why an address is suppressed."""

WebhookDeliveryStatus = Union[
    Literal[
        "PENDING",
        "DELIVERED",
        "FAILED",
    ],
    str,
]
"""How far the delivery of an event to an endpoint is."""

WebhookEventType = Union[
    Literal[
        "QUEUED",
        "SENT",
        "DELIVERED",
        "OPENED",
        "CLICKED",
        "BOUNCED",
        "COMPLAINED",
        "UNSUBSCRIBED",
        "DROPPED",
        "DEFERRED",
        "SUPPRESSION_CREATED",
        "SUPPRESSION_REMOVED",
        "DOMAIN_VERIFIED",
        "DOMAIN_BROKEN",
        "PROVIDER_FAILING",
        "PROVIDER_RECOVERED",
        "WEBHOOK_ENDPOINT_DISABLED",
    ],
    str,
]
"""What a webhook reports."""

Permission = Union[
    Literal[
        "SEND",
        "TEMPLATES_READ",
        "TEMPLATES_WRITE",
        "PROVIDERS_READ",
        "PROVIDERS_WRITE",
        "METRICS_READ",
        "SETTINGS_WRITE",
        "CONTENT_READ",
        "MEMBERS_WRITE",
    ],
    str,
]
"""What an API key may do."""

AuditActorType = Union[
    Literal[
        "api_key",
        "user",
        "recipient",
        "system",
    ],
    str,
]
"""Who made a change: a client with an API key, a user, a recipient by a link in a message, or Waypost itself."""

DeliveryMode = Union[
    Literal[
        "private",
        "shared",
    ],
    str,
]
"""Whether each recipient gets a mail of their own (`private`), or all get one mail and see each other (`shared`)."""

MessageClass = Union[
    Literal[
        "transactional",
        "bulk",
    ],
    str,
]
"""What kind of mail a message is."""

TestOutcome = Union[
    Literal[
        "delivered",
        "bounced",
        "complained",
        "deferred",
        "failed",
        "suppressed",
        "unknown",
        "failover",
    ],
    str,
]
"""What happens to a test message."""

SendStatus = Union[
    Literal[
        "queued",
        "suppressed",
    ],
    str,
]
"""Whether a message is queued, or not sent because all its recipients are suppressed."""

ProviderType = Union[
    Literal[
        "SENDGRID",
        "POSTMARK",
        "MAILGUN",
        "SES",
        "SMTP",
    ],
    str,
]
"""An email provider."""

AccountRegion = Union[
    Literal[
        "eu",
        "us",
    ],
    str,
]
"""Where the system of a provider is that takes the mail of an account."""

Role = Union[
    Literal[
        "OWNER",
        "ADMIN",
        "DEVELOPER",
        "VIEWER",
    ],
    str,
]
"""What a member of an organization may do. `OWNER`: everything. `ADMIN`: everything but the members. `DEVELOPER`:
`SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `METRICS_READ`, `PROVIDERS_READ` and `CONTENT_READ`. `VIEWER`:
`METRICS_READ`, `TEMPLATES_READ` and `PROVIDERS_READ`.
"""

TagMatch = Union[
    Literal[
        "any",
        "all",
    ],
    str,
]
"""Whether a message needs any of a rule's tags, or all of them."""

MailboxProvider = Union[
    Literal[
        "google",
        "microsoft",
        "yahoo",
        "other",
    ],
    str,
]
"""Who takes the mail of a domain: `google` for Gmail and Google Workspace, `microsoft` for Outlook.com and Microsoft
365, `yahoo` for Yahoo Mail and AOL Mail, or any `other`.
"""

RoutingStickiness = Union[
    Literal[
        "none",
        "recipientDomain",
        "sender",
    ],
    str,
]
"""Which messages of a routing rule always have the same target: none, those to one domain, or those from one sender.
"""

RoutingPreference = Union[
    Literal[
        "weight",
        "health",
    ],
    str,
]
"""Whether the targets of a routing rule share its messages by their weights alone, or also by their health."""

RoutingOverCap = Union[
    Literal[
        "next",
        "wait",
    ],
    str,
]
"""What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits
(`wait`).
"""

OnUnknown = Union[
    Literal[
        "wait",
        "resend",
        "fail",
    ],
    str,
]
"""What is done with a message if the provider's answer was lost, so that nobody knows whether it was accepted."""

TemplateType = Union[
    Literal[
        "TEMPLATE",
        "LAYOUT",
        "PARTIAL",
    ],
    str,
]
"""A `TEMPLATE` makes messages; a `LAYOUT` or a `PARTIAL` is a part of templates."""

DomainState = Union[
    Literal[
        "verified",
        "unverified",
        "unknown",
    ],
    str,
]
"""Whether the provider verified the domain; `unknown` if the credentials do not show it."""

DnsRecordType = Union[
    Literal[
        "TXT",
        "CNAME",
        "MX",
    ],
    str,
]
"""The type of a DNS record."""

DnsRecordPurpose = Union[
    Literal[
        "DKIM",
        "SPF",
        "RETURN_PATH",
        "TRACKING",
        "DMARC",
        "OWNERSHIP",
    ],
    str,
]
"""What a DNS record is for."""

DnsRecordStatus = Union[
    Literal[
        "pending",
        "verified",
        "failed",
    ],
    str,
]
"""Whether the provider found the DNS record."""

DnsFoundStatus = Union[
    Literal[
        "match",
        "mismatch",
        "missing",
        "unknown",
    ],
    str,
]
"""Whether DNS has a record: it does (`match`), has another there (`mismatch`), or none (`missing`); `unknown` if DNS
was not or could not be asked.
"""

ErrorCode = Union[
    Literal[
        "VALIDATION_ERROR",
        "AUTHENTICATION_ERROR",
        "FORBIDDEN",
        "NOT_FOUND",
        "METHOD_NOT_ALLOWED",
        "CONFLICT",
        "PAYLOAD_TOO_LARGE",
        "UNSUPPORTED_MEDIA_TYPE",
        "PROVIDER_INVALID_CREDENTIALS",
        "RATE_LIMIT_EXCEEDED",
        "SERVICE_UNAVAILABLE",
        "INTERNAL_ERROR",
    ],
    str,
]
"""The kind of an error, for programs."""

CallerPermission = Union[
    Literal[
        "SEND",
        "TEMPLATES_READ",
        "TEMPLATES_WRITE",
        "PROVIDERS_READ",
        "PROVIDERS_WRITE",
        "METRICS_READ",
        "SETTINGS_WRITE",
        "CONTENT_READ",
        "MEMBERS_WRITE",
        "OPERATOR",
    ],
    str,
]
"""What an API key or a session may do. Only a session of an operator has `OPERATOR`."""

SendAttemptOutcome = Union[
    Literal[
        "ACCEPTED",
        "REJECTED",
        "THROTTLED",
        "UNAVAILABLE",
        "UNKNOWN",
        "PENDING",
    ],
    str,
]
"""How a call to a provider ended; `PENDING` while it has not, `UNKNOWN` if its answer was lost."""

EventType = Union[
    Literal[
        "QUEUED",
        "SENT",
        "DELIVERED",
        "OPENED",
        "CLICKED",
        "BOUNCED",
        "COMPLAINED",
        "UNSUBSCRIBED",
        "DROPPED",
        "DEFERRED",
    ],
    str,
]
"""What happened to a message."""

BounceType = Union[
    Literal[
        "hard",
        "soft",
        "block",
    ],
    str,
]
"""Why an address did not get a message: it does not exist, it could not be delivered to for now, or the receiving
server blocked the message.
"""

ProviderCircuitState = Union[
    Literal[
        "CLOSED",
        "OPEN",
        "HALF_OPEN",
    ],
    str,
]
"""Whether calls to a provider account are made."""

ProviderCircuitCause = Union[
    Literal[
        "CALLS_FAILED",
        "PROVIDER_PAUSE",
        "ACCOUNT_UNUSABLE",
    ],
    str,
]
"""`CALLS_FAILED`: too many calls failed. `PROVIDER_PAUSE`: the provider named a time for which it wants no calls.
`ACCOUNT_UNUSABLE`: the provider refuses all mail of the account.
"""

ProviderFailureCause = Union[
    Literal[
        "ACCOUNT_UNUSABLE",
        "CALLS_FAILED",
        "INVALID_CREDENTIALS",
    ],
    str,
]
"""`ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many calls
failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider refuses the
credentials. An account may fail for several causes; each ends by itself.
"""

RecipientKind = Union[
    Literal[
        "TO",
        "CC",
        "BCC",
    ],
    str,
]
"""In which field a message names the recipient."""

RoutingRampState = Union[
    Literal[
        "notBegun",
        "growing",
        "held",
        "finished",
    ],
    str,
]
"""How far the ramp of a target is: its first day is to come; it grows; it is held because a rate is beyond its bound;
or it has reached the cap of the target.
"""

RoutingRampAction = Union[
    Literal[
        "begin",
        "step",
        "hold",
        "halve",
        "resume",
        "finish",
    ],
    str,
]
"""What happened to the ramp of a target."""

SenderDomainStatus = Union[
    Literal[
        "complete",
        "incomplete",
        "broken",
        "unknown",
    ],
    str,
]
"""What DNS has of the records of a sender domain."""

SenderDomainConflictCode = Union[
    Literal[
        "SPF_MULTIPLE",
        "SPF_INVALID",
        "SPF_TOO_MANY_LOOKUPS",
        "SPF_TOO_MANY_VOID_LOOKUPS",
        "SPF_MISSING_INCLUDE",
        "DKIM_SELECTOR_SHARED",
        "CNAME_SHARED",
        "RETURN_PATH_SHARED",
        "CNAME_WITH_OTHER_RECORDS",
        "DMARC_MISSING",
        "DMARC_MULTIPLE",
        "DMARC_INVALID",
        "DMARC_UNALIGNED",
    ],
    str,
]
"""What is wrong with a sender domain as a whole."""

DmarcPolicy = Union[
    Literal[
        "none",
        "quarantine",
        "reject",
    ],
    str,
]
"""What receivers do with mail that does not pass DMARC."""

DmarcStatus = Union[
    Literal[
        "valid",
        "missing",
        "multiple",
        "invalid",
        "unknown",
    ],
    str,
]
"""Whether receivers accept the DMARC record of a domain."""

SpfStatus = Union[
    Literal[
        "valid",
        "missing",
        "multiple",
        "invalid",
        "tooManyLookups",
        "tooManyVoidLookups",
        "unknown",
    ],
    str,
]
"""Whether receivers accept the SPF record of a domain."""

UnverifiedDomains = Union[
    Literal[
        "reject",
        "accept",
    ],
    str,
]
"""What is done with a message whose sender has a domain that no provider account has verified."""

RoutingSimulationPeriod = Union[
    Literal[
        "hour",
        "day",
        "week",
    ],
    str,
]
"""How far back a simulation looks at messages: an hour, a day or a week."""

DomainEventSource = Union[
    Literal[
        "provider",
        "dns",
    ],
    str,
]
"""Who judged a domain: the provider, or Waypost by its own look-ups in DNS."""

WebhookDisabledReason = Union[
    Literal[
        "GONE",
        "FAILING",
    ],
    str,
]
"""`GONE`: the endpoint answered 410. `FAILING`: all calls failed for five days."""


class _AcceptInvitationRequest(TypedDict):
    token: str
    password: str


class AcceptInvitationRequest(_AcceptInvitationRequest, total=False):
    """The answer to an invitation."""

    name: str
    code: str


class AcceptLatency(Model):
    """How long half and 95 % of the accepted calls took at most, in milliseconds, accurate to 10 %."""

    p50: int
    """The time that half of the messages did not exceed, in milliseconds."""
    p95: int
    """The time that 95 % of the messages did not exceed, in milliseconds."""


class AcceptPasswordResetRequest(TypedDict):
    """The new password."""

    token: str
    password: str


class ApiKey(Model):
    """An API key. Its secret is returned only once, when the key is created or rotated."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    prefix: str
    """The first characters of the secret, to tell keys apart."""
    is_test: bool
    """Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
    another with `wp_live_`.
    """
    permissions: List[Permission]
    """What the key may do."""
    allowed_ips: List[str]
    """The IP addresses and networks that the key can be used from; if the list is empty, from anywhere."""
    expires_at: Optional[datetime]
    """When the key expires; null means never."""
    last_used_at: Optional[datetime]
    """When the key was last used, to the minute."""
    created_at: datetime
    """When it was created."""
    created_by: str
    """The id of the user or of the API key that created this key, or `system` if the operator created it."""
    revoked_at: Optional[datetime]
    """When the key was revoked; null if it was not."""
    old_secret_valid_until: Optional[datetime]
    """When the secret that the last rotation replaced stops working, or stopped."""


class ApiKeyWithSecret(Model):
    """An API key with its secret, which is returned only once."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    prefix: str
    """The first characters of the secret, to tell keys apart."""
    is_test: bool
    """Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
    another with `wp_live_`.
    """
    permissions: List[Permission]
    """What the key may do."""
    allowed_ips: List[str]
    """The IP addresses and networks that the key can be used from; if the list is empty, from anywhere."""
    expires_at: Optional[datetime]
    """When the key expires; null means never."""
    last_used_at: Optional[datetime]
    """When the key was last used, to the minute."""
    created_at: datetime
    """When it was created."""
    created_by: str
    """The id of the user or of the API key that created this key, or `system` if the operator created it."""
    revoked_at: Optional[datetime]
    """When the key was revoked; null if it was not."""
    old_secret_valid_until: Optional[datetime]
    """When the secret that the last rotation replaced stops working, or stopped."""
    key: str
    """The secret, for `Authorization: Bearer`. It cannot be retrieved again."""


class AttachmentDetail(Model):
    """An attachment, without its content."""

    filename: str
    """The file name that the recipient sees."""
    content_type: str
    """The media type."""
    content_id: Optional[str]
    """The id by which the HTML body shows the file; null if it does not."""
    size: int
    """The size in bytes."""
    sha256: str
    """The SHA-256 of the content, as lower-case hexadecimal."""


class AuditActor(Model):
    """Who made the change."""

    type: AuditActorType
    """The type of the actor."""
    id: Optional[str]
    """The id."""
    name: Optional[str]
    """The name of the actor at the time of the change."""


class AuditContext(Model):
    """Where the request came from."""

    ip: Optional[str]
    """The IP address of the client."""
    user_agent: Optional[str]
    """The `User-Agent` of the client."""
    request_id: str
    """The id of the request, as in `X-Request-Id`."""


class AuditLogEntry(Model):
    """One change."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    action: str
    """The action, such as `provider.created`."""
    occurred_at: datetime
    """When it happened."""
    actor: AuditActor
    target: AuditTarget
    context: AuditContext
    metadata: Dict[str, Any]
    """Details of the change: an object."""


class AuditTarget(Model):
    """The changed record."""

    type: str
    """The type of the record, such as `provider`."""
    id: str
    """The id."""


class _BatchMessage(TypedDict):
    to: Recipients


class BatchMessage(_BatchMessage, total=False):
    """A message of a batch: the fields of `POST /v1/send`, and an idempotency key."""

    cc: Addresses
    bcc: Addresses
    delivery: DeliveryMode
    from_: str
    subject: str
    html: str
    text: str
    reply_to: Addresses
    headers: Mapping[str, str]
    attachments: Sequence[MessageAttachment]
    tags: Sequence[str]
    message_class: MessageClass
    metadata: Mapping[str, Any]
    template_id: str
    locale: str
    variables: Mapping[str, Any]
    unsubscribe_group_id: str
    tracking: Tracking
    scheduled_at: Union[datetime, str]
    expires_at: Union[datetime, str]
    provider_account_id: str
    test: bool
    test_outcome: TestOutcome
    idempotency_key: str
    """Makes it safe to send this message again: in this or another batch, or with the same key as the
    `Idempotency-Key` of `POST /v1/send`. Without it, the message is protected by the `Idempotency-Key` of the
    batch, if there is one.
    """


class BatchResult(Model):
    """The result of one message of a batch: `message_id` and `status` if it was accepted (`message_id` is null if all
    its recipients are suppressed), or `error` if it was rejected.
    """

    message_id: Optional[str]
    """The id of the message."""
    status: Optional[SendStatus]
    """`queued`, or `suppressed` if all recipients are suppressed."""
    error: Optional[str]
    """Why the message was rejected."""


class BreakdownQuery(Model):
    """The query of a breakdown, with its defaults filled in."""

    from_: datetime
    """The begin of the period."""
    to: datetime
    """The end of the period, which is not part of it."""
    group_by: MetricsGroupBy
    """By what the counts are grouped."""


class CancelledMessage(Model):
    """A message after its cancellation."""

    id: str
    """The id."""
    status: MessageStatus
    """The status of the message, as in the list: FAILED if all its recipients are cancelled."""
    cancelled_count: int
    """The number of cancelled recipients, by this request and by earlier ones."""


class ConfirmTotpRequest(TypedDict):
    """How to confirm a second factor."""

    code: str


class _ConnectProviderRequest(TypedDict):
    provider_type: ProviderType
    display_name: str
    credentials: ProviderCredentials


class ConnectProviderRequest(_ConnectProviderRequest, total=False):
    """An account to connect."""

    event_secrets: EventSecrets
    register_event_webhook: bool
    max_rate_per_second: int
    max_concurrency: int


class ConnectedProvider(Model):
    """A newly connected account."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    provider_type: ProviderType
    """The provider."""
    display_name: str
    """The name of the account."""
    region: Optional[AccountRegion]
    """Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known (SMTP).
    """
    is_active: bool
    """Whether the account sends messages."""
    webhook_url: str
    """The URL that the provider posts events to. Keep it secret."""
    events_verified: bool
    """Whether an event from the provider was verified since the event secrets were last set."""
    max_rate_per_second: Optional[int]
    """The most calls to the provider per second, over all workers; null means no limit."""
    max_concurrency: Optional[int]
    """The most concurrent calls to the provider, over all workers; null means no limit."""
    sending_paused_reason: Optional[str]
    """Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
    messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
    account try again at once. Null again after that, or once the provider accepts a message.
    """
    sending_paused_since: Optional[datetime]
    """Since when the account cannot send; null if it can."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""
    event_webhook: Optional[FirstEventWebhook]
    """The registration of the event webhook; null if it was not requested."""


class ContentHeader(Model):
    """An extra header."""

    name: str
    """The name of the header."""
    value: str
    """The value of the header."""


class _CreateApiKeyRequest(TypedDict):
    name: str
    permissions: Sequence[Permission]


class CreateApiKeyRequest(_CreateApiKeyRequest, total=False):
    """An API key to create."""

    is_test: bool
    allowed_ips: Sequence[str]
    expires_at: Union[datetime, str]


class CreateInvitationRequest(TypedDict):
    """Somebody to invite."""

    email: str
    role: Role


class CreateMemberRequest(TypedDict):
    """A user to make a member."""

    email: str
    role: Role


class CreateProviderDomainRequest(TypedDict):
    """A domain to add to an account."""

    domain: str


class _CreateRoutingRuleRequest(TypedDict):
    name: str


class CreateRoutingRuleRequest(_CreateRoutingRuleRequest, total=False):
    """A rule to create."""

    priority: int
    is_active: bool
    sender_domain: str
    tags: Sequence[str]
    tag_match: TagMatch
    recipient_domains: Sequence[str]
    recipient_mailbox_providers: Sequence[MailboxProvider]
    message_class: MessageClass
    min_size_bytes: int
    max_size_bytes: int
    test: bool
    region: AccountRegion
    provider_account_id: str
    targets: Sequence[NewRoutingTarget]
    sticky: RoutingStickiness
    prefer: RoutingPreference
    over_cap: RoutingOverCap
    ramp_bounds: NewRoutingRampBounds
    fallback_provider_account_ids: Sequence[str]
    on_unknown: OnUnknown


class _CreateSessionRequest(TypedDict):
    email: str
    password: str


class CreateSessionRequest(_CreateSessionRequest, total=False):
    """Who signs in."""

    code: str


class _CreateSuppressionRequest(TypedDict):
    email: str


class CreateSuppressionRequest(_CreateSuppressionRequest, total=False):
    """An address to suppress."""

    unsubscribe_group_id: str
    source: SuppressionSource


class _CreateTemplateRequest(TypedDict):
    name: str


class CreateTemplateRequest(_CreateTemplateRequest, total=False):
    """A template to create."""

    type: TemplateType
    description: str
    tags: Sequence[str]


class _CreateTemplateVersionRequest(TypedDict):
    html_content: str


class CreateTemplateVersionRequest(_CreateTemplateVersionRequest, total=False):
    """The content of a new version. Each source is a Handlebars template of up to 1 MiB, rendered as handlebars.js
    4.7 renders it. Variables, sections, `if`, `unless`, `each`, `with`, `lookup`, `eq`, `ne`, `gt`, `gte`, `lt`,
    `lte`, `and`, `or`, `not`, `len` and `raw` are supported, and partials of the organization: `{{> name}}`. A
    layout or partial has sources and a language alone.
    """

    locale: str
    subject: str
    preheader: str
    from_: str
    reply_to: Addresses
    layout_id: str
    mjml_source: str
    text_content: str
    variables_schema: Mapping[str, Any]


class _CreateUnsubscribeGroupRequest(TypedDict):
    name: str


class CreateUnsubscribeGroupRequest(_CreateUnsubscribeGroupRequest, total=False):
    """An unsubscribe group to create."""

    description: str
    is_default: bool


class _CreateWebhookEndpointRequest(TypedDict):
    url: str
    events: Sequence[WebhookEventType]


class CreateWebhookEndpointRequest(_CreateWebhookEndpointRequest, total=False):
    """A webhook endpoint to create."""

    tags: Sequence[str]
    is_active: bool


class CurrentTemplateVersion(Model):
    """The current version of a language."""

    locale: Optional[str]
    """The language, as a language tag; null is the default language."""
    version_id: str
    """The id of the version."""
    version_number: int
    """The number of the version, from 1."""


class DeadJob(Model):
    """A chunk of a message that no worker takes any more."""

    message_id: str
    chunk: int
    """The number of the chunk in its message, from 0."""
    organization_id: str
    """The organization that it belongs to."""
    recipients: int
    """The number of recipients without a final status."""
    losses: int
    """How many workers were lost while they held the chunk."""
    dead_since: datetime
    """Since when no worker takes it."""
    reason: str
    """Why no worker takes the chunk any more."""


class DisableTotpRequest(TypedDict):
    """How to remove the second factor."""

    password: str
    code: str


class DomainVerification(Model):
    """A sender domain of a provider account."""

    id: str
    """The id."""
    provider_account_id: str
    """The provider account."""
    domain: str
    """The domain name, in ASCII."""
    is_verified: bool
    """Whether the provider reports the domain as verified."""
    state: DomainState
    """`verified`, `unverified`, or `unknown` if the credentials give no access to the domain."""
    dns_records: List[DnsRecord]
    """The DNS records to publish, each with `type`, `name`, `value`, `priority`, `purpose` and the provider's
    `status`; and with what DNS had at the last check, `found` and `found_status`.
    """
    dns_checked_at: Optional[datetime]
    """When Waypost last looked the records up in DNS; null before the first check."""
    created_at: datetime
    """When it was created."""


class ErasePersonRequest(TypedDict):
    """A person to erase."""

    email: str


class ErasureResult(Model):
    """What was erased."""

    id: str
    """The id of the erasure: the target of its entries in the audit log."""
    messages: int
    """The number of messages of which something was erased."""
    events: int
    """The number of events whose details were erased."""
    attachments: int
    """The number of references to attachments that were erased."""
    pending: int
    """The number of messages that are still being sent. They are left as they are; repeat the request when they are
    finished.
    """
    complete: bool
    """Whether all messages to the person were visited. If not, repeat the request: it continues."""


class EventWebhookResult(Model):
    """The event webhook of an account."""

    registered: bool
    """Whether the webhook is registered with the provider. If not, the provider was not called and `steps` lists what
    to do.
    """
    webhook_url: str
    """The URL that the provider posts events to. Keep it secret."""
    events_verified: bool
    """Whether an event from the provider has been verified."""
    steps: List[str]
    """The steps to take by hand, in this order."""


class FailedProviderCall(Model):
    """A call that the provider did not accept."""

    at: datetime
    """When the call started."""
    outcome: SendAttemptOutcome
    """The outcome: REJECTED, THROTTLED, UNAVAILABLE or UNKNOWN."""
    status_code: Optional[int]
    """The status code of the provider's response; null without a response."""
    reason: Optional[str]
    """The provider's error message, or the error of the call."""


class FallbackResolution(Model):
    """A fallback of the matching rule."""

    provider_account_id: str
    """The provider account."""
    domain_verified: bool
    """Whether the sender's domain is verified on this account."""
    passed_over: Optional[str]
    """Why this fallback is not used: `PROVIDER_INACTIVE`, `DOMAIN_NOT_VERIFIED` if the sender's domain is unverified
    on it, or `REGION` if it is not in the rule's region; null if it is used.
    """


class FirstEventWebhook(Model):
    """The result of registering the event webhook."""

    registered: bool
    """Whether the webhook is registered with the provider. If not, the account sends, but its messages stay SENT
    until the webhook is set up.
    """
    reason: Optional[str]
    """Why the webhook could not be registered; null if it is registered."""
    steps: List[str]
    """The steps to take by hand, in this order."""


class HistoryEvent(Model):
    """One event of a message."""

    event_type: EventType
    """The type of the event."""
    occurred_at: datetime
    """When it happened."""
    attempt_id: Optional[str]
    """The attempt that the event belongs to, if known: the id of one of the message's `attempts`. If the response to
    a call was lost and the call was repeated, the recipient may receive the message twice. The history then has
    the events of both attempts, and metrics count the recipient once.
    """
    provider_message_id: Optional[str]
    """The provider's message id that the event belongs to, if known."""
    to_hash: Optional[str]
    """The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal. An event without it is about
    all recipients.
    """
    provider_account_id: Optional[str]
    """The provider account of the attempt."""
    reason: Optional[str]
    """Why, in the provider's words or in those of Waypost."""
    bounce_type: Optional[BounceType]
    """The type of a bounce, such as `hard`."""
    url: Optional[str]
    """The link that was clicked."""
    is_bot: Optional[bool]
    """Whether a program opened or clicked, and not a person."""


class ImportProviderSuppressionsRequest(TypedDict, total=False):
    """Where to continue."""

    cursor: str


class ImportResult(Model):
    """The result of an import."""

    imported: int
    """The number of newly suppressed addresses."""
    skipped: int
    """The number of addresses that were already suppressed or were repeated in the request."""
    total: int
    """The number of addresses in the request: `imported` plus `skipped`."""


class _ImportSuppressionsRequest(TypedDict):
    emails: Sequence[str]


class ImportSuppressionsRequest(_ImportSuppressionsRequest, total=False):
    """Addresses to suppress."""

    unsubscribe_group_id: str


class Invitation(Model):
    """An invitation that is neither accepted nor expired."""

    id: str
    """The id."""
    email: str
    """The address."""
    role: Role
    """The role."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime
    """When the link stops working."""
    created_by: str
    """The id of the user or of the API key that invited, or `system` if the operator did."""


class InvitationDetail(Model):
    """What an invitation says."""

    organization_name: str
    """The name of the organization."""
    email: str
    """The address."""
    role: Role
    """The role."""
    has_user: bool
    """Whether there is a user with the address, whose password must be given."""


class InvitationWithUrl(Model):
    """An invitation with its link, which is returned only once."""

    id: str
    """The id."""
    email: str
    """The address."""
    role: Role
    """The role."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime
    """When the link stops working."""
    created_by: str
    """The id of the user or of the API key that invited, or `system` if the operator did."""
    url: str
    """The link. It works once, for seven days."""
    mailed: bool
    """Whether the link is sent to the address through Waypost. If not, pass it on."""


class JobQueue(Model):
    """The jobs of a queue in Redis, by their state."""

    name: str
    """The name of the queue."""
    waiting: int
    """Jobs that no worker has fetched."""
    fetched: int
    """Jobs that a worker has fetched and not finished."""
    delayed: int
    """Jobs that are due later."""


class LookUpInvitationRequest(TypedDict):
    """The link to look up."""

    token: str


class LookUpPasswordResetRequest(TypedDict):
    """The link to look up."""

    token: str


class Member(Model):
    """A user of the organization."""

    id: str
    """The id of the membership."""
    user_id: str
    """The user."""
    email: str
    """The address."""
    name: str
    """The name of the user."""
    role: Role
    """The role."""
    last_signed_in_at: Optional[datetime]
    """When the user last began a session in the organization."""
    created_at: datetime
    """When the user became a member."""


class _MessageAttachment(TypedDict):
    filename: str
    """The name that the recipient sees: no path, no control characters."""


class MessageAttachment(_MessageAttachment, total=False):
    """A file of a message. It needs `content` or `url`."""

    content: str
    """The file in base64 (RFC 4648, without line breaks)."""
    url: str
    """A public `https` URL. The file is fetched when the message is accepted, and kept."""
    content_type: str
    """The media type. Without it, the type follows from the file name."""
    content_id: str
    """Shows the file within the HTML body, where `cid:` and this id are the URL of an image."""


class MessageContentView(Model):
    """What a message says, before tracking and unsubscribe links are added."""

    subject: str
    """The subject."""
    html: Optional[str]
    """The HTML body."""
    text: Optional[str]
    """The text body."""
    headers: List[ContentHeader]
    """The extra headers of the message."""
    attachments: List[AttachmentDetail]
    """The attachments, without their content."""


class MessageDetail(Model):
    """A message with its history."""

    id: str
    """The id."""
    from_address: str
    """The sender's address."""
    subject: str
    """The subject."""
    status: MessageStatus
    """The status of the message, as in the list."""
    tags: List[str]
    """The tags."""
    test: bool
    """Whether the message is a test, for which no provider is called."""
    recipient_count: int
    """The number of recipients."""
    to: List[str]
    """The SHA-256 of each address of `to`, in lower case, as lower-case hexadecimal, in the order of the send
    request.
    """
    metadata: Optional[Dict[str, Any]]
    """The metadata of the send request."""
    scheduled_at: Optional[datetime]
    """The message is not sent before this time."""
    template_id: Optional[str]
    """The template of the message."""
    template_version_id: Optional[str]
    """The version of the template that was rendered."""
    template_version_number: Optional[int]
    """The number of this version; null also if the template was deleted."""
    events: List[HistoryEvent]
    """The events, oldest first."""
    attempts: List[SendAttempt]
    """The newest 500 calls to providers, oldest first."""


class _MessageRecipient(TypedDict):
    email: str
    """The address."""


class MessageRecipient(_MessageRecipient, total=False):
    """A recipient with data of its own."""

    name: str
    variables: Mapping[str, Any]
    """Variables of this recipient, up to 256 KiB. Each takes the place of the message's variable of the same name.
    The message is rendered for this recipient.
    """
    metadata: Mapping[str, Any]
    """Metadata of this recipient; up to 64 KiB, together with that of the message. Each takes the place of the
    message's entry of the same name in the webhook events of this recipient.
    """


class MessageSummary(Model):
    """A message in the list."""

    id: str
    """The id."""
    provider_account_id: str
    """The provider account of the message: the account that routing selected at acceptance, or the one that sent to
    the first recipient.
    """
    from_address: str
    """The sender's address."""
    to_hash: str
    """The SHA-256 of the first recipient's address in lower case, as lower-case hexadecimal."""
    subject: str
    """The subject."""
    status: MessageStatus
    """The status of the message, summarized over its recipients: QUEUED if any recipient has it, or else SENDING,
    DELIVERED, SENT, BOUNCED or FAILED, in this order.
    """
    tags: List[str]
    """The tags."""
    recipient_count: int
    """The number of recipients."""
    provider_message_id: Optional[str]
    """The provider's message id for the first recipient."""
    created_at: datetime
    """When it was created."""
    sent_at: Optional[datetime]
    """When a provider first accepted the message for a recipient."""
    delivered_at: Optional[datetime]
    """When the message was first delivered to a recipient."""


class MetricsBreakdown(Model):
    """Counts by group."""

    data: List[MetricsGroup]
    """The groups, by descending `sent`, then by name."""
    query: BreakdownQuery


class MetricsBucket(Model):
    """The counts of one hour, day, week or month."""

    timestamp: str
    """When the bucket begins, in UTC or in `time_zone`: `YYYY-MM-DD HH:MM:SS`. Weeks begin on Monday."""
    start: Optional[datetime]
    """When the bucket begins, in UTC; only if `time_zone` is given. Where clocks are put back, two hours have the
    same `timestamp`.
    """
    sent: int
    """The number of recipients whose message a provider accepted."""
    delivered: int
    """The number of recipients whose message was delivered."""
    opened: int
    """The number of recipients who opened the message. Repeated opens count once."""
    clicked: int
    """The number of recipients who clicked a link. Repeated clicks count once."""
    bounced: int
    """The number of recipients whose message bounced."""
    complained: int
    """The number of recipients who reported the message as spam."""
    unsubscribed: int
    """The number of recipients who unsubscribed with the link."""


class MetricsGroup(Model):
    """The counts of one provider type, domain, template, account, tag or recipient domain."""

    name: str
    """The provider type, the sender's domain, the template, the provider account, the tag or the recipient's domain.
    Templates and accounts are shown by their names, by their ids if they were deleted, and by both if several have
    this name. `(none)` stands for messages without a template or tag, `(other)` for the tags and recipient domains
    beyond the first 500 of a month.
    """
    id: Optional[str]
    """The id of the provider account, if grouped by `account`."""
    accept_to_sent: Optional[MetricsPercentiles]
    """From acceptance, or from `scheduled_at`, to when the provider accepted the mail; if grouped by `account`,
    without the filters `tag` and `template_id`.
    """
    sent_to_delivered: Optional[MetricsPercentiles]
    """From when the provider accepted the mail to its delivery."""
    sent: int
    """Copies of messages that a provider accepted."""
    delivered: int
    """Copies that a mailbox accepted."""
    opened: int
    """Copies that were opened."""
    clicked: int
    """Copies of which a link was followed."""
    bounced: int
    """Copies that the receiving server refused."""
    complained: int
    """Copies that the recipient reported as spam."""


class MetricsPercentiles(Model):
    """How long it took for half, 95 % and 99 % of the recipients at most, in milliseconds, to a tenth."""

    p50: int
    """The time that half of the messages did not exceed, in milliseconds."""
    p95: int
    """The time that 95 % of the messages did not exceed, in milliseconds."""
    p99: int
    """The time that 99 % of the messages did not exceed, in milliseconds."""


class MetricsSeries(Model):
    """A time series of counts."""

    data: List[MetricsBucket]
    """The buckets, oldest first. Buckets without events are included."""
    query: SeriesQuery


class MetricsSummary(Model):
    """The total counts and rates of a period."""

    data: MetricsTotals
    period: SummaryPeriod


class MetricsTotals(Model):
    """The total counts and rates. Each recipient of a message counts once for each type of event. Rates have four
    decimals, are 0 if the divisor is 0, and are never above 1, even if more messages were delivered than sent in
    the period.
    """

    total_sent: int
    """Copies of messages that a provider accepted."""
    total_delivered: int
    """Copies that a mailbox accepted."""
    total_opened: int
    """Copies that were opened."""
    total_clicked: int
    """Copies of which a link was followed."""
    total_bounced: int
    """Copies that the receiving server refused."""
    total_complained: int
    """Copies that the recipient reported as spam."""
    total_unsubscribed: int
    """Recipients that unsubscribed."""
    delivery_rate: float
    """`total_delivered` divided by `total_sent`."""
    open_rate: float
    """`total_opened` divided by `total_delivered`."""
    click_rate: float
    """`total_clicked` divided by `total_opened`."""
    bounce_rate: float
    """`total_bounced` divided by `total_sent`."""
    complaint_rate: float
    """`total_complained` divided by `total_delivered`."""


class _NewRoutingRamp(TypedDict):
    start: int
    """The most recipients of the first day."""
    factor: float
    """What each step multiplies the cap by, 1.01 to 10."""
    every_days: int
    """The days from one step to the next, 1 to 30."""


class NewRoutingRamp(_NewRoutingRamp, total=False):
    """How the daily cap of a target grows, so that mailbox providers get to know a new account."""

    from_: Optional[str]
    """The first day, in UTC; before it the target gets nothing. A ramp whose first day is over begins where it would
    be now. The default is the day that the same ramp of the account has, or today.
    """


class NewRoutingRampBounds(TypedDict, total=False):
    """The bounds of the rates of an account, beyond which the ramps of a rule do not grow."""

    bounce_rate: Optional[float]
    """The most bounces, as a part of the sent mails. The default is 0.05."""
    complaint_rate: Optional[float]
    """The most complaints, as a part of the delivered mails. The default is 0.001."""


class _NewRoutingTarget(TypedDict):
    provider_account_id: str
    """The provider account."""
    weight: int
    """1 to 1,000. Each account gets its weight's part of the messages."""


class NewRoutingTarget(_NewRoutingTarget, total=False):
    """An account that gets a part of the messages."""

    daily_cap: Optional[int]
    """The most recipients of a day in UTC, of all messages of the rule."""
    hourly_cap: Optional[int]
    """The most recipients of an hour, of all messages of the rule."""
    ramp: NewRoutingRamp
    """How the daily cap grows until it reaches `daily_cap`, or without end."""


class OidcMethod(Model):
    """The OpenID Connect provider at which users can sign in; null if there is none."""

    name: str
    """The name of the provider, for people."""
    url: str
    """Where the sign-in begins, relative to the public URL."""


class OrganizationMembership(Model):
    """An organization of a user."""

    id: str
    """The id."""
    name: str
    """The name of the organization."""
    role: Role
    """The role of the user in this organization."""


class PagePreview(Model):
    """A page as a recipient sees it."""

    html: str
    """The whole page. Show it in a frame without rights (`<iframe sandbox>`)."""


class Pagination(Model):
    """The position of a page in its list."""

    page: int
    """The page number, from 1."""
    limit: int
    """The number of items per page."""
    total: int
    """The number of items in the whole list."""
    total_pages: int
    """The number of pages."""
    next_cursor: Optional[str]
    """The `cursor` of the next page, for the same request; null at the end of the list."""


class PassedOverRule(Model):
    """A rule that was skipped."""

    rule: RoutingRule
    reason: str
    """Why the rule was skipped: `RULE_INACTIVE`, `SENDER_DOMAIN`, `TAGS`, `RECIPIENT_DOMAIN`,
    `RECIPIENT_MAILBOX_PROVIDER`, `MESSAGE_CLASS`, `SIZE`, `TEST` or `PROVIDER_INACTIVE`.
    """


class PasswordResetDetail(Model):
    """Whose password a link sets."""

    email: str
    """The address."""


class _PreviewTemplateDraftRequest(TypedDict):
    html_content: str


class PreviewTemplateDraftRequest(_PreviewTemplateDraftRequest, total=False):
    """The content of a version to preview, as for a new version, and its variables."""

    variables: Mapping[str, Any]
    locale: str
    subject: str
    preheader: str
    from_: str
    reply_to: Addresses
    layout_id: str
    mjml_source: str
    text_content: str
    variables_schema: Mapping[str, Any]


class PreviewTemplateRequest(TypedDict, total=False):
    """What to preview."""

    variables: Mapping[str, Any]
    version_id: str
    locale: str


class ProviderAccount(Model):
    """A connected account at a provider. Its credentials are never returned."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    provider_type: ProviderType
    """The provider."""
    display_name: str
    """The name of the account."""
    region: Optional[AccountRegion]
    """Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known (SMTP).
    """
    is_active: bool
    """Whether the account sends messages."""
    webhook_url: str
    """The URL that the provider posts events to. Keep it secret."""
    events_verified: bool
    """Whether an event from the provider was verified since the event secrets were last set."""
    max_rate_per_second: Optional[int]
    """The most calls to the provider per second, over all workers; null means no limit."""
    max_concurrency: Optional[int]
    """The most concurrent calls to the provider, over all workers; null means no limit."""
    sending_paused_reason: Optional[str]
    """Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
    messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
    account try again at once. Null again after that, or once the provider accepts a message.
    """
    sending_paused_since: Optional[datetime]
    """Since when the account cannot send; null if it can."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""


class ProviderCircuit(Model):
    """Whether calls to a provider account are made."""

    state: ProviderCircuitState
    """CLOSED: calls are made. OPEN: no calls are made until `until`. HALF_OPEN: each worker makes one call, whose
    result decides.
    """
    cause: Optional[ProviderCircuitCause]
    """Why the circuit is not closed; null if it is."""
    until: Optional[datetime]
    """When the next call may be made; null unless the circuit is open."""


class ProviderDomainHealth(Model):
    """What became of a provider account's mail to one recipient domain."""

    recipient_domain: str
    """The recipient domain. `(other)` stands for all domains beyond the 50 with the most mail and the first 500 of a
    month, `(none)` for addresses that are not known any more.
    """
    attempts: int
    """The number of calls to the provider, for one recipient each, that ended."""
    accepted: int
    """The number of attempts that the provider accepted."""
    rejected: int
    """The number of attempts that the provider refused for good."""
    deferred: int
    """The number of attempts that the provider, or later the recipient's server, put off."""
    sent: int
    """The number of recipients whose message the provider accepted."""
    delivered: int
    """The number of recipients whose message was delivered."""
    bounced: int
    """The number of recipients whose message bounced."""
    complained: int
    """The number of recipients who reported the message as spam."""
    deferral_rate: Optional[float]
    """`deferred` divided by `attempts`."""
    bounce_rate: Optional[float]
    """`bounced` divided by `sent`."""
    complaint_rate: Optional[float]
    """`complained` divided by `delivered`."""
    delivery_rate: Optional[float]
    """`delivered` divided by `sent`."""
    accept_latency_ms: Optional[AcceptLatency]
    """How long accepted calls took; null if there are fewer than 20."""


class ProviderFailure(Model):
    """One cause for which an account fails."""

    cause: ProviderFailureCause
    since: datetime
    """Since when the account fails for this cause."""


class ProviderHealth(Model):
    """How a provider account does at the moment."""

    provider_account_id: str
    """The provider account."""
    provider_type: ProviderType
    display_name: str
    """The name of the account."""
    is_active: bool
    """Whether the account sends messages."""
    circuit: Optional[ProviderCircuit]
    """Whether calls to the account are made; null while Redis, which knows it, does not answer."""
    throttled_rate_per_second: Optional[float]
    """The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null if
    it does not throttle, or while Redis does not answer.
    """
    sending_paused_reason: Optional[str]
    """Why the account cannot send, as reported by the provider; null if it can."""
    failures: List[ProviderFailure]
    """What is wrong with the account now, as the event PROVIDER_FAILING reports it."""
    calls: RecentProviderCalls
    max_rate_per_second: Optional[int]
    """The most calls to the provider per second, over all workers; null means no limit."""
    max_concurrency: Optional[int]
    """The most concurrent calls to the provider, over all workers; null means no limit."""


class ProviderHealthByDomain(Model):
    """What became of a provider account's mail, by recipient domain."""

    data: List[ProviderDomainHealth]
    """The domains, those with the most mail first; `(other)` comes last."""
    window: ProviderHealthWindow


class ProviderHealthDetail(Model):
    """How a provider account does at the moment, and what became of its mail."""

    provider_account_id: str
    """The provider account."""
    provider_type: ProviderType
    display_name: str
    """The name of the account."""
    is_active: bool
    """Whether the account sends messages."""
    circuit: Optional[ProviderCircuit]
    """Whether calls to the account are made; null while Redis, which knows it, does not answer."""
    throttled_rate_per_second: Optional[float]
    """The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null if
    it does not throttle, or while Redis does not answer.
    """
    sending_paused_reason: Optional[str]
    """Why the account cannot send, as reported by the provider; null if it can."""
    failures: List[ProviderFailure]
    """What is wrong with the account now, as the event PROVIDER_FAILING reports it."""
    calls: RecentProviderCalls
    max_rate_per_second: Optional[int]
    """The most calls to the provider per second, over all workers; null means no limit."""
    max_concurrency: Optional[int]
    """The most concurrent calls to the provider, over all workers; null means no limit."""
    windows: ProviderHealthWindows


class ProviderHealthWindow(Model):
    """The time that is counted."""

    from_: datetime
    """The start of the first quarter of an hour that is counted."""
    to: datetime
    """The end of the period, which is not part of it."""


class ProviderHealthWindows(Model):
    """What became of all mail of a provider account lately. The quarters of an hour that a window touches count
    whole. Tests are not counted.
    """

    last15_minutes: ProviderMailFigures
    last_day: ProviderMailFigures
    last_week: ProviderMailFigures


class ProviderImportResult(Model):
    """The result of an import from a provider."""

    imported: int
    """The number of newly suppressed addresses."""
    already_there: int
    """The number of addresses that were already suppressed for all messages."""
    unusable: int
    """The number of entries that name no address, or that hold for some messages only."""
    next_cursor: Optional[str]
    """The `cursor` of the request that continues; null if all lists were read."""


class ProviderMailFigures(Model):
    """What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `accept_latency_ms` are
    up to a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if
    they are of fewer than 20.
    """

    attempts: int
    """The number of calls to the provider, for one recipient each, that ended."""
    accepted: int
    """The number of attempts that the provider accepted."""
    rejected: int
    """The number of attempts that the provider refused for good."""
    deferred: int
    """The number of attempts that the provider, or later the recipient's server, put off."""
    sent: int
    """The number of recipients whose message the provider accepted."""
    delivered: int
    """The number of recipients whose message was delivered."""
    bounced: int
    """The number of recipients whose message bounced."""
    complained: int
    """The number of recipients who reported the message as spam."""
    deferral_rate: Optional[float]
    """`deferred` divided by `attempts`."""
    bounce_rate: Optional[float]
    """`bounced` divided by `sent`."""
    complaint_rate: Optional[float]
    """`complained` divided by `delivered`."""
    delivery_rate: Optional[float]
    """`delivered` divided by `sent`."""
    accept_latency_ms: Optional[AcceptLatency]
    """How long accepted calls took; null if there are fewer than 20."""


class RateLimits(Model):
    """Rate limits, in requests per second; null means the operator's limit."""

    send_per_second: Optional[int]
    """The limit of `POST /v1/send`."""
    other_per_second: Optional[int]
    """The limit of all other operations together."""


class RecentProviderCalls(Model):
    """The newest calls of the last 15 minutes, at most 1,000. Tests are not counted."""

    since: datetime
    """All calls since this time are counted: 15 minutes ago, or later if there were more than 1,000."""
    accepted: int
    """The number of calls that the provider accepted."""
    rejected: int
    """The number of calls that the provider rejected."""
    throttled: int
    """The number of calls that the provider throttled."""
    unavailable: int
    """The number of calls that failed without a delivery."""
    unknown: int
    """The number of calls whose answer was lost."""
    pending: int
    """The number of calls that have not ended."""
    median_duration_ms: Optional[int]
    """The median of the durations of the calls, in milliseconds; null if no call ended."""
    p95_duration_ms: Optional[int]
    """The 95th percentile of the durations of the calls, in milliseconds; null if no call ended."""
    last_failure: Optional[FailedProviderCall]
    """The newest call that the provider did not accept; null if there is none."""


class RecipientDetail(Model):
    """One recipient of a message."""

    kind: RecipientKind
    """Where the recipient stands in the mail: TO, CC or BCC."""
    to_hash: str
    """The SHA-256 of the address in lower case, as lower-case hexadecimal."""
    status: MessageStatus
    provider_account_id: Optional[str]
    """The provider account of the latest attempt."""
    provider_message_id: Optional[str]
    """The provider's message id for this recipient."""
    attempts: int
    """The number of attempts. A throttled attempt is not counted."""
    last_error: Optional[str]
    """The error of the latest failed attempt."""
    events: List[HistoryEvent]
    """The events, oldest first."""


class RecoveryCodes(Model):
    """The recovery codes, which are shown once."""

    recovery_codes: List[str]
    """Ten codes. Each replaces the code of the second factor once."""


class RemovalResult(Model):
    """The result of a removal."""

    removed: int
    """The number of suppressions that were removed."""
    not_found: int
    """The number of addresses that were not suppressed or were repeated in the request."""
    total: int
    """The number of addresses in the request: `removed` plus `not_found`."""


class _RemoveSuppressionsRequest(TypedDict):
    emails: Sequence[str]


class RemoveSuppressionsRequest(_RemoveSuppressionsRequest, total=False):
    """Addresses whose suppressions to remove."""

    unsubscribe_group_id: str


class ReplayResult(Model):
    """The number of replayed deliveries."""

    replayed: int
    """The number of deliveries that are due again."""
    continue_from: Optional[datetime]
    """One request replays at most 100,000 deliveries. If there are more, the `since` of the next request; otherwise
    null.
    """


class _ReplayWebhooksRequest(TypedDict):
    since: Union[datetime, str]
    until: Union[datetime, str]


class ReplayWebhooksRequest(_ReplayWebhooksRequest, total=False):
    """Which deliveries to replay."""

    status: WebhookDeliveryStatus


class _ResolveRouteRequest(TypedDict):
    from_: str


class ResolveRouteRequest(_ResolveRouteRequest, total=False):
    """The message to resolve the route of."""

    to: Recipients
    tags: Sequence[str]
    message_class: MessageClass
    size_bytes: int
    test: bool


class RetriedDeadJobs(Model):
    """The dead jobs that are due again."""

    message_id: str
    chunks: int
    """The number of chunks."""


class RolledBack(Model):
    """The result of a rollback."""

    template_id: str
    """The template."""
    current_version_id: str
    """The version that messages are rendered from now."""
    version_number: int
    """The number of the version, from 1."""


class RotateApiKeyRequest(TypedDict, total=False):
    """How to rotate a key."""

    grace_period_seconds: int


class RotateWebhookSecretRequest(TypedDict, total=False):
    """How to rotate a signing secret."""

    grace_period_seconds: int


class RouteResolution(Model):
    """The route of a message."""

    rule: Optional[RoutingRule]
    """The rule that matched; null if none did."""
    passed_over: List[PassedOverRule]
    """The rules that were checked before and skipped, in order."""
    account: Optional[ProviderAccount]
    """The account that would send the message; null if there is none. Of several targets each message gets one, so
    the next message may get another.
    """
    domain_verified: bool
    """Whether the sender's domain is verified on this account."""
    targets: List[TargetResolution]
    """The targets of the rule, in order; empty if one account sends all its messages."""
    fallbacks: List[FallbackResolution]
    """The fallbacks of the rule, in order."""
    refusal: Optional[str]
    """Why a send would be refused: `NO_ACTIVE_PROVIDER` (in the region of the rule) or `DOMAIN_NOT_VERIFIED`; null if
    it would be accepted.
    """


class RoutingProgress(Model):
    """How far a routing rule is."""

    targets: List[RoutingTargetProgress]
    """The targets of the rule in their order; empty if one account sends all its messages."""


class RoutingRamp(Model):
    """How the daily cap of a target grows, so that mailbox providers get to know a new account."""

    start: int
    """The most recipients of the first day."""
    factor: float
    """What each step multiplies the cap by, 1.01 to 10."""
    every_days: int
    """The days from one step to the next, 1 to 30."""
    from_: str
    """The first day, in UTC; before it the target gets nothing."""


class RoutingRampBounds(Model):
    """The bounds of the rates of an account, for all its mail, beyond which the ramps of a rule do not grow."""

    bounce_rate: float
    """The most bounces, as a part of the sent mails."""
    complaint_rate: float
    """The most complaints, as a part of the delivered mails."""


class RoutingRampProgress(Model):
    """How far the ramp of a target is."""

    cap: int
    """The most recipients of this day by the ramp; 0 before its first day."""
    state: RoutingRampState
    """`notBegun` before its first day; `growing`; `held` while a rate is beyond its bound; `finished`, and then it
    limits no more.
    """
    since: datetime
    """Since when it is in this state."""
    next_step_on: Optional[str]
    """The day of UTC of the next step, or of the first; null while it is held, and when it is finished."""
    bounce_rate: Optional[float]
    """The part of the account's sent mails that bounced, over a day, or over a week if fewer than 100 were sent in a
    day; null if fewer than 100 were.
    """
    complaint_rate: Optional[float]
    """The part of the account's delivered mails that was reported as spam, over the same time; null as `bounce_rate`
    is.
    """
    sent: int
    """How many mails the account sent in that time."""
    steps: List[RoutingRampStep]
    """What happened to the ramp, the newest first, up to 50."""


class RoutingRampStep(Model):
    """Something that happened to a ramp."""

    at: datetime
    action: RoutingRampAction
    """`begin`: its first day came. `step`: the cap grew. `hold`: a rate passed its bound. `halve`: a rate passed
    twice its bound. `resume`: the rates are within their bounds again. `finish`: the cap reached that of the
    target.
    """
    cap_before: int
    """The cap of a day before."""
    cap_after: int
    """The cap of a day from then on."""
    bounce_rate: Optional[float]
    """The rate then; null if it was not known."""
    complaint_rate: Optional[float]
    """The rate then; null if it was not known."""


class RoutingRule(Model):
    """A routing rule. A message must match all conditions of the rule; an absent condition matches every message."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    priority: int
    """0 to 1,000. Rules with a higher priority are checked first; for equal priorities, older rules are."""
    is_active: bool
    """Whether it is in use."""
    sender_domain: Optional[str]
    """The sender's domain: `example.com`, or `*.example.com` for every subdomain but not the domain itself; null
    matches every domain.
    """
    tags: List[str]
    """The tags."""
    tag_match: TagMatch
    """Whether a message must have `any` or `all` of the tags."""
    recipient_domains: List[str]
    """The domains of the recipients, such as `example.com` or `*.example.com`: every recipient of a message must
    match one of them. Empty for all recipients.
    """
    recipient_mailbox_providers: List[MailboxProvider]
    """The mailbox providers of the recipients, by the MX records of their domains: every recipient of a message must
    have one of them. `other` are all that are not named. Empty for all recipients. A domain that is not known yet
    matches none: it is looked up after the first message to it.
    """
    message_class: Optional[MessageClass]
    """The class that messages have: `transactional` or `bulk`; null for both."""
    min_size_bytes: Optional[int]
    """The smallest size of messages, in bytes: subject, bodies and decoded attachments. What single recipients have
    instead does not count. Null for no bound.
    """
    max_size_bytes: Optional[int]
    """The largest size of messages, in bytes; null for no bound."""
    test: Optional[bool]
    """Whether the rule is for tests only (true) or for live messages only (false); null for both."""
    region: Optional[AccountRegion]
    """The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere. Accounts outside of
    it are skipped, whatever else fails.
    """
    provider_account_id: str
    """The account that sends the messages; of a rule with targets, that of the first."""
    targets: List[RoutingTarget]
    """The accounts that share the messages; empty if one account sends them all."""
    sticky: RoutingStickiness
    """Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient), or
    those of one `sender`.
    """
    prefer: RoutingPreference
    """Whether targets share the messages by their `weight` alone, or also by their `health`: the weight of a target
    whose mail fails is lowered until its mail succeeds again.
    """
    over_cap: RoutingOverCap
    """What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits
    (`wait`).
    """
    ramp_bounds: RoutingRampBounds
    """The bounds of the rates of an account, beyond which its ramp does not grow."""
    fallback_provider_account_ids: List[str]
    """The accounts that send if this account, or none of the targets, can, in this order."""
    on_unknown: OnUnknown
    """What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none,
    `resend` at once (the recipient may get the message twice), or `fail` (the message may have been sent).
    """
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""


class RoutingSimulation(Model):
    """What the live messages of a period would have done. Accounts and their domains count as they are now."""

    from_: datetime
    """The begin of the period."""
    to: datetime
    """The end of the period, which is not part of it."""
    messages: int
    """The messages that were accepted in the period."""
    recipients: int
    """The recipients of these messages."""
    sampled_one_in: int
    """1 if every message was looked at. Of more than 100,000, one in so many was, and the counts are multiplied by
    it.
    """
    accounts: List[SimulatedAccount]
    """The accounts that the messages went to, in the simulation or in fact."""
    rules: List[SimulatedRuleCounts]
    """The rules in the order in which they are checked."""
    without_rule: int
    """Messages without a matching rule, and those that name their account."""
    refused: SimulatedRefusals
    unsent: int
    """Recipients that would have waited for a cap until sending is given up."""


class RoutingTarget(Model):
    """An account that gets a part of a rule's messages."""

    provider_account_id: str
    """The provider account."""
    weight: int
    """1 to 1,000. Each account gets its weight's part of the messages."""
    daily_cap: Optional[int]
    """The most recipients of a day in UTC; null for no cap."""
    hourly_cap: Optional[int]
    """The most recipients of an hour; null for no cap."""
    ramp: Optional[RoutingRamp]
    """How its daily cap grows; null if it does not."""


class RoutingTargetProgress(Model):
    """How far a target of a routing rule is."""

    provider_account_id: str
    """The provider account."""
    weight: int
    """1 to 1,000. Each account gets its weight's part of the messages."""
    used_today: int
    """How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a
    little ahead: workers reserve several at once.
    """
    daily_cap: Optional[int]
    """The most recipients of this day, by `daily_cap` and by the ramp; null for no cap."""
    used_this_hour: int
    """How many recipients of the rule's messages it had in this hour. Counted if it has an `hourly_cap`, and a little
    ahead.
    """
    hourly_cap: Optional[int]
    """The most recipients of an hour; null for no cap."""
    ramp: Optional[RoutingRampProgress]
    """How far its ramp is; null if it has none."""


class SchedulerTask(Model):
    """A task of the scheduler, with its last run."""

    name: str
    """The name of the task."""
    every_ms: int
    """How often the task runs, in milliseconds."""
    leader: str
    """The process that ran the task last."""
    last_started_at: datetime
    """When the last run began."""
    last_finished_at: Optional[datetime]
    """When the last finished run ended."""
    last_succeeded_at: Optional[datetime]
    """When the last successful run ended."""
    took_ms: Optional[int]
    """How long the last finished run took, in milliseconds."""
    lag_ms: int
    """How long ago the last successful run was, less one interval and the ten seconds within which a run is stored,
    in milliseconds.
    """
    is_late: bool
    """Whether the task needs attention."""
    last_error: Optional[str]
    """The error of the last finished run."""


class SendAttempt(Model):
    """One call to a provider for one recipient."""

    id: str
    """The id of the attempt. The events of this attempt have it as `attempt_id`."""
    to_hash: str
    """The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal."""
    provider_account_id: str
    """The provider account of the call. It may have been removed since."""
    provider_type: ProviderType
    """The provider type of the account."""
    started_at: datetime
    """When the call started."""
    duration_ms: Optional[int]
    """The duration until the outcome was known, in milliseconds; null if it is not known yet."""
    outcome: SendAttemptOutcome
    """The outcome: ACCEPTED, REJECTED, THROTTLED, UNAVAILABLE, UNKNOWN (the response was lost, and the provider may
    have accepted the message) or PENDING (the call still runs).
    """
    status_code: Optional[int]
    """The status code of the provider's response."""
    reason: Optional[str]
    """The provider's error message, or the error of the call."""


class SendBatchRequest(TypedDict):
    """The messages to send."""

    messages: Sequence[BatchMessage]


class SendBatchResponse(Model):
    """The results, one for each message, in the order of the request."""

    results: List[BatchResult]
    """The results, in the order of the messages."""


class _SendMessageRequest(TypedDict):
    to: Recipients


class SendMessageRequest(_SendMessageRequest, total=False):
    """A message to send. It needs at least one of `template_id`, `html` and `text`."""

    cc: Addresses
    bcc: Addresses
    delivery: DeliveryMode
    from_: str
    subject: str
    html: str
    text: str
    reply_to: Addresses
    headers: Mapping[str, str]
    attachments: Sequence[MessageAttachment]
    tags: Sequence[str]
    message_class: MessageClass
    metadata: Mapping[str, Any]
    template_id: str
    locale: str
    variables: Mapping[str, Any]
    unsubscribe_group_id: str
    tracking: Tracking
    scheduled_at: Union[datetime, str]
    expires_at: Union[datetime, str]
    provider_account_id: str
    test: bool
    test_outcome: TestOutcome


class SendMessageResponse(Model):
    """The result of a send. Suppressed recipients are dropped. If all recipients are suppressed, no message is
    created.
    """

    message_id: Optional[str]
    """The id of the message; null if all recipients are suppressed."""
    provider_id: Optional[str]
    """The provider account that will send the message; null if all recipients are suppressed."""
    provider_type: Optional[ProviderType]
    """The provider type of this account."""
    status: SendStatus
    """`queued`, or `suppressed` if all recipients are suppressed."""
    domain_verified: Optional[bool]
    """Whether the sender's domain is verified on this account."""
    suppressed_count: Optional[int]
    """The number of suppressed recipients; absent if none is suppressed."""
    accepted_count: Optional[int]
    """The number of accepted recipients; absent if none or all are suppressed."""


class _SendTemplateTestRequest(TypedDict):
    to: Addresses


class SendTemplateTestRequest(_SendTemplateTestRequest, total=False):
    """To whom a template is sent, and with what."""

    variables: Mapping[str, Any]
    version_id: str
    locale: str
    from_: str
    subject: str


class SenderDomain(Model):
    """A sender domain, across the accounts that have it."""

    domain: str
    """The domain name, in ASCII."""
    status: SenderDomainStatus
    """`complete`: DNS has all records that mail needs. `incomplete`: some are missing or differ, and were never
    found. `broken`: some were found before, and two checks missed them. `unknown`: DNS was not asked yet or could
    not be asked, or no account names its records.
    """
    accounts: List[SenderDomainAccount]
    """The accounts that have the domain."""
    spf: SenderDomainSpf
    dkim: List[SenderDomainDkim]
    """The DKIM records that the accounts want."""
    dmarc: SenderDomainDmarc
    conflicts: List[SenderDomainConflict]
    """What is wrong with the domain as a whole."""
    checked_at: Optional[datetime]
    """When DNS was last asked; null before the first check."""
    broken_since: Optional[datetime]
    """Since when DNS lacks records that it had; null if it has them."""


class SenderDomainAccount(Model):
    """A sender domain at one account."""

    provider_account_id: str
    """The provider account."""
    provider_type: ProviderType
    display_name: str
    """The name of the account."""
    domain_id: str
    """The id of the domain in `/v1/providers/:id/domains`."""
    state: DomainState
    """The provider's verdict, which decides whether the account may send from the domain."""
    records: List[SenderDomainRecord]
    """The records that the provider wants, with what DNS has."""


class SenderDomainConflict(Model):
    """Something that is wrong with a domain as a whole."""

    code: SenderDomainConflictCode
    """The kind of conflict, for programs."""
    message: str
    """What is wrong and what to do, for people."""
    names: List[str]
    """The names of the records."""


class SenderDomainDkim(Model):
    """A DKIM record that an account wants."""

    provider_account_id: str
    """The provider account."""
    selector: str
    """The DKIM selector."""
    name: str
    """The full name of the record."""
    status: DnsFoundStatus
    """Whether DNS has the record."""


class SenderDomainDmarc(Model):
    """The DMARC policy of a domain."""

    record: Optional[str]
    """The record; null if there is none."""
    policy_domain: Optional[str]
    """The domain that has the record: this one, or one above it."""
    policy: Optional[DmarcPolicy]
    """What receivers do with mail that does not pass; null without a valid record."""
    status: DmarcStatus
    aligned_spf: Optional[bool]
    """Whether the return paths of all accounts are of this domain, as far as the policy asks for it; null if there is
    no policy or an account does not name its records.
    """
    aligned_dkim: Optional[bool]
    """The same of the signatures of all accounts. Mail passes if one of both is aligned."""


class SenderDomainRecord(Model):
    """A DNS record that a provider wants, with what DNS has."""

    type: DnsRecordType
    """The type of the record."""
    name: str
    """The full name of the record."""
    value: str
    """The value that the provider wants."""
    priority: Optional[int]
    """The priority of an MX record; null for other types."""
    purpose: DnsRecordPurpose
    """What the record is for."""
    status: DnsRecordStatus
    """Whether the provider found the record."""
    found: List[str]
    """The values that DNS has there; of SPF and DMARC, the records of that kind."""
    found_status: DnsFoundStatus
    """Whether DNS has the record; `unknown` if DNS was not or could not be asked."""


class SenderDomainSpf(Model):
    """The SPF record of a domain. A domain has one record for all of its senders."""

    record: Optional[str]
    """The record; the first, if there are several; null if there is none."""
    status: SpfStatus
    """Whether receivers accept it. Accounts may do without one: SENDGRID, POSTMARK and SES send with return paths of
    other domains.
    """
    lookups: int
    """The look-ups that it causes, with those of included records, up to 50."""
    lookups_max: int
    """The look-ups that receivers make (RFC 7208, 4.6.4)."""
    void_lookups: int
    """The look-ups that find nothing. Receivers accept two."""
    missing: List[str]
    """The mechanisms that accounts want and the record lacks."""
    recommended: Optional[str]
    """One record for all accounts; null if the record need not be changed."""


class SenderDomainSummary(Model):
    """A sender domain in a list."""

    domain: str
    """The domain name, in ASCII."""
    status: SenderDomainStatus
    """What the last check found."""
    provider_account_ids: List[str]
    """The provider accounts that have the domain."""
    conflicts: List[SenderDomainConflictCode]
    """The kinds of conflicts that the last check found."""
    checked_at: Optional[datetime]
    """When DNS was last asked; null before the first check."""
    broken_since: Optional[datetime]
    """Since when DNS lacks records that it had; null if it has them."""


class SeriesQuery(Model):
    """The query of a series, with its defaults filled in."""

    from_: datetime
    """The begin of the period."""
    to: datetime
    """The end of the period, which is not part of it."""
    granularity: MetricsGranularity
    """The length of the buckets."""
    time_zone: Optional[str]
    """The time zone of the buckets, by its IANA name."""


class Session(Model):
    """Who is signed in, and where."""

    user: User
    organization: SessionOrganization
    role: Role
    """The role of the user in the organization."""
    permissions: List[CallerPermission]
    """The permissions of the role, and `OPERATOR` if the user is an operator."""
    organizations: List[OrganizationMembership]
    """The organizations of the user, by their names."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime
    """When the session ends at the latest. It ends earlier after 12 hours without a request."""


class SessionOrganization(Model):
    """The organization of a session."""

    id: str
    """The id."""
    name: str
    """The name of the organization."""


class Settings(Model):
    """The settings of the organization."""

    name: str
    """The name of the organization. Recipients see it on the pages of unsubscribe links."""
    brand_color: Optional[str]
    """The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour."""
    unverified_domains: UnverifiedDomains
    """What happens to a message whose sender domain is not verified on the provider account: `reject` (the send gets
    422) or `accept` (the send gets 202 with `domainVerified: false`).
    """
    track_opens: bool
    """Whether opens are tracked, unless a message sets `tracking`. A change applies to messages accepted after it."""
    track_clicks: bool
    """Whether clicks are tracked, unless a message sets `tracking`. A change applies to messages accepted after it.
    """
    retention_days: Optional[int]
    """How many days messages and their data are stored; null means the operator's retention period. If the operator's
    period is shorter, it applies. Metrics and the audit log are not affected.
    """
    rate_limits: RateLimits
    soft_bounce_limit: int
    """How many soft bounces of an address add a suppression for it, with the source BOUNCE; 0 means never."""
    soft_bounce_window_days: int
    """The number of days within which soft bounces are counted together."""


class SignInMethods(Model):
    """The ways to sign in."""

    password: bool
    """Whether users can sign in with a password."""
    oidc: Optional[OidcMethod]


class SimulateRoutingRequest(TypedDict, total=False):
    """The rules to try, and on which messages."""

    rules: Sequence[CreateRoutingRuleRequest]
    period: RoutingSimulationPeriod


class SimulatedAccount(Model):
    """The recipients of an account."""

    provider_account_id: str
    """The provider account."""
    recipients: int
    """Recipients in the simulation."""
    actual_recipients: int
    """Recipients in fact."""


class SimulatedRefusals(Model):
    """Messages that would have been refused."""

    no_active_provider: int
    """Messages refused with `NO_ACTIVE_PROVIDER`."""
    domain_not_verified: int
    """Messages refused with `DOMAIN_NOT_VERIFIED`."""


class SimulatedRuleCounts(Model):
    """What a rule decided."""

    id: Optional[str]
    """The id of the rule; null for one of the request."""
    name: str
    """The name."""
    messages: int
    """The messages that it decided."""
    recipients: int
    """The recipients of these messages."""
    targets: List[SimulatedTarget]
    """The targets of the rule, in order; empty if one account sends all its messages."""


class SimulatedTarget(Model):
    """What a target got."""

    provider_account_id: str
    """The provider account."""
    recipients: int
    """The recipients that it got."""
    over_hourly_cap: int
    """Recipients for whom its hourly cap was reached."""
    over_daily_cap: int
    """Recipients for whom its daily cap was reached."""
    waited: int
    """Recipients that waited for a later hour and then went to it."""


class StartTotpRequest(TypedDict):
    """How to begin a second factor."""

    password: str


class Success(Model):
    """The response to a deletion."""

    success: bool
    """Always true."""


class SummaryPeriod(Model):
    """The period of a summary."""

    from_: datetime
    """The begin of the period."""
    to: datetime
    """The end of the period, which is not part of it."""


class Suppression(Model):
    """An address that receives no messages. Only its hash is stored."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    email_hash: str
    """The SHA-256 of the address in lower case, as lower-case hexadecimal."""
    unsubscribe_group_id: Optional[str]
    """The unsubscribe group that the suppression applies to; null if it applies to all messages."""
    source: SuppressionSource
    """The source of the suppression."""
    created_at: datetime
    """When it was created."""
    message_id: Optional[str]
    """The message that bounced, that was reported or whose unsubscribe link was used; null if no message caused the
    suppression or it is not known. The message may have been deleted since.
    """


class TargetResolution(Model):
    """A target of the matching rule."""

    provider_account_id: str
    """The provider account."""
    weight: int
    """The weight that the rule gives it."""
    health_percent: int
    """The percent of the weight that counts now for the domain of the first recipient: below 100 if the rule prefers
    healthy targets and the mail of this one fails.
    """
    share: float
    """The part of the rule's messages that it gets now, from 0 to 1."""
    domain_verified: bool
    """Whether the sender's domain is verified on this account."""
    used_today: int
    """How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a
    little ahead: workers reserve several at once.
    """
    daily_cap: Optional[int]
    """The most recipients of this day, by `daily_cap` and by the ramp; null for no cap."""
    used_this_hour: int
    """How many recipients of the rule's messages it had in this hour. Counted if it has an `hourly_cap`, and a little
    ahead.
    """
    hourly_cap: Optional[int]
    """The most recipients of an hour; null for no cap."""
    ramp_state: Optional[RoutingRampState]
    """The state of its ramp: `notBegun`, `growing`, `held` or `finished`; null without one."""
    passed_over: Optional[str]
    """Why this target gets no messages: `PROVIDER_INACTIVE`; `DOMAIN_NOT_VERIFIED` if the sender's domain is
    unverified on it; `REGION` if it is not in the rule's region; `RAMP_NOT_BEGUN`; null if it gets some.
    """


class Template(Model):
    """A template. Its content is in its versions."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    description: Optional[str]
    """A description for people."""
    tags: List[str]
    """The tags."""
    current_version_id: Optional[str]
    """The version of the default language that messages are rendered from; null if there is no such version yet."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""
    type: TemplateType
    """`TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
    `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
    """


class TemplateDetail(Model):
    """A template with the content of its current version."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    description: Optional[str]
    """A description for people."""
    tags: List[str]
    """The tags."""
    current_version_id: Optional[str]
    """The version of the default language that messages are rendered from; null if there is no such version yet."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""
    type: TemplateType
    """`TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
    `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
    """
    current_version: Optional[TemplateVersion]
    """The current version of the default language; null if there is no such version yet."""
    current_versions: List[CurrentTemplateVersion]
    """The current versions of all languages."""


class TemplatePart(Model):
    """A layout or partial in a version."""

    template_id: str
    """The id of the layout or partial."""
    type: TemplateType
    """`LAYOUT` or `PARTIAL`."""
    name: str
    """The name."""
    version_id: str
    """The version that is in it."""
    version_number: int
    """The number of the version, from 1."""


class TemplatePreview(Model):
    """A rendered template version."""

    subject: Optional[str]
    """The rendered subject; absent if the version has none."""
    html: str
    """The HTML body."""
    text: str
    """The rendered text; empty if the version has no text."""


class TemplateUse(Model):
    """A current version with the layout or partial in it."""

    template_id: str
    """The id of the template that the version is of."""
    type: TemplateType
    """`TEMPLATE`, or the `LAYOUT` or `PARTIAL` that has it in it."""
    name: str
    """The name."""
    version_id: str
    """The id of the version."""
    version_number: int
    """The number of the version, from 1."""
    locale: Optional[str]
    """The language of the version, as a language tag; null is the default language."""


class TemplateVersion(Model):
    """A version of a template. What its author gave never changes."""

    id: str
    """The id."""
    template_id: str
    """The template."""
    version_number: int
    """The number of the version: 1, 2, 3 and so on."""
    mjml_source: Optional[str]
    """The MJML source."""
    html_content: str
    """The HTML source, a Handlebars template. With `mjml_source`, the HTML that it was compiled to, with the layout
    and the partials in it.
    """
    text_content: Optional[str]
    """The text, a Handlebars template."""
    variables_schema: Optional[Dict[str, Any]]
    """The JSON Schema of the variables."""
    created_by: str
    """The id of the API key that created the version."""
    created_at: datetime
    """When it was created."""
    locale: Optional[str]
    """The language of the version, as a language tag; null is the default language."""
    subject: Optional[str]
    """The subject of messages that bring none, a Handlebars template."""
    preheader: Optional[str]
    """What mail programs show beside the subject, a Handlebars template."""
    from_: Optional[str]
    """The sender of messages that bring none."""
    reply_to: List[str]
    """The addresses for replies to messages that bring none."""
    layout_id: Optional[str]
    """The layout around the content."""
    is_text_generated: bool
    """Whether the text was made from the HTML, because none was given."""
    parts: List[TemplatePart]
    """The layout and the partials in the version, also those in others, as they were when it was last composed."""


class TemplateVersionList(Model):
    """All versions of a template, newest first."""

    data: List[TemplateVersionSummary]
    """The records."""
    current_version_id: Optional[str]
    """The version of the default language that messages are rendered from; null if there is no such version yet."""
    current_versions: List[CurrentTemplateVersion]
    """The current versions of all languages."""


class TemplateVersionSummary(Model):
    """A version of a template, without its content."""

    id: str
    """The id."""
    template_id: str
    """The template."""
    version_number: int
    """The number of the version, from 1."""
    locale: Optional[str]
    """The language of the version, as a language tag; null is the default language."""
    created_by: str
    """The id of the API key that created the version."""
    created_at: datetime
    """When it was created."""


class TotpEnrolment(Model):
    """The secret of a second factor, which is shown once."""

    secret: str
    """The secret in base 32, to type into an authenticator."""
    uri: str
    """The `otpauth` URI of the secret, for a QR code."""


class UnsubscribeGroup(Model):
    """A kind of messages that recipients can unsubscribe from."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    name: str
    """The name."""
    description: Optional[str]
    """A description for people."""
    is_default: bool
    """Whether this is the default group of the organization. At most one group is."""
    created_at: datetime
    """When it was created."""


class UpdateApiKeyRequest(TypedDict, total=False):
    """The changes to a key. Absent fields keep their values."""

    name: str
    permissions: Sequence[Permission]
    allowed_ips: Sequence[str]
    expires_at: Optional[Union[datetime, str]]


class UpdateInvitationRequest(TypedDict, total=False):
    """The changes to an invitation. Absent fields keep their values."""

    role: Role


class UpdateMemberRequest(TypedDict, total=False):
    """The changes to a member. Absent fields keep their values."""

    role: Role


class UpdateMessageRequest(TypedDict, total=False):
    """The change of a message."""

    scheduled_at: Optional[Union[datetime, str]]


class UpdateProviderRequest(TypedDict, total=False):
    """The changes to an account. Absent fields keep their values."""

    display_name: str
    is_active: bool
    credentials: ProviderCredentials
    event_secrets: EventSecrets
    max_rate_per_second: Optional[int]
    max_concurrency: Optional[int]


class UpdateRoutingRuleRequest(TypedDict, total=False):
    """The changes to a rule. Absent fields keep their values."""

    name: str
    priority: int
    is_active: bool
    sender_domain: Optional[str]
    tags: Sequence[str]
    tag_match: TagMatch
    recipient_domains: Sequence[str]
    recipient_mailbox_providers: Sequence[MailboxProvider]
    message_class: Optional[MessageClass]
    min_size_bytes: Optional[int]
    max_size_bytes: Optional[int]
    test: Optional[bool]
    region: Optional[AccountRegion]
    provider_account_id: str
    targets: Sequence[NewRoutingTarget]
    sticky: RoutingStickiness
    prefer: RoutingPreference
    over_cap: RoutingOverCap
    ramp_bounds: NewRoutingRampBounds
    fallback_provider_account_ids: Sequence[str]
    on_unknown: OnUnknown


class UpdateSessionRequest(TypedDict):
    """The change of a session."""

    organization_id: str


class UpdateSettingsRequest(TypedDict, total=False):
    """The changes to the settings. Absent fields keep their values."""

    name: str
    brand_color: Optional[str]
    unverified_domains: UnverifiedDomains
    track_opens: bool
    track_clicks: bool
    retention_days: Optional[int]
    rate_limits: UpdateRateLimits
    soft_bounce_limit: int
    soft_bounce_window_days: int


class UpdateTemplateRequest(TypedDict, total=False):
    """The changes to a template. Absent fields keep their values."""

    name: str
    description: Optional[str]
    tags: Sequence[str]


class UpdateUnsubscribeGroupRequest(TypedDict, total=False):
    """The changes to a group. Absent fields keep their values."""

    name: str
    description: Optional[str]
    is_default: bool


class UpdateUserRequest(TypedDict, total=False):
    """The changes to the user. Absent fields keep their values."""

    name: str
    password: str
    current_password: Optional[str]


class UpdateWebhookEndpointRequest(TypedDict, total=False):
    """The changes to an endpoint. Absent fields keep their values."""

    url: str
    events: Sequence[WebhookEventType]
    tags: Sequence[str]
    is_active: bool


class User(Model):
    """A user."""

    id: str
    """The id."""
    email: str
    """The address."""
    name: str
    """The name of the user."""
    totp_enabled: bool
    """Whether the user has a second factor."""
    has_password: bool
    """Whether the user can sign in with a password."""
    is_operator: bool
    """Whether the user may see and change what belongs to the installation."""
    created_at: datetime
    """When it was created."""


class ValidationResult(Model):
    """The result of checking an account's credentials."""

    valid: bool
    """Whether the provider accepted the credentials. `is_active` now has the same value."""
    provider_type: ProviderType


class WebhookAttempt(Model):
    """One call to an endpoint."""

    id: str
    """The id."""
    started_at: datetime
    """When the call began."""
    duration_ms: int
    """The duration of the call, in milliseconds."""
    status_code: Optional[int]
    """The HTTP status; null if there was no response."""
    answer: Optional[str]
    """The first KiB of the response, or the error of the call."""


class WebhookDelivery(Model):
    """The delivery of one event to one endpoint."""

    id: str
    """The id of the delivery. The endpoint gets it as the header `webhook-id`."""
    webhook_endpoint_id: str
    """The webhook endpoint."""
    message_id: Optional[str]
    """The id of the message; null if the event is about no message."""
    event_id: str
    """The id of the event."""
    event_type: WebhookEventType
    to_hash: Optional[str]
    """The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
    message, or the recipient is no longer stored.
    """
    status: WebhookDeliveryStatus
    """The status of the delivery."""
    attempt_count: int
    """The number of attempts since the delivery was created, or since it was last replayed after its end."""
    next_attempt_at: Optional[datetime]
    """When the next attempt is due; null if the delivery has ended."""
    created_at: datetime
    """When it was created."""
    ended_at: Optional[datetime]
    """When the endpoint accepted the event, or the last attempt failed."""
    attempts: List[WebhookAttempt]
    """The newest 20 attempts, oldest first."""


class WebhookDeliveryDetail(Model):
    """A delivery with the body of its calls."""

    id: str
    """The id of the delivery. The endpoint gets it as the header `webhook-id`."""
    webhook_endpoint_id: str
    """The webhook endpoint."""
    message_id: Optional[str]
    """The id of the message; null if the event is about no message."""
    event_id: str
    """The id of the event."""
    event_type: WebhookEventType
    to_hash: Optional[str]
    """The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
    message, or the recipient is no longer stored.
    """
    status: WebhookDeliveryStatus
    """The status of the delivery."""
    attempt_count: int
    """The number of attempts since the delivery was created, or since it was last replayed after its end."""
    next_attempt_at: Optional[datetime]
    """When the next attempt is due; null if the delivery has ended."""
    created_at: datetime
    """When it was created."""
    ended_at: Optional[datetime]
    """When the endpoint accepted the event, or the last attempt failed."""
    attempts: List[WebhookAttempt]
    """The newest 20 attempts, oldest first."""
    payload: Optional[Dict[str, Any]]
    """The body that is posted, as a call builds it now; null if the message or the recipient's address is no longer
    stored. The earlier calls posted the same, except for what was learned since: `provider_type` before the
    message was sent.
    """


class WebhookEndpoint(Model):
    """A URL that receives events."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    url: str
    """The URL."""
    events: List[WebhookEventType]
    """The types of the events that the endpoint receives."""
    tags: List[str]
    """If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that
    are about no message are not filtered.
    """
    is_active: bool
    """Whether the endpoint receives events."""
    failing_since: Optional[datetime]
    """Since when all deliveries have failed; null if the last one succeeded. After five days of failures the endpoint
    becomes inactive.
    """
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""


class WebhookEndpointWithSecret(Model):
    """A webhook endpoint with its signing secret, which is returned only once."""

    id: str
    """The id."""
    organization_id: str
    """The organization that it belongs to."""
    url: str
    """The URL."""
    events: List[WebhookEventType]
    """The types of the events that the endpoint receives."""
    tags: List[str]
    """If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that
    are about no message are not filtered.
    """
    is_active: bool
    """Whether the endpoint receives events."""
    failing_since: Optional[datetime]
    """Since when all deliveries have failed; null if the last one succeeded. After five days of failures the endpoint
    becomes inactive.
    """
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it was last changed."""
    secret: str
    """The secret that signs the deliveries. It cannot be retrieved again."""


class WebhookTestResult(Model):
    """The response of an endpoint to a test event."""

    success: bool
    """Whether the endpoint responded with a status from 200 to 299."""
    status_code: int
    """The HTTP status; 0 if there was no response."""
    response_time: str
    """The response time in milliseconds, such as `123ms`."""


class Worker(Model):
    """A worker that is registered."""

    name: str
    """The name of the worker's machine and process."""
    started_at: datetime
    """When the worker registered."""
    leased_until: datetime
    """When the leases of the worker end, if it sends no heartbeat."""
    is_dead: bool
    """Whether the leases of the worker have ended."""
    chunks: int
    """The number of chunks that the worker holds."""


class QueuedEvent(Model):
    """The message is accepted and queued."""

    event: Literal["QUEUED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: MessageEventData


class SentEvent(Model):
    """The provider accepted the message."""

    event: Literal["SENT"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DeliveryEventData


class DeliveredEvent(Model):
    """The mailbox accepted the message."""

    event: Literal["DELIVERED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DeliveryEventData


class OpenedEvent(Model):
    """The message was opened."""

    event: Literal["OPENED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: OpenedEventData


class ClickedEvent(Model):
    """A link of the message was followed."""

    event: Literal["CLICKED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: ClickedEventData


class BouncedEvent(Model):
    """The receiving server refused the message."""

    event: Literal["BOUNCED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: BouncedEventData


class ComplainedEvent(Model):
    """The recipient reported the message as spam."""

    event: Literal["COMPLAINED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DeliveryEventData


class UnsubscribedEvent(Model):
    """The recipient unsubscribed."""

    event: Literal["UNSUBSCRIBED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DeliveryEventData


class DroppedEvent(Model):
    """The message was not sent to the recipient."""

    event: Literal["DROPPED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: BouncedEventData


class DeferredEvent(Model):
    """Sending or delivery is delayed, and tried again."""

    event: Literal["DEFERRED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DeliveryEventData


class SuppressionCreatedEvent(Model):
    """An address is suppressed from now on."""

    event: Literal["SUPPRESSION_CREATED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: SuppressionEventData


class SuppressionRemovedEvent(Model):
    """A suppression was removed."""

    event: Literal["SUPPRESSION_REMOVED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: SuppressionEventData


class DomainVerifiedEvent(Model):
    """A sender domain became verified at its provider (source `provider`), or its DNS records are there again (source
    `dns`).
    """

    event: Literal["DOMAIN_VERIFIED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DomainEventData


class DomainBrokenEvent(Model):
    """A sender domain is broken. With the source `provider`: it was verified and no longer is; the provider reports
    it as unverified or no longer lists it, or the credentials no longer show it. With the source `dns`: two checks
    in a row, ten minutes apart, missed DNS records that were there.
    """

    event: Literal["DOMAIN_BROKEN"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: DomainEventData


class ProviderFailingEvent(Model):
    """A provider account cannot send, or too many of its calls fail. One event is posted for each failure, until it
    ends.
    """

    event: Literal["PROVIDER_FAILING"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: ProviderFailureEventData


class ProviderRecoveredEvent(Model):
    """A failure of a provider account ended."""

    event: Literal["PROVIDER_RECOVERED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: ProviderFailureEventData


class WebhookEndpointDisabledEvent(Model):
    """Waypost deactivated another webhook endpoint of the organization."""

    event: Literal["WEBHOOK_ENDPOINT_DISABLED"]
    """The type of the event."""
    timestamp: datetime
    """When the event occurred."""
    data: WebhookEndpointDisabledEventData


class MessageEventData(Model):
    """The message and the recipient of an event."""

    message_id: str
    """The message."""
    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    recipient: str
    """The address of the recipient."""
    from_: str
    """The address of the sender."""
    subject: str
    """The subject of the message."""
    event_id: str
    """The event. It is the same for every endpoint."""
    tags: List[str]
    """The tags of the message."""
    test: Optional[Literal[True]]
    """Present if the message is a test: no provider was called."""
    metadata: Optional[Dict[str, Any]]
    """The metadata of the message, if it has any."""
    provider_type: Optional[ProviderType]
    """The type of the provider."""


class DeliveryEventData(Model):
    """The message of an event, and the call to the provider."""

    message_id: str
    """The message."""
    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    recipient: str
    """The address of the recipient."""
    from_: str
    """The address of the sender."""
    subject: str
    """The subject of the message."""
    event_id: str
    """The event. It is the same for every endpoint."""
    tags: List[str]
    """The tags of the message."""
    test: Optional[Literal[True]]
    """Present if the message is a test: no provider was called."""
    metadata: Optional[Dict[str, Any]]
    """The metadata of the message, if it has any."""
    provider_type: Optional[ProviderType]
    """The type of the provider."""
    reason: Optional[str]
    """Why, if that is known."""
    attempt_id: Optional[str]
    """The call to the provider, if that is known."""
    provider_message_id: Optional[str]
    """The id that the provider gave to the message, if that is known."""


class OpenedEventData(Model):
    """The message that was opened."""

    message_id: str
    """The message."""
    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    recipient: str
    """The address of the recipient."""
    from_: str
    """The address of the sender."""
    subject: str
    """The subject of the message."""
    event_id: str
    """The event. It is the same for every endpoint."""
    tags: List[str]
    """The tags of the message."""
    test: Optional[Literal[True]]
    """Present if the message is a test: no provider was called."""
    metadata: Optional[Dict[str, Any]]
    """The metadata of the message, if it has any."""
    provider_type: Optional[ProviderType]
    """The type of the provider."""
    reason: Optional[str]
    """Why, if that is known."""
    attempt_id: Optional[str]
    """The call to the provider, if that is known."""
    provider_message_id: Optional[str]
    """The id that the provider gave to the message, if that is known."""
    is_bot: Optional[bool]
    """Whether it was a program and not a person, if that is known."""


class ClickedEventData(Model):
    """The message, and the link that was followed."""

    message_id: str
    """The message."""
    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    recipient: str
    """The address of the recipient."""
    from_: str
    """The address of the sender."""
    subject: str
    """The subject of the message."""
    event_id: str
    """The event. It is the same for every endpoint."""
    tags: List[str]
    """The tags of the message."""
    test: Optional[Literal[True]]
    """Present if the message is a test: no provider was called."""
    metadata: Optional[Dict[str, Any]]
    """The metadata of the message, if it has any."""
    provider_type: Optional[ProviderType]
    """The type of the provider."""
    reason: Optional[str]
    """Why, if that is known."""
    attempt_id: Optional[str]
    """The call to the provider, if that is known."""
    provider_message_id: Optional[str]
    """The id that the provider gave to the message, if that is known."""
    url: Optional[str]
    """The link."""
    is_bot: Optional[bool]
    """Whether it was a program and not a person, if that is known."""


class BouncedEventData(Model):
    """The message that an address did not get, and why."""

    message_id: str
    """The message."""
    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    recipient: str
    """The address of the recipient."""
    from_: str
    """The address of the sender."""
    subject: str
    """The subject of the message."""
    event_id: str
    """The event. It is the same for every endpoint."""
    tags: List[str]
    """The tags of the message."""
    test: Optional[Literal[True]]
    """Present if the message is a test: no provider was called."""
    metadata: Optional[Dict[str, Any]]
    """The metadata of the message, if it has any."""
    provider_type: Optional[ProviderType]
    """The type of the provider."""
    reason: Optional[str]
    """Why, if that is known."""
    attempt_id: Optional[str]
    """The call to the provider, if that is known."""
    provider_message_id: Optional[str]
    """The id that the provider gave to the message, if that is known."""
    bounce_type: Optional[BounceType]
    """Why the address did not get the message."""


class SuppressionEventData(Model):
    """The suppression of an event."""

    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    event_id: str
    """The event. It is the same for every endpoint."""
    suppression_id: str
    """The suppression."""
    email_hash: str
    """The SHA-256 of the address in lower case, as lower-case hexadecimal."""
    unsubscribe_group_id: Optional[str]
    """The group in which the address is suppressed; null stands for all mail."""
    source: SuppressionSource
    """Why the address was suppressed."""
    metadata: Optional[Dict[str, Any]]
    """Only in a test event: `{"test": true}`."""


class DomainEventData(Model):
    """The sender domain of an event."""

    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    event_id: str
    """The event. It is the same for every endpoint."""
    domain_id: str
    """The domain."""
    domain: str
    """The name of the domain."""
    provider_account_id: str
    """The account."""
    state: DomainState
    """The provider's verdict on the domain; `unknown` if the credentials do not show it."""
    source: DomainEventSource
    """Who judged the domain: the provider, or Waypost by its own look-ups in DNS."""
    records: List[LostDnsRecord]
    """If the source is `dns` and the domain is broken: the records that DNS had and has no longer."""
    metadata: Optional[Dict[str, Any]]
    """Only in a test event: `{"test": true}`."""


class ProviderFailureEventData(Model):
    """The provider account of an event, and its failure."""

    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    event_id: str
    """The event. It is the same for every endpoint."""
    provider_account_id: str
    """The account."""
    provider_type: ProviderType
    """The type of the provider."""
    display_name: str
    """The name of the account."""
    cause: ProviderFailureCause
    """Why the account fails."""
    failing_since: datetime
    """When the failure began."""
    reason: Optional[str]
    """Why, in the provider's words, if the cause is `ACCOUNT_UNUSABLE`."""
    metadata: Optional[Dict[str, Any]]
    """Only in a test event: `{"test": true}`."""


class WebhookEndpointDisabledEventData(Model):
    """The webhook endpoint that is inactive now."""

    event_type: WebhookEventType
    """The type of the event, as in `event`."""
    event_id: str
    """The event. It is the same for every endpoint."""
    webhook_endpoint_id: str
    """The endpoint that is inactive now."""
    reason: WebhookDisabledReason
    """Why the endpoint was deactivated."""
    failing_since: Optional[datetime]
    """Since when all calls failed; null if none had failed before."""
    metadata: Optional[Dict[str, Any]]
    """Only in a test event: `{"test": true}`."""


class DnsRecord(Model):
    """DnsRecord."""

    type: DnsRecordType
    """The type of the record."""
    name: str
    """The full name of the record."""
    value: str
    """The value of the record."""
    priority: Optional[int]
    """The priority of an MX record; null for other types."""
    purpose: DnsRecordPurpose
    """What the record is for."""
    status: DnsRecordStatus
    """Whether the provider found the record."""
    found: List[str]
    """The values that DNS had there at the last check; of SPF and DMARC, the records of that kind."""
    found_status: DnsFoundStatus
    """Whether DNS had the record at the last check; `unknown` if DNS was not or could not be asked."""


class ErrorDetails(Model):
    """ErrorDetails."""

    issues: Optional[List[ErrorIssue]]
    """The first 100 mistakes of an invalid request."""
    required_permission: Optional[CallerPermission]
    """With 403: the permission that the API key lacks."""
    provider_type: Optional[ProviderType]
    """The provider that refused the request."""
    imported: Optional[int]
    """Of an import that ended early: the number of newly suppressed addresses."""
    already_there: Optional[int]
    """Of an import that ended early: the number of addresses that were already suppressed."""
    unusable: Optional[int]
    """Of an import that ended early: the number of entries that could not be used."""
    next_cursor: Optional[str]
    """Of an import that ended early: where to continue."""
    reason: Optional[ErrorReason]


class ErrorIssue(Model):
    """ErrorIssue."""

    path: str
    """Where in the request, such as `to.3`; empty for the whole."""
    message: str
    """What is wrong, for people."""
    line: Optional[int]
    """The line of a mistake in a source of a template, from 1; absent if it is not known or not one of this source.
    """
    column: Optional[int]
    """The column of the mistake in this line, in characters, from 1; absent if it is not known."""


class EventSecrets(TypedDict, total=False):
    """EventSecrets."""

    public_key: str
    """SENDGRID: the verification key of the event webhook, as SendGrid shows it."""
    signing_key: str
    """MAILGUN: the HTTP webhook signing key of the account."""
    topic_arn: str
    """SES: the ARN of the SNS topic that the configuration set publishes to. It must be in the region of the account.
    """


class LostDnsRecord(Model):
    """LostDnsRecord."""

    type: DnsRecordType
    """The type of the record."""
    name: str
    """The full name of the record."""
    purpose: DnsRecordPurpose
    """What the record is for."""
    found_status: DnsFoundStatus
    """Whether DNS has another record there (`mismatch`) or none (`missing`)."""


class _MailgunCredentials(TypedDict):
    api_key: str
    """The API key."""
    domain: str
    """The sending domain."""


class MailgunCredentials(_MailgunCredentials, total=False):
    """MailgunCredentials."""

    region: str
    """`us` (the default) or `eu`."""


class _PostmarkCredentials(TypedDict):
    server_token: str
    """The token of the server."""


class PostmarkCredentials(_PostmarkCredentials, total=False):
    """PostmarkCredentials."""

    account_token: str
    """The token of the account, which is needed to list and add domains."""
    message_stream: str
    """The message stream to send through."""


class _SendgridCredentials(TypedDict):
    api_key: str
    """The API key."""


class SendgridCredentials(_SendgridCredentials, total=False):
    """SendgridCredentials."""

    region: str
    """`global` (the default) or `eu`."""


class _SesCredentials(TypedDict):
    access_key_id: str
    """The id of the access key."""
    secret_access_key: str
    """The secret access key."""
    region: str
    """The region, such as `eu-central-1`."""


class SesCredentials(_SesCredentials, total=False):
    """SesCredentials."""

    session_token: str
    """The session token of temporary credentials."""
    configuration_set: str
    """The configuration set that publishes events."""


class _SmtpCredentials(TypedDict):
    host: str
    """The host name or IP address of the mail server."""


class SmtpCredentials(_SmtpCredentials, total=False):
    """SmtpCredentials."""

    port: int
    """The port. The default is 587, with `tls` `implicit` 465, with `none` 25."""
    username: str
    """The user name to log in with, together with `password`."""
    password: str
    """The password of `username`."""
    tls: str
    """`starttls` (the default), `implicit` or `none`."""


class Tracking(TypedDict, total=False):
    """Tracking."""

    opens: bool
    """Whether opens are tracked."""
    clicks: bool
    """Whether clicks are tracked."""


class UpdateRateLimits(TypedDict, total=False):
    """UpdateRateLimits."""

    send_per_second: Optional[int]
    """Sends per second."""
    other_per_second: Optional[int]
    """Other requests per second."""


WebhookEvent = Union[
    QueuedEvent,
    SentEvent,
    DeliveredEvent,
    OpenedEvent,
    ClickedEvent,
    BouncedEvent,
    ComplainedEvent,
    UnsubscribedEvent,
    DroppedEvent,
    DeferredEvent,
    SuppressionCreatedEvent,
    SuppressionRemovedEvent,
    DomainVerifiedEvent,
    DomainBrokenEvent,
    ProviderFailingEvent,
    ProviderRecoveredEvent,
    WebhookEndpointDisabledEvent,
]
"""The body of a webhook: an event, in the form of its type. More fields may be added to `data`."""

Addresses = Union[
    str,
    Sequence[str],
]

ProviderCredentials = Union[
    SendgridCredentials,
    PostmarkCredentials,
    MailgunCredentials,
    SesCredentials,
    SmtpCredentials,
]

Recipients = Union[
    str,
    Sequence[Union[str, MessageRecipient]],
]
