/** What the pages of accounts, routing and domains load, and what they know of an account. */

import { queryOptions } from "@tanstack/react-query";
import type { DomainVerification, PagePromise, ProviderAccount, RoutingRule } from "waypost";
import { queries, waypost } from "@/api";
import type { Tone } from "@/ui/badge";

async function all<T>(pages: PagePromise<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of pages) items.push(item);
  return items;
}

export const accountsQuery = queryOptions({
  queryKey: ["providers", "accounts"],
  queryFn: ({ signal }): Promise<ProviderAccount[]> => all(waypost.providers.list({ signal })),
});

export const accountQuery = (id: string) =>
  queryOptions({
    queryKey: ["providers", "account", id],
    queryFn: ({ signal }) => waypost.providers.get(id, { signal }),
  });

export const domainsQuery = (accountId: string) =>
  queryOptions({
    queryKey: ["provider-domains", accountId],
    queryFn: ({ signal }): Promise<DomainVerification[]> => all(waypost.providers.domains.list(accountId, { signal })),
  });

export const rulesQuery = queryOptions({
  queryKey: ["routing-rules", "all"],
  queryFn: ({ signal }): Promise<RoutingRule[]> => all(waypost.routingRules.list({ signal })),
});

/** Mails of the last 24 hours by account. */
export const trafficQuery = queryOptions({
  queryKey: ["providers", "traffic"],
  queryFn: ({ signal }) =>
    waypost.metrics.getBreakdown({ groupBy: "account", from: new Date(Date.now() - 86_400_000) }, { signal }),
  staleTime: 60_000,
});

/** After a change of an account: its page, the lists, and what routing makes of it. */
export async function accountChanged(): Promise<void> {
  await Promise.all([
    queries.invalidateQueries({ queryKey: ["providers"] }),
    queries.invalidateQueries({ queryKey: ["provider-domains"] }),
    queries.invalidateQueries({ queryKey: ["routing-rules"] }),
  ]);
}

export interface AccountState {
  word: string;
  tone: Tone;
  /** What it means, and what to do. */
  text: string;
}

/** What an account does now, from what is stored of it. */
export function accountState(account: ProviderAccount): AccountState {
  if (!account.isActive) {
    return { word: "Paused", tone: "gray", text: "The account sends nothing. Activate it to send again." };
  }
  if (account.sendingPausedReason !== null) {
    return {
      word: "Refused",
      tone: "red",
      text: "The provider refuses all mail of this account. Waiting mail goes through the fallbacks of its rule, or waits.",
    };
  }
  return { word: "Active", tone: "green", text: "The account sends." };
}

/** Whether the provider can reach a URL at all: an address of this machine or of a private network cannot be. */
export function isPublicUrl(url: string): boolean {
  const { hostname, protocol } = new URL(url);
  return protocol === "https:" && !/^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[)/.test(hostname);
}

/** Where the result of the first registration of events is kept: only the answer that connects an account has it. */
export const firstWebhookKey = (accountId: string) => ["first-webhook", accountId] as const;
