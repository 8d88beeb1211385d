import { queryOptions } from "@tanstack/react-query";
import { queries, waypost } from "@/api";
import { allOf } from "@/ui/paged";

export const endpointsQuery = queryOptions({
  queryKey: ["webhook-endpoints"],
  queryFn: () => allOf(waypost.webhookEndpoints.list()),
  refetchInterval: 30_000,
});

export const endpointQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhook-endpoints", id],
    queryFn: () => waypost.webhookEndpoints.get(id),
    refetchInterval: 5_000,
  });

export const deliveriesKey = (id: string) => ["webhook-endpoints", id, "deliveries"] as const;

/** After a change of an endpoint or of its deliveries: all lists are asked for again. */
export const endpointsChanged = () => queries.invalidateQueries({ queryKey: endpointsQuery.queryKey });
