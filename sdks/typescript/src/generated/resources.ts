// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

import type { Http, RequestOptions } from "../runtime/http.js";
import type { PagePromise } from "../runtime/pages.js";
import type * as types from "./types.js";

/** Accepted messages, their recipients and their history. */
export class Messages {
  readonly #http: Http;
  /** The recipients. */
  readonly recipients: MessagesRecipients;
  /** The attachments. */
  readonly attachments: MessagesAttachments;
  /** The webhook deliveries. */
  readonly webhookDeliveries: MessagesWebhookDeliveries;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
    this.recipients = new MessagesRecipients(http);
    this.attachments = new MessagesAttachments(http);
    this.webhookDeliveries = new MessagesWebhookDeliveries(http);
  }

  /**
   * Send a message.
   *
   * Requires the permission `SEND`. The response 202 means that the message is stored and will be sent, even if
   * servers fail in between. Suppressed recipients are dropped; if all recipients are suppressed, the status is
   * `suppressed` and no message is created.
   */
  send(request: types.SendMessageRequest, options?: RequestOptions): Promise<types.SendMessageResponse> {
    return this.#http.json({ method: "POST", route: "/v1/send", body: request, idempotent: true }, options);
  }

  /**
   * Send a batch of messages.
   *
   * Requires the permission `SEND`. Each message is validated and queued separately. A message that is rejected has
   * an `error` in its place in `results`.
   */
  sendBatch(request: types.SendBatchRequest, options?: RequestOptions): Promise<types.SendBatchResponse> {
    return this.#http.json({ method: "POST", route: "/v1/emails/batch", body: request, idempotent: true }, options);
  }

  /**
   * List messages.
   *
   * Requires the permission `METRICS_READ`. The newest message comes first. Tests are in a list of their own.
   *
   * All filters can be combined. Without `search`, `recipient`, `from`, `tag`, `templateId`, `providerAccountId` and
   * `providerMessageId`, `total` is the number of all matching messages. With one of them, `total` counts at most the
   * newest 2,000 matching messages, and so do the pages; `nextCursor` leads to the older ones, except with `search`.
   *
   * A search text without three consecutive letters or digits is searched in the newest 30,000 messages only, unless
   * a filter other than `status` and the times is given. A search with `status` covers the newest 30,000 messages and
   * at least the newest 4,000 with this status, if the text is such a short one or if more than 2,000 messages of any
   * status match it. The same holds for times and several statuses, with 20,000 messages in place of the 2,000.
   */
  list(params?: types.ListMessagesParams, options?: RequestOptions): PagePromise<types.MessageSummary> {
    return this.#http.pages({ method: "GET", route: "/v1/messages", query: params }, options);
  }

  /**
   * Get a message with its history.
   *
   * Requires the permission `METRICS_READ`.
   *
   * @param id The id of the message.
   */
  get(id: string, options?: RequestOptions): Promise<types.MessageDetail> {
    return this.#http.data({ method: "GET", route: "/v1/messages/{id}", path: { id } }, options);
  }

  /**
   * Move the time of a scheduled message.
   *
   * Requires the permission `SEND`. Returns 409 if the message was not scheduled, or if sending it has begun.
   *
   * @param id The id of the message.
   */
  update(id: string, request: types.UpdateMessageRequest, options?: RequestOptions): Promise<types.MessageDetail> {
    return this.#http.data({ method: "PATCH", route: "/v1/messages/{id}", path: { id }, body: request }, options);
  }

  /**
   * Retry a failed message.
   *
   * Requires the permission `SEND`. Queues the recipients with the status FAILED again, with all attempts and the
   * full retry period, as at acceptance. Recipients that are suppressed now are dropped again. Returns 409 if no
   * recipient has the status FAILED, so repeating the request sends nothing twice.
   *
   * @param id The id of the message.
   */
  retry(id: string, options?: RequestOptions): Promise<types.MessageDetail> {
    return this.#http.data({ method: "POST", route: "/v1/messages/{id}/retry", path: { id } }, options);
  }

  /**
   * Cancel a message.
   *
   * Requires the permission `SEND`. Cancels the recipients that wait, whether the message is scheduled, queued or
   * being retried: they get the status FAILED and an event DROPPED with the reason `CANCELLED`, and the message is
   * not sent to them. Recipients to whom it was sent, or is just being sent, are left as they are. Returns 409 if no
   * recipient can be cancelled. Repeating the request changes nothing and succeeds again.
   *
   * @param id The id of the message.
   */
  cancel(id: string, options?: RequestOptions): Promise<types.CancelledMessage> {
    return this.#http.data({ method: "POST", route: "/v1/messages/{id}/cancel", path: { id }, repeatable: true }, options);
  }

  /**
   * Get a message's content.
   *
   * Requires the permission `CONTENT_READ`. The audit log records each request. The content of a message is stored
   * for a shorter time than the message: afterwards the response is 404 with `details.reason` `MESSAGE_CONTENT_GONE`.
   *
   * @param id The id of the message.
   */
  getContent(id: string, params?: types.GetMessageContentParams, options?: RequestOptions): Promise<types.MessageContentView> {
    return this.#http.data({ method: "GET", route: "/v1/messages/{id}/content", path: { id }, query: params }, options);
  }
}

/** The recipients. */
export class MessagesRecipients {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List a message's recipients.
   *
   * Requires the permission `METRICS_READ`. The recipients are in the order of the send request.
   *
   * @param messageId The id of the message.
   */
  list(messageId: string, params?: types.ListMessageRecipientsParams, options?: RequestOptions): PagePromise<types.RecipientDetail> {
    return this.#http.pages({ method: "GET", route: "/v1/messages/{id}/recipients", path: { id: messageId }, query: params }, options);
  }
}

/** The attachments. */
export class MessagesAttachments {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List a message's attachments.
   *
   * Requires the permission `CONTENT_READ`. The attachments are in the order of the send request. Each request is
   * recorded in the audit log. If the content of the message is no longer stored, the response is 404 with the reason
   * `MESSAGE_CONTENT_GONE`.
   *
   * @param messageId The id of the message.
   */
  list(messageId: string, options?: RequestOptions): PagePromise<types.AttachmentDetail> {
    return this.#http.pages({ method: "GET", route: "/v1/messages/{id}/attachments", path: { id: messageId } }, options);
  }

