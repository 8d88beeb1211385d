/** The accounts that send a rule's mail: one, or several that share it by weight. */

import type { RoutingRule } from "waypost";

export interface Sender {
  id: string;
  /** The part of the rule's mail that it gets, from 0 to 1; none if one account sends it all. */
  share?: number | undefined;
}

type Shared = Pick<RoutingRule, "providerAccountId" | "targets">;

/** The ids of the accounts, without the fallbacks. */
export const senderIds = ({ providerAccountId, targets }: Shared): string[] =>
  targets.length > 0 ? targets.map((target) => target.providerAccountId) : [providerAccountId];

interface Weighted {
  providerAccountId: string;
  weight: number;
  ramp?: { from: string } | null | undefined;
}

/** Whether a warm-up has its first day yet to come; until then its account gets nothing. Days are those of UTC. */
export const beginsLater = (ramp: Weighted["ramp"]): boolean => !!ramp && ramp.from > new Date().toISOString().slice(0, 10);

/** What each account gets: weights share out among those that send now. If none does, the shares are those of all. */
export function sharesOf(targets: readonly Weighted[], isActive: (id: string) => boolean): number[] {
  const weights = targets.map(({ providerAccountId, weight, ramp }) => (isActive(providerAccountId) && !beginsLater(ramp) ? weight : 0));
  const counted = weights.some((weight) => weight > 0) ? weights : targets.map(({ weight }) => weight);
  const total = counted.reduce((sum, weight) => sum + weight, 0);
  return counted.map((weight) => (total > 0 ? weight / total : 0));
}

export function sendersOf(rule: Shared, isActive: (id: string) => boolean): Sender[] {
  if (rule.targets.length === 0) return [{ id: rule.providerAccountId }];
  const shares = sharesOf(rule.targets, isActive);
  return rule.targets.map(({ providerAccountId }, at) => ({ id: providerAccountId, share: shares[at]! }));
}

const whole = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });
const exact = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** "70 %"; small shares, and those near to all, with a decimal. */
export const shareText = (share: number): string =>
  ((share > 0 && share < 0.1) || (share > 0.99 && share < 1) ? exact : whole).format(share).replace("%", " %");

/** Whether a rule names an account, to send or as a fallback. */
export const isNamed = (rule: RoutingRule, id: string): boolean =>
  senderIds(rule).includes(id) || rule.fallbackProviderAccountIds.includes(id);
