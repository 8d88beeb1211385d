/** The filters of the list as the URL has them, and as the API takes them. */

import type { ListMessagesParams, MessageStatus } from "waypost";
import { textParam } from "@/ui/search-params";

export const STATUSES = ["QUEUED", "SENDING", "SENT", "DELIVERED", "BOUNCED", "FAILED"] as const satisfies readonly MessageStatus[];
export type KnownStatus = (typeof STATUSES)[number];

export const STATUS_TEXT: Record<KnownStatus, string> = {
  QUEUED: "It waits: for a worker, for a retry, for its account or for its time.",
  SENDING: "A provider is being called, or Waypost looks for evidence of a lost answer.",
  SENT: "A provider took it. It has not reported what became of it.",
  DELIVERED: "The recipient's mail server took it.",
  BOUNCED: "The recipient's mail server refused it.",
  FAILED: "Waypost gave it up: it was refused, expired, suppressed or cancelled.",
};

/** The filters that hold one text. */
export const TEXT_FILTERS = ["search", "recipient", "from", "tag", "templateId", "providerAccountId", "providerMessageId"] as const;
export type TextFilter = (typeof TEXT_FILTERS)[number];

export type Filters = { status?: readonly KnownStatus[] | undefined } & { [name in TextFilter | "createdFrom" | "createdTo"]?: string | undefined };

export interface MessagesSearch extends Filters {
  test?: true | undefined;
}

const DAY_OR_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$/;

const timeParam = (value: unknown): string | undefined => (typeof value === "string" && DAY_OR_TIME.test(value) ? value : undefined);

export function readSearch(search: Record<string, unknown>): MessagesSearch {
  const given = Array.isArray(search.status) ? search.status : [search.status];
  const status = STATUSES.filter((one) => given.includes(one));
  const texts = Object.fromEntries(TEXT_FILTERS.map((name) => [name, textParam(search[name])]));
  return {
    ...texts,
    status: status.length > 0 ? status : undefined,
    createdFrom: timeParam(search.createdFrom),
    createdTo: timeParam(search.createdTo),
    test: search.test === true ? true : undefined,
  };
}

/** Whether any filter is on. Tests are a list of their own, no filter. */
export const hasFilters = ({ test: _, ...filters }: MessagesSearch): boolean => Object.values(filters).some((value) => value !== undefined);

/** The filters with which pages and the total stop at the newest 2,000 messages. */
export const isCounted = (search: MessagesSearch): boolean => TEXT_FILTERS.every((name) => search[name] === undefined);

/** Times without an offset are those of this browser's zone. */
export function params({ createdFrom, createdTo, test, ...filters }: MessagesSearch): ListMessagesParams {
  return {
    ...filters,
    createdFrom: createdFrom && new Date(withTime(createdFrom)),
    createdTo: createdTo && endOf(createdTo),
    test: test ?? false,
  };
}

const withTime = (value: string): string => (value.includes("T") ? value : `${value}T00:00`);

/** A day includes that whole day; a minute is the end itself. */
function endOf(value: string): Date {
  const end = new Date(withTime(value));
  if (!value.includes("T")) end.setDate(end.getDate() + 1);
  return end;
}

const ADDRESS = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;

/** What looks like a part of an address: only whole addresses are found, by their hash. */
export function partOfAddress({ recipient, search }: Filters): string | undefined {
  if (recipient && !ADDRESS.test(recipient)) return recipient;
  return search && /^\S*[@+]\S*$/.test(search) ? search : undefined;
}

/** What a person typed into the one search box: an id, an address or words of a subject. */
export function readQuery(text: string): { id: string } | Pick<Filters, "search" | "recipient"> {
  const query = text.trim();
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(query)) return { id: query };
  if (ADDRESS.test(query)) return { recipient: query };
  return { search: query || undefined };
}