  /**
   * Download an attachment.
   *
   * Requires the permission `CONTENT_READ`. Each request is recorded in the audit log. If the content of the message
   * is no longer stored, the response is 404 with the reason `MESSAGE_CONTENT_GONE`.
   *
   * @param messageId The id of the message.
   * @param index The place of the attachment in the list, from 0.
   */
  download(messageId: string, index: string, options?: RequestOptions): Promise<Response> {
    return this.#http.raw({ method: "GET", route: "/v1/messages/{id}/attachments/{index}", path: { id: messageId, index } }, options);
  }
}

/** The webhook deliveries. */
export class MessagesWebhookDeliveries {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List a message's webhook deliveries.
   *
   * Requires the permission `SETTINGS_WRITE`. The deliveries of the message's events to all webhook endpoints, the
   * newest first, each with its attempts.
   *
   * @param messageId The id of the message.
   */
  list(messageId: string, params?: types.ListMessageWebhookDeliveriesParams, options?: RequestOptions): PagePromise<types.WebhookDelivery> {
    return this.#http.pages({ method: "GET", route: "/v1/messages/{id}/webhook-deliveries", path: { id: messageId }, query: params }, options);
  }
}

/** Counts and rates of sent, delivered, opened, clicked, bounced and reported messages. */
export class Metrics {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Get metrics over time.
   *
   * Requires the permission `METRICS_READ`. Each hour that the period from `from` to `to` touches is counted whole,
   * so the sums of the three metrics operations agree. The first and the last bucket contain only these hours. A
   * response has at most 10,000 buckets. At most two of `tag`, `providerAccountId` and `templateId` can be given.
   */
  get(params?: types.GetMetricsParams, options?: RequestOptions): Promise<types.MetricsSeries> {
    return this.#http.json({ method: "GET", route: "/v1/metrics", query: params }, options);
  }

  /**
   * Get metrics by provider, domain, template, account, tag or recipient domain.
   *
   * Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. A message with two tags
   * counts for both. One of `tag`, `providerAccountId` and `templateId` can be given beside `groupBy`, or a second
   * one that is also the one to group by. `recipientDomain` goes with `providerAccountId` alone.
   */
  getBreakdown(params?: types.GetMetricsBreakdownParams, options?: RequestOptions): Promise<types.MetricsBreakdown> {
    return this.#http.json({ method: "GET", route: "/v1/metrics/breakdown", query: params }, options);
  }

  /**
   * Get total metrics.
   *
   * Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. At most two of `tag`,
   * `providerAccountId` and `templateId` can be given.
   */
  getSummary(params?: types.GetMetricsSummaryParams, options?: RequestOptions): Promise<types.MetricsSummary> {
    return this.#http.json({ method: "GET", route: "/v1/metrics/summary", query: params }, options);
  }
}

/** Connected accounts at email providers, their domains and event webhooks. */
export class Providers {
  readonly #http: Http;
  /** The domains. */
  readonly domains: ProvidersDomains;
  /** The suppressions. */
  readonly suppressions: ProvidersSuppressions;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
    this.domains = new ProvidersDomains(http);
    this.suppressions = new ProvidersSuppressions(http);
  }

  /**
   * List provider accounts.
   *
   * Requires the permission `PROVIDERS_READ`. The oldest account comes first. Without a matching routing rule, the
   * first active account sends.
   */
  list(options?: RequestOptions): PagePromise<types.ProviderAccount> {
    return this.#http.pages({ method: "GET", route: "/v1/providers" }, options);
  }

  /**
   * Connect a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`. The credentials are checked with the provider, encrypted and stored,
   * and the domains of the account are imported. For SENDGRID, POSTMARK and MAILGUN the event webhook is registered
   * with the provider; `eventWebhook` has the result.
   */
  create(request: types.ConnectProviderRequest, options?: RequestOptions): Promise<types.ConnectedProvider> {
    return this.#http.data({ method: "POST", route: "/v1/providers", body: request, idempotent: true }, options);
  }

  /**
   * Get a provider account.
   *
   * Requires the permission `PROVIDERS_READ`.
   *
   * @param id The id of the provider account.
   */
  get(id: string, options?: RequestOptions): Promise<types.ProviderAccount> {
    return this.#http.data({ method: "GET", route: "/v1/providers/{id}", path: { id } }, options);
  }

  /**
   * Change a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`.
   *
   * @param id The id of the provider account.
   */
  update(id: string, request: types.UpdateProviderRequest, options?: RequestOptions): Promise<types.ProviderAccount> {
    return this.#http.data({ method: "PATCH", route: "/v1/providers/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`. Waiting messages of the account are sent by another active account. In
   * routing rules the first fallback replaces the account; a rule without a fallback becomes inactive.
   *
   * @param id The id of the provider account.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/providers/{id}", path: { id } }, options);
  }

  /**
   * Check a provider account's credentials.
   *
   * Requires the permission `PROVIDERS_WRITE`. Checks the credentials with the provider, sets `isActive` to the
   * result and updates the domains. If the provider gives no clear answer, the response is 503 and nothing changes.
   *
   * @param id The id of the provider account.
   */
  validate(id: string, options?: RequestOptions): Promise<types.ValidationResult> {
    return this.#http.json({ method: "POST", route: "/v1/providers/{id}/validate", path: { id }, repeatable: true }, options);
  }

  /**
   * Register the event webhook.
   *
   * Requires the permission `PROVIDERS_WRITE`. For SENDGRID, POSTMARK and MAILGUN this registers the account's
   * `webhookUrl` with the provider and stores the secrets that verify its events; a repeated request updates the same
   * webhook. For SES nothing is called, and `steps` lists what to set up. If the provider refuses, for example
   * because the API key lacks a permission, the response is 422 and lists the steps to take by hand.
   *
   * @param id The id of the provider account.
   */
  registerEventWebhook(id: string, options?: RequestOptions): Promise<types.EventWebhookResult> {
    return this.#http.data({ method: "POST", route: "/v1/providers/{id}/event-webhook", path: { id }, repeatable: true }, options);
  }

  /**
   * List the health of provider accounts.
   *
   * Requires the permission `PROVIDERS_READ`. The oldest account comes first.
   */
  listHealth(options?: RequestOptions): PagePromise<types.ProviderHealth> {
    return this.#http.pages({ method: "GET", route: "/v1/providers/health" }, options);
  }

  /**
   * Get the health of a provider account.
   *
   * Requires the permission `PROVIDERS_READ`. Whether calls are made, what is wrong, how the calls of the last 15
   * minutes ended, and what became of the account's mail in 15 minutes, a day and a week.
   *
   * @param id The id of the provider account.
   */
  getHealth(id: string, options?: RequestOptions): Promise<types.ProviderHealthDetail> {
    return this.#http.data({ method: "GET", route: "/v1/providers/{id}/health", path: { id } }, options);
  }

  /**
   * Get the health of a provider account by recipient domain.
   *
   * Requires the permission `PROVIDERS_READ`. What became of the account's mail to each recipient domain. The
   * quarters of an hour that the window touches count whole, so `sent`, `delivered`, `bounced` and `complained` agree
   * with the metrics of the same time. Tests are not counted.
   *
   * @param id The id of the provider account.
   */
  getHealthByDomain(id: string, params?: types.GetProviderHealthByDomainParams, options?: RequestOptions): Promise<types.ProviderHealthByDomain> {
    return this.#http.json({ method: "GET", route: "/v1/providers/{id}/health/domains", path: { id }, query: params }, options);
  }
}

