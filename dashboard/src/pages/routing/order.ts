/** The order of rules, which the API keeps as priorities: higher ones are checked first, and of equal ones the older. */

import type { RoutingRule } from "waypost";

const HIGHEST = 1_000;
/** The room that is left between two rules, so that most moves change one rule only. */
const STEP = 10;

export function moved<T>(items: readonly T[], from: number, to: number): T[] {
  const rest = items.toSpliced(from, 1);
  return rest.toSpliced(to, 0, items[from]!);
}

/** A priority between two others; undefined if there is none. Without a neighbour the end of the range bounds it. */
function between(above: number | undefined, below: number | undefined): number | undefined {
  if (above === undefined) return below === undefined ? STEP : below < HIGHEST ? Math.min(below + STEP, HIGHEST) : undefined;
  if (below === undefined) return above > 0 ? Math.max(above - STEP, 0) : undefined;
  return above - below >= 2 ? Math.floor((above + below) / 2) : undefined;
}

export interface PriorityChange {
  id: string;
  priority: number;
}

/** What to change so that the rules are checked in this order, in which the rule at `at` has a new place. */
export function priorityChanges(ordered: readonly RoutingRule[], at: number): PriorityChange[] {
  const rule = ordered[at]!;
  const priority = between(ordered[at - 1]?.priority, ordered[at + 1]?.priority);
  if (priority !== undefined) return [{ id: rule.id, priority }];
  const step = Math.max(1, Math.min(STEP, Math.floor(HIGHEST / ordered.length)));
  return ordered
    .map(({ id }, index) => ({ id, priority: (ordered.length - index) * step }))
    .filter((change, index) => ordered[index]!.priority !== change.priority);
}

/** Where a rule with this priority would be checked, from 0; after all that have the same. */
export function placeOf(rules: readonly RoutingRule[], priority: number, self?: RoutingRule): number {
  const others = rules.filter((rule) => rule.id !== self?.id);
  return others.filter((rule) => rule.priority > priority || (rule.priority === priority && isOlder(rule, self))).length;
}

const isOlder = (rule: RoutingRule, self: RoutingRule | undefined): boolean => !self || rule.createdAt < self.createdAt;

/** A priority for a new rule: after all others. */
export const lastPriority = (rules: readonly RoutingRule[]): number => Math.max(0, (rules.at(-1)?.priority ?? 2 * STEP) - STEP);
