/** What the overview loads. The route's loader starts all of it at once, while the code of the page loads. */

import { queryOptions } from "@tanstack/react-query";
import type { MetricsBucket } from "waypost";
import { queries, waypost } from "@/api";
import { accountsQuery } from "@/pages/providers/queries";
import { SPAN_WORDS, type Span } from "@/ui/search-params";

export { SPAN_WORDS, type Span };

const DAYS: Record<Exclude<Span, "24h">, number> = { "7d": 7, "30d": 30, "90d": 90 };

/** The zone of days in which this browser's person lives. */
export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** `YYYY-MM-DD` of a day in this browser's zone. */
export function localDay(daysAgo: number, now = new Date()): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The beginning of a span: the hour 23 hours ago, or a day, so that the last bucket is the present one. */
function beginning(span: Span): string {
  if (span !== "24h") return localDay(DAYS[span] - 1);
  const hour = 3_600_000;
  return new Date(Math.floor(Date.now() / hour) * hour - 23 * hour).toISOString();
}

export const totalsQuery = (span: Span) => {
  const params = { from: beginning(span), timeZone: browserZone() };
  return queryOptions({
    queryKey: ["metrics", "summary", params],
    queryFn: async () => (await waypost.metrics.getSummary(params)).data,
    refetchInterval: 60_000,
  });
};

export const seriesQuery = (span: Span) => {
  const params = { from: beginning(span), timeZone: browserZone(), granularity: span === "24h" ? "hour" : "day" } as const;
  return queryOptions({
    queryKey: ["metrics", "series", params],
    queryFn: async (): Promise<MetricsBucket[]> => (await waypost.metrics.get(params)).data,
    refetchInterval: 60_000,
  });
};

/** How far the first mail is: whether one was delivered, or at least taken by a provider. */
export const firstMailQuery = queryOptions({
  queryKey: ["messages", "first"],
  queryFn: async () => {
    const has = async (status: "DELIVERED" | "SENT") => (await waypost.messages.list({ status: [status], limit: 1 })).data.length > 0;
    const [delivered, sent] = await Promise.all([has("DELIVERED"), has("SENT")]);
    return { delivered, sent: sent || delivered };
  },
  refetchInterval: ({ state }) => (state.data?.delivered ? false : 5_000),
});

/** Whether any account has a verified sender domain. */
export const anyDomainQuery = (accountIds: readonly string[]) =>
  queryOptions({
    queryKey: ["providers", "any-domain", accountIds],
    queryFn: async () => {
      const lists = await Promise.all(accountIds.map(async (id) => (await waypost.providers.domains.list(id)).data));
      return lists.flat().some((domain) => domain.state === "verified");
    },
  });

export const anyKeyQuery = queryOptions({
  queryKey: ["api-keys", "any"],
  queryFn: async () => (await waypost.apiKeys.list({ limit: 1 })).data.length > 0,
});

/** Starts everything that the page shows at first. */
export function startOverview(span: Span, may: (permission: string) => boolean): void {
  void queries.prefetchQuery(firstMailQuery);
  void queries.prefetchQuery(totalsQuery(span));
  void queries.prefetchQuery(seriesQuery(span));
  if (may("PROVIDERS_READ")) void queries.prefetchQuery(accountsQuery);
}