/** The domains. */
export class ProvidersDomains {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List a provider account's domains.
   *
   * Requires the permission `PROVIDERS_READ`.
   *
   * @param providerId The id of the provider account.
   */
  list(providerId: string, options?: RequestOptions): PagePromise<types.DomainVerification> {
    return this.#http.pages({ method: "GET", route: "/v1/providers/{id}/domains", path: { id: providerId } }, options);
  }

  /**
   * Add a domain to a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`. Adds the domain at the provider, if it is not there yet, and returns
   * the DNS records to publish. If the credentials give no access to domains, the domain is only stored, with the
   * state `unknown`. Unverified domains are checked every few minutes for an hour, then every hour.
   *
   * @param providerId The id of the provider account.
   */
  create(providerId: string, request: types.CreateProviderDomainRequest, options?: RequestOptions): Promise<types.DomainVerification> {
    return this.#http.data({ method: "POST", route: "/v1/providers/{id}/domains", path: { id: providerId }, body: request, idempotent: true }, options);
  }

  /**
   * Check a domain of a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`. Asks the provider to check DNS now, if its API allows that, and
   * updates the state and the DNS records.
   *
   * @param providerId The id of the provider account.
   * @param domainId The id of the domain.
   */
  verify(providerId: string, domainId: string, options?: RequestOptions): Promise<types.DomainVerification> {
    return this.#http.data({ method: "POST", route: "/v1/providers/{id}/domains/{domainId}/verify", path: { id: providerId, domainId }, repeatable: true }, options);
  }

  /**
   * Remove a domain from a provider account.
   *
   * Requires the permission `PROVIDERS_WRITE`. Removes the domain at the provider too, unless the credentials give no
   * access to domains. The sending domain of a MAILGUN account cannot be removed.
   *
   * @param providerId The id of the provider account.
   * @param domainId The id of the domain.
   */
  delete(providerId: string, domainId: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/providers/{id}/domains/{domainId}", path: { id: providerId, domainId } }, options);
  }
}

/** The suppressions. */
export class ProvidersSuppressions {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Import a provider account's suppressions.
   *
   * Requires the permission `PROVIDERS_WRITE`, and `SETTINGS_WRITE`. Suppresses the addresses in the lists that the
   * provider keeps: bounces, complaints and unsubscribes from all messages, with the sources BOUNCE, COMPLAINT and
   * UNSUBSCRIBE. One request reads up to 100 pages, and for 30 seconds; if `nextCursor` is not null, send it in the
   * next request. If the provider fails, `details` of the error says what was imported until then, and where to
   * continue. An import can be repeated. SMTP accounts have no lists.
   *
   * @param providerId The id of the provider account.
   */
  import(providerId: string, request?: types.ImportProviderSuppressionsRequest, options?: RequestOptions): Promise<types.ProviderImportResult> {
    return this.#http.data({ method: "POST", route: "/v1/providers/{id}/suppressions/import", path: { id: providerId }, body: request, repeatable: true }, options);
  }
}

/** The sender domains. */
export class SenderDomains {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List sender domains.
   *
   * Requires the permission `PROVIDERS_READ`. The domains of all provider accounts, each once, in the order of their
   * names, with what the last check of DNS found.
   */
  list(options?: RequestOptions): PagePromise<types.SenderDomainSummary> {
    return this.#http.pages({ method: "GET", route: "/v1/sender-domains" }, options);
  }

  /**
   * Get a sender domain.
   *
   * Requires the permission `PROVIDERS_READ`. Compares what DNS had at the last check with the records that the
   * accounts want now. The scheduler checks every domain (`WAYPOST_DNS_CHECK_INTERVAL`). Sending does not depend on
   * it: there the provider's verdict decides.
   *
   * @param domain The domain name.
   */
  get(domain: string, options?: RequestOptions): Promise<types.SenderDomain> {
    return this.#http.data({ method: "GET", route: "/v1/sender-domains/{domain}", path: { domain } }, options);
  }

  /**
   * Check a sender domain.
   *
   * Requires the permission `PROVIDERS_WRITE`. Asks DNS now, within 20 seconds; the providers are not asked. What
   * could not be looked up is `unknown`.
   *
   * @param domain The domain name.
   */
  check(domain: string, options?: RequestOptions): Promise<types.SenderDomain> {
    return this.#http.data({ method: "POST", route: "/v1/sender-domains/{domain}/check", path: { domain }, repeatable: true }, options);
  }
}

/** Rules that select the provider account of a message. */
export class RoutingRules {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List routing rules.
   *
   * Requires the permission `PROVIDERS_READ`. The rules are in the order in which they are checked.
   */
  list(options?: RequestOptions): PagePromise<types.RoutingRule> {
    return this.#http.pages({ method: "GET", route: "/v1/routing-rules" }, options);
  }

  /**
   * Create a routing rule.
   *
   * Requires the permission `PROVIDERS_WRITE`.
   */
  create(request: types.CreateRoutingRuleRequest, options?: RequestOptions): Promise<types.RoutingRule> {
    return this.#http.data({ method: "POST", route: "/v1/routing-rules", body: request, idempotent: true }, options);
  }

  /**
   * Get a routing rule.
   *
   * Requires the permission `PROVIDERS_READ`.
   *
   * @param id The id of the routing rule.
   */
  get(id: string, options?: RequestOptions): Promise<types.RoutingRule> {
    return this.#http.data({ method: "GET", route: "/v1/routing-rules/{id}", path: { id } }, options);
  }

  /**
   * Change a routing rule.
   *
   * Requires the permission `PROVIDERS_WRITE`. The change takes effect at once.
   *
   * @param id The id of the routing rule.
   */
  update(id: string, request: types.UpdateRoutingRuleRequest, options?: RequestOptions): Promise<types.RoutingRule> {
    return this.#http.data({ method: "PATCH", route: "/v1/routing-rules/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove a routing rule.
   *
   * Requires the permission `PROVIDERS_WRITE`.
   *
   * @param id The id of the routing rule.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/routing-rules/{id}", path: { id } }, options);
  }

