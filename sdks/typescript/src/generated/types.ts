// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

/** A value out of a list that may grow: a newer Waypost may send others, which pass through as they are. */
type Open<T extends string> = T | (string & {});

/** The answer to an invitation. */
export interface AcceptInvitationRequest {
  /** The token in the link, after `#`. */
  token: string;
  /** The name of a new user. The default is the part of the address before the `@`. */
  name?: string | undefined;
  /** The password that a new user gets, of 12 to 128 characters; or the present password of the user. */
  password: string;
  /** The code of the second factor, or a recovery code. Required if the user has a second factor. */
  code?: string | undefined;
}

/** How long half and 95 % of the accepted calls took at most, in milliseconds, accurate to 10 %. */
export interface AcceptLatency {
  /** The time that half of the messages did not exceed, in milliseconds. */
  p50: number;
  /** The time that 95 % of the messages did not exceed, in milliseconds. */
  p95: number;
}

/** The new password. */
export interface AcceptPasswordResetRequest {
  /** The token in the link, after `#`. */
  token: string;
  /** The new password, of 12 to 128 characters. */
  password: string;
}

/** An API key. Its secret is returned only once, when the key is created or rotated. */
export interface ApiKey {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** The first characters of the secret, to tell keys apart. */
  prefix: string;
  /**
   * Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
   * another with `wp_live_`.
   */
  isTest: boolean;
  /** What the key may do. */
  permissions: Permission[];
  /** The IP addresses and networks that the key can be used from; if the list is empty, from anywhere. */
  allowedIps: string[];
  /** When the key expires; null means never. */
  expiresAt: string | null;
  /** When the key was last used, to the minute. */
  lastUsedAt: string | null;
  /** When it was created. */
  createdAt: string;
  /** The id of the user or of the API key that created this key, or `system` if the operator created it. */
  createdBy: string;
  /** When the key was revoked; null if it was not. */
  revokedAt: string | null;
  /** When the secret that the last rotation replaced stops working, or stopped. */
  oldSecretValidUntil: string | null;
}

/** An API key with its secret, which is returned only once. */
export interface ApiKeyWithSecret {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** The first characters of the secret, to tell keys apart. */
  prefix: string;
  /**
   * Whether everything that the key sends is a test. The key of a test key begins with `wp_test_`, and that of
   * another with `wp_live_`.
   */
  isTest: boolean;
  /** What the key may do. */
  permissions: Permission[];
  /** The IP addresses and networks that the key can be used from; if the list is empty, from anywhere. */
  allowedIps: string[];
  /** When the key expires; null means never. */
  expiresAt: string | null;
  /** When the key was last used, to the minute. */
  lastUsedAt: string | null;
  /** When it was created. */
  createdAt: string;
  /** The id of the user or of the API key that created this key, or `system` if the operator created it. */
  createdBy: string;
  /** When the key was revoked; null if it was not. */
  revokedAt: string | null;
  /** When the secret that the last rotation replaced stops working, or stopped. */
  oldSecretValidUntil: string | null;
  /** The secret, for `Authorization: Bearer`. It cannot be retrieved again. */
  key: string;
}

/** An attachment, without its content. */
export interface AttachmentDetail {
  /** The file name that the recipient sees. */
  filename: string;
  /** The media type. */
  contentType: string;
  /** The id by which the HTML body shows the file; null if it does not. */
  contentId: string | null;
  /** The size in bytes. */
  size: number;
  /** The SHA-256 of the content, as lower-case hexadecimal. */
  sha256: string;
}

/** Who made the change. */
export interface AuditActor {
  /** The type of the actor. */
  type: AuditActorType;
  /** The id. */
  id: string | null;
  /** The name of the actor at the time of the change. */
  name: string | null;
}

/** Where the request came from. */
export interface AuditContext {
  /** The IP address of the client. */
  ip: string | null;
  /** The `User-Agent` of the client. */
  userAgent: string | null;
  /** The id of the request, as in `X-Request-Id`. */
  requestId: string;
}

/** One change. */
export interface AuditLogEntry {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The action, such as `provider.created`. */
  action: string;
  /** When it happened. */
  occurredAt: string;
  actor: AuditActor;
  target: AuditTarget;
  context: AuditContext;
  /** Details of the change: an object. */
  metadata: Record<string, unknown>;
}

/** The changed record. */
export interface AuditTarget {
  /** The type of the record, such as `provider`. */
  type: string;
  /** The id. */
  id: string;
}

/** A message of a batch: the fields of `POST /v1/send`, and an idempotency key. */
export interface BatchMessage {
  /**
   * One address or an array of up to 1,000, each with or without a display name. An item of the array can be an
   * object with variables and metadata of this recipient. Each recipient gets a message of their own and does not see
   * the other recipients, unless the message is shared. A repeated address gets one message.
   */
  to: Recipients;
  /**
   * One address or an array of addresses that get a copy and that all recipients see. With `cc` or `bcc`, the message
   * is shared: all recipients get one mail and see the addresses of `to` and `cc`. A shared message has up to 50
   * addresses in all.
   */
  cc?: Addresses | undefined;
  /** One address or an array of addresses that get a copy and that the other recipients do not see. */
  bcc?: Addresses | undefined;
  /**
   * `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail and see each other. The
   * default is `shared` with `cc` or `bcc`, and else `private`. A shared message has no variables of single
   * recipients, and no `unsubscribeGroupId` unless it has one address.
   */
  delivery?: DeliveryMode | undefined;
  /**
   * The sender. The domain must be verified on the provider account that sends the message; the setting
   * `unverifiedDomains` can allow other domains. Required, unless `templateId` names a template whose version has a
   * sender.
   */
  from?: string | undefined;
  /**
   * The subject, on one line. With `templateId` or variables it is a Handlebars template, and the rendered subject
   * must keep the same length limit. Required, unless `templateId` names a template whose version has a subject.
   */
  subject?: string | undefined;
  /**
   * The HTML body. With `templateId` it replaces the template's HTML and is not rendered. With variables and without
   * `templateId` it is a Handlebars template.
   */
  html?: string | undefined;
  /**
   * The plain-text body. With `templateId` it replaces the template's text and is not rendered. With variables and
   * without `templateId` it is a Handlebars template.
   */
  text?: string | undefined;
  /**
   * One address for replies or an array of up to 10. The default is that of the template's version, or else the
   * sender.
   */
  replyTo?: Addresses | undefined;
  /**
   * Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits and hyphens; a value is
   * ASCII on one line (other characters as encoded words, RFC 2047). Headers that Waypost or the provider sets are
   * refused: `From`, `To`, `Subject`, `Date`, `Message-ID`, `Content-*`, `DKIM-*`, `X-Waypost-*` and others. With
   * `unsubscribeGroupId`, so is `List-Unsubscribe`.
   */
  headers?: Record<string, string> | undefined;
  /**
   * Up to 50 files. A file with a `contentId` is shown within the HTML body, which must not show `cid:` URLs of other
   * ids.
   */
  attachments?: readonly MessageAttachment[] | undefined;
  /** Up to 10 tags, for routing rules and analytics. */
  tags?: readonly string[] | undefined;
  /** What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`. */
  messageClass?: MessageClass | undefined;
  /** Any JSON object of up to 64 KiB. It is stored with the message and included in its webhook events. */
  metadata?: Record<string, unknown> | undefined;
  /**
   * The template to render. The current version is rendered when the message is accepted; later versions do not
   * change the message.
   */
  templateId?: string | undefined;
  /**
   * With `templateId`: the language of the version, as a language tag. Without a current version in this language,
   * the next less exact one counts: `de-AT`, then `de`, then the default.
   */
  locale?: string | undefined;
  /**
   * The variables of the template: an object of up to 256 KiB. Without `templateId`, `subject`, `html` and `text` are
   * rendered with these variables (even if the object is empty). If neither the message nor a recipient has
   * `variables`, they are sent unchanged.
   */
  variables?: Record<string, unknown> | undefined;
  /**
   * The unsubscribe group of the message. Recipients who unsubscribed from this group are dropped, in addition to
   * those suppressed for all messages. Each recipient gets an unsubscribe link: at `{{unsubscribeUrl}}` in a body, or
   * else at its end, and in the headers for the unsubscribe button of mail clients. Without a group, a body must not
   * contain `{{unsubscribeUrl}}`, unless `variables` defines it.
   */
  unsubscribeGroupId?: string | undefined;
  /**
   * Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The default is the
   * organization's settings. A link with the attribute `data-waypost-no-track` is not tracked.
   */
  tracking?: Tracking | undefined;
  /**
   * When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until then its status is QUEUED.
   * Suppressions and the account are decided at that time. The `Idempotency-Key` is valid until 24 hours after it.
   */
  scheduledAt?: string | Date | undefined;
  /**
   * The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
   * `scheduledAt`. Recipients to whom it was not sent before are dropped.
   */
  expiresAt?: string | Date | undefined;
  /**
   * The only provider account that may send the message, whatever the routing rules say. It must be active, and the
   * sender's domain must be verified on it.
   */
  providerAccountId?: string | undefined;
  /**
   * Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and nothing
   * is counted. The default is whether the API key is a test key; with a test key it must not be false.
   */
  test?: boolean | undefined;
  /**
   * What becomes of a test. `delivered` is the default. `bounced`: a hard bounce. `complained`: delivered, then
   * reported as spam. `deferred`: deferred, then delivered. `failed`: the provider refuses it. `suppressed`: all
   * recipients are suppressed. `unknown`: the provider's answer is lost, and the rule's `onUnknown` decides.
   * `failover`: the first account fails, and the next one takes it.
   */
  testOutcome?: TestOutcome | undefined;
  /**
   * Makes it safe to send this message again: in this or another batch, or with the same key as the `Idempotency-Key`
   * of `POST /v1/send`. Without it, the message is protected by the `Idempotency-Key` of the batch, if there is one.
   */
  idempotencyKey?: string | undefined;
}

/**
 * The result of one message of a batch: `messageId` and `status` if it was accepted (`messageId` is null if all its
 * recipients are suppressed), or `error` if it was rejected.
 */
export interface BatchResult {
  /** The id of the message. */
  messageId?: string | null | undefined;
  /** `queued`, or `suppressed` if all recipients are suppressed. */
  status?: SendStatus | undefined;
  /** Why the message was rejected. */
  error?: string | undefined;
}

/** The query of a breakdown, with its defaults filled in. */
export interface BreakdownQuery {
  /** The begin of the period. */
  from: string;
  /** The end of the period, which is not part of it. */
  to: string;
  /** By what the counts are grouped. */
  groupBy: MetricsGroupBy;
}

/** A message after its cancellation. */
export interface CancelledMessage {
  /** The id. */
  id: string;
  /** The status of the message, as in the list: FAILED if all its recipients are cancelled. */
  status: MessageStatus;
  /** The number of cancelled recipients, by this request and by earlier ones. */
  cancelledCount: number;
}

/** How to confirm a second factor. */
export interface ConfirmTotpRequest {
  /** A code of the authenticator. */
  code: string;
}

/** An account to connect. */
export interface ConnectProviderRequest {
  providerType: ProviderType;
  /** The display name. */
  displayName: string;
  /**
   * The credentials. The required fields depend on `providerType`: `apiKey` for SENDGRID; `serverToken` for POSTMARK;
   * `apiKey` and `domain` for MAILGUN; `accessKeyId`, `secretAccessKey` and `region` for SES; `host` for SMTP.
   */
  credentials: ProviderCredentials;
  /**
   * The secrets that verify the provider's events: `publicKey` for SENDGRID, `signingKey` for MAILGUN, `topicArn` for
   * SES. POSTMARK takes none. If the provider's API offers the secret, registering the event webhook reads it.
   */
  eventSecrets?: EventSecrets | undefined;
  /**
   * Whether to register the account's `webhookUrl` with the provider. The default is true, or false if `eventSecrets`
   * is given: you then set up the webhook at the provider.
   */
  registerEventWebhook?: boolean | undefined;
  /** The most calls to the provider per second, over all workers. The default is no limit. */
  maxRatePerSecond?: number | undefined;
  /** The most concurrent calls to the provider, over all workers. The default is no limit. */
  maxConcurrency?: number | undefined;
}

/** A newly connected account. */
export interface ConnectedProvider {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The provider. */
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /**
   * Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known (SMTP).
   */
  region: AccountRegion | null;
  /** Whether the account sends messages. */
  isActive: boolean;
  /** The URL that the provider posts events to. Keep it secret. */
  webhookUrl: string;
  /** Whether an event from the provider was verified since the event secrets were last set. */
  eventsVerified: boolean;
  /** The most calls to the provider per second, over all workers; null means no limit. */
  maxRatePerSecond: number | null;
  /** The most concurrent calls to the provider, over all workers; null means no limit. */
  maxConcurrency: number | null;
  /**
   * Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
   * messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
   * account try again at once. Null again after that, or once the provider accepts a message.
   */
  sendingPausedReason: string | null;
  /** Since when the account cannot send; null if it can. */
  sendingPausedSince: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
  /** The registration of the event webhook; null if it was not requested. */
  eventWebhook: FirstEventWebhook | null;
}

/** An extra header. */
export interface ContentHeader {
  /** The name of the header. */
  name: string;
  /** The value of the header. */
  value: string;
}

/** An API key to create. */
export interface CreateApiKeyRequest {
  /** The name of the key. */
  name: string;
  /**
   * Whether everything that the key sends is a test, for which no provider is called. The default is false. A test
   * key can create only test keys.
   */
  isTest?: boolean | undefined;
  /** One or more permissions. The caller must have each of them. */
  permissions: readonly Permission[];
  /** Up to 100 IP addresses and networks (CIDR) that the key can be used from. The default is anywhere. */
  allowedIps?: readonly string[] | undefined;
  /** When the key expires; null means never. */
  expiresAt?: string | Date | undefined;
}

/** Somebody to invite. */
export interface CreateInvitationRequest {
  /** The address of the person. */
  email: string;
  /** The role that the person gets. The caller must have each of its permissions. */
  role: Role;
}

/** A user to make a member. */
export interface CreateMemberRequest {
  /** The address of the user. */
  email: string;
  /** The role of the member. The caller must have each of its permissions. */
  role: Role;
}

/** A domain to add to an account. */
export interface CreateProviderDomainRequest {
  /** The domain name. An international name is stored in its ASCII form. */
  domain: string;
}

/** A rule to create. */
export interface CreateRoutingRuleRequest {
  /** The name of the rule. */
  name: string;
  /** Rules with a higher priority are checked first. The default is 0. */
  priority?: number | undefined;
  /** Whether the rule is used. The default is true. */
  isActive?: boolean | undefined;
  /** The sender's domain. The default is every domain. */
  senderDomain?: string | undefined;
  /** The tags of matching messages; an empty list matches every message. */
  tags?: readonly string[] | undefined;
  /** Whether a message must have `any` (the default) or `all` of the tags. */
  tagMatch?: TagMatch | undefined;
  /**
   * The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a message
   * must match one of them. An empty list matches all recipients.
   */
  recipientDomains?: readonly string[] | undefined;
  /**
   * The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
   * `other`. Every recipient of a message must have one of them. An empty list matches all recipients.
   */
  recipientMailboxProviders?: readonly MailboxProvider[] | undefined;
  /** The class that messages have: `transactional` or `bulk`. The default is both. */
  messageClass?: MessageClass | undefined;
  /** The smallest size of messages, in bytes: subject, bodies and decoded attachments. */
  minSizeBytes?: number | undefined;
  /** The largest size of messages, in bytes. */
  maxSizeBytes?: number | undefined;
  /** Whether the rule is for tests only (true) or for live messages only (false). */
  test?: boolean | undefined;
  /**
   * The region that accounts must be in to send the messages: `eu` or `us`. All accounts of the rule must be in it.
   * The default is anywhere.
   */
  region?: AccountRegion | undefined;
  /** The account that sends the messages. A rule has this or `targets`. */
  providerAccountId?: string | undefined;
  /** Up to 10 accounts that share the messages by weight, instead of `providerAccountId`. */
  targets?: readonly NewRoutingTarget[] | undefined;
  /**
   * Which messages always have the same target: `none` (the default), those to one `recipientDomain` (of the first
   * recipient), or those of one `sender`.
   */
  sticky?: RoutingStickiness | undefined;
  /**
   * Whether targets share the messages by their `weight` alone (the default), or also by their `health`: a target
   * whose mail fails gets less.
   */
  prefer?: RoutingPreference | undefined;
  /**
   * What becomes of a message whose target has reached its cap: the `next` target or fallback sends it (the default),
   * or it waits (`wait`).
   */
  overCap?: RoutingOverCap | undefined;
  /** The bounds of the rates of an account, beyond which its ramp does not grow. */
  rampBounds?: NewRoutingRampBounds | undefined;
  /** Up to 5 accounts that send if this account cannot, in this order. */
  fallbackProviderAccountIds?: readonly string[] | undefined;
  /**
   * What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none (the
   * default), `resend` at once (the recipient may get the message twice), or `fail` (the message may have been sent).
   */
  onUnknown?: OnUnknown | undefined;
}

/** Who signs in. */
export interface CreateSessionRequest {
  /** The address of the user. */
  email: string;
  /** The password of the user. */
  password: string;
  /** The code of the second factor, or a recovery code. Required if the user has a second factor. */
  code?: string | undefined;
}

