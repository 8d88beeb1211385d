import { useQuery } from "@tanstack/react-query";
import type { TemplateDetail, TemplateVersion } from "waypost";
import { LoadError, SkeletonRows } from "@/ui/page";
import { type Draft, draftOf, firstDraft } from "./draft";
import { TemplateEditor } from "./editor";
import { versionQuery } from "./queries";
import type { TemplateSearch } from "./search";

interface EditTabProps {
  template: TemplateDetail;
  search: TemplateSearch;
}

/** Opens the editor with the version that is asked for, with the current one of the language, or with a first draft. */
export function EditTab({ template, search }: EditTabProps) {
  const locale = search.locale ?? "";
  const own = template.currentVersions.find((version) => (version.locale ?? "") === locale)?.versionId;
  // A new language begins with what the default says.
  const other = template.currentVersionId ?? template.currentVersions[0]?.versionId;
  const wanted = search.version ?? own ?? other;
  const version = useQuery({ ...versionQuery(template.id, wanted ?? ""), enabled: wanted !== undefined });
  if (version.isError && !version.data) return <LoadError error={version.error} retry={() => void version.refetch()} />;
  if (wanted !== undefined && !version.data) return <SkeletonRows rows={10} />;
  const base = version.data && (search.version || own) ? version.data : undefined;
  return (
    <TemplateEditor
      key={`${locale} ${search.version ?? ""}`}
      template={template}
      search={search}
      base={base}
      start={startOf(template, locale, search.version, version.data)}
    />
  );
}

function startOf(template: TemplateDetail, locale: string, asked: string | undefined, version: TemplateVersion | undefined): Draft {
  if (!version) return firstDraft(template.type, locale);
  const draft = draftOf(version);
  return asked ? draft : { ...draft, locale };
}