  /**
   * Resolve the route of a message.
   *
   * Requires the permission `PROVIDERS_READ`. Returns the account that would send the message, and why. Nothing is
   * sent.
   */
  resolve(request: types.ResolveRouteRequest, options?: RequestOptions): Promise<types.RouteResolution> {
    return this.#http.data({ method: "POST", route: "/v1/routing-rules/resolve", body: request, repeatable: true }, options);
  }

  /**
   * Simulate routing rules.
   *
   * Requires the permission `PROVIDERS_READ`. Returns what the live messages of the last hour, day or week would have
   * done under other rules: the recipients of each account, and those over caps. Nothing is sent and nothing is
   * changed.
   */
  simulate(request?: types.SimulateRoutingRequest, options?: RequestOptions): Promise<types.RoutingSimulation> {
    return this.#http.data({ method: "POST", route: "/v1/routing-rules/simulate", body: request, repeatable: true }, options);
  }

  /**
   * Get the progress of a routing rule.
   *
   * Requires the permission `PROVIDERS_READ`. Returns what the targets of the rule used of their caps, and how far
   * their ramps are.
   *
   * @param id The id of the routing rule.
   */
  getProgress(id: string, options?: RequestOptions): Promise<types.RoutingProgress> {
    return this.#http.data({ method: "GET", route: "/v1/routing-rules/{id}/progress", path: { id } }, options);
  }
}

/** API keys, their permissions and their rotation. */
export class ApiKeys {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List API keys.
   *
   * Requires the permission `SETTINGS_WRITE`. The newest key comes first. Revoked keys are included.
   */
  list(params?: types.ListApiKeysParams, options?: RequestOptions): PagePromise<types.ApiKey> {
    return this.#http.pages({ method: "GET", route: "/v1/api-keys", query: params }, options);
  }

  /**
   * Create an API key.
   *
   * Requires the permission `SETTINGS_WRITE` and every permission of the new key. Returns 409 if the calling key is a
   * test key and the new one is not.
   */
  create(request: types.CreateApiKeyRequest, options?: RequestOptions): Promise<types.ApiKeyWithSecret> {
    return this.#http.data({ method: "POST", route: "/v1/api-keys", body: request, idempotent: true }, options);
  }

  /**
   * Get an API key.
   *
   * Requires the permission `SETTINGS_WRITE`.
   *
   * @param id The id of the API key.
   */
  get(id: string, options?: RequestOptions): Promise<types.ApiKey> {
    return this.#http.data({ method: "GET", route: "/v1/api-keys/{id}", path: { id } }, options);
  }

  /**
   * Change an API key.
   *
   * Requires the permission `SETTINGS_WRITE`, every permission of the key, and every permission that the change adds.
   * A key can change itself. The change takes effect within five seconds.
   *
   * @param id The id of the API key.
   */
  update(id: string, request: types.UpdateApiKeyRequest, options?: RequestOptions): Promise<types.ApiKey> {
    return this.#http.data({ method: "PATCH", route: "/v1/api-keys/{id}", path: { id }, body: request }, options);
  }

  /**
   * Revoke an API key.
   *
   * Requires the permission `SETTINGS_WRITE` and every permission of the key. The key stops working within five
   * seconds. Its record remains, with `revokedAt`.
   *
   * @param id The id of the API key.
   */
  revoke(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/api-keys/{id}", path: { id } }, options);
  }

  /**
   * Rotate an API key.
   *
   * Requires the permission `SETTINGS_WRITE` and every permission of the key. The key gets a new secret. The old
   * secret keeps working until the grace period ends.
   *
   * @param id The id of the API key.
   */
  rotate(id: string, request?: types.RotateApiKeyRequest, options?: RequestOptions): Promise<types.ApiKeyWithSecret> {
    return this.#http.data({ method: "POST", route: "/v1/api-keys/{id}/rotate", path: { id }, body: request, idempotent: true }, options);
  }
}

/** The settings of the organization. */
export class Settings {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Get the settings.
   *
   * Requires the permission `SETTINGS_WRITE`.
   */
  get(options?: RequestOptions): Promise<types.Settings> {
    return this.#http.data({ method: "GET", route: "/v1/settings" }, options);
  }

  /**
   * Change the settings.
   *
   * Requires the permission `SETTINGS_WRITE`. `unverifiedDomains`, `trackOpens` and `trackClicks` take effect at
   * once, `rateLimits` within a few seconds, and `retentionDays` within minutes. Deleted messages cannot be restored.
   */
  update(request: types.UpdateSettingsRequest, options?: RequestOptions): Promise<types.Settings> {
    return this.#http.data({ method: "PATCH", route: "/v1/settings", body: request }, options);
  }
}

/** The audit logs. */
export class AuditLogs {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List the audit log.
   *
   * Requires the permission `SETTINGS_WRITE`. The newest entry comes first. Every change through the API has an
   * entry.
   */
  list(params?: types.ListAuditLogsParams, options?: RequestOptions): PagePromise<types.AuditLogEntry> {
    return this.#http.pages({ method: "GET", route: "/v1/audit-logs", query: params }, options);
  }
}

