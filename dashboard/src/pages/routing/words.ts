/** Rules in words. */

import type { PassedOverRule, RoutingRule } from "waypost";

const list = new Intl.ListFormat("en", { type: "disjunction" });
const allOf = new Intl.ListFormat("en", { type: "conjunction" });

export function senderText(domain: string): string {
  return domain.startsWith("*.") ? `any subdomain of ${domain.slice(2)}` : domain;
}

/** Which mail a rule is for: "From example.com, with the tag receipts or invoices". */
export function conditionText({ senderDomain, tags, tagMatch }: Pick<RoutingRule, "senderDomain" | "tags" | "tagMatch">): string {
  const tagged = tags.length > 0 ? `with the ${tags.length === 1 ? "tag" : "tags"} ${(tagMatch === "all" ? allOf : list).format(tags)}` : "";
  if (!senderDomain) return tagged ? `Mail ${tagged}` : "All mail";
  return tagged ? `Mail from ${senderText(senderDomain)}, ${tagged}` : `Mail from ${senderText(senderDomain)}`;
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

/** Why a rule was passed over, for a mail from this domain with these tags. */
export function passedOverText({ rule, reason }: PassedOverRule, domain: string, tags: readonly string[], accountName: string): string {
  switch (reason) {
    case "RULE_INACTIVE":
      return "The rule is switched off.";
    case "SENDER_DOMAIN":
      return `It is for mail from ${senderText(rule.senderDomain ?? "")}; this mail is from ${domain}.`;
    case "TAGS":
      return tagText(rule, tags);
    case "PROVIDER_INACTIVE":
      return `It matches, but its account ${accountName} is paused.`;
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

/** The first rule above that takes all mail, so that this one is never reached. */
export function shadowedBy(rules: readonly RoutingRule[], at: number, isActive: (accountId: string) => boolean): RoutingRule | undefined {
  return rules
    .slice(0, at)
    .find((rule) => rule.isActive && !rule.senderDomain && rule.tags.length === 0 && isActive(rule.providerAccountId));
}
