/** Where a person is on the way, as the URL says it. */

import type { Type } from "../types";

/** The steps after the account exists. */
export const STEPS = ["events", "domains", "mail"] as const;
export type Step = (typeof STEPS)[number];

export interface ConnectSearch {
  type?: Type | undefined;
  account?: string | undefined;
  step?: Step | undefined;
}
