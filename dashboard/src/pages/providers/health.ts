/** How accounts do at the moment: whether calls to them are made, what fails, and how the latest calls ended. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ProviderHealth } from "waypost";
import { waypost } from "@/api";
import type { AccountState } from "./queries";

export type Health = ProviderHealth;

const REFRESH_MS = 10_000;

const healthsQuery = queryOptions({
  queryKey: ["providers", "health"],
  queryFn: async ({ signal }): Promise<readonly Health[]> => (await waypost.providers.listHealth({ signal })).data,
  refetchInterval: REFRESH_MS,
});

/** The health of all accounts by their ids. */
export function useHealths(): ReadonlyMap<string, Health> {
  const { data } = useQuery(healthsQuery);
  return new Map(data?.map((health) => [health.providerAccountId, health]));
}

export const healthQuery = (id: string) =>
  queryOptions({
    queryKey: ["providers", "health", id],
    queryFn: ({ signal }) => waypost.providers.getHealth(id, { signal }),
    refetchInterval: REFRESH_MS,
  });

/** Why no calls are made. */
const OPEN_TEXTS: Record<string, string> = {
  CALLS_FAILED: "Too many calls to the provider failed, so Waypost makes none for a while.",
  PROVIDER_PAUSE: "The provider asked for a pause, so Waypost makes no calls for a while.",
  ACCOUNT_UNUSABLE: "The provider refuses all mail of the account, so Waypost makes no calls for a while.",
};

/** What the state of the circuit means; undefined while it is not known. */
export function circuitState({ circuit }: Health): AccountState | undefined {
  switch (circuit?.state) {
    case "CLOSED":
      return { word: "Calls are made", tone: "green", text: "Waypost calls the provider for each mail." };
    case "OPEN":
      return {
        word: "Calls are stopped",
        tone: circuit.cause === "PROVIDER_PAUSE" ? "amber" : "red",
        text: `${OPEN_TEXTS[circuit.cause ?? ""] ?? "Waypost makes no calls for a while."} Mail goes through fallbacks, or waits.`,
      };
    case "HALF_OPEN":
      return {
        word: "One call is tried",
        tone: "amber",
        text: "Calls were stopped. Each worker now makes one; if it succeeds, all mail goes through again.",
      };
    default:
      return undefined;
  }
}

const CAUSES: Record<string, string> = {
  ACCOUNT_UNUSABLE: "The provider refuses all mail of the account",
  CALLS_FAILED: "Too many calls to the provider fail",
  INVALID_CREDENTIALS: "The provider refuses the credentials",
};

/** Why an account fails, in words. */
export const failureText = (cause: string): string => CAUSES[cause] ?? cause;
