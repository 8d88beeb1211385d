import { useQueries } from "@tanstack/react-query";
import type { AuditLogEntry, Permission } from "waypost";
import { waypost } from "@/api";
import { providerName } from "@/format";
import { useMay } from "@/session";

/** What one page of a list is called: enough to name the records of most organizations, for one request per kind. */
const LIMIT = 100;

interface Source {
  permission: Permission;
  names(): Promise<readonly (readonly [id: string, name: string])[]>;
}

/** Where the names of the records of a kind come from. The log itself has only their ids. */
const SOURCES: Record<string, Source> = {
  api_key: {
    permission: "SETTINGS_WRITE",
    names: async () => (await waypost.apiKeys.list({ limit: LIMIT })).data.map((key) => [key.id, key.name]),
  },
  provider: {
    permission: "PROVIDERS_READ",
    names: async () =>
      (await waypost.providers.list()).data.map((account) => [account.id, account.displayName || providerName(account.providerType)]),
  },
  routing_rule: {
    permission: "PROVIDERS_READ",
    names: async () => (await waypost.routingRules.list()).data.map((rule) => [rule.id, rule.name]),
  },
  template: {
    permission: "TEMPLATES_READ",
    names: async () => (await waypost.templates.list({ limit: LIMIT })).data.map((template) => [template.id, template.name]),
  },
  unsubscribe_group: {
    permission: "SETTINGS_WRITE",
    names: async () => (await waypost.unsubscribeGroups.list()).data.map((group) => [group.id, group.name]),
  },
  webhook_endpoint: {
    permission: "SETTINGS_WRITE",
    names: async () => (await waypost.webhookEndpoints.list()).data.map((endpoint) => [endpoint.id, endpoint.url]),
  },
};

/** The names of the records in some entries, as far as they can be found. */
export function useNames(entries: readonly AuditLogEntry[]): ReadonlyMap<string, string> {
  const may = useMay();
  const kinds = [...new Set(entries.map((entry) => entry.target.type))].filter((kind) => SOURCES[kind] && may(SOURCES[kind].permission));
  const found = useQueries({
    queries: kinds.map((kind) => ({
      queryKey: ["audit-log", "names", kind],
      queryFn: () => SOURCES[kind]!.names(),
      staleTime: 60_000,
    })),
  });
  const names = new Map<string, string>();
  // What an entry says is the oldest: a list says how the record is called now.
  for (const { target, metadata } of entries) {
    if (typeof metadata.name === "string") names.set(target.id, metadata.name);
  }
  for (const { data } of found) for (const [id, name] of data ?? []) names.set(id, name);
  return names;
}
