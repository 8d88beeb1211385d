/** Rules in words. */

import type { PassedOverRule, RoutingRule, RoutingTarget } from "waypost";
import { bytes, count } from "@/format";
import { senderIds } from "./senders";

const list = new Intl.ListFormat("en", { type: "disjunction" });
const allOf = new Intl.ListFormat("en", { type: "conjunction" });

export function senderText(domain: string): string {
  return domain.startsWith("*.") ? `any subdomain of ${domain.slice(2)}` : domain;
}

export type Conditions = Pick<
  RoutingRule,
  "senderDomain" | "tags" | "tagMatch" | "recipientDomains" | "recipientMailboxProviders" | "messageClass" | "minSizeBytes" | "maxSizeBytes" | "test"
>;

/** Which mail a rule is for: "Live bulk mail from example.com, with the tag receipts or invoices, of at most 5 MB". */
export function conditionText(rule: Conditions): string {
  const parts = [
    rule.senderDomain && `from ${senderText(rule.senderDomain)}`,
    rule.recipientDomains.length > 0 && `to recipients at ${domainsText(rule.recipientDomains)} only`,
    !!rule.recipientMailboxProviders?.length && `to mailboxes at ${list.format(rule.recipientMailboxProviders.map(mailboxProviderName))} only`,
    rule.tags.length > 0 && `with the ${rule.tags.length === 1 ? "tag" : "tags"} ${(rule.tagMatch === "all" ? allOf : list).format(rule.tags)}`,
    sizeText(rule),
  ].filter((part) => part !== false && part !== null && part !== "");
  const mail = mailText(rule);
  if (parts.length === 0) return mail === "Mail" ? "All mail" : mail;
  return `${mail} ${parts.join(", ")}`;
}