/** An address to suppress. */
export interface CreateSuppressionRequest {
  /** The address. Only its hash is stored. */
  email: string;
  /** The unsubscribe group that the suppression applies to. The default is all messages. */
  unsubscribeGroupId?: string | undefined;
  /** The source of the suppression. The default is MANUAL. */
  source?: SuppressionSource | undefined;
}

/** A template to create. */
export interface CreateTemplateRequest {
  /**
   * The name of the template. That of a partial has up to 100 letters, digits, `-` and `_`, begins with a letter, and
   * is no other partial's.
   */
  name: string;
  /** What the template is for. The default is `TEMPLATE`. It cannot be changed. */
  type?: TemplateType | undefined;
  /** The description of the template. */
  description?: string | undefined;
  /** Up to 20 tags of up to 100 characters each. */
  tags?: readonly string[] | undefined;
}

/**
 * The content of a new version. Each source is a Handlebars template of up to 1 MiB, rendered as handlebars.js 4.7
 * renders it. Variables, sections, `if`, `unless`, `each`, `with`, `lookup`, `eq`, `ne`, `gt`, `gte`, `lt`, `lte`,
 * `and`, `or`, `not`, `len` and `raw` are supported, and partials of the organization: `{{> name}}`. A layout or
 * partial has sources and a language alone.
 */
export interface CreateTemplateVersionRequest {
  /**
   * The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`. Without one, it is of the
   * default language.
   */
  locale?: string | undefined;
  /** The subject of messages that bring none, a Handlebars template. */
  subject?: string | undefined;
  /**
   * What mail programs show beside the subject, a Handlebars template on one line. It is put at the beginning of the
   * HTML, hidden.
   */
  preheader?: string | undefined;
  /** The sender of messages that bring none. */
  from?: string | undefined;
  /** One address for replies or an array of up to 10, for messages that bring none. */
  replyTo?: Addresses | undefined;
  /** The layout around the content. One of MJML takes MJML, one of HTML takes HTML. */
  layoutId?: string | undefined;
  /** The HTML source. It may be empty if `mjmlSource` is given. */
  htmlContent: string;
  /** The MJML source. It is compiled now, and the result replaces `htmlContent`. */
  mjmlSource?: string | undefined;
  /** The plain-text source. Without it, the text is made from the HTML; if it is empty, there is no text. */
  textContent?: string | undefined;
  /**
   * A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match. References outside the
   * schema are not allowed.
   */
  variablesSchema?: Record<string, unknown> | undefined;
}

/** An unsubscribe group to create. */
export interface CreateUnsubscribeGroupRequest {
  /** The name of the group, which recipients see. */
  name: string;
  /** The description of the group. */
  description?: string | undefined;
  /** Whether the group becomes the default group, in place of the present one. The default is false. */
  isDefault?: boolean | undefined;
}

/** A webhook endpoint to create. */
export interface CreateWebhookEndpointRequest {
  /**
   * An HTTPS URL with a public address. The operator can allow http and private addresses (`WAYPOST_WEBHOOK_ALLOW`);
   * in development loopback is allowed. It is called once, and must respond within 5 seconds, with any status.
   */
  url: string;
  /** The types of the events that the endpoint receives: at least one. */
  events: readonly WebhookEventType[];
  /** Receive events of messages only for messages with one of these tags. The default is all messages. */
  tags?: readonly string[] | undefined;
  /** Whether the endpoint receives events. The default is true. */
  isActive?: boolean | undefined;
}

/** The current version of a language. */
export interface CurrentTemplateVersion {
  /** The language, as a language tag; null is the default language. */
  locale: string | null;
  /** The id of the version. */
  versionId: string;
  /** The number of the version, from 1. */
  versionNumber: number;
}

/** A chunk of a message that no worker takes any more. */
export interface DeadJob {
  messageId: string;
  /** The number of the chunk in its message, from 0. */
  chunk: number;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The number of recipients without a final status. */
  recipients: number;
  /** How many workers were lost while they held the chunk. */
  losses: number;
  /** Since when no worker takes it. */
  deadSince: string;
  /** Why no worker takes the chunk any more. */
  reason: string;
}

/** How to remove the second factor. */
export interface DisableTotpRequest {
  /** The present password. */
  password: string;
  /** A code of the authenticator, or a recovery code. */
  code: string;
}

/** A sender domain of a provider account. */
export interface DomainVerification {
  /** The id. */
  id: string;
  /** The provider account. */
  providerAccountId: string;
  /** The domain name, in ASCII. */
  domain: string;
  /** Whether the provider reports the domain as verified. */
  isVerified: boolean;
  /** `verified`, `unverified`, or `unknown` if the credentials give no access to the domain. */
  state: DomainState;
  /**
   * The DNS records to publish, each with `type`, `name`, `value`, `priority`, `purpose` and the provider's `status`;
   * and with what DNS had at the last check, `found` and `foundStatus`.
   */
  dnsRecords: DnsRecord[];
  /** When Waypost last looked the records up in DNS; null before the first check. */
  dnsCheckedAt: string | null;
  /** When it was created. */
  createdAt: string;
}

/** A person to erase. */
export interface ErasePersonRequest {
  /** The person's address. */
  email: string;
}

/** What was erased. */
export interface ErasureResult {
  /** The id of the erasure: the target of its entries in the audit log. */
  id: string;
  /** The number of messages of which something was erased. */
  messages: number;
  /** The number of events whose details were erased. */
  events: number;
  /** The number of references to attachments that were erased. */
  attachments: number;
  /**
   * The number of messages that are still being sent. They are left as they are; repeat the request when they are
   * finished.
   */
  pending: number;
  /** Whether all messages to the person were visited. If not, repeat the request: it continues. */
  complete: boolean;
}

/** The event webhook of an account. */
export interface EventWebhookResult {
  /**
   * Whether the webhook is registered with the provider. If not, the provider was not called and `steps` lists what
   * to do.
   */
  registered: boolean;
  /** The URL that the provider posts events to. Keep it secret. */
  webhookUrl: string;
  /** Whether an event from the provider has been verified. */
  eventsVerified: boolean;
  /** The steps to take by hand, in this order. */
  steps: string[];
}

/** A call that the provider did not accept. */
export interface FailedProviderCall {
  /** When the call started. */
  at: string;
  /** The outcome: REJECTED, THROTTLED, UNAVAILABLE or UNKNOWN. */
  outcome: SendAttemptOutcome;
  /** The status code of the provider's response; null without a response. */
  statusCode: number | null;
  /** The provider's error message, or the error of the call. */
  reason: string | null;
}

/** A fallback of the matching rule. */
export interface FallbackResolution {
  /** The provider account. */
  providerAccountId: string;
  /** Whether the sender's domain is verified on this account. */
  domainVerified: boolean;
  /**
   * Why this fallback is not used: `PROVIDER_INACTIVE`, `DOMAIN_NOT_VERIFIED` if the sender's domain is unverified on
   * it, or `REGION` if it is not in the rule's region; null if it is used.
   */
  passedOver: string | null;
}

/** The result of registering the event webhook. */
export interface FirstEventWebhook {
  /**
   * Whether the webhook is registered with the provider. If not, the account sends, but its messages stay SENT until
   * the webhook is set up.
   */
  registered: boolean;
  /** Why the webhook could not be registered; null if it is registered. */
  reason: string | null;
  /** The steps to take by hand, in this order. */
  steps: string[];
}

/** One event of a message. */
export interface HistoryEvent {
  /** The type of the event. */
  eventType: EventType;
  /** When it happened. */
  occurredAt: string;
  /**
   * The attempt that the event belongs to, if known: the id of one of the message's `attempts`. If the response to a
   * call was lost and the call was repeated, the recipient may receive the message twice. The history then has the
   * events of both attempts, and metrics count the recipient once.
   */
  attemptId?: string | undefined;
  /** The provider's message id that the event belongs to, if known. */
  providerMessageId?: string | undefined;
  /**
   * The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal. An event without it is about all
   * recipients.
   */
  toHash?: string | undefined;
  /** The provider account of the attempt. */
  providerAccountId?: string | undefined;
  /** Why, in the provider's words or in those of Waypost. */
  reason?: string | undefined;
  /** The type of a bounce, such as `hard`. */
  bounceType?: BounceType | undefined;
  /** The link that was clicked. */
  url?: string | undefined;
  /** Whether a program opened or clicked, and not a person. */
  isBot?: boolean | undefined;
}

/** Where to continue. */
export interface ImportProviderSuppressionsRequest {
  /** The `nextCursor` of the import before. The default is the beginning of the lists. */
  cursor?: string | undefined;
}

/** The result of an import. */
export interface ImportResult {
  /** The number of newly suppressed addresses. */
  imported: number;
  /** The number of addresses that were already suppressed or were repeated in the request. */
  skipped: number;
  /** The number of addresses in the request: `imported` plus `skipped`. */
  total: number;
}

/** Addresses to suppress. */
export interface ImportSuppressionsRequest {
  /** 1 to 10,000 addresses. Only their hashes are stored. */
  emails: readonly string[];
  /** The unsubscribe group that the suppressions apply to. The default is all messages. */
  unsubscribeGroupId?: string | undefined;
}

/** An invitation that is neither accepted nor expired. */
export interface Invitation {
  /** The id. */
  id: string;
  /** The address. */
  email: string;
  /** The role. */
  role: Role;
  /** When it was created. */
  createdAt: string;
  /** When the link stops working. */
  expiresAt: string;
  /** The id of the user or of the API key that invited, or `system` if the operator did. */
  createdBy: string;
}

/** What an invitation says. */
export interface InvitationDetail {
  /** The name of the organization. */
  organizationName: string;
  /** The address. */
  email: string;
  /** The role. */
  role: Role;
  /** Whether there is a user with the address, whose password must be given. */
  hasUser: boolean;
}

/** An invitation with its link, which is returned only once. */
export interface InvitationWithUrl {
  /** The id. */
  id: string;
  /** The address. */
  email: string;
  /** The role. */
  role: Role;
  /** When it was created. */
  createdAt: string;
  /** When the link stops working. */
  expiresAt: string;
  /** The id of the user or of the API key that invited, or `system` if the operator did. */
  createdBy: string;
  /** The link. It works once, for seven days. */
  url: string;
  /** Whether the link is sent to the address through Waypost. If not, pass it on. */
  mailed: boolean;
}

/** The jobs of a queue in Redis, by their state. */
export interface JobQueue {
  /** The name of the queue. */
  name: string;
  /** Jobs that no worker has fetched. */
  waiting: number;
  /** Jobs that a worker has fetched and not finished. */
  fetched: number;
  /** Jobs that are due later. */
  delayed: number;
}

/** The link to look up. */
export interface LookUpInvitationRequest {
  /** The token in the link, after `#`. */
  token: string;
}

/** The link to look up. */
export interface LookUpPasswordResetRequest {
  /** The token in the link, after `#`. */
  token: string;
}

/** A user of the organization. */
export interface Member {
  /** The id of the membership. */
  id: string;
  /** The user. */
  userId: string;
  /** The address. */
  email: string;
  /** The name of the user. */
  name: string;
  /** The role. */
  role: Role;
  /** When the user last began a session in the organization. */
  lastSignedInAt: string | null;
  /** When the user became a member. */
  createdAt: string;
}

/** A file of a message. It needs `content` or `url`. */
export interface MessageAttachment {
  /** The name that the recipient sees: no path, no control characters. */
  filename: string;
  /** The file in base64 (RFC 4648, without line breaks). */
  content?: string | undefined;
  /** A public `https` URL. The file is fetched when the message is accepted, and kept. */
  url?: string | undefined;
  /** The media type. Without it, the type follows from the file name. */
  contentType?: string | undefined;
  /** Shows the file within the HTML body, where `cid:` and this id are the URL of an image. */
  contentId?: string | undefined;
}

/** What a message says, before tracking and unsubscribe links are added. */
export interface MessageContentView {
  /** The subject. */
  subject: string;
  /** The HTML body. */
  html: string | null;
  /** The text body. */
  text: string | null;
  /** The extra headers of the message. */
  headers: ContentHeader[];
  /** The attachments, without their content. */
  attachments: AttachmentDetail[];
}

/** A message with its history. */
export interface MessageDetail {
  /** The id. */
  id: string;
  /** The sender's address. */
  fromAddress: string;
  /** The subject. */
  subject: string;
  /** The status of the message, as in the list. */
  status: MessageStatus;
  /** The tags. */
  tags: string[];
  /** Whether the message is a test, for which no provider is called. */
  test: boolean;
  /** The number of recipients. */
  recipientCount: number;
  /**
   * The SHA-256 of each address of `to`, in lower case, as lower-case hexadecimal, in the order of the send request.
   */
  to: string[];
  /** The metadata of the send request. */
  metadata: Record<string, unknown> | null;
  /** The message is not sent before this time. */
  scheduledAt: string | null;
  /** The template of the message. */
  templateId: string | null;
  /** The version of the template that was rendered. */
  templateVersionId: string | null;
  /** The number of this version; null also if the template was deleted. */
  templateVersionNumber: number | null;
  /** The events, oldest first. */
  events: HistoryEvent[];
  /** The newest 500 calls to providers, oldest first. */
  attempts: SendAttempt[];
}

/** A recipient with data of its own. */
export interface MessageRecipient {
  /** The address. */
  email: string;
  /** The display name. */
  name?: string | undefined;
  /**
   * Variables of this recipient, up to 256 KiB. Each takes the place of the message's variable of the same name. The
   * message is rendered for this recipient.
   */
  variables?: Record<string, unknown> | undefined;
  /**
   * Metadata of this recipient; up to 64 KiB, together with that of the message. Each takes the place of the
   * message's entry of the same name in the webhook events of this recipient.
   */
  metadata?: Record<string, unknown> | undefined;
}

/** A message in the list. */
export interface MessageSummary {
  /** The id. */
  id: string;
  /**
   * The provider account of the message: the account that routing selected at acceptance, or the one that sent to the
   * first recipient.
   */
  providerAccountId: string;
  /** The sender's address. */
  fromAddress: string;
  /** The SHA-256 of the first recipient's address in lower case, as lower-case hexadecimal. */
  toHash: string;
  /** The subject. */
  subject: string;
  /**
   * The status of the message, summarized over its recipients: QUEUED if any recipient has it, or else SENDING,
   * DELIVERED, SENT, BOUNCED or FAILED, in this order.
   */
  status: MessageStatus;
  /** The tags. */
  tags: string[];
  /** The number of recipients. */
  recipientCount: number;
  /** The provider's message id for the first recipient. */
  providerMessageId: string | null;
  /** When it was created. */
  createdAt: string;
  /** When a provider first accepted the message for a recipient. */
  sentAt: string | null;
  /** When the message was first delivered to a recipient. */
  deliveredAt: string | null;
}

/** Counts by group. */
export interface MetricsBreakdown {
  /** The groups, by descending `sent`, then by name. */
  data: MetricsGroup[];
  query: BreakdownQuery;
}

/** The counts of one hour, day, week or month. */
export interface MetricsBucket {
  /** When the bucket begins, in UTC or in `timeZone`: `YYYY-MM-DD HH:MM:SS`. Weeks begin on Monday. */
  timestamp: string;
  /**
   * When the bucket begins, in UTC; only if `timeZone` is given. Where clocks are put back, two hours have the same
   * `timestamp`.
   */
  start?: string | undefined;
  /** The number of recipients whose message a provider accepted. */
  sent: number;
  /** The number of recipients whose message was delivered. */
  delivered: number;
  /** The number of recipients who opened the message. Repeated opens count once. */
  opened: number;
  /** The number of recipients who clicked a link. Repeated clicks count once. */
  clicked: number;
  /** The number of recipients whose message bounced. */
  bounced: number;
  /** The number of recipients who reported the message as spam. */
  complained: number;
  /** The number of recipients who unsubscribed with the link. */
  unsubscribed: number;
}

/** The counts of one provider type, domain, template, account, tag or recipient domain. */
export interface MetricsGroup {
  /**
   * The provider type, the sender's domain, the template, the provider account, the tag or the recipient's domain.
   * Templates and accounts are shown by their names, by their ids if they were deleted, and by both if several have
   * this name. `(none)` stands for messages without a template or tag, `(other)` for the tags and recipient domains
   * beyond the first 500 of a month.
   */
  name: string;
  /** The id of the provider account, if grouped by `account`. */
  id?: string | undefined;
  /**
   * From acceptance, or from `scheduledAt`, to when the provider accepted the mail; if grouped by `account`, without
   * the filters `tag` and `templateId`.
   */
  acceptToSent?: MetricsPercentiles | undefined;
  /** From when the provider accepted the mail to its delivery. */
  sentToDelivered?: MetricsPercentiles | undefined;
  /** Copies of messages that a provider accepted. */
  sent: number;
  /** Copies that a mailbox accepted. */
  delivered: number;
  /** Copies that were opened. */
  opened: number;
  /** Copies of which a link was followed. */
  clicked: number;
  /** Copies that the receiving server refused. */
  bounced: number;
  /** Copies that the recipient reported as spam. */
  complained: number;
}

/** How long it took for half, 95 % and 99 % of the recipients at most, in milliseconds, to a tenth. */
export interface MetricsPercentiles {
  /** The time that half of the messages did not exceed, in milliseconds. */
  p50: number;
  /** The time that 95 % of the messages did not exceed, in milliseconds. */
  p95: number;
  /** The time that 99 % of the messages did not exceed, in milliseconds. */
  p99: number;
}

/** A time series of counts. */
export interface MetricsSeries {
  /** The buckets, oldest first. Buckets without events are included. */
  data: MetricsBucket[];
  query: SeriesQuery;
}

