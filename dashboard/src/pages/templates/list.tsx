import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { FileText, Plus, Search } from "lucide-react";
import type { Template } from "waypost";
import { waypost } from "@/api";
import { plural } from "@/format";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { Card, Empty, Page } from "@/ui/page";
import { NotAllowed } from "@/ui/not-allowed";
import { PagedTable, usePaged } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import { NewTemplate } from "./new-template";
import { TYPES, typeName, typeTone } from "./words";
import type { TemplatesSearch } from "./search";

const MEANING = "What your messages are made of: HTML or MJML with variables, in versions and languages.";

export function TemplatesPage({ search }: { search: TemplatesSearch }) {
  const may = useMay();
  const navigate = useNavigate({ from: "/templates/" });
  const set = (change: TemplatesSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const list = usePaged<Template>(["templates", "list"], (cursor) => waypost.templates.list({ cursor, limit: 100 }), {
    enabled: may("TEMPLATES_READ"),
  });
  if (!may("TEMPLATES_READ")) return <Page title="Templates"><NotAllowed what="templates" /></Page>;
  const create = may("TEMPLATES_WRITE") && (
    <Button kind="primary" onClick={() => set({ new: true })}>
      <Plus />
      New template
    </Button>
  );
  const tags = [...new Set([...list.rows.flatMap((template) => template.tags), ...(search.tag ? [search.tag] : [])])].sort();
  const filtered = search.q || search.type || search.tag;
  return (
    <Page title="Templates" description={MEANING} actions={create}>
      <Card flush>
        <Filters search={search} tags={tags} onChange={set} />
        <PagedTable
          list={list}
          columns={COLUMNS}
          rowKey={(template) => template.id}
          label="Templates"
          only={(template) => matches(template, search)}
          filtered={filtered ? { what: "template", clear: () => set({ q: undefined, type: undefined, tag: undefined }) } : undefined}
          empty={
            <Empty icon={<FileText />} title="No templates yet" action={create}>
              With a template you send a subject, HTML and a text by one id, and change them without a new release of your program.
            </Empty>
          }
        />
      </Card>
      {search.new && may("TEMPLATES_WRITE") && <NewTemplate onClose={() => set({ new: undefined })} />}
    </Page>
  );
}

interface FiltersProps {
  search: TemplatesSearch;
  tags: readonly string[];
  onChange(change: TemplatesSearch): void;
}

function Filters({ search, tags, onChange }: FiltersProps) {
  return (
    <div className="flex flex-wrap gap-2 border-b border-line p-3 sm:px-5">
      <div className="relative min-w-48 flex-1 sm:max-w-72">
        <Search className="pointer-events-none absolute top-2.5 left-2.5 size-4 text-text-3" aria-hidden />
        <Input
          type="search"
          aria-label="Name, description or id"
          placeholder="Name, description or id"
          value={search.q ?? ""}
          onChange={(event) => onChange({ q: event.target.value || undefined })}
          className="pl-8"
        />
      </div>
      <Select
        aria-label="Type"
        className="w-40"
        value={search.type ?? ""}
        onChange={(event) => onChange({ type: (event.target.value || undefined) as TemplatesSearch["type"] })}
        options={[["", "All types"], ...TYPES.map(([type, name]) => [type, `${name}s`] as const)]}
      />
      {tags.length > 0 && (
        <Select
          aria-label="Tag"
          className="w-40"
          value={search.tag ?? ""}
          onChange={(event) => onChange({ tag: event.target.value || undefined })}
          options={[["", "All tags"], ...tags.map((tag) => [tag, tag] as const)]}
        />
      )}
    </div>
  );
}

function matches({ id, name, description, type, tags }: Template, search: TemplatesSearch): boolean {
  const text = search.q?.toLowerCase() ?? "";
  return (
    (!search.type || type === search.type) &&
    (!search.tag || tags.includes(search.tag)) &&
    (name.toLowerCase().includes(text) || (description ?? "").toLowerCase().includes(text) || id === text)
  );
}

const COLUMNS: readonly Column<Template>[] = [
  {
    head: "Name",
    width: "minmax(0, 2.5fr)",
    cell: (template) => (
      <div className="min-w-0">
        <Link to="/templates/$id" params={{ id: template.id }} className="block truncate font-medium hover:underline">
          {template.name}
        </Link>
        {template.description && <span className="block truncate text-[13px] text-text-3">{template.description}</span>}
      </div>
    ),
  },
  { head: "Type", width: "6rem", cell: (template) => <Badge tone={typeTone(template.type)}>{typeName(template.type)}</Badge> },
  {
    head: "Tags",
    wide: true,
    cell: (template) => (
      <span className="flex gap-1 overflow-hidden">
        {template.tags.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </span>
    ),
  },
  { head: "Used in", width: "9rem", wide: true, cell: (template) => <UsedIn template={template} /> },
  { head: "Changed", width: "7rem", align: "right", wide: true, cell: (template) => <Time at={template.updatedAt} /> },
];

/** How many templates a layout or partial is in. A template is in messages. */
function UsedIn({ template }: { template: Template }) {
  const isPart = template.type !== "TEMPLATE";
  const may = useMay();
  const uses = useQuery({
    queryKey: ["templates", template.id, "uses", "count"],
    queryFn: async () => {
      const page = await waypost.templates.listUses(template.id);
      return new Set(page.data.map((use) => use.templateId)).size;
    },
    enabled: isPart,
    staleTime: 60_000,
  });
  const link = "text-text-2 hover:text-text hover:underline";
  if (!isPart) {
    if (!template.currentVersionId) return <span className="text-text-3">No version yet</span>;
    if (!may("METRICS_READ")) return <span className="text-text-3">–</span>;
    return (
      <Link to={"/messages" as string} search={{ templateId: template.id } as never} className={link}>
        Messages
      </Link>
    );
  }
  if (uses.data === undefined) return <span className="text-text-3">{uses.isError ? "–" : "…"}</span>;
  if (uses.data === 0) return <span className="text-text-3">Not used</span>;
  return (
    <Link to="/templates/$id" params={{ id: template.id }} search={{ tab: "uses" }} className={link}>
      {plural(uses.data, "template")}
    </Link>
  );
}
