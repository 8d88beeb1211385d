import { useQuery } from "@tanstack/react-query";
import type { ListWebhookDeliveriesParams } from "waypost";
import { waypost } from "@/api";
import { spanStart } from "@/ui/search-params";
import { deliveriesKey } from "./queries";

type Params = ListWebhookDeliveriesParams & { from?: string; to?: string };

export interface Undelivered {
  /** All tries are used up. */
  failed: number;
  /** The next try is due later, or at once. */
  waiting: number;
}

async function countOf(id: string, params: Params): Promise<number> {
  const page = await waypost.webhookEndpoints.deliveries.list(id, { ...params, limit: 1 });
  return page.pagination?.total ?? page.data.length;
}

/** How many deliveries of a period were not delivered; an empty beginning is still to be chosen. */
export function useUndelivered(id: string, from: string, to?: string) {
  const period = { from, ...(to && { to }) };
  return useQuery({
    queryKey: [...deliveriesKey(id), "undelivered", period],
    queryFn: async (): Promise<Undelivered> => {
      const [failed, waiting] = await Promise.all([
        countOf(id, { ...period, status: "FAILED" }),
        countOf(id, { ...period, status: "PENDING" }),
      ]);
      return { failed, waiting };
    },
    enabled: from !== "",
    // A replay changes it: whoever opens the dialog again sees what is left.
    staleTime: 0,
    refetchInterval: 30_000,
  });
}

/** The deliveries of the last day that failed; undefined while it is not known. */
export const useFailedToday = (id: string): number | undefined => useUndelivered(id, spanStart("24h")).data?.failed;
