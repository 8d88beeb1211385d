/** What the address of an endpoint's page says. */

import type { Span } from "@/ui/search-params";

export const DELIVERY_STATUSES = ["FAILED", "PENDING", "DELIVERED"] as const;

export interface DeliverySearch {
  status?: (typeof DELIVERY_STATUSES)[number] | undefined;
  event?: string | undefined;
  message?: string | undefined;
  since?: Span | undefined;
}

export const TABS = ["deliveries", "about", "verify"] as const;
export const ENDPOINT_DIALOGS = ["edit", "replay", "rotate"] as const;

export interface EndpointSearch extends DeliverySearch {
  tab?: (typeof TABS)[number] | undefined;
  open?: (typeof ENDPOINT_DIALOGS)[number] | undefined;
  /** The delivery that is shown. */
  delivery?: string | undefined;
}
