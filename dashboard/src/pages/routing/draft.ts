/** What a person enters of a rule, and what the API takes of it. */

import type { CreateRoutingRuleRequest, NewRoutingRamp, NewRoutingTarget, ProviderAccount, RoutingRule, RoutingTarget } from "waypost";
import { waypost } from "@/api";
import { lastPriority } from "./order";
import type { Conditions } from "./words";

export interface TargetDraft {
  providerAccountId: string;
  weight: string;
  dailyCap: string;
  hourlyCap: string;
  /** How the daily cap grows; none if it does not. */
  ramp: RampDraft | undefined;
}

export interface RampDraft {
  start: string;
  factor: string;
  everyDays: string;
  /** The first day. */
  from: string;
}

export interface Draft {
  name: string;
  isActive: boolean;
  senderDomain: string;
  tags: string;
  tagMatch: string;
  recipientDomains: string;
  mailboxProviders: readonly string[];
  messageClass: string;
  minSize: string;
  maxSize: string;
  /** Which of tests and live mail it is for. */
  test: "" | "tests" | "live";
  /** Whether one account sends, or several share the mail. */
  form: "one" | "several";
  providerAccountId: string;
  targets: readonly TargetDraft[];
  sticky: string;
  overCap: string;
  prefer: string;
  /** The rates of an account beyond which its cap does not grow, in per cent. */
  bounceRate: string;
  complaintRate: string;
  region: string;
  fallbacks: readonly string[];
  onUnknown: string;
  priority: string;
}

/** What is separated by commas, spaces or lines. */
export const listOf = (text: string): string[] => text.split(/[\s,;]+/).filter(Boolean);

export const tagList = (text: string | undefined): string[] =>
  (text ?? "").split(",").map((tag) => tag.trim()).filter(Boolean);

const draftOfTarget = (target: RoutingTarget): TargetDraft => ({
  providerAccountId: target.providerAccountId,
  weight: String(target.weight),
  dailyCap: target.dailyCap === null ? "" : String(target.dailyCap),
  hourlyCap: target.hourlyCap === null ? "" : String(target.hourlyCap),
  ramp: target.ramp
    ? { start: String(target.ramp.start), factor: String(target.ramp.factor), everyDays: String(target.ramp.everyDays), from: target.ramp.from }
    : undefined,
});

/** A fraction in per cent, without the noise of a binary number: 0.001 is "0.1". */
const percentDraft = (fraction: number): string => String(Number((fraction * 100).toFixed(6)));

export const draftOf = (rule: RoutingRule | undefined, rules: readonly RoutingRule[], accounts: readonly ProviderAccount[]): Draft => ({
  name: rule?.name ?? "",
  isActive: rule?.isActive ?? true,
  senderDomain: rule?.senderDomain ?? "",
  tags: rule?.tags.join(", ") ?? "",
  tagMatch: rule?.tagMatch ?? "any",
  recipientDomains: rule?.recipientDomains.join(", ") ?? "",
  mailboxProviders: rule?.recipientMailboxProviders ?? [],
  messageClass: rule?.messageClass ?? "",
  minSize: sizeDraft(rule?.minSizeBytes),
  maxSize: sizeDraft(rule?.maxSizeBytes),
  test: rule?.test === true ? "tests" : rule?.test === false ? "live" : "",
  form: rule && rule.targets.length > 0 ? "several" : "one",
  providerAccountId: rule?.providerAccountId ?? accounts.find((account) => account.isActive)?.id ?? accounts[0]?.id ?? "",
  targets: rule?.targets.map(draftOfTarget) ?? [],
  sticky: rule?.sticky ?? "none",
  overCap: rule?.overCap ?? "next",
  prefer: rule?.prefer ?? "weight",
  bounceRate: percentDraft(rule?.rampBounds?.bounceRate ?? 0.05),
  complaintRate: percentDraft(rule?.rampBounds?.complaintRate ?? 0.001),
  region: rule?.region ?? "",
  fallbacks: rule?.fallbackProviderAccountIds ?? [],
  onUnknown: rule?.onUnknown ?? "wait",
  priority: String(rule?.priority ?? lastPriority(rules)),
});

/** Sizes are decimal, as everywhere in the dashboard. */
const UNITS: Record<string, number> = { b: 1, kb: 1_000, mb: 1_000_000, gb: 1_000_000_000 };

/** Bytes as they are entered, without a loss: "5 MB", "1234567 B". */
function sizeDraft(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  const unit = (["mb", "kb"] as const).find((one) => value > 0 && value % UNITS[one]! === 0) ?? "b";
  return `${value / UNITS[unit]!} ${unit.toUpperCase()}`;
}

