import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { waypost } from "@/api";

export const PEOPLE = ["people"] as const;

export function useMembers() {
  return useInfiniteQuery({
    queryKey: [...PEOPLE, "members"],
    queryFn: async ({ pageParam }) => await waypost.members.list({ limit: 50, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.pagination?.nextCursor ?? undefined,
  });
}

export function useInvitations() {
  return useInfiniteQuery({
    queryKey: [...PEOPLE, "invitations"],
    queryFn: async ({ pageParam }) => await waypost.invitations.list({ limit: 50, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.pagination?.nextCursor ?? undefined,
  });
}

/** Loads the lists of this page again after a change. */
export function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: PEOPLE });
}