/** The total counts and rates of a period. */
export interface MetricsSummary {
  data: MetricsTotals;
  period: SummaryPeriod;
}

/**
 * The total counts and rates. Each recipient of a message counts once for each type of event. Rates have four
 * decimals, are 0 if the divisor is 0, and are never above 1, even if more messages were delivered than sent in the
 * period.
 */
export interface MetricsTotals {
  /** Copies of messages that a provider accepted. */
  totalSent: number;
  /** Copies that a mailbox accepted. */
  totalDelivered: number;
  /** Copies that were opened. */
  totalOpened: number;
  /** Copies of which a link was followed. */
  totalClicked: number;
  /** Copies that the receiving server refused. */
  totalBounced: number;
  /** Copies that the recipient reported as spam. */
  totalComplained: number;
  /** Recipients that unsubscribed. */
  totalUnsubscribed: number;
  /** `totalDelivered` divided by `totalSent`. */
  deliveryRate: number;
  /** `totalOpened` divided by `totalDelivered`. */
  openRate: number;
  /** `totalClicked` divided by `totalOpened`. */
  clickRate: number;
  /** `totalBounced` divided by `totalSent`. */
  bounceRate: number;
  /** `totalComplained` divided by `totalDelivered`. */
  complaintRate: number;
}

/** How the daily cap of a target grows, so that mailbox providers get to know a new account. */
export interface NewRoutingRamp {
  /** The most recipients of the first day. */
  start: number;
  /** What each step multiplies the cap by, 1.01 to 10. */
  factor: number;
  /** The days from one step to the next, 1 to 30. */
  everyDays: number;
  /**
   * The first day, in UTC; before it the target gets nothing. A ramp whose first day is over begins where it would be
   * now. The default is the day that the same ramp of the account has, or today.
   */
  from?: string | null | undefined;
}

/** The bounds of the rates of an account, beyond which the ramps of a rule do not grow. */
export interface NewRoutingRampBounds {
  /** The most bounces, as a part of the sent mails. The default is 0.05. */
  bounceRate?: number | null | undefined;
  /** The most complaints, as a part of the delivered mails. The default is 0.001. */
  complaintRate?: number | null | undefined;
}

/** An account that gets a part of the messages. */
export interface NewRoutingTarget {
  /** The provider account. */
  providerAccountId: string;
  /** 1 to 1,000. Each account gets its weight's part of the messages. */
  weight: number;
  /** The most recipients of a day in UTC, of all messages of the rule. */
  dailyCap?: number | null | undefined;
  /** The most recipients of an hour, of all messages of the rule. */
  hourlyCap?: number | null | undefined;
  /** How the daily cap grows until it reaches `dailyCap`, or without end. */
  ramp?: NewRoutingRamp | undefined;
}

/** The OpenID Connect provider at which users can sign in; null if there is none. */
export interface OidcMethod {
  /** The name of the provider, for people. */
  name: string;
  /** Where the sign-in begins, relative to the public URL. */
  url: string;
}

/** An organization of a user. */
export interface OrganizationMembership {
  /** The id. */
  id: string;
  /** The name of the organization. */
  name: string;
  /** The role of the user in this organization. */
  role: Role;
}

/** A page as a recipient sees it. */
export interface PagePreview {
  /** The whole page. Show it in a frame without rights (`<iframe sandbox>`). */
  html: string;
}

/** The position of a page in its list. */
export interface Pagination {
  /** The page number, from 1. */
  page: number;
  /** The number of items per page. */
  limit: number;
  /** The number of items in the whole list. */
  total: number;
  /** The number of pages. */
  totalPages: number;
  /** The `cursor` of the next page, for the same request; null at the end of the list. */
  nextCursor: string | null;
}

/** A rule that was skipped. */
export interface PassedOverRule {
  rule: RoutingRule;
  /**
   * Why the rule was skipped: `RULE_INACTIVE`, `SENDER_DOMAIN`, `TAGS`, `RECIPIENT_DOMAIN`,
   * `RECIPIENT_MAILBOX_PROVIDER`, `MESSAGE_CLASS`, `SIZE`, `TEST` or `PROVIDER_INACTIVE`.
   */
  reason: string;
}

/** Whose password a link sets. */
export interface PasswordResetDetail {
  /** The address. */
  email: string;
}

/** The content of a version to preview, as for a new version, and its variables. */
export interface PreviewTemplateDraftRequest {
  /** The variables. They need not match the JSON Schema. */
  variables?: Record<string, unknown> | undefined;
  /**
   * The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`. Without one, it is of the
   * default language.
   */
  locale?: string | undefined;
  /** The subject of messages that bring none, a Handlebars template. */
  subject?: string | undefined;
  /**
   * What mail programs show beside the subject, a Handlebars template on one line. It is put at the beginning of the
   * HTML, hidden.
   */
  preheader?: string | undefined;
  /** The sender of messages that bring none. */
  from?: string | undefined;
  /** One address for replies or an array of up to 10, for messages that bring none. */
  replyTo?: Addresses | undefined;
  /** The layout around the content. One of MJML takes MJML, one of HTML takes HTML. */
  layoutId?: string | undefined;
  /** The HTML source. It may be empty if `mjmlSource` is given. */
  htmlContent: string;
  /** The MJML source. It is compiled now, and the result replaces `htmlContent`. */
  mjmlSource?: string | undefined;
  /** The plain-text source. Without it, the text is made from the HTML; if it is empty, there is no text. */
  textContent?: string | undefined;
  /**
   * A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must match. References outside the
   * schema are not allowed.
   */
  variablesSchema?: Record<string, unknown> | undefined;
}

/** What to preview. */
export interface PreviewTemplateRequest {
  /** The variables. They need not match the JSON Schema of the version. */
  variables?: Record<string, unknown> | undefined;
  /** The id of the version. The default is the current version. */
  versionId?: string | undefined;
  /**
   * The language of the version, instead of `versionId`: its current version is rendered, or that of the next less
   * exact language, or of the default.
   */
  locale?: string | undefined;
}

/** A connected account at a provider. Its credentials are never returned. */
export interface ProviderAccount {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The provider. */
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /**
   * Where the provider's system is that takes the mail: `eu` or `us`; null if it is elsewhere, or not known (SMTP).
   */
  region: AccountRegion | null;
  /** Whether the account sends messages. */
  isActive: boolean;
  /** The URL that the provider posts events to. Keep it secret. */
  webhookUrl: string;
  /** Whether an event from the provider was verified since the event secrets were last set. */
  eventsVerified: boolean;
  /** The most calls to the provider per second, over all workers; null means no limit. */
  maxRatePerSecond: number | null;
  /** The most concurrent calls to the provider, over all workers; null means no limit. */
  maxConcurrency: number | null;
  /**
   * Why the account cannot send, as reported by the provider: revoked credentials, a suspension, a quota. Its
   * messages wait or are sent by the fallbacks. New credentials, a successful check or `isActive: true` let the
   * account try again at once. Null again after that, or once the provider accepts a message.
   */
  sendingPausedReason: string | null;
  /** Since when the account cannot send; null if it can. */
  sendingPausedSince: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
}

/** Whether calls to a provider account are made. */
export interface ProviderCircuit {
  /**
   * CLOSED: calls are made. OPEN: no calls are made until `until`. HALF_OPEN: each worker makes one call, whose
   * result decides.
   */
  state: ProviderCircuitState;
  /** Why the circuit is not closed; null if it is. */
  cause: ProviderCircuitCause | null;
  /** When the next call may be made; null unless the circuit is open. */
  until: string | null;
}

/** What became of a provider account's mail to one recipient domain. */
export interface ProviderDomainHealth {
  /**
   * The recipient domain. `(other)` stands for all domains beyond the 50 with the most mail and the first 500 of a
   * month, `(none)` for addresses that are not known any more.
   */
  recipientDomain: string;
  /** The number of calls to the provider, for one recipient each, that ended. */
  attempts: number;
  /** The number of attempts that the provider accepted. */
  accepted: number;
  /** The number of attempts that the provider refused for good. */
  rejected: number;
  /** The number of attempts that the provider, or later the recipient's server, put off. */
  deferred: number;
  /** The number of recipients whose message the provider accepted. */
  sent: number;
  /** The number of recipients whose message was delivered. */
  delivered: number;
  /** The number of recipients whose message bounced. */
  bounced: number;
  /** The number of recipients who reported the message as spam. */
  complained: number;
  /** `deferred` divided by `attempts`. */
  deferralRate: number | null;
  /** `bounced` divided by `sent`. */
  bounceRate: number | null;
  /** `complained` divided by `delivered`. */
  complaintRate: number | null;
  /** `delivered` divided by `sent`. */
  deliveryRate: number | null;
  /** How long accepted calls took; null if there are fewer than 20. */
  acceptLatencyMs: AcceptLatency | null;
}

/** One cause for which an account fails. */
export interface ProviderFailure {
  cause: ProviderFailureCause;
  /** Since when the account fails for this cause. */
  since: string;
}

/** How a provider account does at the moment. */
export interface ProviderHealth {
  /** The provider account. */
  providerAccountId: string;
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /** Whether the account sends messages. */
  isActive: boolean;
  /** Whether calls to the account are made; null while Redis, which knows it, does not answer. */
  circuit: ProviderCircuit | null;
  /**
   * The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null if
   * it does not throttle, or while Redis does not answer.
   */
  throttledRatePerSecond: number | null;
  /** Why the account cannot send, as reported by the provider; null if it can. */
  sendingPausedReason: string | null;
  /** What is wrong with the account now, as the event PROVIDER_FAILING reports it. */
  failures: ProviderFailure[];
  calls: RecentProviderCalls;
  /** The most calls to the provider per second, over all workers; null means no limit. */
  maxRatePerSecond: number | null;
  /** The most concurrent calls to the provider, over all workers; null means no limit. */
  maxConcurrency: number | null;
}

/** What became of a provider account's mail, by recipient domain. */
export interface ProviderHealthByDomain {
  /** The domains, those with the most mail first; `(other)` comes last. */
  data: ProviderDomainHealth[];
  window: ProviderHealthWindow;
}

/** How a provider account does at the moment, and what became of its mail. */
export interface ProviderHealthDetail {
  /** The provider account. */
  providerAccountId: string;
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /** Whether the account sends messages. */
  isActive: boolean;
  /** Whether calls to the account are made; null while Redis, which knows it, does not answer. */
  circuit: ProviderCircuit | null;
  /**
   * The calls per second, over all workers, to which Waypost holds back now because the provider throttles; null if
   * it does not throttle, or while Redis does not answer.
   */
  throttledRatePerSecond: number | null;
  /** Why the account cannot send, as reported by the provider; null if it can. */
  sendingPausedReason: string | null;
  /** What is wrong with the account now, as the event PROVIDER_FAILING reports it. */
  failures: ProviderFailure[];
  calls: RecentProviderCalls;
  /** The most calls to the provider per second, over all workers; null means no limit. */
  maxRatePerSecond: number | null;
  /** The most concurrent calls to the provider, over all workers; null means no limit. */
  maxConcurrency: number | null;
  windows: ProviderHealthWindows;
}

/** The time that is counted. */
export interface ProviderHealthWindow {
  /** The start of the first quarter of an hour that is counted. */
  from: string;
  /** The end of the period, which is not part of it. */
  to: string;
}

/**
 * What became of all mail of a provider account lately. The quarters of an hour that a window touches count whole.
 * Tests are not counted.
 */
export interface ProviderHealthWindows {
  last15Minutes: ProviderMailFigures;
  lastDay: ProviderMailFigures;
  lastWeek: ProviderMailFigures;
}

/** The result of an import from a provider. */
export interface ProviderImportResult {
  /** The number of newly suppressed addresses. */
  imported: number;
  /** The number of addresses that were already suppressed for all messages. */
  alreadyThere: number;
  /** The number of entries that name no address, or that hold for some messages only. */
  unusable: number;
  /** The `cursor` of the request that continues; null if all lists were read. */
  nextCursor: string | null;
}

/**
 * What became of some mail of a provider account. `attempts`, `accepted`, `rejected` and `acceptLatencyMs` are up to
 * a minute late; the other numbers are exact. Rates have four decimals, are never above 1, and are null if they are
 * of fewer than 20.
 */
export interface ProviderMailFigures {
  /** The number of calls to the provider, for one recipient each, that ended. */
  attempts: number;
  /** The number of attempts that the provider accepted. */
  accepted: number;
  /** The number of attempts that the provider refused for good. */
  rejected: number;
  /** The number of attempts that the provider, or later the recipient's server, put off. */
  deferred: number;
  /** The number of recipients whose message the provider accepted. */
  sent: number;
  /** The number of recipients whose message was delivered. */
  delivered: number;
  /** The number of recipients whose message bounced. */
  bounced: number;
  /** The number of recipients who reported the message as spam. */
  complained: number;
  /** `deferred` divided by `attempts`. */
  deferralRate: number | null;
  /** `bounced` divided by `sent`. */
  bounceRate: number | null;
  /** `complained` divided by `delivered`. */
  complaintRate: number | null;
  /** `delivered` divided by `sent`. */
  deliveryRate: number | null;
  /** How long accepted calls took; null if there are fewer than 20. */
  acceptLatencyMs: AcceptLatency | null;
}

/** Rate limits, in requests per second; null means the operator's limit. */
export interface RateLimits {
  /** The limit of `POST /v1/send`. */
  sendPerSecond: number | null;
  /** The limit of all other operations together. */
  otherPerSecond: number | null;
}

/** The newest calls of the last 15 minutes, at most 1,000. Tests are not counted. */
export interface RecentProviderCalls {
  /** All calls since this time are counted: 15 minutes ago, or later if there were more than 1,000. */
  since: string;
  /** The number of calls that the provider accepted. */
  accepted: number;
  /** The number of calls that the provider rejected. */
  rejected: number;
  /** The number of calls that the provider throttled. */
  throttled: number;
  /** The number of calls that failed without a delivery. */
  unavailable: number;
  /** The number of calls whose answer was lost. */
  unknown: number;
  /** The number of calls that have not ended. */
  pending: number;
  /** The median of the durations of the calls, in milliseconds; null if no call ended. */
  medianDurationMs: number | null;
  /** The 95th percentile of the durations of the calls, in milliseconds; null if no call ended. */
  p95DurationMs: number | null;
  /** The newest call that the provider did not accept; null if there is none. */
  lastFailure: FailedProviderCall | null;
}

/** One recipient of a message. */
export interface RecipientDetail {
  /** Where the recipient stands in the mail: TO, CC or BCC. */
  kind: RecipientKind;
  /** The SHA-256 of the address in lower case, as lower-case hexadecimal. */
  toHash: string;
  status: MessageStatus;
  /** The provider account of the latest attempt. */
  providerAccountId: string | null;
  /** The provider's message id for this recipient. */
  providerMessageId: string | null;
  /** The number of attempts. A throttled attempt is not counted. */
  attempts: number;
  /** The error of the latest failed attempt. */
  lastError: string | null;
  /** The events, oldest first. */
  events: HistoryEvent[];
}

/** The recovery codes, which are shown once. */
export interface RecoveryCodes {
  /** Ten codes. Each replaces the code of the second factor once. */
  recoveryCodes: string[];
}

/** The result of a removal. */
export interface RemovalResult {
  /** The number of suppressions that were removed. */
  removed: number;
  /** The number of addresses that were not suppressed or were repeated in the request. */
  notFound: number;
  /** The number of addresses in the request: `removed` plus `notFound`. */
  total: number;
}

/** Addresses whose suppressions to remove. */
export interface RemoveSuppressionsRequest {
  /** 1 to 10,000 addresses. */
  emails: readonly string[];
  /**
   * The unsubscribe group whose suppressions to remove. The default is the suppressions for all messages; those in
   * groups stay.
   */
  unsubscribeGroupId?: string | undefined;
}

/** The number of replayed deliveries. */
export interface ReplayResult {
  /** The number of deliveries that are due again. */
  replayed: number;
  /**
   * One request replays at most 100,000 deliveries. If there are more, the `since` of the next request; otherwise
   * null.
   */
  continueFrom: string | null;
}

/** Which deliveries to replay. */
export interface ReplayWebhooksRequest {
  /** Replays deliveries created at or after this time. */
  since: string | Date;
  /**
   * Replays deliveries created before this time, at most 30 days after `since`. A date without a time includes that
   * whole day.
   */
  until: string | Date;
  /** Replays only deliveries with this status. The default is all. */
  status?: WebhookDeliveryStatus | undefined;
}

/** The message to resolve the route of. */
export interface ResolveRouteRequest {
  /** The sender. */
  from: string;
  /**
   * The recipients. Only their domains matter. Without them, rules with `recipientDomains` or
   * `recipientMailboxProviders` are skipped.
   */
  to?: Recipients | undefined;
  /** The tags of the message. */
  tags?: readonly string[] | undefined;
  /** The class of the message. The default is `transactional`. */
  messageClass?: MessageClass | undefined;
  /** The size of the message, in bytes. The default is 0. */
  sizeBytes?: number | undefined;
  /** Whether the message is a test. The default is false. */
  test?: boolean | undefined;
}

/** The dead jobs that are due again. */
export interface RetriedDeadJobs {
  messageId: string;
  /** The number of chunks. */
  chunks: number;
}

/** The result of a rollback. */
export interface RolledBack {
  /** The template. */
  templateId: string;
  /** The version that messages are rendered from now. */
  currentVersionId: string;
  /** The number of the version, from 1. */
  versionNumber: number;
}