/** Reusable message bodies with variables, and their versions. */
export class Templates {
  readonly #http: Http;
  /** The versions. */
  readonly versions: TemplatesVersions;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
    this.versions = new TemplatesVersions(http);
  }

  /**
   * List templates.
   *
   * Requires the permission `TEMPLATES_READ`. The newest template comes first.
   */
  list(params?: types.ListTemplatesParams, options?: RequestOptions): PagePromise<types.Template> {
    return this.#http.pages({ method: "GET", route: "/v1/templates", query: params }, options);
  }

  /**
   * Create a template.
   *
   * Requires the permission `TEMPLATES_WRITE`. The template can be used once it has a version.
   */
  create(request: types.CreateTemplateRequest, options?: RequestOptions): Promise<types.Template> {
    return this.#http.data({ method: "POST", route: "/v1/templates", body: request, idempotent: true }, options);
  }

  /**
   * Get a template.
   *
   * Requires the permission `TEMPLATES_READ`. `currentVersion` has the content.
   *
   * @param id The id of the template.
   */
  get(id: string, options?: RequestOptions): Promise<types.TemplateDetail> {
    return this.#http.data({ method: "GET", route: "/v1/templates/{id}", path: { id } }, options);
  }

  /**
   * Change a template.
   *
   * Requires the permission `TEMPLATES_WRITE`. To change the content, add a version.
   *
   * @param id The id of the template.
   */
  update(id: string, request: types.UpdateTemplateRequest, options?: RequestOptions): Promise<types.Template> {
    return this.#http.data({ method: "PATCH", route: "/v1/templates/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove a template.
   *
   * Requires the permission `TEMPLATES_WRITE`. Removes all versions of the template too. Messages that were already
   * accepted are sent as they are. A layout or partial that a current version uses is not removed (409).
   *
   * @param id The id of the template.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/templates/{id}", path: { id } }, options);
  }

  /**
   * Preview a template.
   *
   * Requires the permission `TEMPLATES_READ`. Renders a version; nothing is sent. Missing variables render as empty
   * text.
   *
   * @param id The id of the template.
   */
  preview(id: string, request?: types.PreviewTemplateRequest, options?: RequestOptions): Promise<types.TemplatePreview> {
    return this.#http.json({ method: "POST", route: "/v1/templates/{id}/preview", path: { id }, body: request, repeatable: true }, options);
  }

  /**
   * Roll back to a template version.
   *
   * Requires the permission `TEMPLATES_WRITE`. Makes this version the current one of its language. It is composed
   * with its layout and partials as they are now. No version is added or removed.
   *
   * @param id The id of the template.
   * @param versionId The id of the template version.
   */
  rollback(id: string, versionId: string, options?: RequestOptions): Promise<types.RolledBack> {
    return this.#http.data({ method: "POST", route: "/v1/templates/{id}/rollback/{versionId}", path: { id, versionId }, repeatable: true }, options);
  }

  /**
   * List what uses a layout or partial.
   *
   * Requires the permission `TEMPLATES_READ`. Lists up to 1,000 current versions that the layout or partial is in,
   * also those in which another partial brought it. A template that is neither is in none.
   *
   * @param id The id of the layout or partial.
   */
  listUses(id: string, options?: RequestOptions): PagePromise<types.TemplateUse> {
    return this.#http.pages({ method: "GET", route: "/v1/templates/{id}/used-by", path: { id } }, options);
  }

  /**
   * Preview a draft of a template version.
   *
   * Requires the permission `TEMPLATES_READ`. Checks and renders the content as if it were a new version of the
   * template, with the layout and the partials as they are now. The content of a layout or partial is rendered as
   * that of a template. Nothing is stored or sent. If a source is wrong, `details.issues` names its line.
   *
   * @param id The id of the template.
   */
  previewDraft(id: string, request: types.PreviewTemplateDraftRequest, options?: RequestOptions): Promise<types.TemplatePreview> {
    return this.#http.json({ method: "POST", route: "/v1/templates/{id}/preview-draft", path: { id }, body: request, repeatable: true }, options);
  }

  /**
   * Send a template to try it out.
   *
   * Requires the permission `SEND`, and `TEMPLATES_READ`. Sends a real message, by the same rules as `POST /v1/send`.
   * Its subject begins with `[Test] `, its tag is `template-test`, and `{{unsubscribeUrl}}` is an example, unless
   * `variables` defines it.
   *
   * @param id The id of the template.
   */
  sendTest(id: string, request: types.SendTemplateTestRequest, options?: RequestOptions): Promise<types.SendMessageResponse> {
    return this.#http.json({ method: "POST", route: "/v1/templates/{id}/test-send", path: { id }, body: request, idempotent: true }, options);
  }
}

/** The versions. */
export class TemplatesVersions {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Add a version to a template.
   *
   * Requires the permission `TEMPLATES_WRITE`. The version gets the next number and becomes the current one of its
   * language. Its sources are checked now. A version of a layout or partial is put into the current versions that use
   * it, at once; if one of them cannot be composed with it, it is refused (422).
   *
   * @param templateId The id of the template.
   */
  create(templateId: string, request: types.CreateTemplateVersionRequest, options?: RequestOptions): Promise<types.TemplateVersion> {
    return this.#http.data({ method: "POST", route: "/v1/templates/{id}/versions", path: { id: templateId }, body: request, idempotent: true }, options);
  }

  /**
   * List a template's versions.
   *
   * Requires the permission `TEMPLATES_READ`. The newest version comes first. The content is not included.
   *
   * @param templateId The id of the template.
   */
  list(templateId: string, options?: RequestOptions): Promise<types.TemplateVersionList> {
    return this.#http.json({ method: "GET", route: "/v1/templates/{id}/versions", path: { id: templateId } }, options);
  }

  /**
   * Get a template version.
   *
   * Requires the permission `TEMPLATES_READ`.
   *
   * @param templateId The id of the template.
   * @param versionId The id of the template version.
   */
  get(templateId: string, versionId: string, options?: RequestOptions): Promise<types.TemplateVersion> {
    return this.#http.data({ method: "GET", route: "/v1/templates/{id}/versions/{versionId}", path: { id: templateId, versionId } }, options);
  }
}

/** Kinds of messages that recipients can unsubscribe from. */
export class UnsubscribeGroups {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List unsubscribe groups.
   *
   * Requires the permission `SETTINGS_WRITE`. The oldest group comes first.
   */
  list(options?: RequestOptions): PagePromise<types.UnsubscribeGroup> {
    return this.#http.pages({ method: "GET", route: "/v1/unsubscribe-groups" }, options);
  }

  /**
   * Create an unsubscribe group.
   *
   * Requires the permission `SETTINGS_WRITE`.
   */
  create(request: types.CreateUnsubscribeGroupRequest, options?: RequestOptions): Promise<types.UnsubscribeGroup> {
    return this.#http.data({ method: "POST", route: "/v1/unsubscribe-groups", body: request, idempotent: true }, options);
  }

  /**
   * Get an unsubscribe group.
   *
   * Requires the permission `SETTINGS_WRITE`.
   *
   * @param id The id of the unsubscribe group.
   */
  get(id: string, options?: RequestOptions): Promise<types.UnsubscribeGroup> {
    return this.#http.data({ method: "GET", route: "/v1/unsubscribe-groups/{id}", path: { id } }, options);
  }

  /**
   * Change an unsubscribe group.
   *
   * Requires the permission `SETTINGS_WRITE`.
   *
   * @param id The id of the unsubscribe group.
   */
  update(id: string, request: types.UpdateUnsubscribeGroupRequest, options?: RequestOptions): Promise<types.UnsubscribeGroup> {
    return this.#http.data({ method: "PATCH", route: "/v1/unsubscribe-groups/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove an unsubscribe group.
   *
   * Requires the permission `SETTINGS_WRITE`. The suppressions of the group are deleted too.
   *
   * @param id The id of the unsubscribe group.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/unsubscribe-groups/{id}", path: { id } }, options);
  }