function mailText({ messageClass, test }: Conditions): string {
  const text = [test === false && "live", messageClass, test === true ? "tests" : "mail"].filter(Boolean).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The mailbox providers that rules tell apart. */
export const MAILBOX_PROVIDERS: readonly (readonly [value: string, name: string, hint: string])[] = [
  ["google", "Google", "Gmail, Google Workspace"],
  ["microsoft", "Microsoft", "Outlook.com, Microsoft 365"],
  ["yahoo", "Yahoo", "Yahoo Mail, AOL"],
  ["other", "others", "All other mail servers"],
];

const mailboxProviderName = (value: string): string => MAILBOX_PROVIDERS.find(([one]) => one === value)?.[1] ?? value;

/** So many domains are named; there may be 50. */
const NAMED = 4;

function domainsText(domains: readonly string[]): string {
  const named = domains.slice(0, NAMED).map(senderText);
  const rest = domains.length - named.length;
  return list.format(rest > 0 ? [...named, `${rest} more`] : named);
}

function sizeText({ minSizeBytes: min, maxSizeBytes: max }: Pick<Conditions, "minSizeBytes" | "maxSizeBytes">): string {
  if (min !== null) return max !== null ? `of ${bytes(min)} to ${bytes(max)}` : `of ${bytes(min)} or more`;
  return max !== null ? `of at most ${bytes(max)}` : "";
}

/** What a person chooses for the case that a provider's answer is lost. */
export const ON_UNKNOWN: readonly (readonly [value: "wait" | "resend" | "fail", title: string, text: string])[] = [
  [
    "wait",
    "Wait for evidence, then send once more",
    "Waypost waits for an event, and asks the provider whether it has the mail. If nothing shows it was sent, it is sent once more. The usual choice.",
  ],
  ["resend", "Send again at once", "For mail that must not wait, such as sign-in codes. The recipient may get it twice."],
  ["fail", "Give up", "For mail that must never arrive twice. The mail counts as failed, though it may have been sent."],
];

/** How the mail is spread over several accounts. */
export const STICKY: readonly (readonly [value: "none" | "recipientDomain" | "sender", title: string, hint: string])[] = [
  ["none", "Each message by itself", "The shares of the mail are those of the weights."],
  [
    "recipientDomain",
    "All mail to a domain by one account",
    "The domain of the first recipient counts. The shares are those of the domains, not of the messages.",
  ],
  ["sender", "All mail of a sender by one account", "The sender's whole address counts. The shares are those of the senders, not of the messages."],
];

/** What becomes of mail whose account has reached its cap. */
export const OVER_CAP: readonly (readonly [value: "next" | "wait", title: string, hint: string])[] = [
  ["next", "The next account sends it", "The other accounts in their order, then the fallbacks. If all have reached their caps, the mail waits."],
  [
    "wait",
    "It waits until the hour or the day is over",
    "Waypost gives up a message after 24 hours, or what WAYPOST_RETRY_HORIZON says: mail that shall wait for a full day needs a longer time.",
  ],
];

/** What the weights are changed by. */
export const PREFER: readonly (readonly [value: "weight" | "health", title: string, hint: string])[] = [
  ["weight", "The weights", "An account that cannot send gets nothing; else its weight counts."],
  [
    "health",
    "The weights, less for accounts that fail",
    "An account whose mail to the recipient's domain fails or bounces gets a small part until it works again, then more step by step.",
  ],
];

/** Where the accounts of a rule must be. */
export const REGIONS: readonly (readonly [value: string, title: string])[] = [
  ["", "Anywhere"],
  ["eu", "Only in the EU"],
  ["us", "Only in the US"],
];

/** "50,000 a day, 5,000 an hour"; empty without a cap. */
export const capsText = ({ dailyCap, hourlyCap }: Pick<RoutingTarget, "dailyCap" | "hourlyCap">): string =>
  [dailyCap !== null && `${count(dailyCap)} a day`, hourlyCap !== null && `${count(hourlyCap)} an hour`].filter(Boolean).join(", ");

/** The mail that a rule was held against. */
export interface Mail {
  domain: string;
  tags: readonly string[];
  /** The domains of the recipients; none if they were not given. */
  recipientDomains: readonly string[] | undefined;
  messageClass: string;
  sizeBytes: number;
  test: boolean;
}

/** Why a rule was passed over. */
export function passedOverText({ rule, reason }: PassedOverRule, mail: Mail, nameOf: (id: string) => string): string {
  switch (reason) {
    case "RULE_INACTIVE":
      return "The rule is switched off.";
    case "SENDER_DOMAIN":
      return `It is for mail from ${senderText(rule.senderDomain ?? "")}; this mail is from ${mail.domain}.`;
    case "TAGS":
      return tagText(rule, mail.tags);
    case "RECIPIENT_DOMAIN":
      return recipientText(rule, mail.recipientDomains);
    case "RECIPIENT_MAILBOX_PROVIDER":
      return mail.recipientDomains
        ? `It is for mailboxes at ${list.format((rule.recipientMailboxProviders ?? []).map(mailboxProviderName))} only. A recipient of this mail is elsewhere, or it could not be looked up where.`
        : `It is for mailboxes at ${list.format((rule.recipientMailboxProviders ?? []).map(mailboxProviderName))} only; enter recipients to see whether it matches.`;
    case "MESSAGE_CLASS":
      return `It is for ${rule.messageClass} mail; this mail is ${mail.messageClass}.`;
    case "SIZE":
      return `It is for mail ${sizeText(rule)}; this mail has ${bytes(mail.sizeBytes)}.`;
    case "TEST":
      return rule.test ? "It is for tests only; this mail is live." : "It is for live mail only; this mail is a test.";
    case "PROVIDER_INACTIVE":
      return rule.targets.length > 0
        ? "It matches, but all its accounts are paused."
        : `It matches, but its account ${nameOf(rule.providerAccountId)} is paused.`;
    case "REGION":
      return "It matches, but none of its accounts is in its region.";
    default:
      return reason;
  }
}

function tagText(rule: RoutingRule, tags: readonly string[]): string {
  if (rule.tagMatch === "all") {
    const missing = rule.tags.filter((tag) => !tags.includes(tag));
    return `The mail lacks the ${missing.length === 1 ? "tag" : "tags"} ${allOf.format(missing)}.`;
  }
  return rule.tags.length === 1
    ? `The mail lacks the tag ${rule.tags[0]}.`
    : `The mail has none of the tags ${allOf.format(rule.tags)}.`;
}

function recipientText(rule: RoutingRule, domains: readonly string[] | undefined): string {
  const wanted = `It is for recipients at ${domainsText(rule.recipientDomains)} only`;
  if (!domains?.length) return `${wanted}; enter recipients to see whether it matches.`;
  const others = domains.filter((domain) => !rule.recipientDomains.some((pattern) => matches(pattern, domain)));
  return others.length > 0 ? `${wanted}; this mail goes to ${allOf.format(others.slice(0, NAMED))}.` : `${wanted}.`;
}

const matches = (pattern: string, domain: string): boolean =>
  pattern.startsWith("*.") ? domain.endsWith(pattern.slice(1)) && domain.length >= pattern.length : domain === pattern;

/** Whether a rule takes every message that comes to it. */
const takesAll = (rule: RoutingRule): boolean =>
  !rule.senderDomain &&
  rule.tags.length === 0 &&
  rule.recipientDomains.length === 0 &&
  !rule.recipientMailboxProviders?.length &&
  rule.messageClass === null &&
  !rule.minSizeBytes &&
  rule.maxSizeBytes === null &&
  rule.test === null;

/** The first rule above that takes all mail, so that this one is never reached. */
export function shadowedBy(rules: readonly RoutingRule[], at: number, isActive: (accountId: string) => boolean): RoutingRule | undefined {
  return rules.slice(0, at).find((rule) => rule.isActive && takesAll(rule) && senderIds(rule).some(isActive));
}
