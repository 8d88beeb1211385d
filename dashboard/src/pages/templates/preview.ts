/** The preview of what the editor holds. */

import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { type ErrorIssue, type PreviewTemplateDraftRequest, type Template, type TemplatePreview, WaypostError } from "waypost";
import { waypost } from "@/api";
import { useDebounced } from "@/ui/debounced";
import type { JsonObject } from "@/ui/editor/json";
import { type Draft, previewed } from "./draft";

export interface DraftPreview {
  /** The last one that could be rendered. */
  shown: TemplatePreview | undefined;
  loading: boolean;
  /** What is wrong with the draft, by the fields of a version. */
  issues: readonly ErrorIssue[];
  error: unknown;
}

const NONE: readonly ErrorIssue[] = [];

const issuesOf = (error: unknown): readonly ErrorIssue[] =>
  error instanceof WaypostError ? error.issues : NONE;

export function useDraftPreview(template: Template, draft: Draft, variables: JsonObject | undefined): DraftPreview {
  const body = useMemo((): PreviewTemplateDraftRequest => ({ ...previewed(draft, template.type), variables }), [draft, variables, template.type]);
  const settled = useDebounced(body);
  const query = useQuery({
    queryKey: ["templates", template.id, "preview", settled],
    queryFn: () => waypost.templates.previewDraft(template.id, settled),
    gcTime: 30_000,
  });
  const last = useRef<TemplatePreview>(undefined);
  if (query.data) last.current = query.data;
  const issues = useMemo(() => issuesOf(query.error), [query.error]);
  return { shown: last.current, loading: query.isFetching || settled !== body, issues, error: query.error };
}
