import { Search } from "lucide-react";
import { type FormEvent, useEffect, useId, useState } from "react";
import { useGroupOptions } from "@/pages/unsubscribe-groups/groups";
import { Button } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { SPAN_OPTIONS, type Span } from "@/ui/search-params";
import { type Source, SOURCES, meaning } from "./meaning";

export interface SuppressionFilters {
  email?: string | undefined;
  source?: Source | undefined;
  group?: string | undefined;
  since?: Span | undefined;
}

interface FiltersProps {
  filters: SuppressionFilters;
  onChange(change: SuppressionFilters): void;
}

/** The search by an address, and the filters. */
export function Filters({ filters, onChange }: FiltersProps) {
  const [email, setEmail] = useState(filters.email ?? "");
  const id = useId();
  useEffect(() => setEmail(filters.email ?? ""), [filters.email]);
  const groups = useGroupOptions("All groups");
  const search = (event: FormEvent) => {
    event.preventDefault();
    onChange({ email: email.trim() || undefined });
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      <form onSubmit={search} role="search" className="flex w-full gap-2 lg:w-auto lg:min-w-72 lg:flex-1">
        <div className="relative min-w-0 flex-1">
          <Search className="pointer-events-none absolute top-2.5 left-3 size-4 text-text-3" aria-hidden />
          <label htmlFor={id} className="sr-only">
            Search by the whole address
          </label>
          <Input
            id={id}
            type="search"
            className="pl-9!"
            autoComplete="off"
            placeholder="Is ada@example.org suppressed?"
            value={email}
            onChange={(event) => {
              setEmail(event.target.value);
              // The cross of the field, or a text that was deleted.
              if (!event.target.value && filters.email) onChange({ email: undefined });
            }}
          />
        </div>
        <Button type="submit">Search</Button>
      </form>
      <Select
        aria-label="Source"
        className="min-w-36 flex-1 sm:flex-none"
        options={[["", "All sources"], ...SOURCES.map((one) => [one, meaning(one).label] as const)]}
        value={filters.source ?? ""}
        onChange={(event) => onChange({ source: (event.target.value || undefined) as Source | undefined })}
      />
      <Select
        aria-label="Unsubscribe group"
        className="min-w-36 flex-1 sm:max-w-52 sm:flex-none"
        options={groups}
        value={filters.group ?? ""}
        onChange={(event) => onChange({ group: event.target.value || undefined })}
      />
      <Select
        aria-label="Since"
        className="min-w-32 flex-1 sm:flex-none"
        options={SPAN_OPTIONS}
        value={filters.since ?? ""}
        onChange={(event) => onChange({ since: (event.target.value || undefined) as Span | undefined })}
      />
    </div>
  );
}