  /**
   * Preview the page of an unsubscribe link.
   *
   * Requires the permission `SETTINGS_WRITE`. The page that a recipient sees after unsubscribing from the group, with
   * the organization's name and colour and a made-up sender and address. Nothing is changed.
   *
   * @param id The id of the unsubscribe group.
   */
  previewPage(id: string, params?: types.PreviewUnsubscribePageParams, options?: RequestOptions): Promise<types.PagePreview> {
    return this.#http.data({ method: "GET", route: "/v1/unsubscribe-groups/{id}/page-preview", path: { id }, query: params }, options);
  }
}

/** Addresses that receive no messages. */
export class Suppressions {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List suppressions.
   *
   * Requires the permission `SETTINGS_WRITE`. The newest suppression comes first.
   */
  list(params?: types.ListSuppressionsParams, options?: RequestOptions): PagePromise<types.Suppression> {
    return this.#http.pages({ method: "GET", route: "/v1/suppressions", query: params }, options);
  }

  /**
   * Suppress an address.
   *
   * Requires the permission `SETTINGS_WRITE`. From now on nothing is sent to the address, including messages that
   * were already accepted.
   */
  create(request: types.CreateSuppressionRequest, options?: RequestOptions): Promise<types.Suppression> {
    return this.#http.data({ method: "POST", route: "/v1/suppressions", body: request, idempotent: true }, options);
  }

  /**
   * Import suppressions.
   *
   * Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is JSON, or
   * a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns: `email`, or
   * `emailHash` as in an export; optionally `source` (one of the sources; the default is IMPORT) and `createdAt` (ISO
   * 8601 or Unix seconds). A `reason` that is the name of a source counts as the source. Other columns are ignored.
   * If a row is wrong, nothing is imported, and `details.issues` names its line.
   *
   * @param request The request, or a text of the type text/csv.
   */
  import(request: types.ImportSuppressionsRequest | string, params?: types.ImportSuppressionsParams, options?: RequestOptions): Promise<types.ImportResult> {
    return this.#http.data({ method: "POST", route: "/v1/suppressions/import", query: params, body: request, text: "text/csv", idempotent: true }, options);
  }

  /**
   * Remove the suppressions of many addresses.
   *
   * Requires the permission `SETTINGS_WRITE`. Messages can be sent to the addresses again, unless they are suppressed
   * in the group of a message. Without `unsubscribeGroupId` the suppressions for all messages are removed.
   */
  remove(request: types.RemoveSuppressionsRequest, options?: RequestOptions): Promise<types.RemovalResult> {
    return this.#http.data({ method: "POST", route: "/v1/suppressions/remove", body: request, idempotent: true }, options);
  }

  /**
   * Remove a suppression.
   *
   * Requires the permission `SETTINGS_WRITE`. Messages can be sent to the address again.
   *
   * @param id The id of the suppression.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/suppressions/{id}", path: { id } }, options);
  }

  /**
   * Export suppressions.
   *
   * Requires the permission `SETTINGS_WRITE`. Addresses are stored as hashes, so the export holds `emailHash` and no
   * address. A CSV file with the columns `emailHash`, `source` and `createdAt` can be imported again. Suppressions
   * that are added while the export runs are not in it.
   */
  export(params?: types.ExportSuppressionsParams, options?: RequestOptions): Promise<Response> {
    return this.#http.raw({ method: "GET", route: "/v1/suppressions/export", query: params }, options);
  }
}

/** Erase what is stored of a person. */
export class Erasures {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Erase a person.
   *
   * Requires the permission `SETTINGS_WRITE`. Erases the address and the details of events of all messages to the
   * person, for good. A message to this person alone, and a message whose recipients see each other, also loses its
   * subject, bodies, headers, metadata and references to attachments; any other message loses them with its last
   * recipient. Messages that are still being sent are left as they are and counted in `pending`. Suppressions of the
   * address stay: only its hash is stored. The audit log records the hash, too. The request can be repeated.
   */
  erasePerson(request: types.ErasePersonRequest, options?: RequestOptions): Promise<types.ErasureResult> {
    return this.#http.data({ method: "POST", route: "/v1/erasures", body: request, repeatable: true }, options);
  }
}

/** URLs that receive events, their deliveries and secrets. */
export class WebhookEndpoints {
  readonly #http: Http;
  /** The deliveries. */
  readonly deliveries: WebhookEndpointsDeliveries;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
    this.deliveries = new WebhookEndpointsDeliveries(http);
  }

  /**
   * List webhook endpoints.
   *
   * Requires the permission `SETTINGS_WRITE`. The oldest endpoint comes first.
   */
  list(options?: RequestOptions): PagePromise<types.WebhookEndpoint> {
    return this.#http.pages({ method: "GET", route: "/v1/webhook-endpoints" }, options);
  }

  /**
   * Create a webhook endpoint.
   *
   * Requires the permission `SETTINGS_WRITE`. The URL is checked first: with a HEAD request, and with an empty POST
   * if the connection is closed on HEAD. Its host must have a public address. Only this response contains the signing
   * secret.
   */
  create(request: types.CreateWebhookEndpointRequest, options?: RequestOptions): Promise<types.WebhookEndpointWithSecret> {
    return this.#http.data({ method: "POST", route: "/v1/webhook-endpoints", body: request, idempotent: true }, options);
  }

  /**
   * Get a webhook endpoint.
   *
   * Requires the permission `SETTINGS_WRITE`.
   *
   * @param id The id of the webhook endpoint.
   */
  get(id: string, options?: RequestOptions): Promise<types.WebhookEndpoint> {
    return this.#http.data({ method: "GET", route: "/v1/webhook-endpoints/{id}", path: { id } }, options);
  }

  /**
   * Change a webhook endpoint.
   *
   * Requires the permission `SETTINGS_WRITE`. A new URL is checked first, as at creation. Deliveries that wait for an
   * inactive endpoint are made when it becomes active again.
   *
   * @param id The id of the webhook endpoint.
   */
  update(id: string, request: types.UpdateWebhookEndpointRequest, options?: RequestOptions): Promise<types.WebhookEndpoint> {
    return this.#http.data({ method: "PATCH", route: "/v1/webhook-endpoints/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove a webhook endpoint.
   *
   * Requires the permission `SETTINGS_WRITE`. Waiting deliveries of the endpoint are dropped.
   *
   * @param id The id of the webhook endpoint.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/webhook-endpoints/{id}", path: { id } }, options);
  }

  /**
   * Test a webhook endpoint.
   *
   * Requires the permission `SETTINGS_WRITE`. Posts an example event, of the first type that the endpoint receives,
   * signed like a real one and with `data.metadata.test` set to true. An inactive endpoint can be tested too. A
   * failed test is not retried.
   *
   * @param id The id of the webhook endpoint.
   */
  test(id: string, options?: RequestOptions): Promise<types.WebhookTestResult> {
    return this.#http.json({ method: "POST", route: "/v1/webhook-endpoints/{id}/test", path: { id } }, options);
  }

  /**
   * Rotate a webhook endpoint's secret.
   *
   * Requires the permission `SETTINGS_WRITE`. Only this response contains the new secret. Until the grace period
   * ends, both secrets sign. `webhook-signature` contains both signatures. `X-Waypost-Signature` is made with the new
   * secret in the first attempt of a delivery, with the old secret in the second, and so on in turn;
   * `X-Waypost-Signature-Other` is made with the other secret.
   *
   * @param id The id of the webhook endpoint.
   */
  rotateSecret(id: string, request?: types.RotateWebhookSecretRequest, options?: RequestOptions): Promise<types.WebhookEndpointWithSecret> {
    return this.#http.data({ method: "POST", route: "/v1/webhook-endpoints/{id}/rotate-secret", path: { id }, body: request, idempotent: true }, options);
  }

  /**
   * Replay the deliveries of a period.
   *
   * Requires the permission `SETTINGS_WRITE`. All deliveries created in the period are due again at once. With
   * `"status": "FAILED"`, successful deliveries are not repeated.
   *
   * @param id The id of the webhook endpoint.
   */
  replay(id: string, request: types.ReplayWebhooksRequest, options?: RequestOptions): Promise<types.ReplayResult> {
    return this.#http.data({ method: "POST", route: "/v1/webhook-endpoints/{id}/replay", path: { id }, body: request }, options);
  }
}

