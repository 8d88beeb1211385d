/** What the address of the page of suppressions says. */

import type { SuppressionFilters } from "./filters";

export const DIALOGS = ["add", "import", "provider", "remove", "export"] as const;
export type DialogName = (typeof DIALOGS)[number];

export interface SuppressionSearch extends SuppressionFilters {
  open?: DialogName | undefined;
}
