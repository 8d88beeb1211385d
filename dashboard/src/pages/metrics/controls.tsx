import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useId, useMemo, useState } from "react";
import { templateChoicesQuery } from "@/pages/messages/data";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { Notice } from "@/ui/page";
import type { MetricsProps } from "./metrics";
import { browserZone, dayIn, type MetricsSearch, type MetricsSpan, period, STEPS, type Step, stepOf } from "./search";

const SPAN_OPTIONS: readonly (readonly [MetricsSpan, string])[] = [
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
  ["own", "Own days"],
];

const STEP_NAMES: Record<Step, string> = { hour: "By hour", day: "By day", week: "By week", month: "By month" };

/** The period, the time zone and the filters of everything on the page. */
export function Controls({ search, onSearch }: MetricsProps) {
  const setSpan = (span: MetricsSpan) => {
    const { timeZone } = period(search);
    const days = span === "own" ? { from: search.from ?? dayIn(timeZone, 29), to: search.to ?? dayIn(timeZone) } : { from: undefined, to: undefined };
    onSearch({ span, step: undefined, ...days });
  };
  return (
    <div className="space-y-3">
      <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
        <Labelled label="Period">
          {(id) => <Select id={id} value={search.span ?? "30d"} onChange={(event) => setSpan(event.target.value as MetricsSpan)} options={SPAN_OPTIONS} />}
        </Labelled>
        <Labelled label="Points">
          {(id) => (
            <Select id={id} value={stepOf(search)} onChange={(event) => onSearch({ step: event.target.value as Step })} options={STEPS.map((step) => [step, STEP_NAMES[step]])} />
          )}
        </Labelled>
        <ZoneChoice search={search} onSearch={onSearch} />
        <Filters search={search} onSearch={onSearch} />
      </div>
      {search.span === "own" && <OwnDays search={search} onSearch={onSearch} />}
      <TooManyFilters search={search} onSearch={onSearch} />
    </div>
  );
}

function Labelled({ label, children }: { label: string; children(id: string): ReactNode }) {
  const id = useId();
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block text-[13px] text-text-2">
        {label}
      </label>
      {children(id)}
    </div>
  );
}

function OwnDays({ search, onSearch }: MetricsProps) {
  const { from, to, timeZone } = period(search);
  return (
    <div className="flex flex-wrap gap-3">
      <Labelled label="First day">
        {(id) => <Input id={id} type="date" value={from} max={to} onChange={(event) => event.target.value && onSearch({ from: event.target.value })} />}
      </Labelled>
      <Labelled label="Last day">
        {(id) => (
          <Input id={id} type="date" value={to ?? dayIn(timeZone)} min={from} onChange={(event) => event.target.value && onSearch({ to: event.target.value })} />
        )}
      </Labelled>
    </div>
  );
}

function ZoneChoice({ search, onSearch }: MetricsProps) {
  const shown = search.zone ?? browserZone();
  const options = useMemo(() => [...new Set([shown, browserZone(), "UTC", ...Intl.supportedValuesOf("timeZone")])].map((zone) => [zone, zone.replaceAll("_", " ")] as const), [shown]);
  return (
    <Labelled label="Time zone">
      {(id) => (
        <Select
          id={id}
          value={shown}
          onChange={(event) => onSearch({ zone: event.target.value === browserZone() ? undefined : event.target.value })}
          options={options}
        />
      )}
    </Labelled>
  );
}

function Filters({ search, onSearch }: MetricsProps) {
  const may = useMay();
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data ?? [];
  const templates = useQuery({ ...templateChoicesQuery, enabled: may("TEMPLATES_READ") }).data ?? [];
  return (
    <>
      <Labelled label="Account">
        {(id) => (
          <Select
            id={id}
            value={search.account ?? ""}
            onChange={(event) => onSearch({ account: event.target.value || undefined })}
            options={withKnown("All accounts", accounts.map((one) => [one.id, one.displayName]), search.account)}
          />
        )}
      </Labelled>
      <Labelled label="Template">
        {(id) => (
          <Select
            id={id}
            value={search.template ?? ""}
            onChange={(event) => onSearch({ template: event.target.value || undefined })}
            options={withKnown("All templates", templates.map((one) => [one.id, one.name]), search.template)}
          />
        )}
      </Labelled>
      <TagFilter tag={search.tag} onTag={(tag) => onSearch({ tag })} />
    </>
  );
}

/** The choices, and what the URL names though it is not among them. */
function withKnown(any: string, options: readonly (readonly [string, string])[], value: string | undefined): readonly (readonly [string, string])[] {
  const unknown = value === undefined || options.some(([id]) => id === value) ? [] : ([[value, value]] as const);
  return [["", any], ...options, ...unknown];
}

function TagFilter({ tag, onTag }: { tag: string | undefined; onTag(tag: string | undefined): void }) {
  const [text, setText] = useState(tag ?? "");
  useEffect(() => setText(tag ?? ""), [tag]);
  const apply = () => (text.trim() || undefined) !== tag && onTag(text.trim() || undefined);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    apply();
  };
  return (
    <Labelled label="Tag">
      {(id) => (
        <form onSubmit={submit}>
          <Input id={id} type="search" value={text} placeholder="All tags" onChange={(event) => setText(event.target.value)} onBlur={apply} />
        </form>
      )}
    </Labelled>
  );
}

/** The API takes two of the three filters at most. */
export const hasTooManyFilters = ({ tag, account, template }: MetricsSearch): boolean => tag !== undefined && account !== undefined && template !== undefined;

function TooManyFilters({ search, onSearch }: MetricsProps) {
  if (!hasTooManyFilters(search)) return null;
  return (
    <Notice
      kind="warning"
      action={
        <Button small onClick={() => onSearch({ tag: undefined })}>
          Leave out the tag
        </Button>
      }
    >
      Waypost counts with two filters at most: choose two of account, template and tag.
    </Notice>
  );
}