/** The deliveries. */
export class WebhookEndpointsDeliveries {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List a webhook endpoint's deliveries.
   *
   * Requires the permission `SETTINGS_WRITE`. The newest delivery comes first, each with its attempts.
   *
   * @param webhookEndpointId The id of the webhook endpoint.
   */
  list(webhookEndpointId: string, params?: types.ListWebhookDeliveriesParams, options?: RequestOptions): PagePromise<types.WebhookDelivery> {
    return this.#http.pages({ method: "GET", route: "/v1/webhook-endpoints/{id}/deliveries", path: { id: webhookEndpointId }, query: params }, options);
  }

  /**
   * Get a webhook delivery.
   *
   * Requires the permission `SETTINGS_WRITE`. The delivery has its attempts and the body that is posted.
   *
   * @param webhookEndpointId The id of the webhook endpoint.
   * @param deliveryId The id of the webhook delivery.
   */
  get(webhookEndpointId: string, deliveryId: string, options?: RequestOptions): Promise<types.WebhookDeliveryDetail> {
    return this.#http.data({ method: "GET", route: "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}", path: { id: webhookEndpointId, deliveryId } }, options);
  }

  /**
   * Replay a webhook delivery.
   *
   * Requires the permission `SETTINGS_WRITE`. The delivery is due again at once, with all attempts, even if it
   * succeeded before. The endpoint gets the same `webhook-id`.
   *
   * @param webhookEndpointId The id of the webhook endpoint.
   * @param deliveryId The id of the webhook delivery.
   */
  replay(webhookEndpointId: string, deliveryId: string, options?: RequestOptions): Promise<types.WebhookDelivery> {
    return this.#http.data({ method: "POST", route: "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay", path: { id: webhookEndpointId, deliveryId } }, options);
  }
}

/** Sign in and out, and switch the organization. */
export class Session {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List the ways to sign in.
   *
   * Requires no API key and no session.
   */
  listSignInMethods(options?: RequestOptions): Promise<types.SignInMethods> {
    return this.#http.data({ method: "GET", route: "/v1/session/methods" }, options);
  }

  /**
   * Sign in.
   *
   * Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Sets the cookie of a new session, in the
   * organization that the user was last in. Ten wrong passwords or codes within 15 minutes lock the account for the
   * rest of that time.
   */
  create(request: types.CreateSessionRequest, options?: RequestOptions): Promise<types.Session> {
    return this.#http.data({ method: "POST", route: "/v1/session", body: request }, options);
  }

  /**
   * Get the session.
   *
   * Requires a session.
   */
  get(options?: RequestOptions): Promise<types.Session> {
    return this.#http.data({ method: "GET", route: "/v1/session" }, options);
  }

  /**
   * Switch the organization.
   *
   * Requires a session. Sets the cookie of a new session in the other organization; the old one ends.
   */
  update(request: types.UpdateSessionRequest, options?: RequestOptions): Promise<types.Session> {
    return this.#http.data({ method: "PATCH", route: "/v1/session", body: request }, options);
  }

  /**
   * Sign out.
   *
   * Requires a session. Ends the session, and removes its cookie.
   */
  delete(params?: types.DeleteSessionParams, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/session", query: params }, options);
  }
}

/** The signed-in user: name, password and second factor. */
export class User {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Change the user.
   *
   * Requires a session. A new password ends the user's other sessions.
   */
  update(request: types.UpdateUserRequest, options?: RequestOptions): Promise<types.User> {
    return this.#http.data({ method: "PATCH", route: "/v1/user", body: request }, options);
  }

  /**
   * Begin a second factor.
   *
   * Requires a session. Makes the secret of an authenticator (TOTP). It has no effect until it is confirmed; a secret
   * that was not confirmed is replaced.
   */
  startTotp(request: types.StartTotpRequest, options?: RequestOptions): Promise<types.TotpEnrolment> {
    return this.#http.data({ method: "POST", route: "/v1/user/totp", body: request }, options);
  }

  /**
   * Confirm a second factor.
   *
   * Requires a session. From now on a sign-in with the password requires a code. Only this response contains the
   * recovery codes.
   */
  confirmTotp(request: types.ConfirmTotpRequest, options?: RequestOptions): Promise<types.RecoveryCodes> {
    return this.#http.data({ method: "POST", route: "/v1/user/totp/confirm", body: request }, options);
  }

  /**
   * Remove the second factor.
   *
   * Requires a session.
   */
  disableTotp(request: types.DisableTotpRequest, options?: RequestOptions): Promise<types.User> {
    return this.#http.data({ method: "POST", route: "/v1/user/totp/disable", body: request }, options);
  }
}

