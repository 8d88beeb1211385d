/** The unsubscribe groups of the organization: a short list. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import type { UnsubscribeGroup } from "waypost";
import { queries, waypost } from "@/api";
import { allOf } from "@/ui/paged";

export const groupsQuery = queryOptions({
  queryKey: ["unsubscribe-groups"],
  queryFn: (): Promise<UnsubscribeGroup[]> => allOf(waypost.unsubscribeGroups.list()),
});

export const groupsChanged = () => queries.invalidateQueries({ queryKey: groupsQuery.queryKey });

/** The groups as the options of a `<Select>`, after the one for all messages. */
export function useGroupOptions(first: string): readonly (readonly [string, string])[] {
  const { data = [] } = useQuery(groupsQuery);
  return [["", first], ...data.map((group) => [group.id, group.name] as const)];
}