/** How to rotate a key. */
export interface RotateApiKeyRequest {
  /** How long the old secret keeps working, in seconds: 0 to 604,800. The default is 86,400 (one day). */
  gracePeriodSeconds?: number | undefined;
}

/** How to rotate a signing secret. */
export interface RotateWebhookSecretRequest {
  /**
   * How long deliveries are signed with the old secret too, in seconds: 0 to 604,800. The default is 86,400 (one
   * day).
   */
  gracePeriodSeconds?: number | undefined;
}

/** The route of a message. */
export interface RouteResolution {
  /** The rule that matched; null if none did. */
  rule: RoutingRule | null;
  /** The rules that were checked before and skipped, in order. */
  passedOver: PassedOverRule[];
  /**
   * The account that would send the message; null if there is none. Of several targets each message gets one, so the
   * next message may get another.
   */
  account: ProviderAccount | null;
  /** Whether the sender's domain is verified on this account. */
  domainVerified: boolean;
  /** The targets of the rule, in order; empty if one account sends all its messages. */
  targets: TargetResolution[];
  /** The fallbacks of the rule, in order. */
  fallbacks: FallbackResolution[];
  /**
   * Why a send would be refused: `NO_ACTIVE_PROVIDER` (in the region of the rule) or `DOMAIN_NOT_VERIFIED`; null if
   * it would be accepted.
   */
  refusal: string | null;
}

/** How far a routing rule is. */
export interface RoutingProgress {
  /** The targets of the rule in their order; empty if one account sends all its messages. */
  targets: RoutingTargetProgress[];
}

/** How the daily cap of a target grows, so that mailbox providers get to know a new account. */
export interface RoutingRamp {
  /** The most recipients of the first day. */
  start: number;
  /** What each step multiplies the cap by, 1.01 to 10. */
  factor: number;
  /** The days from one step to the next, 1 to 30. */
  everyDays: number;
  /** The first day, in UTC; before it the target gets nothing. */
  from: string;
}

/** The bounds of the rates of an account, for all its mail, beyond which the ramps of a rule do not grow. */
export interface RoutingRampBounds {
  /** The most bounces, as a part of the sent mails. */
  bounceRate: number;
  /** The most complaints, as a part of the delivered mails. */
  complaintRate: number;
}

/** How far the ramp of a target is. */
export interface RoutingRampProgress {
  /** The most recipients of this day by the ramp; 0 before its first day. */
  cap: number;
  /**
   * `notBegun` before its first day; `growing`; `held` while a rate is beyond its bound; `finished`, and then it
   * limits no more.
   */
  state: RoutingRampState;
  /** Since when it is in this state. */
  since: string;
  /** The day of UTC of the next step, or of the first; null while it is held, and when it is finished. */
  nextStepOn: string | null;
  /**
   * The part of the account's sent mails that bounced, over a day, or over a week if fewer than 100 were sent in a
   * day; null if fewer than 100 were.
   */
  bounceRate: number | null;
  /**
   * The part of the account's delivered mails that was reported as spam, over the same time; null as `bounceRate` is.
   */
  complaintRate: number | null;
  /** How many mails the account sent in that time. */
  sent: number;
  /** What happened to the ramp, the newest first, up to 50. */
  steps: RoutingRampStep[];
}

/** Something that happened to a ramp. */
export interface RoutingRampStep {
  at: string;
  /**
   * `begin`: its first day came. `step`: the cap grew. `hold`: a rate passed its bound. `halve`: a rate passed twice
   * its bound. `resume`: the rates are within their bounds again. `finish`: the cap reached that of the target.
   */
  action: RoutingRampAction;
  /** The cap of a day before. */
  capBefore: number;
  /** The cap of a day from then on. */
  capAfter: number;
  /** The rate then; null if it was not known. */
  bounceRate: number | null;
  /** The rate then; null if it was not known. */
  complaintRate: number | null;
}

/** A routing rule. A message must match all conditions of the rule; an absent condition matches every message. */
export interface RoutingRule {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** 0 to 1,000. Rules with a higher priority are checked first; for equal priorities, older rules are. */
  priority: number;
  /** Whether it is in use. */
  isActive: boolean;
  /**
   * The sender's domain: `example.com`, or `*.example.com` for every subdomain but not the domain itself; null
   * matches every domain.
   */
  senderDomain: string | null;
  /** The tags. */
  tags: string[];
  /** Whether a message must have `any` or `all` of the tags. */
  tagMatch: TagMatch;
  /**
   * The domains of the recipients, such as `example.com` or `*.example.com`: every recipient of a message must match
   * one of them. Empty for all recipients.
   */
  recipientDomains: string[];
  /**
   * The mailbox providers of the recipients, by the MX records of their domains: every recipient of a message must
   * have one of them. `other` are all that are not named. Empty for all recipients. A domain that is not known yet
   * matches none: it is looked up after the first message to it.
   */
  recipientMailboxProviders: MailboxProvider[];
  /** The class that messages have: `transactional` or `bulk`; null for both. */
  messageClass: MessageClass | null;
  /**
   * The smallest size of messages, in bytes: subject, bodies and decoded attachments. What single recipients have
   * instead does not count. Null for no bound.
   */
  minSizeBytes: number | null;
  /** The largest size of messages, in bytes; null for no bound. */
  maxSizeBytes: number | null;
  /** Whether the rule is for tests only (true) or for live messages only (false); null for both. */
  test: boolean | null;
  /**
   * The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere. Accounts outside of it
   * are skipped, whatever else fails.
   */
  region: AccountRegion | null;
  /** The account that sends the messages; of a rule with targets, that of the first. */
  providerAccountId: string;
  /** The accounts that share the messages; empty if one account sends them all. */
  targets: RoutingTarget[];
  /**
   * Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient), or
   * those of one `sender`.
   */
  sticky: RoutingStickiness;
  /**
   * Whether targets share the messages by their `weight` alone, or also by their `health`: the weight of a target
   * whose mail fails is lowered until its mail succeeds again.
   */
  prefer: RoutingPreference;
  /**
   * What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits
   * (`wait`).
   */
  overCap: RoutingOverCap;
  /** The bounds of the rates of an account, beyond which its ramp does not grow. */
  rampBounds: RoutingRampBounds;
  /** The accounts that send if this account, or none of the targets, can, in this order. */
  fallbackProviderAccountIds: string[];
  /**
   * What to do if the provider's response to a call is lost: `wait` for evidence and send again if there is none,
   * `resend` at once (the recipient may get the message twice), or `fail` (the message may have been sent).
   */
  onUnknown: OnUnknown;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
}

/** What the live messages of a period would have done. Accounts and their domains count as they are now. */
export interface RoutingSimulation {
  /** The begin of the period. */
  from: string;
  /** The end of the period, which is not part of it. */
  to: string;
  /** The messages that were accepted in the period. */
  messages: number;
  /** The recipients of these messages. */
  recipients: number;
  /**
   * 1 if every message was looked at. Of more than 100,000, one in so many was, and the counts are multiplied by it.
   */
  sampledOneIn: number;
  /** The accounts that the messages went to, in the simulation or in fact. */
  accounts: SimulatedAccount[];
  /** The rules in the order in which they are checked. */
  rules: SimulatedRuleCounts[];
  /** Messages without a matching rule, and those that name their account. */
  withoutRule: number;
  refused: SimulatedRefusals;
  /** Recipients that would have waited for a cap until sending is given up. */
  unsent: number;
}

/** An account that gets a part of a rule's messages. */
export interface RoutingTarget {
  /** The provider account. */
  providerAccountId: string;
  /** 1 to 1,000. Each account gets its weight's part of the messages. */
  weight: number;
  /** The most recipients of a day in UTC; null for no cap. */
  dailyCap: number | null;
  /** The most recipients of an hour; null for no cap. */
  hourlyCap: number | null;
  /** How its daily cap grows; null if it does not. */
  ramp: RoutingRamp | null;
}

/** How far a target of a routing rule is. */
export interface RoutingTargetProgress {
  /** The provider account. */
  providerAccountId: string;
  /** 1 to 1,000. Each account gets its weight's part of the messages. */
  weight: number;
  /**
   * How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a little
   * ahead: workers reserve several at once.
   */
  usedToday: number;
  /** The most recipients of this day, by `dailyCap` and by the ramp; null for no cap. */
  dailyCap: number | null;
  /**
   * How many recipients of the rule's messages it had in this hour. Counted if it has an `hourlyCap`, and a little
   * ahead.
   */
  usedThisHour: number;
  /** The most recipients of an hour; null for no cap. */
  hourlyCap: number | null;
  /** How far its ramp is; null if it has none. */
  ramp: RoutingRampProgress | null;
}

/** A task of the scheduler, with its last run. */
export interface SchedulerTask {
  /** The name of the task. */
  name: string;
  /** How often the task runs, in milliseconds. */
  everyMs: number;
  /** The process that ran the task last. */
  leader: string;
  /** When the last run began. */
  lastStartedAt: string;
  /** When the last finished run ended. */
  lastFinishedAt: string | null;
  /** When the last successful run ended. */
  lastSucceededAt: string | null;
  /** How long the last finished run took, in milliseconds. */
  tookMs: number | null;
  /**
   * How long ago the last successful run was, less one interval and the ten seconds within which a run is stored, in
   * milliseconds.
   */
  lagMs: number;
  /** Whether the task needs attention. */
  isLate: boolean;
  /** The error of the last finished run. */
  lastError: string | null;
}

/** One call to a provider for one recipient. */
export interface SendAttempt {
  /** The id of the attempt. The events of this attempt have it as `attemptId`. */
  id: string;
  /** The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal. */
  toHash: string;
  /** The provider account of the call. It may have been removed since. */
  providerAccountId: string;
  /** The provider type of the account. */
  providerType: ProviderType;
  /** When the call started. */
  startedAt: string;
  /** The duration until the outcome was known, in milliseconds; null if it is not known yet. */
  durationMs: number | null;
  /**
   * The outcome: ACCEPTED, REJECTED, THROTTLED, UNAVAILABLE, UNKNOWN (the response was lost, and the provider may
   * have accepted the message) or PENDING (the call still runs).
   */
  outcome: SendAttemptOutcome;
  /** The status code of the provider's response. */
  statusCode: number | null;
  /** The provider's error message, or the error of the call. */
  reason: string | null;
}

/** The messages to send. */
export interface SendBatchRequest {
  /** 1 to 1,000 messages. The operator can set another maximum. */
  messages: readonly BatchMessage[];
}

/** The results, one for each message, in the order of the request. */
export interface SendBatchResponse {
  /** The results, in the order of the messages. */
  results: BatchResult[];
}

/** A message to send. It needs at least one of `templateId`, `html` and `text`. */
export interface SendMessageRequest {
  /**
   * One address or an array of up to 1,000, each with or without a display name. An item of the array can be an
   * object with variables and metadata of this recipient. Each recipient gets a message of their own and does not see
   * the other recipients, unless the message is shared. A repeated address gets one message.
   */
  to: Recipients;
  /**
   * One address or an array of addresses that get a copy and that all recipients see. With `cc` or `bcc`, the message
   * is shared: all recipients get one mail and see the addresses of `to` and `cc`. A shared message has up to 50
   * addresses in all.
   */
  cc?: Addresses | undefined;
  /** One address or an array of addresses that get a copy and that the other recipients do not see. */
  bcc?: Addresses | undefined;
  /**
   * `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail and see each other. The
   * default is `shared` with `cc` or `bcc`, and else `private`. A shared message has no variables of single
   * recipients, and no `unsubscribeGroupId` unless it has one address.
   */
  delivery?: DeliveryMode | undefined;
  /**
   * The sender. The domain must be verified on the provider account that sends the message; the setting
   * `unverifiedDomains` can allow other domains. Required, unless `templateId` names a template whose version has a
   * sender.
   */
  from?: string | undefined;
  /**
   * The subject, on one line. With `templateId` or variables it is a Handlebars template, and the rendered subject
   * must keep the same length limit. Required, unless `templateId` names a template whose version has a subject.
   */
  subject?: string | undefined;
  /**
   * The HTML body. With `templateId` it replaces the template's HTML and is not rendered. With variables and without
   * `templateId` it is a Handlebars template.
   */
  html?: string | undefined;
  /**
   * The plain-text body. With `templateId` it replaces the template's text and is not rendered. With variables and
   * without `templateId` it is a Handlebars template.
   */
  text?: string | undefined;
  /**
   * One address for replies or an array of up to 10. The default is that of the template's version, or else the
   * sender.
   */
  replyTo?: Addresses | undefined;
  /**
   * Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits and hyphens; a value is
   * ASCII on one line (other characters as encoded words, RFC 2047). Headers that Waypost or the provider sets are
   * refused: `From`, `To`, `Subject`, `Date`, `Message-ID`, `Content-*`, `DKIM-*`, `X-Waypost-*` and others. With
   * `unsubscribeGroupId`, so is `List-Unsubscribe`.
   */
  headers?: Record<string, string> | undefined;
  /**
   * Up to 50 files. A file with a `contentId` is shown within the HTML body, which must not show `cid:` URLs of other
   * ids.
   */
  attachments?: readonly MessageAttachment[] | undefined;
  /** Up to 10 tags, for routing rules and analytics. */
  tags?: readonly string[] | undefined;
  /** What kind of mail the message is, for routing rules: `transactional` (the default) or `bulk`. */
  messageClass?: MessageClass | undefined;
  /** Any JSON object of up to 64 KiB. It is stored with the message and included in its webhook events. */
  metadata?: Record<string, unknown> | undefined;
  /**
   * The template to render. The current version is rendered when the message is accepted; later versions do not
   * change the message.
   */
  templateId?: string | undefined;
  /**
   * With `templateId`: the language of the version, as a language tag. Without a current version in this language,
   * the next less exact one counts: `de-AT`, then `de`, then the default.
   */
  locale?: string | undefined;
  /**
   * The variables of the template: an object of up to 256 KiB. Without `templateId`, `subject`, `html` and `text` are
   * rendered with these variables (even if the object is empty). If neither the message nor a recipient has
   * `variables`, they are sent unchanged.
   */
  variables?: Record<string, unknown> | undefined;
  /**
   * The unsubscribe group of the message. Recipients who unsubscribed from this group are dropped, in addition to
   * those suppressed for all messages. Each recipient gets an unsubscribe link: at `{{unsubscribeUrl}}` in a body, or
   * else at its end, and in the headers for the unsubscribe button of mail clients. Without a group, a body must not
   * contain `{{unsubscribeUrl}}`, unless `variables` defines it.
   */
  unsubscribeGroupId?: string | undefined;
  /**
   * Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The default is the
   * organization's settings. A link with the attribute `data-waypost-no-track` is not tracked.
   */
  tracking?: Tracking | undefined;
  /**
   * When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until then its status is QUEUED.
   * Suppressions and the account are decided at that time. The `Idempotency-Key` is valid until 24 hours after it.
   */
  scheduledAt?: string | Date | undefined;
  /**
   * The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset from UTC, after
   * `scheduledAt`. Recipients to whom it was not sent before are dropped.
   */
  expiresAt?: string | Date | undefined;
  /**
   * The only provider account that may send the message, whatever the routing rules say. It must be active, and the
   * sender's domain must be verified on it.
   */
  providerAccountId?: string | undefined;
  /**
   * Whether the message is a test: it goes through everything, but no provider is called, nobody gets it, and nothing
   * is counted. The default is whether the API key is a test key; with a test key it must not be false.
   */
  test?: boolean | undefined;
  /**
   * What becomes of a test. `delivered` is the default. `bounced`: a hard bounce. `complained`: delivered, then
   * reported as spam. `deferred`: deferred, then delivered. `failed`: the provider refuses it. `suppressed`: all
   * recipients are suppressed. `unknown`: the provider's answer is lost, and the rule's `onUnknown` decides.
   * `failover`: the first account fails, and the next one takes it.
   */
  testOutcome?: TestOutcome | undefined;
}

/**
 * The result of a send. Suppressed recipients are dropped. If all recipients are suppressed, no message is created.
 */
export interface SendMessageResponse {
  /** The id of the message; null if all recipients are suppressed. */
  messageId: string | null;
  /** The provider account that will send the message; null if all recipients are suppressed. */
  providerId: string | null;
  /** The provider type of this account. */
  providerType?: ProviderType | undefined;
  /** `queued`, or `suppressed` if all recipients are suppressed. */
  status: SendStatus;
  /** Whether the sender's domain is verified on this account. */
  domainVerified?: boolean | undefined;
  /** The number of suppressed recipients; absent if none is suppressed. */
  suppressedCount?: number | undefined;
  /** The number of accepted recipients; absent if none or all are suppressed. */
  acceptedCount?: number | undefined;
}

/** To whom a template is sent, and with what. */
export interface SendTemplateTestRequest {
  /** One address or an array of up to 10. Each gets a mail of their own. */
  to: Addresses;
  /** The variables of the template, which must match its schema. */
  variables?: Record<string, unknown> | undefined;
  /** The id of the version. The default is the current version. */
  versionId?: string | undefined;
  /**
   * The language of the version, instead of `versionId`: its current version is sent, or that of the next less exact
   * language, or of the default.
   */
  locale?: string | undefined;
  /** The sender. Required if the version has none. */
  from?: string | undefined;
  /** The subject, a Handlebars template. Required if the version has none. */
  subject?: string | undefined;
}