/** The users of the organization and their roles. */
export class Members {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List members.
   *
   * Requires the permission `MEMBERS_WRITE`. The newest member comes first.
   */
  list(params?: types.ListMembersParams, options?: RequestOptions): PagePromise<types.Member> {
    return this.#http.pages({ method: "GET", route: "/v1/members", query: params }, options);
  }

  /**
   * Add a member.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the role. Makes somebody a member who is a user
   * of this installation already; others are invited.
   */
  create(request: types.CreateMemberRequest, options?: RequestOptions): Promise<types.Member> {
    return this.#http.data({ method: "POST", route: "/v1/members", body: request, idempotent: true }, options);
  }

  /**
   * Get a member.
   *
   * Requires the permission `MEMBERS_WRITE`.
   *
   * @param id The id of the member.
   */
  get(id: string, options?: RequestOptions): Promise<types.Member> {
    return this.#http.data({ method: "GET", route: "/v1/members/{id}", path: { id } }, options);
  }

  /**
   * Change the role of a member.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The last owner stays
   * one. The change takes effect within five seconds.
   *
   * @param id The id of the member.
   */
  update(id: string, request: types.UpdateMemberRequest, options?: RequestOptions): Promise<types.Member> {
    return this.#http.data({ method: "PATCH", route: "/v1/members/{id}", path: { id }, body: request }, options);
  }

  /**
   * Remove a member.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the member's role. The last owner cannot be
   * removed. The sessions of the user in the organization end.
   *
   * @param id The id of the member.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/members/{id}", path: { id } }, options);
  }
}

/** Links by which people become members of the organization. */
export class Invitations {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List invitations.
   *
   * Requires the permission `MEMBERS_WRITE`. The newest invitation comes first. Those that are accepted or expired
   * are not listed.
   */
  list(params?: types.ListInvitationsParams, options?: RequestOptions): PagePromise<types.Invitation> {
    return this.#http.pages({ method: "GET", route: "/v1/invitations", query: params }, options);
  }

  /**
   * Invite somebody.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the role. The link is sent to the address if the
   * operator has set a sender for invitations and the organization can send from it.
   */
  create(request: types.CreateInvitationRequest, options?: RequestOptions): Promise<types.InvitationWithUrl> {
    return this.#http.data({ method: "POST", route: "/v1/invitations", body: request, idempotent: true }, options);
  }

  /**
   * Get an invitation.
   *
   * Requires the permission `MEMBERS_WRITE`.
   *
   * @param id The id of the invitation.
   */
  get(id: string, options?: RequestOptions): Promise<types.Invitation> {
    return this.#http.data({ method: "GET", route: "/v1/invitations/{id}", path: { id } }, options);
  }

  /**
   * Change the role of an invitation.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The link stays the
   * same.
   *
   * @param id The id of the invitation.
   */
  update(id: string, request: types.UpdateInvitationRequest, options?: RequestOptions): Promise<types.Invitation> {
    return this.#http.data({ method: "PATCH", route: "/v1/invitations/{id}", path: { id }, body: request }, options);
  }

  /**
   * Withdraw an invitation.
   *
   * Requires the permission `MEMBERS_WRITE` and every permission of the role. The link stops working.
   *
   * @param id The id of the invitation.
   */
  delete(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/invitations/{id}", path: { id } }, options);
  }

  /**
   * Look up an invitation.
   *
   * Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown, used
   * or expired.
   */
  lookUp(request: types.LookUpInvitationRequest, options?: RequestOptions): Promise<types.InvitationDetail> {
    return this.#http.data({ method: "POST", route: "/v1/invitations/look-up", body: request, repeatable: true }, options);
  }

  /**
   * Accept an invitation.
   *
   * Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Makes the person a member, as a new user
   * if there is none with the address, and sets the cookie of a new session.
   */
  accept(request: types.AcceptInvitationRequest, options?: RequestOptions): Promise<types.Session> {
    return this.#http.data({ method: "POST", route: "/v1/invitations/accept", body: request }, options);
  }
}

/** Links by which users set a new password. */
export class PasswordResets {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Look up a link that sets a password.
   *
   * Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown, used
   * or expired.
   */
  lookUp(request: types.LookUpPasswordResetRequest, options?: RequestOptions): Promise<types.PasswordResetDetail> {
    return this.#http.data({ method: "POST", route: "/v1/password-resets/look-up", body: request, repeatable: true }, options);
  }

  /**
   * Set a password by a link.
   *
   * Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Ends all sessions of the user, who then
   * signs in with the new password. The second factor stays.
   */
  accept(request: types.AcceptPasswordResetRequest, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "POST", route: "/v1/password-resets/accept", body: request }, options);
  }
}

/** What belongs to the installation: tasks, workers, queues and dead jobs. */
export class Operator {
  readonly #http: Http;

  /** @internal */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * List the scheduler's tasks.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. Each task is listed with its last run.
   */
  listTasks(options?: RequestOptions): PagePromise<types.SchedulerTask> {
    return this.#http.pages({ method: "GET", route: "/v1/operator/tasks" }, options);
  }

  /**
   * List the workers.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. Each worker is listed with its lease
   * and the number of its chunks.
   */
  listWorkers(options?: RequestOptions): PagePromise<types.Worker> {
    return this.#http.pages({ method: "GET", route: "/v1/operator/workers" }, options);
  }

  /**
   * List the queues.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. Returns 503 if Redis is away.
   */
  listQueues(options?: RequestOptions): PagePromise<types.JobQueue> {
    return this.#http.pages({ method: "GET", route: "/v1/operator/queues" }, options);
  }

  /**
   * List the dead jobs.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. Lists up to 1,000 chunks of messages
   * that no worker takes any more.
   */
  listDeadJobs(options?: RequestOptions): PagePromise<types.DeadJob> {
    return this.#http.pages({ method: "GET", route: "/v1/operator/dead-jobs" }, options);
  }

  /**
   * Retry the dead jobs of a message.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. The jobs are due again, and lost
   * workers are counted from 0.
   *
   * @param id The id of the message.
   */
  retryDeadJobs(id: string, options?: RequestOptions): Promise<types.RetriedDeadJobs> {
    return this.#http.data({ method: "POST", route: "/v1/operator/dead-jobs/{id}/retry", path: { id } }, options);
  }

  /**
   * Drop the dead jobs of a message.
   *
   * Requires the permission `OPERATOR`, which only sessions of operators have. Recipients that the message was not
   * sent to become FAILED.
   *
   * @param id The id of the message.
   */
  deleteDeadJobs(id: string, options?: RequestOptions): Promise<types.Success> {
    return this.#http.json({ method: "DELETE", route: "/v1/operator/dead-jobs/{id}", path: { id } }, options);
  }
}