/** The bytes of "5 MB", "200 KB" or "1000"; what is no size stays as it was typed, so that the API names the mistake. */
export function sizeOf(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const [, number, unit = "b"] = /^(\d+(?:\.\d+)?)\s*([kmg]?b)?$/i.exec(trimmed) ?? [];
  return number === undefined ? (trimmed as unknown as number) : Math.round(Number(number) * UNITS[unit.toLowerCase()]!);
}

/** A whole number. What is none stays as it was typed, so that the API names the mistake; nothing is nothing. */
export function wholeOf(text: string): number | undefined {
  const digits = text.trim().replaceAll(/(?<=\d)[,\s](?=\d{3}\b)/g, "");
  if (digits === "") return undefined;
  return /^\d+$/.test(digits) ? Number(digits) : (text.trim() as unknown as number);
}

/** A number with decimals. What is none stays as it was typed, so that the API names the mistake. */
function decimalOf(text: string): number {
  const number = text.trim().replace(",", ".");
  return /^\d+(\.\d+)?$/.test(number) ? Number(number) : (text as unknown as number);
}

/** A fraction of what was entered in per cent. */
function fractionOf(text: string): number {
  const number = decimalOf(text);
  return typeof number === "number" ? Number((number / 100).toFixed(8)) : number;
}

const rampOf = ({ start, factor, everyDays, from }: RampDraft): NewRoutingRamp => ({
  start: wholeOf(start) as number,
  factor: decimalOf(factor),
  everyDays: wholeOf(everyDays) as number,
  from,
});

const targetOf = (target: TargetDraft): NewRoutingTarget => ({
  providerAccountId: target.providerAccountId,
  // Without a weight the API says that it is required.
  weight: wholeOf(target.weight) as number,
  dailyCap: wholeOf(target.dailyCap),
  hourlyCap: wholeOf(target.hourlyCap),
  ...(target.ramp && { ramp: rampOf(target.ramp) }),
});

const orUndefined = <T>(value: T | null): T | undefined => value ?? undefined;

/** The conditions as the API takes and gives them. */
export const conditionsOf = (draft: Draft): Conditions => ({
  senderDomain: draft.senderDomain.trim() || null,
  tags: tagList(draft.tags),
  tagMatch: draft.tagMatch,
  recipientDomains: listOf(draft.recipientDomains),
  recipientMailboxProviders: [...draft.mailboxProviders],
  messageClass: draft.messageClass || null,
  minSizeBytes: sizeOf(draft.minSize) ?? null,
  maxSizeBytes: sizeOf(draft.maxSize) ?? null,
  test: draft.test === "" ? null : draft.test === "tests",
});

/** One account, or the accounts that share the mail: the API takes the one form in place of the other. */
const senders = (draft: Draft) =>
  draft.form === "one"
    ? { providerAccountId: draft.providerAccountId }
    : {
        targets: draft.targets.map(targetOf),
        sticky: draft.sticky,
        overCap: draft.overCap,
        prefer: draft.prefer,
        ...(hasRamp(draft) && { rampBounds: { bounceRate: fractionOf(draft.bounceRate), complaintRate: fractionOf(draft.complaintRate) } }),
      };

export const hasRamp = (draft: Draft): boolean => draft.form === "several" && draft.targets.some((target) => target.ramp);

const termsOf = (draft: Draft) => ({
  name: draft.name.trim(),
  isActive: draft.isActive,
  ...senders(draft),
  fallbackProviderAccountIds: fallbacksOf(draft),
  onUnknown: draft.onUnknown,
  // Empty is a mistake, which the API names.
  priority: wholeOf(draft.priority) ?? (draft.priority as unknown as number),
});

/** The accounts that the mail is sent by, without the fallbacks. */
export const draftSenders = (draft: Draft): string[] =>
  draft.form === "one" ? [draft.providerAccountId] : draft.targets.map((target) => target.providerAccountId);

/** An account that sends is no fallback of its own. */
export const fallbacksOf = (draft: Draft): string[] => {
  const sending = draftSenders(draft);
  return draft.fallbacks.filter((id) => !sending.includes(id));
};

export function createRequest(draft: Draft): CreateRoutingRuleRequest {
  const conditions = conditionsOf(draft);
  return {
    ...termsOf(draft),
    ...conditions,
    senderDomain: orUndefined(conditions.senderDomain),
    messageClass: orUndefined(conditions.messageClass),
    minSizeBytes: orUndefined(conditions.minSizeBytes),
    maxSizeBytes: orUndefined(conditions.maxSizeBytes),
    test: orUndefined(conditions.test),
    region: draft.region || undefined,
  };
}

export const saveRule = (draft: Draft, rule: RoutingRule | undefined): Promise<RoutingRule> =>
  rule
    ? waypost.routingRules.update(rule.id, { ...termsOf(draft), ...conditionsOf(draft), region: draft.region || null })
    : waypost.routingRules.create(createRequest(draft));