/** A sender domain, across the accounts that have it. */
export interface SenderDomain {
  /** The domain name, in ASCII. */
  domain: string;
  /**
   * `complete`: DNS has all records that mail needs. `incomplete`: some are missing or differ, and were never found.
   * `broken`: some were found before, and two checks missed them. `unknown`: DNS was not asked yet or could not be
   * asked, or no account names its records.
   */
  status: SenderDomainStatus;
  /** The accounts that have the domain. */
  accounts: SenderDomainAccount[];
  spf: SenderDomainSpf;
  /** The DKIM records that the accounts want. */
  dkim: SenderDomainDkim[];
  dmarc: SenderDomainDmarc;
  /** What is wrong with the domain as a whole. */
  conflicts: SenderDomainConflict[];
  /** When DNS was last asked; null before the first check. */
  checkedAt: string | null;
  /** Since when DNS lacks records that it had; null if it has them. */
  brokenSince: string | null;
}

/** A sender domain at one account. */
export interface SenderDomainAccount {
  /** The provider account. */
  providerAccountId: string;
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /** The id of the domain in `/v1/providers/:id/domains`. */
  domainId: string;
  /** The provider's verdict, which decides whether the account may send from the domain. */
  state: DomainState;
  /** The records that the provider wants, with what DNS has. */
  records: SenderDomainRecord[];
}

/** Something that is wrong with a domain as a whole. */
export interface SenderDomainConflict {
  /** The kind of conflict, for programs. */
  code: SenderDomainConflictCode;
  /** What is wrong and what to do, for people. */
  message: string;
  /** The names of the records. */
  names: string[];
}

/** A DKIM record that an account wants. */
export interface SenderDomainDkim {
  /** The provider account. */
  providerAccountId: string;
  /** The DKIM selector. */
  selector: string;
  /** The full name of the record. */
  name: string;
  /** Whether DNS has the record. */
  status: DnsFoundStatus;
}

/** The DMARC policy of a domain. */
export interface SenderDomainDmarc {
  /** The record; null if there is none. */
  record: string | null;
  /** The domain that has the record: this one, or one above it. */
  policyDomain: string | null;
  /** What receivers do with mail that does not pass; null without a valid record. */
  policy: DmarcPolicy | null;
  status: DmarcStatus;
  /**
   * Whether the return paths of all accounts are of this domain, as far as the policy asks for it; null if there is
   * no policy or an account does not name its records.
   */
  alignedSpf: boolean | null;
  /** The same of the signatures of all accounts. Mail passes if one of both is aligned. */
  alignedDkim: boolean | null;
}

/** A DNS record that a provider wants, with what DNS has. */
export interface SenderDomainRecord {
  /** The type of the record. */
  type: DnsRecordType;
  /** The full name of the record. */
  name: string;
  /** The value that the provider wants. */
  value: string;
  /** The priority of an MX record; null for other types. */
  priority: number | null;
  /** What the record is for. */
  purpose: DnsRecordPurpose;
  /** Whether the provider found the record. */
  status: DnsRecordStatus;
  /** The values that DNS has there; of SPF and DMARC, the records of that kind. */
  found: string[];
  /** Whether DNS has the record; `unknown` if DNS was not or could not be asked. */
  foundStatus: DnsFoundStatus;
}

/** The SPF record of a domain. A domain has one record for all of its senders. */
export interface SenderDomainSpf {
  /** The record; the first, if there are several; null if there is none. */
  record: string | null;
  /**
   * Whether receivers accept it. Accounts may do without one: SENDGRID, POSTMARK and SES send with return paths of
   * other domains.
   */
  status: SpfStatus;
  /** The look-ups that it causes, with those of included records, up to 50. */
  lookups: number;
  /** The look-ups that receivers make (RFC 7208, 4.6.4). */
  lookupsMax: number;
  /** The look-ups that find nothing. Receivers accept two. */
  voidLookups: number;
  /** The mechanisms that accounts want and the record lacks. */
  missing: string[];
  /** One record for all accounts; null if the record need not be changed. */
  recommended: string | null;
}

/** A sender domain in a list. */
export interface SenderDomainSummary {
  /** The domain name, in ASCII. */
  domain: string;
  /** What the last check found. */
  status: SenderDomainStatus;
  /** The provider accounts that have the domain. */
  providerAccountIds: string[];
  /** The kinds of conflicts that the last check found. */
  conflicts: SenderDomainConflictCode[];
  /** When DNS was last asked; null before the first check. */
  checkedAt: string | null;
  /** Since when DNS lacks records that it had; null if it has them. */
  brokenSince: string | null;
}

/** The query of a series, with its defaults filled in. */
export interface SeriesQuery {
  /** The begin of the period. */
  from: string;
  /** The end of the period, which is not part of it. */
  to: string;
  /** The length of the buckets. */
  granularity: MetricsGranularity;
  /** The time zone of the buckets, by its IANA name. */
  timeZone?: string | undefined;
}

/** Who is signed in, and where. */
export interface Session {
  user: User;
  organization: SessionOrganization;
  /** The role of the user in the organization. */
  role: Role;
  /** The permissions of the role, and `OPERATOR` if the user is an operator. */
  permissions: CallerPermission[];
  /** The organizations of the user, by their names. */
  organizations: OrganizationMembership[];
  /** When it was created. */
  createdAt: string;
  /** When the session ends at the latest. It ends earlier after 12 hours without a request. */
  expiresAt: string;
}

/** The organization of a session. */
export interface SessionOrganization {
  /** The id. */
  id: string;
  /** The name of the organization. */
  name: string;
}

/** The settings of the organization. */
export interface Settings {
  /** The name of the organization. Recipients see it on the pages of unsubscribe links. */
  name: string;
  /** The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour. */
  brandColor: string | null;
  /**
   * What happens to a message whose sender domain is not verified on the provider account: `reject` (the send gets
   * 422) or `accept` (the send gets 202 with `domainVerified: false`).
   */
  unverifiedDomains: UnverifiedDomains;
  /** Whether opens are tracked, unless a message sets `tracking`. A change applies to messages accepted after it. */
  trackOpens: boolean;
  /** Whether clicks are tracked, unless a message sets `tracking`. A change applies to messages accepted after it. */
  trackClicks: boolean;
  /**
   * How many days messages and their data are stored; null means the operator's retention period. If the operator's
   * period is shorter, it applies. Metrics and the audit log are not affected.
   */
  retentionDays: number | null;
  rateLimits: RateLimits;
  /** How many soft bounces of an address add a suppression for it, with the source BOUNCE; 0 means never. */
  softBounceLimit: number;
  /** The number of days within which soft bounces are counted together. */
  softBounceWindowDays: number;
}

/** The ways to sign in. */
export interface SignInMethods {
  /** Whether users can sign in with a password. */
  password: boolean;
  oidc: OidcMethod | null;
}

/** The rules to try, and on which messages. */
export interface SimulateRoutingRequest {
  /**
   * Up to 100 rules, as they would be created, instead of those of the organization. For equal priorities, earlier
   * ones are checked first. The default is the organization's.
   */
  rules?: readonly CreateRoutingRuleRequest[] | undefined;
  /** How far back messages are looked at: the last `hour`, `day` (the default) or `week`. */
  period?: RoutingSimulationPeriod | undefined;
}

/** The recipients of an account. */
export interface SimulatedAccount {
  /** The provider account. */
  providerAccountId: string;
  /** Recipients in the simulation. */
  recipients: number;
  /** Recipients in fact. */
  actualRecipients: number;
}

/** Messages that would have been refused. */
export interface SimulatedRefusals {
  /** Messages refused with `NO_ACTIVE_PROVIDER`. */
  noActiveProvider: number;
  /** Messages refused with `DOMAIN_NOT_VERIFIED`. */
  domainNotVerified: number;
}

/** What a rule decided. */
export interface SimulatedRuleCounts {
  /** The id of the rule; null for one of the request. */
  id: string | null;
  /** The name. */
  name: string;
  /** The messages that it decided. */
  messages: number;
  /** The recipients of these messages. */
  recipients: number;
  /** The targets of the rule, in order; empty if one account sends all its messages. */
  targets: SimulatedTarget[];
}

/** What a target got. */
export interface SimulatedTarget {
  /** The provider account. */
  providerAccountId: string;
  /** The recipients that it got. */
  recipients: number;
  /** Recipients for whom its hourly cap was reached. */
  overHourlyCap: number;
  /** Recipients for whom its daily cap was reached. */
  overDailyCap: number;
  /** Recipients that waited for a later hour and then went to it. */
  waited: number;
}

/** How to begin a second factor. */
export interface StartTotpRequest {
  /** The present password. */
  password: string;
}

/** The response to a deletion. */
export interface Success {
  /** Always true. */
  success: boolean;
}

/** The period of a summary. */
export interface SummaryPeriod {
  /** The begin of the period. */
  from: string;
  /** The end of the period, which is not part of it. */
  to: string;
}

/** An address that receives no messages. Only its hash is stored. */
export interface Suppression {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The SHA-256 of the address in lower case, as lower-case hexadecimal. */
  emailHash: string;
  /** The unsubscribe group that the suppression applies to; null if it applies to all messages. */
  unsubscribeGroupId: string | null;
  /** The source of the suppression. */
  source: SuppressionSource;
  /** When it was created. */
  createdAt: string;
  /**
   * The message that bounced, that was reported or whose unsubscribe link was used; null if no message caused the
   * suppression or it is not known. The message may have been deleted since.
   */
  messageId: string | null;
}

/** A target of the matching rule. */
export interface TargetResolution {
  /** The provider account. */
  providerAccountId: string;
  /** The weight that the rule gives it. */
  weight: number;
  /**
   * The percent of the weight that counts now for the domain of the first recipient: below 100 if the rule prefers
   * healthy targets and the mail of this one fails.
   */
  healthPercent: number;
  /** The part of the rule's messages that it gets now, from 0 to 1. */
  share: number;
  /** Whether the sender's domain is verified on this account. */
  domainVerified: boolean;
  /**
   * How many recipients of the rule's messages it had on this day in UTC. Counted if it has a daily cap, and a little
   * ahead: workers reserve several at once.
   */
  usedToday: number;
  /** The most recipients of this day, by `dailyCap` and by the ramp; null for no cap. */
  dailyCap: number | null;
  /**
   * How many recipients of the rule's messages it had in this hour. Counted if it has an `hourlyCap`, and a little
   * ahead.
   */
  usedThisHour: number;
  /** The most recipients of an hour; null for no cap. */
  hourlyCap: number | null;
  /** The state of its ramp: `notBegun`, `growing`, `held` or `finished`; null without one. */
  rampState: RoutingRampState | null;
  /**
   * Why this target gets no messages: `PROVIDER_INACTIVE`; `DOMAIN_NOT_VERIFIED` if the sender's domain is unverified
   * on it; `REGION` if it is not in the rule's region; `RAMP_NOT_BEGUN`; null if it gets some.
   */
  passedOver: string | null;
}

/** A template. Its content is in its versions. */
export interface Template {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** A description for people. */
  description: string | null;
  /** The tags. */
  tags: string[];
  /** The version of the default language that messages are rendered from; null if there is no such version yet. */
  currentVersionId: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
  /**
   * `TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
   * `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
   */
  type: TemplateType;
}

/** A template with the content of its current version. */
export interface TemplateDetail {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** A description for people. */
  description: string | null;
  /** The tags. */
  tags: string[];
  /** The version of the default language that messages are rendered from; null if there is no such version yet. */
  currentVersionId: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
  /**
   * `TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which stand in the place of its
   * `{{{@content}}}`. `PARTIAL`: it stands in others, in the place of `{{> name}}`.
   */
  type: TemplateType;
  /** The current version of the default language; null if there is no such version yet. */
  currentVersion: TemplateVersion | null;
  /** The current versions of all languages. */
  currentVersions: CurrentTemplateVersion[];
}

/** A layout or partial in a version. */
export interface TemplatePart {
  /** The id of the layout or partial. */
  templateId: string;
  /** `LAYOUT` or `PARTIAL`. */
  type: TemplateType;
  /** The name. */
  name: string;
  /** The version that is in it. */
  versionId: string;
  /** The number of the version, from 1. */
  versionNumber: number;
}

/** A rendered template version. */
export interface TemplatePreview {
  /** The rendered subject; absent if the version has none. */
  subject?: string | undefined;
  /** The HTML body. */
  html: string;
  /** The rendered text; empty if the version has no text. */
  text: string;
}

/** A current version with the layout or partial in it. */
export interface TemplateUse {
  /** The id of the template that the version is of. */
  templateId: string;
  /** `TEMPLATE`, or the `LAYOUT` or `PARTIAL` that has it in it. */
  type: TemplateType;
  /** The name. */
  name: string;
  /** The id of the version. */
  versionId: string;
  /** The number of the version, from 1. */
  versionNumber: number;
  /** The language of the version, as a language tag; null is the default language. */
  locale: string | null;
}

/** A version of a template. What its author gave never changes. */
export interface TemplateVersion {
  /** The id. */
  id: string;
  /** The template. */
  templateId: string;
  /** The number of the version: 1, 2, 3 and so on. */
  versionNumber: number;
  /** The MJML source. */
  mjmlSource: string | null;
  /**
   * The HTML source, a Handlebars template. With `mjmlSource`, the HTML that it was compiled to, with the layout and
   * the partials in it.
   */
  htmlContent: string;
  /** The text, a Handlebars template. */
  textContent: string | null;
  /** The JSON Schema of the variables. */
  variablesSchema: Record<string, unknown> | null;
  /** The id of the API key that created the version. */
  createdBy: string;
  /** When it was created. */
  createdAt: string;
  /** The language of the version, as a language tag; null is the default language. */
  locale: string | null;
  /** The subject of messages that bring none, a Handlebars template. */
  subject: string | null;
  /** What mail programs show beside the subject, a Handlebars template. */
  preheader: string | null;
  /** The sender of messages that bring none. */
  from: string | null;
  /** The addresses for replies to messages that bring none. */
  replyTo: string[];
  /** The layout around the content. */
  layoutId: string | null;
  /** Whether the text was made from the HTML, because none was given. */
  isTextGenerated: boolean;
  /** The layout and the partials in the version, also those in others, as they were when it was last composed. */
  parts: TemplatePart[];
}

/** All versions of a template, newest first. */
export interface TemplateVersionList {
  /** The records. */
  data: TemplateVersionSummary[];
  /** The version of the default language that messages are rendered from; null if there is no such version yet. */
  currentVersionId: string | null;
  /** The current versions of all languages. */
  currentVersions: CurrentTemplateVersion[];
}

/** A version of a template, without its content. */
export interface TemplateVersionSummary {
  /** The id. */
  id: string;
  /** The template. */
  templateId: string;
  /** The number of the version, from 1. */
  versionNumber: number;
  /** The language of the version, as a language tag; null is the default language. */
  locale: string | null;
  /** The id of the API key that created the version. */
  createdBy: string;
  /** When it was created. */
  createdAt: string;
}

/** The secret of a second factor, which is shown once. */
export interface TotpEnrolment {
  /** The secret in base 32, to type into an authenticator. */
  secret: string;
  /** The `otpauth` URI of the secret, for a QR code. */
  uri: string;
}

/** A kind of messages that recipients can unsubscribe from. */
export interface UnsubscribeGroup {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The name. */
  name: string;
  /** A description for people. */
  description: string | null;
  /** Whether this is the default group of the organization. At most one group is. */
  isDefault: boolean;
  /** When it was created. */
  createdAt: string;
}

/** The changes to a key. Absent fields keep their values. */
export interface UpdateApiKeyRequest {
  /** The name of the key. */
  name?: string | undefined;
  /** The permissions. A permission that the caller lacks cannot be added. */
  permissions?: readonly Permission[] | undefined;
  /** The IP addresses and networks that the key can be used from; an empty list means anywhere. */
  allowedIps?: readonly string[] | undefined;
  /** When the key expires; null means never. */
  expiresAt?: string | Date | null | undefined;
}

/** The changes to an invitation. Absent fields keep their values. */
export interface UpdateInvitationRequest {
  /** The new role. The caller must have each of its permissions. */
  role?: Role | undefined;
}

/** The changes to a member. Absent fields keep their values. */
export interface UpdateMemberRequest {
  /** The new role. The caller must have each of its permissions. */
  role?: Role | undefined;
}

/** The change of a message. */
export interface UpdateMessageRequest {
  /**
   * When the message goes: a time with its offset from UTC, up to one year ahead and before its `expiresAt`. Null is
   * now.
   */
  scheduledAt?: string | Date | null | undefined;
}

/** The changes to an account. Absent fields keep their values. */
export interface UpdateProviderRequest {
  /** The display name. */
  displayName?: string | undefined;
  /** Whether the account sends messages. */
  isActive?: boolean | undefined;
  /** New credentials. They are checked with the provider before they replace the old ones. */
  credentials?: ProviderCredentials | undefined;
  /**
   * New secrets that verify the provider's events. `eventsVerified` is false until an event is verified with them.
   */
  eventSecrets?: EventSecrets | undefined;
  /**
   * The most calls to the provider per second, over all workers; null removes the limit. Workers apply the change
   * within a few seconds.
   */
  maxRatePerSecond?: number | null | undefined;
  /**
   * The most concurrent calls to the provider, over all workers; null removes the limit. Workers apply the change
   * within a few seconds.
   */
  maxConcurrency?: number | null | undefined;
}

