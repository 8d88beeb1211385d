import { queryOptions } from "@tanstack/react-query";
import { queries, waypost } from "@/api";

export const templateQuery = (id: string) => queryOptions({ queryKey: ["templates", id], queryFn: () => waypost.templates.get(id) });

export const versionsQuery = (id: string) =>
  queryOptions({ queryKey: ["templates", id, "versions"], queryFn: () => waypost.templates.versions.list(id) });

export const versionQuery = (id: string, versionId: string) =>
  queryOptions({ queryKey: ["templates", id, "versions", versionId], queryFn: () => waypost.templates.versions.get(id, versionId) });

/** All templates, for choices of one. Up to a thousand. */
export const allTemplatesQuery = queryOptions({
  queryKey: ["templates", "all"],
  queryFn: async () => {
    const all = [];
    for await (const template of waypost.templates.list({ limit: 100 })) {
      all.push(template);
      if (all.length >= 1_000) break;
    }
    return all;
  },
});

/** After a change: all lists, versions and previews of templates are asked for again. */
export const refreshTemplates = (): Promise<void> => queries.invalidateQueries({ queryKey: ["templates"] });
