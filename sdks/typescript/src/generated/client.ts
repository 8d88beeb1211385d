// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

import { Http, type WaypostOptions } from "../runtime/http.js";
import { webhooks } from "../runtime/webhooks.js";
import * as resources from "./resources.js";
import { VERSION } from "./version.js";

/**
 * A client of one Waypost, with one API key.
 *
 * ```ts
 * const waypost = new Waypost(); // WAYPOST_API_KEY and WAYPOST_URL
 * await waypost.messages.send({ from: "shop@example.com", to: "ada@example.org", subject: "Hello", text: "Hello, Ada" });
 * ```
 */
export class Waypost {
  /** Accepted messages, their recipients and their history. */
  readonly messages: resources.Messages;
  /** Counts and rates of sent, delivered, opened, clicked, bounced and reported messages. */
  readonly metrics: resources.Metrics;
  /** Connected accounts at email providers, their domains and event webhooks. */
  readonly providers: resources.Providers;
  /** The sender domains. */
  readonly senderDomains: resources.SenderDomains;
  /** Rules that select the provider account of a message. */
  readonly routingRules: resources.RoutingRules;
  /** API keys, their permissions and their rotation. */
  readonly apiKeys: resources.ApiKeys;
  /** The settings of the organization. */
  readonly settings: resources.Settings;
  /** The audit logs. */
  readonly auditLogs: resources.AuditLogs;
  /** Reusable message bodies with variables, and their versions. */
  readonly templates: resources.Templates;
  /** Kinds of messages that recipients can unsubscribe from. */
  readonly unsubscribeGroups: resources.UnsubscribeGroups;
  /** Addresses that receive no messages. */
  readonly suppressions: resources.Suppressions;
  /** Erase what is stored of a person. */
  readonly erasures: resources.Erasures;
  /** URLs that receive events, their deliveries and secrets. */
  readonly webhookEndpoints: resources.WebhookEndpoints;
  /** Sign in and out, and switch the organization. */
  readonly session: resources.Session;
  /** The signed-in user: name, password and second factor. */
  readonly user: resources.User;
  /** The users of the organization and their roles. */
  readonly members: resources.Members;
  /** Links by which people become members of the organization. */
  readonly invitations: resources.Invitations;
  /** Links by which users set a new password. */
  readonly passwordResets: resources.PasswordResets;
  /** What belongs to the installation: tasks, workers, queues and dead jobs. */
  readonly operator: resources.Operator;
  /** Verifies what Waypost posts to your webhook endpoints. It needs no API key: you can also import it by itself. */
  readonly webhooks = webhooks;

  /**
   * @param apiKey The API key. The default is the environment variable `WAYPOST_API_KEY`. It may be left out before options.
   * @param options Where Waypost is, and how to call it. The default of `baseUrl` is the environment variable `WAYPOST_URL`.
   */
  constructor(apiKey?: string | WaypostOptions, options: WaypostOptions = {}) {
    const http = typeof apiKey === "object" ? new Http(undefined, apiKey, VERSION) : new Http(apiKey, options, VERSION);
    this.messages = new resources.Messages(http);
    this.metrics = new resources.Metrics(http);
    this.providers = new resources.Providers(http);
    this.senderDomains = new resources.SenderDomains(http);
    this.routingRules = new resources.RoutingRules(http);
    this.apiKeys = new resources.ApiKeys(http);
    this.settings = new resources.Settings(http);
    this.auditLogs = new resources.AuditLogs(http);
    this.templates = new resources.Templates(http);
    this.unsubscribeGroups = new resources.UnsubscribeGroups(http);
    this.suppressions = new resources.Suppressions(http);
    this.erasures = new resources.Erasures(http);
    this.webhookEndpoints = new resources.WebhookEndpoints(http);
    this.session = new resources.Session(http);
    this.user = new resources.User(http);
    this.members = new resources.Members(http);
    this.invitations = new resources.Invitations(http);
    this.passwordResets = new resources.PasswordResets(http);
    this.operator = new resources.Operator(http);
  }
}
