/**
 * Entries of the audit log as sentences: who did what to what. The log names the record by its id; what it is called now is
 * looked up, and a record that is gone is named by its kind.
 */

import type { AuditLogEntry } from "waypost";
import { count, plural, words } from "@/format";

type Metadata = AuditLogEntry["metadata"];

/** The kinds of records in the log: the name in a filter, and in a sentence. */
export const KINDS: Record<string, readonly [label: string, noun: string]> = {
  api_key: ["API keys", "API key"],
  domain: ["Domains", "domain"],
  erasure: ["Erasures", "erasure"],
  invitation: ["Invitations", "invitation"],
  member: ["People", "member"],
  message: ["Messages", "message"],
  provider: ["Provider accounts", "provider account"],
  routing_rule: ["Routing rules", "routing rule"],
  sender_domain: ["Sender domains", "sender domain"],
  session: ["Sign-ins", "session"],
  settings: ["Settings", "settings"],
  suppression: ["Suppressions", "suppression"],
  template: ["Templates", "template"],
  unsubscribe_group: ["Unsubscribe groups", "unsubscribe group"],
  user: ["Accounts of people", "account"],
  webhook_delivery: ["Webhook deliveries", "webhook delivery"],
  webhook_endpoint: ["Webhook endpoints", "webhook endpoint"],
};

const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** `fallbackAccountIds` is "fallback account ids". */
const field = (name: string): string => name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

const fields = (metadata: Metadata): string => {
  const names = list(metadata.fields).map(field);
  return names.length > 0 ? ` (${names.join(", ")})` : "";
};

const grace = (metadata: Metadata): string => {
  const seconds = number(metadata.gracePeriodSeconds);
  if (seconds === 0) return "; the old one ended at once";
  const hours = seconds / 3_600;
  return `; the old one was valid for ${hours >= 1 ? plural(Math.round(hours), "more hour") : plural(Math.round(seconds / 60), "more minute")}`;
};

const inGroup = (metadata: Metadata): string => (metadata.unsubscribeGroupId ? " in an unsubscribe group" : "");
const role = (metadata: Metadata): string => words(text(metadata.role)).toLowerCase();
const asRole = (metadata: Metadata): string => (metadata.role ? ` as ${role(metadata)}` : "");

const cap = (metadata: Metadata): string => `; its cap is ${plural(number(metadata.capAfter), "recipient")} a day`;

const isVerified = (metadata: Metadata): boolean => text(metadata.state).toLowerCase() === "verified";

const CAUSES: Record<string, string> = {
  BOUNCE: " after a bounce",
  COMPLAINT: " after a complaint",
  UNSUBSCRIBE: " after an unsubscribe",
};

/** A part of a sentence: words, or the record itself, which may be a link. */
export type Part = string | { target: true };
const it: Part = { target: true };

type Sentence = (metadata: Metadata) => readonly Part[];

