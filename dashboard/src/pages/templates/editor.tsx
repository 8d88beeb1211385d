/** The editor of a template: its fields and sources at the left, what becomes of them at the right. */

import { useMutation } from "@tanstack/react-query";
import { useBlocker, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { toast } from "sonner";
import { type TemplateDetail, type TemplateVersion, WaypostError } from "waypost";
import { queries, waypost } from "@/api";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { parseObject } from "@/ui/editor/json";
import { problemsAt } from "@/ui/editor/problems";
import { Form } from "@/ui/form";
import { Notice } from "@/ui/page";
import { contentOf, type Draft, isSame } from "./draft";
import { EnvelopeFields } from "./envelope-fields";
import { Languages } from "./languages";
import { useDraftPreview } from "./preview";
import { PreviewPane } from "./preview-pane";
import { refreshTemplates, versionQuery } from "./queries";
import { firstSample, keepSample, keptSample } from "./sample-data";
import { Sources } from "./sources";
import type { TemplateSearch } from "./search";

interface EditorProps {
  template: TemplateDetail;
  search: TemplateSearch;
  /** The version that is edited; none if this language has none. */
  base: TemplateVersion | undefined;
  start: Draft;
}

export function TemplateEditor({ template, search, base, start }: EditorProps) {
  const canEdit = useMay()("TEMPLATES_WRITE");
  const navigate = useNavigate({ from: "/templates/$id" });
  const [draft, setDraft] = useState(start);
  const [saved, setSaved] = useState<{ draft: Draft; number: number } | undefined>(base && { draft: start, number: base.versionNumber });
  const [sample, setSample] = useState(() => keptSample(template.id) ?? firstSample(parseObject(start.schema).value, start.source + start.subject));
  const isChanged = canEdit && !(saved && isSame(saved.draft, draft));
  const variables = parseObject(sample);
  const schema = parseObject(draft.schema);
  const lastVariables = useMemo(() => variables.value, [sample]);
  const preview = useDraftPreview(template, draft, lastVariables);
  const save = useSave(template, draft, (version) => {
    setSaved({ draft, number: version.versionNumber });
    if (search.version) void navigate({ search: (before) => ({ ...before, version: undefined }), ignoreBlocker: true });
  });
  const issues = save.error instanceof WaypostError && save.error.issues.length > 0 && preview.loading ? save.error.issues : preview.issues;
  const problems = useMemo(
    () => ({
      source: problemsAt(issues, draft.markup === "mjml" ? "mjmlSource" : "htmlContent"),
      text: problemsAt(issues, "textContent"),
      sample: variables.problem ? [variables.problem] : [],
      schema: schema.problem ? [schema.problem] : problemsAt(issues, "variablesSchema"),
    }),
    [issues, draft.markup, sample, draft.schema],
  );
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const changeSample = (text: string) => {
    setSample(text);
    keepSample(template.id, text);
  };
  return (
    <div className="grid gap-6 lg:grid-cols-2">
      <div className="min-w-0 space-y-4">
        <Languages template={template} locale={search.locale ?? ""} />
        <Outdated template={template} locale={search.locale ?? ""} saved={saved?.number} />
        <Form onSubmit={() => save.mutate()} error={save.error} label="Content">
          <fieldset disabled={!canEdit} className="min-w-0 space-y-5">
            <legend className="sr-only">Content</legend>
            {template.type === "TEMPLATE" && <EnvelopeFields draft={draft} onChange={change} error={save.error} issues={preview.issues} />}
            <Sources
              template={template}
              draft={draft}
              onChange={change}
              sample={sample}
              onSample={changeSample}
              problems={problems}
              pane={search.pane ?? "source"}
              onPane={(pane) => void navigate({ search: (before) => ({ ...before, pane: pane === "source" ? undefined : pane }), replace: true })}
              readOnly={!canEdit}
            />
          </fieldset>
        </Form>
        {canEdit && (
          <SaveBar
            changed={isChanged}
            number={saved?.number}
            busy={save.isPending}
            blocked={schema.problem && "The schema is not valid JSON."}
            onSave={() => save.mutate()}
            onDiscard={saved && (() => setDraft(saved.draft))}
          />
        )}
      </div>
      <PreviewPane
        preview={preview}
        from={draft.from}
        isPart={template.type !== "TEMPLATE"}
        view={search.view ?? "desktop"}
        onView={(view) => void navigate({ search: (before) => ({ ...before, view: view === "desktop" ? undefined : view }), replace: true })}
      />
      <Unsaved changed={isChanged && (saved !== undefined || !isSame(draft, start))} />
    </div>
  );
}

function useSave(template: TemplateDetail, draft: Draft, done: (version: TemplateVersion) => void) {
  return useMutation({
    mutationFn: () => waypost.templates.versions.create(template.id, contentOf(draft, template.type)),
    onSuccess: async (version) => {
      queries.setQueryData(versionQuery(template.id, version.id).queryKey, version);
      done(version);
      toast.success(`Version ${version.versionNumber} is saved, and is the current one`);
      await refreshTemplates();
    },
  });
}

interface SaveBarProps {
  changed: boolean;
  /** The version that is edited. */
  number: number | undefined;
  busy: boolean;
  blocked: string | undefined;
  onSave(): void;
  onDiscard: (() => void) | undefined;
}

function SaveBar({ changed, number, busy, blocked, onSave, onDiscard }: SaveBarProps) {
  const state = blocked ?? (!changed ? `Version ${number}, as it is saved` : number ? `Changed since version ${number}` : "Not saved yet");
  return (
    <div className="sticky bottom-0 z-10 -mx-4 flex flex-wrap items-center gap-x-3 gap-y-2 border-t border-line bg-ground px-4 py-3 sm:mx-0 sm:px-0">
      <Button kind="primary" onClick={onSave} busy={busy} disabled={!changed || blocked !== undefined}>
        Save as a new version
      </Button>
      {changed && onDiscard && (
        <Button kind="quiet" onClick={onDiscard}>
          Discard changes
        </Button>
      )}
      <p role="status" className="text-[13px] text-text-3">
        {state}
      </p>
    </div>
  );
}

/** Somebody else saved a version since this one was opened. */
function Outdated({ template, locale, saved }: { template: TemplateDetail; locale: string; saved: number | undefined }) {
  const current = template.currentVersions.find((version) => (version.locale ?? "") === locale)?.versionNumber;
  if (!current || !saved || current <= saved) {
    return current && saved && current < saved ? (
      <Notice kind="info">You edit version {saved}. Messages are made from version {current}.</Notice>
    ) : null;
  }
  return <Notice kind="info">You edit version {saved}. The current one is version {current}: what you save replaces it.</Notice>;
}

/** Asks before changes are lost. */
function Unsaved({ changed }: { changed: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => {
      if (!changed) return false;
      if (current.pathname !== next.pathname) return true;
      const [before, after] = [current.search as TemplateSearch, next.search as TemplateSearch];
      return before.tab !== after.tab || before.locale !== after.locale || before.version !== after.version;
    },
    enableBeforeUnload: () => changed,
    withResolver: true,
  });
  if (blocker.status !== "blocked") return null;
  return (
    <Dialog open onClose={blocker.reset} title="Leave without saving?" description="What you changed since the last version is lost.">
      <div className="flex justify-end gap-2">
        <Button onClick={blocker.reset}>Stay here</Button>
        <Button kind="danger" onClick={blocker.proceed}>
          Leave without saving
        </Button>
      </div>
    </Dialog>
  );
}
