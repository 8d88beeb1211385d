import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ListFilter, Search, X } from "lucide-react";
import { Popover, ToggleGroup } from "radix-ui";
import { type FormEvent, useEffect, useState } from "react";
import { date, exactTime, words } from "@/format";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Input } from "@/ui/form";
import { templateChoicesQuery } from "./data";
import { FilterPanel } from "./filter-panel";
import { type Filters, hasFilters, type MessagesSearch, readQuery } from "./search";

interface FilterBarProps {
  search: MessagesSearch;
  onSearch(search: MessagesSearch): void;
}

/** One box for what people look for most, all filters behind a button, and a chip for each filter that is on. */
export function FilterBar({ search, onSearch }: FilterBarProps) {
  const [open, setOpen] = useState(false);
  return (
    <div className="mb-4 space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <QuickSearch search={search} onSearch={onSearch} />
        <Popover.Root open={open} onOpenChange={setOpen}>
          <Popover.Trigger asChild>
            <Button>
              <ListFilter aria-hidden />
              Filter
            </Button>
          </Popover.Trigger>
          <Popover.Portal>
            <Popover.Content
              align="end"
              sideOffset={6}
              collisionPadding={12}
              aria-label="Filters"
              className="z-40 max-h-(--radix-popover-content-available-height) w-[min(36rem,calc(100vw-1.5rem))] overflow-y-auto rounded-lg border border-line bg-raised p-4 shadow-lg"
            >
              <FilterPanel
                search={search}
                onApply={(next) => {
                  setOpen(false);
                  onSearch(next);
                }}
              />
            </Popover.Content>
          </Popover.Portal>
        </Popover.Root>
        <LiveOrTests search={search} onSearch={onSearch} />
      </div>
      {hasFilters(search) && <Chips search={search} onSearch={onSearch} />}
    </div>
  );
}

function QuickSearch({ search, onSearch }: FilterBarProps) {
  const shown = search.recipient ?? search.search ?? "";
  const [text, setText] = useState(shown);
  const navigate = useNavigate();
  useEffect(() => setText(shown), [shown]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const query = readQuery(text);
    if ("id" in query) void navigate({ to: "/messages/$id", params: { id: query.id } });
    else onSearch({ ...search, search: query.search, recipient: query.recipient });
  };
  return (
    <form role="search" onSubmit={submit} className="relative min-w-0 flex-1 basis-60">
      <Search className="pointer-events-none absolute top-2.5 left-3 size-4 text-text-3" aria-hidden />
      <Input
        type="search"
        value={text}
        onChange={(event) => setText(event.target.value)}
        aria-label="Find by recipient, subject or message id"
        placeholder="A recipient's address, words of a subject, a message id"
        className="pl-9"
      />
    </form>
  );
}

function LiveOrTests({ search, onSearch }: FilterBarProps) {
  return (
    <ToggleGroup.Root
      type="single"
      value={search.test ? "tests" : "live"}
      onValueChange={(value) => value && onSearch({ ...search, test: value === "tests" ? true : undefined })}
      aria-label="Live messages or tests"
      className="inline-flex h-9 items-center rounded-md border border-line bg-surface p-0.5"
    >
      {(["live", "tests"] as const).map((value) => (
        <ToggleGroup.Item
          key={value}
          value={value}
          className="h-full rounded px-2.5 text-[13px] font-medium text-text-2 hover:text-text data-[state=on]:bg-sunken data-[state=on]:text-text"
        >
          {words(value)}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}

const LABELS: Record<keyof Filters, string> = {
  status: "Status",
  search: "Subject has",
  recipient: "To",
  from: "From",
  tag: "Tag",
  templateId: "Template",
  providerAccountId: "Account",
  providerMessageId: "Provider's message id",
  createdFrom: "Accepted from",
  createdTo: "Accepted until",
};

const FILTERS = Object.keys(LABELS) as (keyof Filters)[];

function Chips({ search, onSearch }: FilterBarProps) {
  const text = useFilterText();
  return (
    <ul aria-label="Filters that are on" className="flex flex-wrap items-center gap-2">
      {FILTERS.map((name) => {
        const value = text(search, name);
        return (
          value !== undefined && (
            <li key={name} className="inline-flex h-7 max-w-full items-center rounded-full border border-line bg-surface pl-3 text-[13px]">
              <span className="truncate">
                <span className="text-text-3">{LABELS[name]} </span>
                <span className="font-medium">{value}</span>
              </span>
              <button
                type="button"
                aria-label={`Remove the filter ${LABELS[name]} ${value}`}
                onClick={() => onSearch({ ...search, [name]: undefined })}
                className="ml-1 flex size-6 shrink-0 items-center justify-center rounded-full text-text-3 hover:text-text"
              >
                <X className="size-3.5" aria-hidden />
              </button>
            </li>
          )
        );
      })}
      <li>
        <Button kind="quiet" small onClick={() => onSearch({ test: search.test })}>
          Clear all
        </Button>
      </li>
    </ul>
  );
}

/** The value of a filter in words: names in place of ids. */
function useFilterText(): (search: MessagesSearch, name: keyof Filters) => string | undefined {
  const may = useMay();
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data;
  const templates = useQuery({ ...templateChoicesQuery, enabled: may("TEMPLATES_READ") }).data;
  return (search, name) => {
    if (name === "status") return search.status?.map(words).join(" or ");
    const value = search[name];
    if (value === undefined) return undefined;
    if (name === "providerAccountId") return accounts?.find((account) => account.id === value)?.displayName ?? value;
    if (name === "templateId") return templates?.find((template) => template.id === value)?.name ?? value;
    if (name === "createdFrom" || name === "createdTo") return value.includes("T") ? exactTime(value) : date(value);
    return value;
  };
}
