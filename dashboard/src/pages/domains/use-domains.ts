import { useQueries, useQuery } from "@tanstack/react-query";
import type { DomainVerification, ProviderAccount } from "waypost";
import { accountsQuery, domainsQuery } from "@/pages/providers/queries";

export interface AllDomains {
  accounts: readonly ProviderAccount[];
  entries: readonly DomainVerification[];
  isPending: boolean;
  error: unknown;
  retry(): void;
}

/** The domains of all accounts. The API lists those of one account. */
export function useAllDomains(): AllDomains {
  const accounts = useQuery(accountsQuery);
  const lists = useQueries({ queries: (accounts.data ?? []).map((account) => domainsQuery(account.id)) });
  return {
    accounts: accounts.data ?? [],
    entries: lists.flatMap((list) => list.data ?? []),
    isPending: accounts.isPending || lists.some((list) => list.isPending),
    error: accounts.error ?? lists.find((list) => list.error)?.error ?? undefined,
    retry() {
      void accounts.refetch();
      for (const list of lists) if (list.error) void list.refetch();
    },
  };
}
