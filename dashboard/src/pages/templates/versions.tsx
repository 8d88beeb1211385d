import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { History } from "lucide-react";
import { lazy, Suspense } from "react";
import { toast } from "sonner";
import type { TemplateDetail, TemplateVersionSummary } from "waypost";
import { waypost } from "@/api";
import { useMay, useSession } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Field, Select } from "@/ui/form";
import { Empty, LoadError, Skeleton, SkeletonRows } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { Time } from "@/ui/time";
import { refreshTemplates, versionsQuery } from "./queries";
import { VersionDialog } from "./version-dialog";
import { localeName } from "./words";
import type { TemplateSearch } from "./search";

const Comparison = lazy(() => import("./comparison"));

interface VersionsProps {
  template: TemplateDetail;
  search: TemplateSearch;
}

export function Versions({ template, search }: VersionsProps) {
  const navigate = useNavigate({ from: "/templates/$id" });
  const list = useQuery(versionsQuery(template.id));
  const set = (change: TemplateSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  if (list.isError && !list.data) return <LoadError error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <SkeletonRows />;
  const versions = list.data.data;
  if (versions.length === 0) {
    return (
      <Empty icon={<History />} title="No version yet">
        The first one is made when you save in the editor. Each save makes another one, and every one of them stays.
      </Empty>
    );
  }
  const current = new Set(list.data.currentVersions.map((version) => version.versionId));
  const names = versions.map((version) => [version.id, nameOf(version, current.has(version.id))] as const);
  return (
    <>
      {versions.length > 1 && <CompareChoice names={names} search={search} onChange={set} />}
      {search.from && search.to && (
        <div className="border-b border-line p-4 sm:px-5">
          <Suspense fallback={<Skeleton className="h-64 w-full" />}>
            <Comparison key={`${search.from} ${search.to}`} template={template} from={search.from} to={search.to} />
          </Suspense>
        </div>
      )}
      <VersionTable template={template} versions={versions} current={current} onShow={(id) => set({ show: id })} />
      {search.show && (
        <VersionDialog template={template} versionId={search.show} isCurrent={current.has(search.show)} onClose={() => set({ show: undefined })} />
      )}
    </>
  );
}

const nameOf = (version: TemplateVersionSummary, isCurrent: boolean): string =>
  [`Version ${version.versionNumber}`, version.locale && localeName(version.locale), isCurrent && "current"].filter(Boolean).join(", ");

interface CompareChoiceProps {
  names: readonly (readonly [id: string, name: string])[];
  search: TemplateSearch;
  onChange(change: TemplateSearch): void;
}

function CompareChoice({ names, search, onChange }: CompareChoiceProps) {
  const none = ["", "Choose a version"] as const;
  const isOn = search.from || search.to;
  return (
    <div className="flex flex-wrap items-end gap-3 border-b border-line p-4 sm:px-5">
      <Field label="Compare" className="min-w-0 flex-1 sm:max-w-72">
        {(control) => <Select {...control} value={search.from ?? ""} onChange={(event) => onChange({ from: event.target.value || undefined })} options={[none, ...names]} />}
      </Field>
      <Field label="with" className="min-w-0 flex-1 sm:max-w-72">
        {(control) => <Select {...control} value={search.to ?? ""} onChange={(event) => onChange({ to: event.target.value || undefined })} options={[none, ...names]} />}
      </Field>
      {isOn ? (
        <Button onClick={() => onChange({ from: undefined, to: undefined })}>Close the comparison</Button>
      ) : (
        <Button onClick={() => onChange({ from: names[1]?.[0], to: names[0]?.[0] })}>The last two</Button>
      )}
    </div>
  );
}

interface VersionTableProps {
  template: TemplateDetail;
  versions: readonly TemplateVersionSummary[];
  current: ReadonlySet<string>;
  onShow(id: string): void;
}

function VersionTable({ template, versions, current, onShow }: VersionTableProps) {
  const canEdit = useMay()("TEMPLATES_WRITE");
  const authors = useAuthors();
  return (
    <SimpleTable head={["Version", "Language", "Created", "By", <span key="a" className="sr-only">Actions</span>]} label="Versions">
      {versions.map((version) => (
        <tr key={version.id}>
          <td className="whitespace-nowrap tabular">
            <span className="inline-flex items-center gap-2">
              {version.versionNumber}
              {current.has(version.id) && <Badge tone="green">Current</Badge>}
            </span>
          </td>
          <td className="whitespace-nowrap">{localeName(version.locale)}</td>
          <td>
            <Time at={version.createdAt} />
          </td>
          <td className="whitespace-nowrap text-text-2">{authors(version.createdBy)}</td>
          <td>
            <div className="flex justify-end gap-1">
              <Button small kind="quiet" onClick={() => onShow(version.id)}>
                Show<span className="sr-only"> version {version.versionNumber}</span>
              </Button>
              {canEdit && !current.has(version.id) && <RollBack template={template} version={version} />}
            </div>
          </td>
        </tr>
      ))}
    </SimpleTable>
  );
}

/** Who made a version: the person, or the API key by its name. */
function useAuthors(): (id: string) => string {
  const { user } = useSession();
  const may = useMay();
  const keys = useQuery({
    queryKey: ["api-keys", "names"],
    queryFn: async () => new Map((await waypost.apiKeys.list({ limit: 100 })).data.map((key) => [key.id, key.name])),
    enabled: may("SETTINGS_WRITE"),
    staleTime: 60_000,
  });
  return (id) => {
    if (id === user.id) return "You";
    const key = keys.data?.get(id);
    return key ? `API key “${key}”` : "–";
  };
}

function RollBack({ template, version }: { template: TemplateDetail; version: TemplateVersionSummary }) {
  const run = async () => {
    await waypost.templates.rollback(template.id, version.id);
    toast.success(`Version ${version.versionNumber} is the current one`);
    await refreshTemplates();
  };
  return (
    <Confirm
      trigger={(open) => (
        <Button small kind="quiet" onClick={open}>
          Roll back to it<span className="sr-only">: version {version.versionNumber}</span>
        </Button>
      )}
      title={`Roll back to version ${version.versionNumber}?`}
      action="Roll back"
      danger={false}
      run={run}
    >
      Messages from now on are made from version {version.versionNumber}, in its language ({localeName(version.locale)}), with the layout and partials as they are now. No
      version is lost: you can come back in the same way.
    </Confirm>
  );
}
