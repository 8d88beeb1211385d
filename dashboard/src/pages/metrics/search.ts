/** What of the page of metrics is in its URL, and what the API makes of it. */

import { textParam, wordParam } from "@/ui/search-params";

export const GROUPS = ["account", "provider", "domain", "template", "tag", "recipientDomain"] as const;
export type Group = (typeof GROUPS)[number];

export const SPANS = ["24h", "7d", "30d", "90d", "own"] as const;
export type MetricsSpan = (typeof SPANS)[number];

export const STEPS = ["hour", "day", "week", "month"] as const;
export type Step = (typeof STEPS)[number];

export const SHOWS = ["counts", "rates"] as const;

export interface MetricsSearch {
  span?: MetricsSpan | undefined;
  /** The days of a span of one's own, the last one included. */
  from?: string | undefined;
  to?: string | undefined;
  step?: Step | undefined;
  zone?: string | undefined;
  tag?: string | undefined;
  account?: string | undefined;
  template?: string | undefined;
  by?: Group | undefined;
  show?: (typeof SHOWS)[number] | undefined;
}

const dayParam = (value: unknown): string | undefined => (typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value) ? value : undefined);

export function readMetricsSearch(search: Record<string, unknown>): MetricsSearch {
  return {
    span: wordParam(search.span, SPANS),
    from: dayParam(search.from),
    to: dayParam(search.to),
    step: wordParam(search.step, STEPS),
    zone: textParam(search.zone),
    tag: textParam(search.tag),
    account: textParam(search.account),
    template: textParam(search.template),
    by: wordParam(search.by, GROUPS),
    show: wordParam(search.show, SHOWS),
  };
}

export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const DAYS = { "7d": 7, "30d": 30, "90d": 90 } as const;

/** `YYYY-MM-DD` in a time zone. */
export function dayIn(zone: string, daysAgo = 0): string {
  const format = (name: string) => new Intl.DateTimeFormat("en-CA", { timeZone: name, dateStyle: "short" });
  const day = new Date(`${knownZone(zone, format).format(new Date())}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() - daysAgo);
  return day.toISOString().slice(0, 10);
}

/** A zone that this browser does not know is left to the API, which says what is wrong. */
function knownZone<T>(zone: string, make: (zone: string) => T): T {
  try {
    return make(zone);
  } catch {
    return make("UTC");
  }
}

export interface Period {
  from: string;
  to?: string | undefined;
  timeZone: string;
}

export function period({ span = "30d", from, to, zone = browserZone() }: MetricsSearch): Period {
  if (span === "24h") {
    const hour = 3_600_000;
    return { from: new Date(Math.floor(Date.now() / hour) * hour - 23 * hour).toISOString(), timeZone: zone };
  }
  if (span === "own") return { from: from ?? dayIn(zone, DAYS["30d"] - 1), to, timeZone: zone };
  return { from: dayIn(zone, DAYS[span] - 1), timeZone: zone };
}

/** The length of buckets if the person did not choose one. */
export function stepOf(search: MetricsSearch): Step {
  if (search.step) return search.step;
  if (search.span === "24h") return "hour";
  const { from, to, timeZone } = period(search);
  const days = (new Date(to ?? dayIn(timeZone)).getTime() - new Date(from).getTime()) / 86_400_000;
  return days > 180 ? "month" : days < 2 ? "hour" : "day";
}

export interface MetricsFilters {
  tag?: string | undefined;
  providerAccountId?: string | undefined;
  templateId?: string | undefined;
}

export const filters = ({ tag, account, template }: MetricsSearch): MetricsFilters => ({ tag, providerAccountId: account, templateId: template });

/** Why the API has no breakdown for these filters; undefined if it has one. */
export function breakdownLacks({ tag, account, template, by = "account" }: MetricsSearch): string | undefined {
  if (by === "recipientDomain") return tag || template ? "By the recipient's domain, Waypost counts with a filter for the account only." : undefined;
  const own = { tag: tag, account: account, template: template };
  const others = Object.entries(own).filter(([name, value]) => value !== undefined && name !== by).length;
  return others > 1 ? "Waypost counts groups with one other filter only." : undefined;
}
