import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { queries, waypost } from "@/api";
import { breakdownLacks, filters, type Group, type MetricsSearch, period, stepOf } from "./search";

const common = { placeholderData: keepPreviousData, staleTime: 30_000 } as const;

export function seriesQuery(search: MetricsSearch) {
  const params = { ...period(search), ...filters(search), granularity: stepOf(search) };
  return queryOptions({
    queryKey: ["metrics", "series", params],
    queryFn: async ({ signal }) => (await waypost.metrics.get(params, { signal })).data,
    ...common,
  });
}

export function summaryQuery(search: MetricsSearch) {
  const params = { ...period(search), ...filters(search) };
  return queryOptions({
    queryKey: ["metrics", "summary", params],
    queryFn: async ({ signal }) => (await waypost.metrics.getSummary(params, { signal })).data,
    ...common,
  });
}

export function breakdownQuery(search: MetricsSearch, groupBy: Group) {
  const params = { ...period(search), ...filters(search), groupBy };
  return queryOptions({
    queryKey: ["metrics", "breakdown", params],
    queryFn: async ({ signal }) => (await waypost.metrics.getBreakdown(params, { signal })).data,
    ...common,
  });
}

/** Starts everything that the page shows, while its code loads. */
export function startMetrics(search: MetricsSearch): void {
  void queries.prefetchQuery(seriesQuery(search));
  void queries.prefetchQuery(summaryQuery(search));
  const by = search.by ?? "account";
  if (breakdownLacks(search) === undefined) void queries.prefetchQuery(breakdownQuery(search, by));
}