/** The changes to a rule. Absent fields keep their values. */
export interface UpdateRoutingRuleRequest {
  /** The name of the rule. */
  name?: string | undefined;
  /** Rules with a higher priority are checked first. */
  priority?: number | undefined;
  /** Whether the rule is used. */
  isActive?: boolean | undefined;
  /** The sender's domain; null matches every domain. */
  senderDomain?: string | null | undefined;
  /** The tags of matching messages; an empty list matches every message. */
  tags?: readonly string[] | undefined;
  /** Whether a message must have `any` or `all` of the tags. */
  tagMatch?: TagMatch | undefined;
  /**
   * The domains of the recipients, such as `example.com` or `*.example.com`, up to 50: every recipient of a message
   * must match one of them. An empty list matches all recipients.
   */
  recipientDomains?: readonly string[] | undefined;
  /**
   * The mailbox providers of the recipients, by the MX records of their domains: `google`, `microsoft`, `yahoo` or
   * `other`. Every recipient of a message must have one of them. An empty list matches all recipients.
   */
  recipientMailboxProviders?: readonly MailboxProvider[] | undefined;
  /** The class that messages have: `transactional` or `bulk`. Null matches both. */
  messageClass?: MessageClass | null | undefined;
  /** The smallest size of messages, in bytes: subject, bodies and decoded attachments. */
  minSizeBytes?: number | null | undefined;
  /** The largest size of messages, in bytes. */
  maxSizeBytes?: number | null | undefined;
  /** Whether the rule is for tests only (true) or for live messages only (false). */
  test?: boolean | null | undefined;
  /** The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere. */
  region?: AccountRegion | null | undefined;
  /** The account that sends the messages. It takes the place of `targets`. */
  providerAccountId?: string | undefined;
  /** Up to 10 accounts that share the messages by weight. They take the place of `providerAccountId`. */
  targets?: readonly NewRoutingTarget[] | undefined;
  /**
   * Which messages always have the same target: `none`, those to one `recipientDomain` (of the first recipient), or
   * those of one `sender`.
   */
  sticky?: RoutingStickiness | undefined;
  /**
   * Whether targets share the messages by their `weight` alone, or also by their `health`: a target whose mail fails
   * gets less.
   */
  prefer?: RoutingPreference | undefined;
  /**
   * What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits
   * (`wait`).
   */
  overCap?: RoutingOverCap | undefined;
  /** The bounds of the rates of an account, beyond which its ramp does not grow. An absent one keeps its value. */
  rampBounds?: NewRoutingRampBounds | undefined;
  /** Up to 5 accounts that send if this account cannot, in this order. */
  fallbackProviderAccountIds?: readonly string[] | undefined;
  /** What to do if the provider's response to a call is lost: `wait`, `resend` or `fail`. */
  onUnknown?: OnUnknown | undefined;
}

/** The change of a session. */
export interface UpdateSessionRequest {
  /** The organization to switch to, one of the session's `organizations`. */
  organizationId: string;
}

/** The changes to the settings. Absent fields keep their values. */
export interface UpdateSettingsRequest {
  /** The name of the organization. Recipients see it on the pages of unsubscribe links. */
  name?: string | undefined;
  /**
   * The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour. A button of this colour has
   * an edge that is seen, and white or black text, whichever is read.
   */
  brandColor?: string | null | undefined;
  /** What happens to a message whose sender domain is not verified: `reject` or `accept`. */
  unverifiedDomains?: UnverifiedDomains | undefined;
  /** Whether opens are tracked, unless a message sets `tracking`. */
  trackOpens?: boolean | undefined;
  /** Whether clicks are tracked, unless a message sets `tracking`. */
  trackClicks?: boolean | undefined;
  /**
   * How many days messages and their data are stored; null means the operator's retention period. Older messages are
   * permanently deleted within minutes; messages that are still being sent are deleted when they are done.
   */
  retentionDays?: number | null | undefined;
  /** Rate limits, in requests per second, up to the operator's limits; null means the operator's limit. */
  rateLimits?: UpdateRateLimits | undefined;
  /** How many soft bounces of an address add a suppression for it; 0 means never. */
  softBounceLimit?: number | undefined;
  /** The number of days within which soft bounces are counted together. */
  softBounceWindowDays?: number | undefined;
}

/** The changes to a template. Absent fields keep their values. */
export interface UpdateTemplateRequest {
  /** The name of the template. A partial that is used keeps its name. */
  name?: string | undefined;
  /** The description of the template; null removes it. */
  description?: string | null | undefined;
  /** Up to 20 tags of up to 100 characters each. They replace the present tags. */
  tags?: readonly string[] | undefined;
}

/** The changes to a group. Absent fields keep their values. */
export interface UpdateUnsubscribeGroupRequest {
  /** The name of the group, which recipients see. */
  name?: string | undefined;
  /** The description of the group; null removes it. */
  description?: string | null | undefined;
  /** Whether the group is the default group; true replaces the present one. */
  isDefault?: boolean | undefined;
}

/** The changes to the user. Absent fields keep their values. */
export interface UpdateUserRequest {
  /** The name of the user. */
  name?: string | undefined;
  /** A new password, of 12 to 128 characters. */
  password?: string | undefined;
  /** The present password. Required with a new one. */
  currentPassword?: string | null | undefined;
}

/** The changes to an endpoint. Absent fields keep their values. */
export interface UpdateWebhookEndpointRequest {
  /** A new HTTPS URL. It must respond within 5 seconds, with any status. */
  url?: string | undefined;
  /** The types of the events that the endpoint receives from now on. */
  events?: readonly WebhookEventType[] | undefined;
  /**
   * The tags of the messages whose events the endpoint receives from now on; an empty list stands for all messages.
   */
  tags?: readonly string[] | undefined;
  /**
   * Whether the endpoint receives events. While it is false, new events are not delivered to it, and waiting
   * deliveries keep waiting.
   */
  isActive?: boolean | undefined;
}

/** A user. */
export interface User {
  /** The id. */
  id: string;
  /** The address. */
  email: string;
  /** The name of the user. */
  name: string;
  /** Whether the user has a second factor. */
  totpEnabled: boolean;
  /** Whether the user can sign in with a password. */
  hasPassword: boolean;
  /** Whether the user may see and change what belongs to the installation. */
  isOperator: boolean;
  /** When it was created. */
  createdAt: string;
}

/** The result of checking an account's credentials. */
export interface ValidationResult {
  /** Whether the provider accepted the credentials. `isActive` now has the same value. */
  valid: boolean;
  providerType: ProviderType;
}

/** One call to an endpoint. */
export interface WebhookAttempt {
  /** The id. */
  id: string;
  /** When the call began. */
  startedAt: string;
  /** The duration of the call, in milliseconds. */
  durationMs: number;
  /** The HTTP status; null if there was no response. */
  statusCode: number | null;
  /** The first KiB of the response, or the error of the call. */
  answer: string | null;
}

/** The delivery of one event to one endpoint. */
export interface WebhookDelivery {
  /** The id of the delivery. The endpoint gets it as the header `webhook-id`. */
  id: string;
  /** The webhook endpoint. */
  webhookEndpointId: string;
  /** The id of the message; null if the event is about no message. */
  messageId: string | null;
  /** The id of the event. */
  eventId: string;
  eventType: WebhookEventType;
  /**
   * The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
   * message, or the recipient is no longer stored.
   */
  toHash: string | null;
  /** The status of the delivery. */
  status: WebhookDeliveryStatus;
  /** The number of attempts since the delivery was created, or since it was last replayed after its end. */
  attemptCount: number;
  /** When the next attempt is due; null if the delivery has ended. */
  nextAttemptAt: string | null;
  /** When it was created. */
  createdAt: string;
  /** When the endpoint accepted the event, or the last attempt failed. */
  endedAt: string | null;
  /** The newest 20 attempts, oldest first. */
  attempts: WebhookAttempt[];
}

/** A delivery with the body of its calls. */
export interface WebhookDeliveryDetail {
  /** The id of the delivery. The endpoint gets it as the header `webhook-id`. */
  id: string;
  /** The webhook endpoint. */
  webhookEndpointId: string;
  /** The id of the message; null if the event is about no message. */
  messageId: string | null;
  /** The id of the event. */
  eventId: string;
  eventType: WebhookEventType;
  /**
   * The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal; null if the event is about no
   * message, or the recipient is no longer stored.
   */
  toHash: string | null;
  /** The status of the delivery. */
  status: WebhookDeliveryStatus;
  /** The number of attempts since the delivery was created, or since it was last replayed after its end. */
  attemptCount: number;
  /** When the next attempt is due; null if the delivery has ended. */
  nextAttemptAt: string | null;
  /** When it was created. */
  createdAt: string;
  /** When the endpoint accepted the event, or the last attempt failed. */
  endedAt: string | null;
  /** The newest 20 attempts, oldest first. */
  attempts: WebhookAttempt[];
  /**
   * The body that is posted, as a call builds it now; null if the message or the recipient's address is no longer
   * stored. The earlier calls posted the same, except for what was learned since: `providerType` before the message
   * was sent.
   */
  payload: Record<string, unknown> | null;
}

/** A URL that receives events. */
export interface WebhookEndpoint {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The URL. */
  url: string;
  /** The types of the events that the endpoint receives. */
  events: WebhookEventType[];
  /**
   * If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that are
   * about no message are not filtered.
   */
  tags: string[];
  /** Whether the endpoint receives events. */
  isActive: boolean;
  /**
   * Since when all deliveries have failed; null if the last one succeeded. After five days of failures the endpoint
   * becomes inactive.
   */
  failingSince: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
}

/** A webhook endpoint with its signing secret, which is returned only once. */
export interface WebhookEndpointWithSecret {
  /** The id. */
  id: string;
  /** The organization that it belongs to. */
  organizationId: string;
  /** The URL. */
  url: string;
  /** The types of the events that the endpoint receives. */
  events: WebhookEventType[];
  /**
   * If not empty, the endpoint receives events of messages only for messages with one of these tags. Events that are
   * about no message are not filtered.
   */
  tags: string[];
  /** Whether the endpoint receives events. */
  isActive: boolean;
  /**
   * Since when all deliveries have failed; null if the last one succeeded. After five days of failures the endpoint
   * becomes inactive.
   */
  failingSince: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it was last changed. */
  updatedAt: string;
  /** The secret that signs the deliveries. It cannot be retrieved again. */
  secret: string;
}

/** The response of an endpoint to a test event. */
export interface WebhookTestResult {
  /** Whether the endpoint responded with a status from 200 to 299. */
  success: boolean;
  /** The HTTP status; 0 if there was no response. */
  statusCode: number;
  /** The response time in milliseconds, such as `123ms`. */
  responseTime: string;
}

/** A worker that is registered. */
export interface Worker {
  /** The name of the worker's machine and process. */
  name: string;
  /** When the worker registered. */
  startedAt: string;
  /** When the leases of the worker end, if it sends no heartbeat. */
  leasedUntil: string;
  /** Whether the leases of the worker have ended. */
  isDead: boolean;
  /** The number of chunks that the worker holds. */
  chunks: number;
}

/**
 * Why a valid request was not done: `details.reason` of every 409 and 422, with the status of each reason.
 *
 * - `ACCOUNT_OUTSIDE_REGION` - 422: the routing rule names an account that is not in its region; `details.issues`
 * says which.
 * - `ADDRESS_NOT_PUBLIC` - 422: the host of the webhook URL has no public address.
 * - `API_KEY_ENDED` - 409: the API key is revoked or expired.
 * - `ATTACHMENT_NOT_FETCHED` - 422: the URL of an attachment gave no file; `details.issues` says which.
 * - `CROSS_ORIGIN` - 403: the request with a session has not the header `X-Waypost-Csrf: 1`, or not the `Origin` of
 * this service.
 * - `DOMAIN_BUSY` - 409: another request is changing the domain.
 * - `DOMAIN_EXISTS` - 409: the account already has the domain.
 * - `DOMAIN_NOT_VERIFIED` - 422: the sender's domain is not verified on the selected account.
 * - `EVENT_WEBHOOK_BUSY` - 409: another request is registering the event webhook.
 * - `IDEMPOTENCY_IN_PROGRESS` - 409: an earlier request with the idempotency key still runs.
 * - `IDEMPOTENCY_KEY_REUSED` - 409: the idempotency key was used for another request.
 * - `INVALID_CREDENTIALS` - 422: the provider rejected the credentials.
 * - `INVITATION_EXISTS` - 409: the address has an invitation.
 * - `LAST_OWNER` - 409: the organization has no other owner.
 * - `MEMBER_EXISTS` - 409: the user is a member of the organization.
 * - `MESSAGE_CONTENT_GONE` - 404, 409: the content of the message is no longer stored.
 * - `MESSAGE_CONTENT_WITHHELD` - 404: the message invites somebody; its content is not shown.
 * - `MESSAGE_FINISHED` - 409: all recipients of the message have the status FAILED.
 * - `MESSAGE_NOT_FAILED` - 409: no recipient of the message has the status FAILED.
 * - `MESSAGE_NOT_SCHEDULED` - 409: the message was not scheduled.
 * - `MESSAGE_SENDING` - 409: the message is being sent.
 * - `MESSAGE_SENT` - 409: the message was sent.
 * - `NO_ACTIVE_PROVIDER` - 422: the organization has no active provider account, or none in the region of the routing
 * rule that matches.
 * - `NOT_A_MEMBER` - 403: the user is no member of the organization, or of any.
 * - `PARTIAL_EXISTS` - 409: a partial of this name exists.
 * - `PASSWORD_NOT_SET` - 422: the user has no password and signs in at the OpenID Connect provider.
 * - `PROVIDER_ACCOUNT_NOT_ACTIVE` - 422: the account that the message names does not exist or is not active.
 * - `PROVIDER_CANNOT_CARRY` - 422: the selected account cannot carry a part of the message: its size, a header, an
 * attachment.
 * - `PROVIDER_REFUSED` - 422: the provider refused the request.
 * - `REFUSED_BEFORE` - 422: an earlier request with the idempotency key was refused.
 * - `SECOND_FACTOR_ENABLED` - 409: the user has a second factor.
 * - `SECOND_FACTOR_NOT_STARTED` - 409: the user has no second factor, or none to confirm.
 * - `SECOND_FACTOR_REQUIRED` - 401: the password is right; the code of the user's second factor is missing.
 * - `SECOND_FACTOR_WRONG` - 401, 422: the code of the second factor is wrong or was used.
 * - `SESSION_REQUIRED` - 403: the operation requires a session; the caller is an API key.
 * - `SUPPRESSION_EXISTS` - 409: the address is already suppressed.
 * - `SUPPRESSION_LISTS_NOT_OFFERED` - 422: the provider of the account has no suppression lists that can be read.
 * - `TEMPLATE_IN_USE` - 409: current versions of templates use the layout or partial.
 * - `TEMPLATE_IS_PART` - 422: the template is a layout or partial, which is not rendered itself.
 * - `TEMPLATE_NOT_COMPOSABLE` - 422: a template cannot be composed with its layout and partials as they would be; the
 * message names it.
 * - `TEMPLATE_NOT_FOUND` - 422: the template does not exist.
 * - `TEMPLATE_NOT_RENDERABLE` - 422: the template cannot be rendered with these variables.
 * - `TEMPLATE_WITHOUT_VERSION` - 422: the template has no version.
 * - `TEST_KEY` - 409: the caller's API key is a test key, which does this to no live message or API key.
 * - `TOO_MANY_DOMAINS` - 422: the account has the maximum number of domains.
 * - `TOO_MANY_ROUTING_RULES` - 422: the organization has the maximum number of routing rules.
 * - `TOO_MANY_TEMPLATE_USES` - 422: more templates use the layout or partial than are composed at once.
 * - `TOO_MANY_WEBHOOK_ENDPOINTS` - 422: the organization has the maximum number of webhook endpoints.
 * - `UNKNOWN_ID` - 422: the request names a record that does not exist; `details.issues` says which.
 * - `UNKNOWN_UNSUBSCRIBE_GROUP` - 422: the unsubscribe group does not exist.
 * - `URL_UNREACHABLE` - 422: no server responds at the webhook URL.
 * - `USER_NOT_FOUND` - 422: there is no user with the address.
 * - `WEBHOOK_ENDPOINT_INACTIVE` - 409: the webhook endpoint is not active.
 * - `WRONG_PASSWORD` - 422: the password is wrong.
 */