/** What was done, after the name of whoever did it. */
const SENTENCES: Record<string, Sentence> = {
  "api_key.created": (m) => ["created the ", m.isTest === true ? "test " : "", it],
  "api_key.updated": (m) => ["changed the ", it, fields(m)],
  "api_key.rotated": (m) => ["gave the ", it, " a new secret", grace(m)],
  "api_key.revoked": () => ["revoked the ", it],
  "domain.created": (m) => ["added the domain ", text(m.domain)],
  "domain.verified": (m) => (isVerified(m) ? ["found the domain ", text(m.domain), " verified"] : ["checked the domain ", text(m.domain), ": it is not verified"]),
  "domain.unverified": (m) => ["found the domain ", text(m.domain), " no longer verified"],
  "sender_domain.checked": (m) => ["looked up the domain ", text(m.domain), " in DNS"],
  "domain.deleted": (m) => ["removed the domain ", text(m.domain), m.removedAtProvider === true ? ", also at the provider" : ""],
  "erasure.started": () => ["started to erase a person"],
  "erasure.finished": (m) => [
    m.complete === false ? "erased a part of what is stored of a person: " : "erased a person: ",
    `${plural(number(m.messages), "message")}, ${plural(number(m.events), "event")}, ${plural(number(m.attachments), "attachment")}`,
  ],
  "invitation.created": (m) => ["invited a person", asRole(m)],
  "invitation.updated": (m) => ["changed the role of an invitation", m.role ? ` to ${role(m)}` : ""],
  "invitation.accepted": (m) => ["accepted the invitation", asRole(m)],
  "invitation.deleted": () => ["withdrew an invitation"],
  "member.created": (m) => ["added ", it, asRole(m)],
  "member.updated": (m) => ["changed the role of ", it, m.role ? ` to ${role(m)}` : ""],
  "member.deleted": () => ["removed ", it, " from the organization"],
  "message.cancelled": (m) => ["cancelled a ", it, ` for ${plural(number(m.recipients), "recipient")}`],
  "message.content_read": () => ["read the content of a ", it],
  "message.dropped": (m) => ["dropped a dead job of a ", it, `: ${plural(number(m.recipients), "recipient")} failed`],
  "message.held": () => ["held a ", it, " after a restore"],
  "message.requeued": () => ["retried a dead job of a ", it],
  "message.rescheduled": () => ["moved a scheduled ", it],
  "message.retried": (m) => ["retried a ", it, ` for ${plural(number(m.recipients), "recipient")}`],
  "organization.created": () => ["created the organization"],
  "organization.revoked": () => ["took all access from the organization"],
  "provider.created": () => ["connected the ", it],
  "provider.deleted": (m) => [
    "removed the ",
    it,
    number(m.routingRulesSwitchedOff) > 0 ? `; ${plural(number(m.routingRulesSwitchedOff), "routing rule was", "routing rules were")} switched off` : "",
  ],
  "provider.event_webhook_registered": () => ["registered the event webhook of the ", it],
  "provider.failing": (m) => ["paused the ", it, m.reason ? `: ${words(text(m.reason)).toLowerCase()}` : ""],
  "provider.recovered": () => ["resumed the ", it],
  "provider.updated": (m) => ["changed the ", it, fields(m)],
  "provider.validated": (m) => ["checked the credentials of the ", it, m.valid === false ? ": they are not valid" : ": they are valid"],
  "routing_rule.created": () => ["created the ", it],
  "routing_rule.deleted": () => ["deleted the ", it],
  "routing_rule.ramp_begun": (m) => ["began a ramp of the ", it, cap(m)],
  "routing_rule.ramp_finished": (m) => ["finished a ramp of the ", it, cap(m)],
  "routing_rule.ramp_halved": (m) => ["halved the daily cap of a ramp of the ", it, cap(m)],
  "routing_rule.ramp_held": (m) => ["held a ramp of the ", it, cap(m)],
  "routing_rule.ramp_resumed": (m) => ["resumed a ramp of the ", it, cap(m)],
  "routing_rule.ramp_stepped": (m) => ["raised the daily cap of a ramp of the ", it, cap(m)],
  "routing_rule.updated": (m) => ["changed the ", it, fields(m)],
  "session.created": () => ["signed in"],
  "session.deleted": (m) => [m.everywhere === true ? "signed out everywhere" : "signed out"],
  "settings.updated": (m) => ["changed the settings", fields(m)],
  "suppression.created": (m) => ["suppressed an address", inGroup(m), CAUSES[text(m.source)] ?? ""],
  "suppression.deleted": (m) => ["removed a suppression", inGroup(m)],
  "suppression.imported": (m) => [`imported ${plural(number(m.imported), "suppression")}`, number(m.skipped) > 0 ? ` (${count(number(m.skipped))} known before)` : ""],
  "suppression.removed": (m) => [`removed ${plural(number(m.removed), "suppression")}`, inGroup(m)],
  "template.created": () => ["created the ", it],
  "template.deleted": () => ["deleted the ", it],
  "template.rolled_back": (m) => ["rolled the ", it, ` back to version ${number(m.versionNumber)}`],
  "template.test_sent": () => ["sent a test of the ", it],
  "template.updated": (m) => ["changed the ", it, fields(m)],
  "template.version_created": (m) => [`added version ${number(m.versionNumber)} of the `, it],
  "unsubscribe_group.created": () => ["created the ", it],
  "unsubscribe_group.deleted": (m) => ["deleted the ", it, number(m.suppressionsDeleted) > 0 ? ` with ${plural(number(m.suppressionsDeleted), "suppression")}` : ""],
  "unsubscribe_group.updated": (m) => ["changed the ", it, fields(m)],
  "user.operator_granted": () => ["made a user an operator"],
  "user.reset_created": () => ["made a link for a new password"],
  "user.totp_disabled": () => ["turned the second factor off"],
  "user.totp_enabled": () => ["turned the second factor on"],
  "user.updated": (m) => ["changed their account", fields(m)],
  "webhook_delivery.replayed": () => ["repeated a webhook delivery"],
  "webhook_endpoint.created": () => ["created the ", it],
  "webhook_endpoint.deactivated": () => ["switched off the ", it, ", because it failed for too long"],
  "webhook_endpoint.deleted": () => ["deleted the ", it],
  "webhook_endpoint.replayed": () => ["repeated the deliveries of the ", it],
  "webhook_endpoint.secret_rotated": (m) => ["gave the ", it, " a new secret", grace(m)],
  "webhook_endpoint.updated": (m) => ["changed the ", it, fields(m)],
};

/** All actions that have a sentence, for the filter. */
export const ACTIONS: readonly string[] = Object.keys(SENTENCES).sort();

/** `api_key.revoked` is "Revoked": the kind stands in the filter before it. */
export const actionLabel = (action: string): string => words(action.slice(action.indexOf(".") + 1));

export const noun = (type: string): string => KINDS[type]?.[1] ?? words(type).toLowerCase();

/** Who did it. */
export function actorName({ type, name }: AuditLogEntry["actor"]): string {
  if (type === "recipient") return "A recipient";
  if (type === "system") return "Waypost";
  return name ?? (type === "api_key" ? "An API key" : "A person");
}

/** What was done. An action that this dashboard does not know yet is shown by its name. */
export const sentence = (entry: AuditLogEntry): readonly Part[] =>
  SENTENCES[entry.action]?.(entry.metadata) ?? [`${words(entry.action.slice(entry.action.indexOf(".") + 1)).toLowerCase()}: `, it];
