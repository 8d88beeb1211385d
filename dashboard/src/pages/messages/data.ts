/** What the pages of messages load. */

import { queryOptions } from "@tanstack/react-query";
import type { HistoryEvent, MessageDetail, ProviderAccount, RecipientDetail } from "waypost";
import { waypost } from "@/api";
import { pagesQuery } from "@/ui/paged";
import { type MessagesSearch, params } from "./search";

const PAGE = 50;

export const messagesQuery = (search: MessagesSearch) =>
  pagesQuery(["messages", "list", search], (cursor, signal) => waypost.messages.list({ ...params(search), limit: PAGE, cursor }, { signal }));

/** A message still changes while it waits, and for some minutes after it went. */
function refreshEvery(message: MessageDetail | undefined): number | false {
  if (!message) return false;
  if (message.status === "QUEUED" || message.status === "SENDING") return 3_000;
  const latest = message.events.at(-1)?.occurredAt;
  return latest && Date.now() - new Date(latest).getTime() < 600_000 ? 5_000 : false;
}

export const messageQuery = (id: string) =>
  queryOptions({
    queryKey: ["messages", "one", id],
    queryFn: ({ signal }) => waypost.messages.get(id, { signal }),
    refetchInterval: ({ state }) => refreshEvery(state.data),
  });

export const recipientsQuery = (id: string) =>
  pagesQuery(["messages", "one", id, "recipients"], (cursor, signal) => waypost.messages.recipients.list(id, { limit: 100, cursor }, { signal }));

/** The content as rendered for one recipient. Each request is in the audit log, so it is not repeated by itself. */
export const contentQuery = (id: string, position: number | undefined) =>
  queryOptions({
    queryKey: ["messages", "content", id, position ?? 0],
    queryFn: ({ signal }) => waypost.messages.getContent(id, { position }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });

/** Templates by their names, for filters. */
export const templateChoicesQuery = queryOptions({
  queryKey: ["templates", "choices"],
  queryFn: async ({ signal }) => (await waypost.templates.list({ limit: 100 }, { signal })).data,
  staleTime: 60_000,
});

/** The names of accounts by their ids. An account that was removed is known by its id only. */
export function accountNames(accounts: readonly ProviderAccount[] | undefined): (id: string | null | undefined) => string {
  const names = new Map(accounts?.map((account) => [account.id, account.displayName]));
  return (id) => (id ? (names.get(id) ?? (accounts ? "a removed account" : "its account")) : "no account");
}

/** The SHA-256 of an address, as the API names recipients. */
export async function addressHash(address: string): Promise<string> {
  const bytes = new TextEncoder().encode(address.trim().toLowerCase());
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Recipients by their place in the message: the API knows their addresses by hashes only. */
export class People {
  readonly #places: ReadonlyMap<string, number>;
  readonly #known: { hash: string; address: string } | undefined;

  constructor(message: MessageDetail, recipients: readonly RecipientDetail[], known?: { hash: string; address: string }) {
    const hashes = recipients.length > 0 ? recipients.map((one) => one.toHash) : message.to;
    this.#places = new Map(hashes.map((hash, at) => [hash, at + 1]));
    this.#known = known;
  }

  /** "ada@example.org" if the person gave this address, or else "Recipient 3". */
  name(hash: string | null | undefined): string {
    if (!hash) return "All recipients";
    if (hash === this.#known?.hash) return this.#known.address;
    const place = this.#places.get(hash);
    return place === undefined ? `Recipient ${hash.slice(0, 8)}…` : `Recipient ${place}`;
  }
}

/** The events of one recipient, with those that are about all. */
export const eventsOf = (events: readonly HistoryEvent[], hash: string | undefined): readonly HistoryEvent[] =>
  hash === undefined ? events : events.filter((event) => event.toHash === undefined || event.toHash === hash);