export type ErrorReason = Open<
  | "ACCOUNT_OUTSIDE_REGION"
  | "ADDRESS_NOT_PUBLIC"
  | "API_KEY_ENDED"
  | "ATTACHMENT_NOT_FETCHED"
  | "CROSS_ORIGIN"
  | "DOMAIN_BUSY"
  | "DOMAIN_EXISTS"
  | "DOMAIN_NOT_VERIFIED"
  | "EVENT_WEBHOOK_BUSY"
  | "IDEMPOTENCY_IN_PROGRESS"
  | "IDEMPOTENCY_KEY_REUSED"
  | "INVALID_CREDENTIALS"
  | "INVITATION_EXISTS"
  | "LAST_OWNER"
  | "MEMBER_EXISTS"
  | "MESSAGE_CONTENT_GONE"
  | "MESSAGE_CONTENT_WITHHELD"
  | "MESSAGE_FINISHED"
  | "MESSAGE_NOT_FAILED"
  | "MESSAGE_NOT_SCHEDULED"
  | "MESSAGE_SENDING"
  | "MESSAGE_SENT"
  | "NO_ACTIVE_PROVIDER"
  | "NOT_A_MEMBER"
  | "PARTIAL_EXISTS"
  | "PASSWORD_NOT_SET"
  | "PROVIDER_ACCOUNT_NOT_ACTIVE"
  | "PROVIDER_CANNOT_CARRY"
  | "PROVIDER_REFUSED"
  | "REFUSED_BEFORE"
  | "SECOND_FACTOR_ENABLED"
  | "SECOND_FACTOR_NOT_STARTED"
  | "SECOND_FACTOR_REQUIRED"
  | "SECOND_FACTOR_WRONG"
  | "SESSION_REQUIRED"
  | "SUPPRESSION_EXISTS"
  | "SUPPRESSION_LISTS_NOT_OFFERED"
  | "TEMPLATE_IN_USE"
  | "TEMPLATE_IS_PART"
  | "TEMPLATE_NOT_COMPOSABLE"
  | "TEMPLATE_NOT_FOUND"
  | "TEMPLATE_NOT_RENDERABLE"
  | "TEMPLATE_WITHOUT_VERSION"
  | "TEST_KEY"
  | "TOO_MANY_DOMAINS"
  | "TOO_MANY_ROUTING_RULES"
  | "TOO_MANY_TEMPLATE_USES"
  | "TOO_MANY_WEBHOOK_ENDPOINTS"
  | "UNKNOWN_ID"
  | "UNKNOWN_UNSUBSCRIBE_GROUP"
  | "URL_UNREACHABLE"
  | "USER_NOT_FOUND"
  | "WEBHOOK_ENDPOINT_INACTIVE"
  | "WRONG_PASSWORD"
>;

/** The message is accepted and queued. */
export interface QueuedEvent {
  /** The type of the event. */
  event: "QUEUED";
  /** When the event occurred. */
  timestamp: string;
  data: MessageEventData;
}

/** The provider accepted the message. */
export interface SentEvent {
  /** The type of the event. */
  event: "SENT";
  /** When the event occurred. */
  timestamp: string;
  data: DeliveryEventData;
}

/** The mailbox accepted the message. */
export interface DeliveredEvent {
  /** The type of the event. */
  event: "DELIVERED";
  /** When the event occurred. */
  timestamp: string;
  data: DeliveryEventData;
}

/** The message was opened. */
export interface OpenedEvent {
  /** The type of the event. */
  event: "OPENED";
  /** When the event occurred. */
  timestamp: string;
  data: OpenedEventData;
}

/** A link of the message was followed. */
export interface ClickedEvent {
  /** The type of the event. */
  event: "CLICKED";
  /** When the event occurred. */
  timestamp: string;
  data: ClickedEventData;
}

/** The receiving server refused the message. */
export interface BouncedEvent {
  /** The type of the event. */
  event: "BOUNCED";
  /** When the event occurred. */
  timestamp: string;
  data: BouncedEventData;
}

/** The recipient reported the message as spam. */
export interface ComplainedEvent {
  /** The type of the event. */
  event: "COMPLAINED";
  /** When the event occurred. */
  timestamp: string;
  data: DeliveryEventData;
}

/** The recipient unsubscribed. */
export interface UnsubscribedEvent {
  /** The type of the event. */
  event: "UNSUBSCRIBED";
  /** When the event occurred. */
  timestamp: string;
  data: DeliveryEventData;
}

/** The message was not sent to the recipient. */
export interface DroppedEvent {
  /** The type of the event. */
  event: "DROPPED";
  /** When the event occurred. */
  timestamp: string;
  data: BouncedEventData;
}

/** Sending or delivery is delayed, and tried again. */
export interface DeferredEvent {
  /** The type of the event. */
  event: "DEFERRED";
  /** When the event occurred. */
  timestamp: string;
  data: DeliveryEventData;
}

/** An address is suppressed from now on. */
export interface SuppressionCreatedEvent {
  /** The type of the event. */
  event: "SUPPRESSION_CREATED";
  /** When the event occurred. */
  timestamp: string;
  data: SuppressionEventData;
}

/** A suppression was removed. */
export interface SuppressionRemovedEvent {
  /** The type of the event. */
  event: "SUPPRESSION_REMOVED";
  /** When the event occurred. */
  timestamp: string;
  data: SuppressionEventData;
}

/**
 * A sender domain became verified at its provider (source `provider`), or its DNS records are there again (source
 * `dns`).
 */
export interface DomainVerifiedEvent {
  /** The type of the event. */
  event: "DOMAIN_VERIFIED";
  /** When the event occurred. */
  timestamp: string;
  data: DomainEventData;
}

/**
 * A sender domain is broken. With the source `provider`: it was verified and no longer is; the provider reports it as
 * unverified or no longer lists it, or the credentials no longer show it. With the source `dns`: two checks in a row,
 * ten minutes apart, missed DNS records that were there.
 */
export interface DomainBrokenEvent {
  /** The type of the event. */
  event: "DOMAIN_BROKEN";
  /** When the event occurred. */
  timestamp: string;
  data: DomainEventData;
}

/**
 * A provider account cannot send, or too many of its calls fail. One event is posted for each failure, until it ends.
 */
export interface ProviderFailingEvent {
  /** The type of the event. */
  event: "PROVIDER_FAILING";
  /** When the event occurred. */
  timestamp: string;
  data: ProviderFailureEventData;
}

/** A failure of a provider account ended. */
export interface ProviderRecoveredEvent {
  /** The type of the event. */
  event: "PROVIDER_RECOVERED";
  /** When the event occurred. */
  timestamp: string;
  data: ProviderFailureEventData;
}

/** Waypost deactivated another webhook endpoint of the organization. */
export interface WebhookEndpointDisabledEvent {
  /** The type of the event. */
  event: "WEBHOOK_ENDPOINT_DISABLED";
  /** When the event occurred. */
  timestamp: string;
  data: WebhookEndpointDisabledEventData;
}

/** The message and the recipient of an event. */
export interface MessageEventData {
  /** The message. */
  messageId: string;
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The address of the recipient. */
  recipient: string;
  /** The address of the sender. */
  from: string;
  /** The subject of the message. */
  subject: string;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The tags of the message. */
  tags: string[];
  /** Present if the message is a test: no provider was called. */
  test?: true | undefined;
  /** The metadata of the message, if it has any. */
  metadata?: Record<string, unknown> | undefined;
  /** The type of the provider. */
  providerType?: ProviderType | undefined;
}

/** The message of an event, and the call to the provider. */
export interface DeliveryEventData {
  /** The message. */
  messageId: string;
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The address of the recipient. */
  recipient: string;
  /** The address of the sender. */
  from: string;
  /** The subject of the message. */
  subject: string;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The tags of the message. */
  tags: string[];
  /** Present if the message is a test: no provider was called. */
  test?: true | undefined;
  /** The metadata of the message, if it has any. */
  metadata?: Record<string, unknown> | undefined;
  /** The type of the provider. */
  providerType?: ProviderType | undefined;
  /** Why, if that is known. */
  reason?: string | undefined;
  /** The call to the provider, if that is known. */
  attemptId?: string | undefined;
  /** The id that the provider gave to the message, if that is known. */
  providerMessageId?: string | undefined;
}

/** The message that was opened. */
export interface OpenedEventData {
  /** The message. */
  messageId: string;
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The address of the recipient. */
  recipient: string;
  /** The address of the sender. */
  from: string;
  /** The subject of the message. */
  subject: string;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The tags of the message. */
  tags: string[];
  /** Present if the message is a test: no provider was called. */
  test?: true | undefined;
  /** The metadata of the message, if it has any. */
  metadata?: Record<string, unknown> | undefined;
  /** The type of the provider. */
  providerType?: ProviderType | undefined;
  /** Why, if that is known. */
  reason?: string | undefined;
  /** The call to the provider, if that is known. */
  attemptId?: string | undefined;
  /** The id that the provider gave to the message, if that is known. */
  providerMessageId?: string | undefined;
  /** Whether it was a program and not a person, if that is known. */
  isBot?: boolean | undefined;
}

/** The message, and the link that was followed. */
export interface ClickedEventData {
  /** The message. */
  messageId: string;
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The address of the recipient. */
  recipient: string;
  /** The address of the sender. */
  from: string;
  /** The subject of the message. */
  subject: string;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The tags of the message. */
  tags: string[];
  /** Present if the message is a test: no provider was called. */
  test?: true | undefined;
  /** The metadata of the message, if it has any. */
  metadata?: Record<string, unknown> | undefined;
  /** The type of the provider. */
  providerType?: ProviderType | undefined;
  /** Why, if that is known. */
  reason?: string | undefined;
  /** The call to the provider, if that is known. */
  attemptId?: string | undefined;
  /** The id that the provider gave to the message, if that is known. */
  providerMessageId?: string | undefined;
  /** The link. */
  url?: string | undefined;
  /** Whether it was a program and not a person, if that is known. */
  isBot?: boolean | undefined;
}

/** The message that an address did not get, and why. */
export interface BouncedEventData {
  /** The message. */
  messageId: string;
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The address of the recipient. */
  recipient: string;
  /** The address of the sender. */
  from: string;
  /** The subject of the message. */
  subject: string;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The tags of the message. */
  tags: string[];
  /** Present if the message is a test: no provider was called. */
  test?: true | undefined;
  /** The metadata of the message, if it has any. */
  metadata?: Record<string, unknown> | undefined;
  /** The type of the provider. */
  providerType?: ProviderType | undefined;
  /** Why, if that is known. */
  reason?: string | undefined;
  /** The call to the provider, if that is known. */
  attemptId?: string | undefined;
  /** The id that the provider gave to the message, if that is known. */
  providerMessageId?: string | undefined;
  /** Why the address did not get the message. */
  bounceType?: BounceType | undefined;
}

/** The suppression of an event. */
export interface SuppressionEventData {
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The suppression. */
  suppressionId: string;
  /** The SHA-256 of the address in lower case, as lower-case hexadecimal. */
  emailHash: string;
  /** The group in which the address is suppressed; null stands for all mail. */
  unsubscribeGroupId: string | null;
  /** Why the address was suppressed. */
  source: SuppressionSource;
  /** Only in a test event: `{"test": true}`. */
  metadata?: Record<string, unknown> | undefined;
}

/** The sender domain of an event. */
export interface DomainEventData {
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The domain. */
  domainId: string;
  /** The name of the domain. */
  domain: string;
  /** The account. */
  providerAccountId: string;
  /** The provider's verdict on the domain; `unknown` if the credentials do not show it. */
  state: DomainState;
  /** Who judged the domain: the provider, or Waypost by its own look-ups in DNS. */
  source: DomainEventSource;
  /** If the source is `dns` and the domain is broken: the records that DNS had and has no longer. */
  records: LostDnsRecord[];
  /** Only in a test event: `{"test": true}`. */
  metadata?: Record<string, unknown> | undefined;
}

/** The provider account of an event, and its failure. */
export interface ProviderFailureEventData {
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The account. */
  providerAccountId: string;
  /** The type of the provider. */
  providerType: ProviderType;
  /** The name of the account. */
  displayName: string;
  /** Why the account fails. */
  cause: ProviderFailureCause;
  /** When the failure began. */
  failingSince: string;
  /** Why, in the provider's words, if the cause is `ACCOUNT_UNUSABLE`. */
  reason?: string | undefined;
  /** Only in a test event: `{"test": true}`. */
  metadata?: Record<string, unknown> | undefined;
}

/** The webhook endpoint that is inactive now. */
export interface WebhookEndpointDisabledEventData {
  /** The type of the event, as in `event`. */
  eventType: WebhookEventType;
  /** The event. It is the same for every endpoint. */
  eventId: string;
  /** The endpoint that is inactive now. */
  webhookEndpointId: string;
  /** Why the endpoint was deactivated. */
  reason: WebhookDisabledReason;
  /** Since when all calls failed; null if none had failed before. */
  failingSince: string | null;
  /** Only in a test event: `{"test": true}`. */
  metadata?: Record<string, unknown> | undefined;
}

/** The body of a webhook: an event, in the form of its type. More fields may be added to `data`. */
export type WebhookEvent =
  | QueuedEvent
  | SentEvent
  | DeliveredEvent
  | OpenedEvent
  | ClickedEvent
  | BouncedEvent
  | ComplainedEvent
  | UnsubscribedEvent
  | DroppedEvent
  | DeferredEvent
  | SuppressionCreatedEvent
  | SuppressionRemovedEvent
  | DomainVerifiedEvent
  | DomainBrokenEvent
  | ProviderFailingEvent
  | ProviderRecoveredEvent
  | WebhookEndpointDisabledEvent;

/** How far a message, or its copy to one recipient, is. */
export type MessageStatus = Open<
  | "QUEUED"
  | "SENDING"
  | "SENT"
  | "DELIVERED"
  | "BOUNCED"
  | "FAILED"
>;

/** The length of the buckets of a series. */
export type MetricsGranularity = Open<
  | "hour"
  | "day"
  | "week"
  | "month"
>;

/** By what the counts are grouped. */
export type MetricsGroupBy = Open<
  | "provider"
  | "domain"
  | "template"
  | "account"
  | "tag"
  | "recipientDomain"
>;

/** How far back the health of a provider account is counted: 15 minutes, a day or a week. */
export type ProviderHealthPeriod = Open<
  | "15m"
  | "day"
  | "week"
>;

/** A language of the pages for recipients. */
export type PageLanguage = Open<
  | "en"
  | "de"
  | "fr"
  | "es"
>;

/** Why an address is suppressed. */
export type SuppressionSource = Open<
  | "BOUNCE"
  | "COMPLAINT"
  | "MANUAL"
  | "IMPORT"
  | "UNSUBSCRIBE"
>;

/** How far the delivery of an event to an endpoint is. */
export type WebhookDeliveryStatus = Open<
  | "PENDING"
  | "DELIVERED"
  | "FAILED"
>;

/** What a webhook reports. */
export type WebhookEventType = Open<
  | "QUEUED"
  | "SENT"
  | "DELIVERED"
  | "OPENED"
  | "CLICKED"
  | "BOUNCED"
  | "COMPLAINED"
  | "UNSUBSCRIBED"
  | "DROPPED"
  | "DEFERRED"
  | "SUPPRESSION_CREATED"
  | "SUPPRESSION_REMOVED"
  | "DOMAIN_VERIFIED"
  | "DOMAIN_BROKEN"
  | "PROVIDER_FAILING"
  | "PROVIDER_RECOVERED"
  | "WEBHOOK_ENDPOINT_DISABLED"
>;

/** What an API key may do. */
export type Permission = Open<
  | "SEND"
  | "TEMPLATES_READ"
  | "TEMPLATES_WRITE"
  | "PROVIDERS_READ"
  | "PROVIDERS_WRITE"
  | "METRICS_READ"
  | "SETTINGS_WRITE"
  | "CONTENT_READ"
  | "MEMBERS_WRITE"
>;

/** Who made a change: a client with an API key, a user, a recipient by a link in a message, or Waypost itself. */
export type AuditActorType = Open<
  | "api_key"
  | "user"
  | "recipient"
  | "system"
>;

/** Whether each recipient gets a mail of their own (`private`), or all get one mail and see each other (`shared`). */
export type DeliveryMode = Open<
  | "private"
  | "shared"
>;

/** What kind of mail a message is. */
export type MessageClass = Open<
  | "transactional"
  | "bulk"
>;

/** What happens to a test message. */
export type TestOutcome = Open<
  | "delivered"
  | "bounced"
  | "complained"
  | "deferred"
  | "failed"
  | "suppressed"
  | "unknown"
  | "failover"
>;

/** Whether a message is queued, or not sent because all its recipients are suppressed. */
export type SendStatus = Open<
  | "queued"
  | "suppressed"
>;

/** An email provider. */
export type ProviderType = Open<
  | "SENDGRID"
  | "POSTMARK"
  | "MAILGUN"
  | "SES"
  | "SMTP"
>;

/** Where the system of a provider is that takes the mail of an account. */
export type AccountRegion = Open<
  | "eu"
  | "us"
>;

/**
 * What a member of an organization may do. `OWNER`: everything. `ADMIN`: everything but the members. `DEVELOPER`:
 * `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `METRICS_READ`, `PROVIDERS_READ` and `CONTENT_READ`. `VIEWER`:
 * `METRICS_READ`, `TEMPLATES_READ` and `PROVIDERS_READ`.
 */
export type Role = Open<
  | "OWNER"
  | "ADMIN"
  | "DEVELOPER"
  | "VIEWER"
>;

/** Whether a message needs any of a rule's tags, or all of them. */
export type TagMatch = Open<
  | "any"
  | "all"
>;

/**
 * Who takes the mail of a domain: `google` for Gmail and Google Workspace, `microsoft` for Outlook.com and Microsoft
 * 365, `yahoo` for Yahoo Mail and AOL Mail, or any `other`.
 */
export type MailboxProvider = Open<
  | "google"
  | "microsoft"
  | "yahoo"
  | "other"
>;

/**
 * Which messages of a routing rule always have the same target: none, those to one domain, or those from one sender.
 */
export type RoutingStickiness = Open<
  | "none"
  | "recipientDomain"
  | "sender"
>;

/** Whether the targets of a routing rule share its messages by their weights alone, or also by their health. */
export type RoutingPreference = Open<
  | "weight"
  | "health"
>;

/**
 * What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits
 * (`wait`).
 */
export type RoutingOverCap = Open<
  | "next"
  | "wait"
>;

/** What is done with a message if the provider's answer was lost, so that nobody knows whether it was accepted. */
export type OnUnknown = Open<
  | "wait"
  | "resend"
  | "fail"
>;

