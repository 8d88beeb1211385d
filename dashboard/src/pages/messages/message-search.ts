/** What of a message's page is in its URL. */

import { textParam, wordParam } from "@/ui/search-params";

export const MESSAGE_TABS = ["timeline", "attempts", "recipients", "content", "webhooks"] as const;
export const CONTENT_PARTS = ["html", "text", "headers", "attachments"] as const;

export interface MessageSearch {
  tab?: (typeof MESSAGE_TABS)[number] | undefined;
  /** Shows what happened to one recipient: an address, or the hash of one. */
  recipient?: string | undefined;
  part?: (typeof CONTENT_PARTS)[number] | undefined;
  /** The place of the recipient for whom the content was rendered, from 0. */
  position?: number | undefined;
}

export function readMessageSearch(search: Record<string, unknown>): MessageSearch {
  const { position } = search;
  return {
    tab: wordParam(search.tab, MESSAGE_TABS),
    recipient: textParam(search.recipient),
    part: wordParam(search.part, CONTENT_PARTS),
    position: typeof position === "number" && Number.isInteger(position) && position > 0 ? position : undefined,
  };
}