/** A `TEMPLATE` makes messages; a `LAYOUT` or a `PARTIAL` is a part of templates. */
export type TemplateType = Open<
  | "TEMPLATE"
  | "LAYOUT"
  | "PARTIAL"
>;

/** Whether the provider verified the domain; `unknown` if the credentials do not show it. */
export type DomainState = Open<
  | "verified"
  | "unverified"
  | "unknown"
>;

/** The type of a DNS record. */
export type DnsRecordType = Open<
  | "TXT"
  | "CNAME"
  | "MX"
>;

/** What a DNS record is for. */
export type DnsRecordPurpose = Open<
  | "DKIM"
  | "SPF"
  | "RETURN_PATH"
  | "TRACKING"
  | "DMARC"
  | "OWNERSHIP"
>;

/** Whether the provider found the DNS record. */
export type DnsRecordStatus = Open<
  | "pending"
  | "verified"
  | "failed"
>;

/**
 * Whether DNS has a record: it does (`match`), has another there (`mismatch`), or none (`missing`); `unknown` if DNS
 * was not or could not be asked.
 */
export type DnsFoundStatus = Open<
  | "match"
  | "mismatch"
  | "missing"
  | "unknown"
>;

/** The kind of an error, for programs. */
export type ErrorCode = Open<
  | "VALIDATION_ERROR"
  | "AUTHENTICATION_ERROR"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "CONFLICT"
  | "PAYLOAD_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "PROVIDER_INVALID_CREDENTIALS"
  | "RATE_LIMIT_EXCEEDED"
  | "SERVICE_UNAVAILABLE"
  | "INTERNAL_ERROR"
>;

/** What an API key or a session may do. Only a session of an operator has `OPERATOR`. */
export type CallerPermission = Open<
  | "SEND"
  | "TEMPLATES_READ"
  | "TEMPLATES_WRITE"
  | "PROVIDERS_READ"
  | "PROVIDERS_WRITE"
  | "METRICS_READ"
  | "SETTINGS_WRITE"
  | "CONTENT_READ"
  | "MEMBERS_WRITE"
  | "OPERATOR"
>;

/** How a call to a provider ended; `PENDING` while it has not, `UNKNOWN` if its answer was lost. */
export type SendAttemptOutcome = Open<
  | "ACCEPTED"
  | "REJECTED"
  | "THROTTLED"
  | "UNAVAILABLE"
  | "UNKNOWN"
  | "PENDING"
>;

/** What happened to a message. */
export type EventType = Open<
  | "QUEUED"
  | "SENT"
  | "DELIVERED"
  | "OPENED"
  | "CLICKED"
  | "BOUNCED"
  | "COMPLAINED"
  | "UNSUBSCRIBED"
  | "DROPPED"
  | "DEFERRED"
>;

/**
 * Why an address did not get a message: it does not exist, it could not be delivered to for now, or the receiving
 * server blocked the message.
 */
export type BounceType = Open<
  | "hard"
  | "soft"
  | "block"
>;

/** Whether calls to a provider account are made. */
export type ProviderCircuitState = Open<
  | "CLOSED"
  | "OPEN"
  | "HALF_OPEN"
>;

/**
 * `CALLS_FAILED`: too many calls failed. `PROVIDER_PAUSE`: the provider named a time for which it wants no calls.
 * `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account.
 */
export type ProviderCircuitCause = Open<
  | "CALLS_FAILED"
  | "PROVIDER_PAUSE"
  | "ACCOUNT_UNUSABLE"
>;

/**
 * `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many calls
 * failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider refuses the
 * credentials. An account may fail for several causes; each ends by itself.
 */
export type ProviderFailureCause = Open<
  | "ACCOUNT_UNUSABLE"
  | "CALLS_FAILED"
  | "INVALID_CREDENTIALS"
>;

/** In which field a message names the recipient. */
export type RecipientKind = Open<
  | "TO"
  | "CC"
  | "BCC"
>;

/**
 * How far the ramp of a target is: its first day is to come; it grows; it is held because a rate is beyond its bound;
 * or it has reached the cap of the target.
 */
export type RoutingRampState = Open<
  | "notBegun"
  | "growing"
  | "held"
  | "finished"
>;

/** What happened to the ramp of a target. */
export type RoutingRampAction = Open<
  | "begin"
  | "step"
  | "hold"
  | "halve"
  | "resume"
  | "finish"
>;

/** What DNS has of the records of a sender domain. */
export type SenderDomainStatus = Open<
  | "complete"
  | "incomplete"
  | "broken"
  | "unknown"
>;

/** What is wrong with a sender domain as a whole. */
export type SenderDomainConflictCode = Open<
  | "SPF_MULTIPLE"
  | "SPF_INVALID"
  | "SPF_TOO_MANY_LOOKUPS"
  | "SPF_TOO_MANY_VOID_LOOKUPS"
  | "SPF_MISSING_INCLUDE"
  | "DKIM_SELECTOR_SHARED"
  | "CNAME_SHARED"
  | "RETURN_PATH_SHARED"
  | "CNAME_WITH_OTHER_RECORDS"
  | "DMARC_MISSING"
  | "DMARC_MULTIPLE"
  | "DMARC_INVALID"
  | "DMARC_UNALIGNED"
>;

/** What receivers do with mail that does not pass DMARC. */
export type DmarcPolicy = Open<
  | "none"
  | "quarantine"
  | "reject"
>;

/** Whether receivers accept the DMARC record of a domain. */
export type DmarcStatus = Open<
  | "valid"
  | "missing"
  | "multiple"
  | "invalid"
  | "unknown"
>;

/** Whether receivers accept the SPF record of a domain. */
export type SpfStatus = Open<
  | "valid"
  | "missing"
  | "multiple"
  | "invalid"
  | "tooManyLookups"
  | "tooManyVoidLookups"
  | "unknown"
>;

/** What is done with a message whose sender has a domain that no provider account has verified. */
export type UnverifiedDomains = Open<
  | "reject"
  | "accept"
>;

/** How far back a simulation looks at messages: an hour, a day or a week. */
export type RoutingSimulationPeriod = Open<
  | "hour"
  | "day"
  | "week"
>;

/** Who judged a domain: the provider, or Waypost by its own look-ups in DNS. */
export type DomainEventSource = Open<
  | "provider"
  | "dns"
>;

/** `GONE`: the endpoint answered 410. `FAILING`: all calls failed for five days. */
export type WebhookDisabledReason = Open<
  | "GONE"
  | "FAILING"
>;

export type Addresses =
  | string
  | readonly string[];

export interface DnsRecord {
  /** The type of the record. */
  type: DnsRecordType;
  /** The full name of the record. */
  name: string;
  /** The value of the record. */
  value: string;
  /** The priority of an MX record; null for other types. */
  priority: number | null;
  /** What the record is for. */
  purpose: DnsRecordPurpose;
  /** Whether the provider found the record. */
  status: DnsRecordStatus;
  /** The values that DNS had there at the last check; of SPF and DMARC, the records of that kind. */
  found: string[];
  /** Whether DNS had the record at the last check; `unknown` if DNS was not or could not be asked. */
  foundStatus: DnsFoundStatus;
}

export interface ErrorDetails {
  /** The first 100 mistakes of an invalid request. */
  issues?: ErrorIssue[] | undefined;
  /** With 403: the permission that the API key lacks. */
  requiredPermission?: CallerPermission | undefined;
  /** The provider that refused the request. */
  providerType?: ProviderType | undefined;
  /** Of an import that ended early: the number of newly suppressed addresses. */
  imported?: number | undefined;
  /** Of an import that ended early: the number of addresses that were already suppressed. */
  alreadyThere?: number | undefined;
  /** Of an import that ended early: the number of entries that could not be used. */
  unusable?: number | undefined;
  /** Of an import that ended early: where to continue. */
  nextCursor?: string | undefined;
  reason?: ErrorReason | undefined;
}

export interface ErrorIssue {
  /** Where in the request, such as `to.3`; empty for the whole. */
  path: string;
  /** What is wrong, for people. */
  message: string;
  /** The line of a mistake in a source of a template, from 1; absent if it is not known or not one of this source. */
  line?: number | undefined;
  /** The column of the mistake in this line, in characters, from 1; absent if it is not known. */
  column?: number | undefined;
}

export interface EventSecrets {
  /** SENDGRID: the verification key of the event webhook, as SendGrid shows it. */
  publicKey?: string | undefined;
  /** MAILGUN: the HTTP webhook signing key of the account. */
  signingKey?: string | undefined;
  /**
   * SES: the ARN of the SNS topic that the configuration set publishes to. It must be in the region of the account.
   */
  topicArn?: string | undefined;
}

export interface LostDnsRecord {
  /** The type of the record. */
  type: DnsRecordType;
  /** The full name of the record. */
  name: string;
  /** What the record is for. */
  purpose: DnsRecordPurpose;
  /** Whether DNS has another record there (`mismatch`) or none (`missing`). */
  foundStatus: DnsFoundStatus;
}

export interface MailgunCredentials {
  /** The API key. */
  apiKey: string;
  /** The sending domain. */
  domain: string;
  /** `us` (the default) or `eu`. */
  region?: string | undefined;
}

export interface PostmarkCredentials {
  /** The token of the server. */
  serverToken: string;
  /** The token of the account, which is needed to list and add domains. */
  accountToken?: string | undefined;
  /** The message stream to send through. */
  messageStream?: string | undefined;
}

export type ProviderCredentials =
  | SendgridCredentials
  | PostmarkCredentials
  | MailgunCredentials
  | SesCredentials
  | SmtpCredentials;

export type Recipients =
  | string
  | ReadonlyArray<string | MessageRecipient>;

export interface SendgridCredentials {
  /** The API key. */
  apiKey: string;
  /** `global` (the default) or `eu`. */
  region?: string | undefined;
}

export interface SesCredentials {
  /** The id of the access key. */
  accessKeyId: string;
  /** The secret access key. */
  secretAccessKey: string;
  /** The session token of temporary credentials. */
  sessionToken?: string | undefined;
  /** The configuration set that publishes events. */
  configurationSet?: string | undefined;
  /** The region, such as `eu-central-1`. */
  region: string;
}

export interface SmtpCredentials {
  /** The host name or IP address of the mail server. */
  host: string;
  /** The port. The default is 587, with `tls` `implicit` 465, with `none` 25. */
  port?: number | undefined;
  /** The user name to log in with, together with `password`. */
  username?: string | undefined;
  /** The password of `username`. */
  password?: string | undefined;
  /** `starttls` (the default), `implicit` or `none`. */
  tls?: string | undefined;
}

export interface Tracking {
  /** Whether opens are tracked. */
  opens?: boolean | undefined;
  /** Whether clicks are tracked. */
  clicks?: boolean | undefined;
}

export interface UpdateRateLimits {
  /** Sends per second. */
  sendPerSecond?: number | null | undefined;
  /** Other requests per second. */
  otherPerSecond?: number | null | undefined;
}

/** The parameters of "List messages". */
export interface ListMessagesParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
  /** Tests only, or live messages only. The default is whether the API key is a test key. */
  test?: boolean | undefined;
  /** Only messages with one of these statuses. */
  status?: readonly MessageStatus[] | undefined;
  /** Only messages whose subject contains this text. Upper and lower case are not distinguished. */
  search?: string | undefined;
  /** Only messages to this address. */
  recipient?: string | undefined;
  /** Only messages from this address, or from all addresses of this domain. */
  from?: string | undefined;
  /** Only messages with this tag. */
  tag?: string | undefined;
  /** Only messages with this template. */
  templateId?: string | undefined;
  /** Only messages of this provider account: the `providerAccountId` of the list. */
  providerAccountId?: string | undefined;
  /** Only messages for which a provider returned this message id, for any recipient. */
  providerMessageId?: string | undefined;
  /** Only messages accepted at or after this time, in whole milliseconds. */
  createdFrom?: string | Date | undefined;
  /**
   * Only messages accepted before this time, in whole milliseconds. A date without a time includes that whole day.
   */
  createdTo?: string | Date | undefined;
}

/** The parameters of "List a message's recipients". */
export interface ListMessageRecipientsParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}

/** The parameters of "Get a message's content". */
export interface GetMessageContentParams {
  /** The position of a recipient in the send request, from 0: the content as rendered for this recipient. */
  position?: number | undefined;
}

/** The parameters of "List a message's webhook deliveries". */
export interface ListMessageWebhookDeliveriesParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}

/** The parameters of "Get metrics over time". */
export interface GetMetricsParams {
  /** The start of the period. The default is 30 days ago. */
  from?: string | Date | undefined;
  /** The end of the period. The default is now. A date without a time includes that whole day. */
  to?: string | Date | undefined;
  /** The length of a bucket. The default is `day`. */
  granularity?: MetricsGranularity | undefined;
  /** Only messages with this tag. */
  tag?: string | undefined;
  /** Only recipients whose mail went through this provider account. */
  providerAccountId?: string | undefined;
  /** Only messages with this template. */
  templateId?: string | undefined;
  /**
   * The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database. The
   * default is UTC.
   */
  timeZone?: string | undefined;
}

/** The parameters of "Get metrics by provider, domain, template, account, tag or recipient domain". */
export interface GetMetricsBreakdownParams {
  /** The start of the period. The default is 30 days ago. */
  from?: string | Date | undefined;
  /** The end of the period. The default is now. A date without a time includes that whole day. */
  to?: string | Date | undefined;
  /** What to group by. The default is `provider`. */
  groupBy?: MetricsGroupBy | undefined;
  /** Only messages with this tag. */
  tag?: string | undefined;
  /** Only recipients whose mail went through this provider account. */
  providerAccountId?: string | undefined;
  /** Only messages with this template. */
  templateId?: string | undefined;
  /**
   * The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database. The
   * default is UTC.
   */
  timeZone?: string | undefined;
}

/** The parameters of "Get total metrics". */
export interface GetMetricsSummaryParams {
  /** The start of the period. The default is 30 days ago. */
  from?: string | Date | undefined;
  /** The end of the period. The default is now. A date without a time includes that whole day. */
  to?: string | Date | undefined;
  /** Only messages with this tag. */
  tag?: string | undefined;
  /** Only recipients whose mail went through this provider account. */
  providerAccountId?: string | undefined;
  /** Only messages with this template. */
  templateId?: string | undefined;
  /**
   * The time zone of hours, days, weeks and months, and of times without an offset: a name of the IANA database. The
   * default is UTC.
   */
  timeZone?: string | undefined;
}

/** The parameters of "Get the health of a provider account by recipient domain". */
export interface GetProviderHealthByDomainParams {
  /** How far back to count: 15 minutes, a day or a week. The default is `day`. */
  window?: ProviderHealthPeriod | undefined;
}

/** The parameters of "List API keys". */
export interface ListApiKeysParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}

/** The parameters of "List the audit log". */
export interface ListAuditLogsParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
  /** Only entries with this action, such as `provider.created`. */
  action?: string | undefined;
  /** Only entries with this target type, such as `provider`. */
  targetType?: string | undefined;
  /** Only entries with this target id. */
  targetId?: string | undefined;
  /** Only entries at or after this time. */
  from?: string | Date | undefined;
  /** Only entries before this time. A date without a time includes that whole day. */
  to?: string | Date | undefined;
}

/** The parameters of "List templates". */
export interface ListTemplatesParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}

/** The parameters of "Preview the page of an unsubscribe link". */
export interface PreviewUnsubscribePageParams {
  /** The language of the page. The default is `en`. Recipients get the one that their browser asks for. */
  language?: PageLanguage | undefined;
}

/** The parameters of "List suppressions". */
export interface ListSuppressionsParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
  /** Only suppressions of this address: for all messages, and in groups. */
  email?: string | undefined;
  /** Only suppressions with this source. */
  source?: SuppressionSource | undefined;
  /** Only suppressions of this unsubscribe group. */
  groupId?: string | undefined;
  /** Only suppressions created at or after this time. */
  since?: string | Date | undefined;
}

/** The parameters of "Import suppressions". */
export interface ImportSuppressionsParams {
  /** For a CSV file: the unsubscribe group that the suppressions apply to. The default is all messages. */
  unsubscribeGroupId?: string | undefined;
}

/** The parameters of "Export suppressions". */
export interface ExportSuppressionsParams {
  /** Only suppressions with this source. */
  source?: SuppressionSource | undefined;
  /** Only suppressions of this unsubscribe group. */
  groupId?: string | undefined;
}

/** The parameters of "List a webhook endpoint's deliveries". */
export interface ListWebhookDeliveriesParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
  /** Only deliveries with this status. */
  status?: WebhookDeliveryStatus | undefined;
  /** Only deliveries of the events of this message. */
  messageId?: string | undefined;
  /** Only deliveries of events of this type. */
  eventType?: WebhookEventType | undefined;
  /** Only deliveries created at or after this time. */
  from?: string | Date | undefined;
  /** Only deliveries created before this time. A date without a time includes that whole day. */
  to?: string | Date | undefined;
}

/** The parameters of "Sign out". */
export interface DeleteSessionParams {
  /** Whether to end all sessions of the user. The default is false. */
  everywhere?: boolean | undefined;
}

/** The parameters of "List members". */
export interface ListMembersParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}

/** The parameters of "List invitations". */
export interface ListInvitationsParams {
  /** The page number, from 1. */
  page?: number | undefined;
  /** The number of items per page. */
  limit?: number | undefined;
  /**
   * The `nextCursor` of the page before, instead of `page`. The pages stay as they are while the list grows at its
   * beginning.
   */
  cursor?: string | undefined;
}
