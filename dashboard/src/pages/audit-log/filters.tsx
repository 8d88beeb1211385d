import type { AuditLogEntry } from "waypost";
import { Button } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { ACTIONS, actionLabel, KINDS } from "./sentences";

/** What the address of the page says. */
export interface AuditSearch {
  targetType?: string;
  action?: string;
  targetId?: string;
  from?: string;
  to?: string;
  /** The entry whose details are shown. */
  entry?: AuditLogEntry["id"];
}

const FILTERS = ["targetType", "action", "targetId", "from", "to"] as const;

export const isFiltered = (search: AuditSearch): boolean => FILTERS.some((name) => search[name] !== undefined);

const KIND_OPTIONS = [["", "Every kind of record"], ...Object.entries(KINDS).map(([type, [label]]) => [type, label])].sort((a, b) =>
  a[0] === "" ? -1 : b[0] === "" ? 1 : a[1]!.localeCompare(b[1]!),
) as unknown as readonly (readonly [string, string])[];

interface FiltersProps {
  search: AuditSearch;
  onChange(search: AuditSearch): void;
}

export function Filters({ search, onChange }: FiltersProps) {
  const set = (change: Partial<AuditSearch>) => onChange({ ...search, entry: undefined, ...change });
  const actions = ACTIONS.filter((action) => search.targetType && action.startsWith(`${search.targetType}.`));
  return (
    <div className="flex flex-wrap items-end gap-2 border-b border-line px-4 py-3 sm:px-5">
      <Select
        aria-label="Kind of record"
        className="w-full sm:w-52"
        value={search.targetType ?? ""}
        onChange={(event) => set({ targetType: event.target.value || undefined, action: undefined })}
        options={KIND_OPTIONS}
      />
      {search.targetType && (
        <Select
          aria-label="What was done"
          className="w-full sm:w-48"
          value={search.action ?? ""}
          onChange={(event) => set({ action: event.target.value || undefined })}
          options={[["", "Every change"], ...actions.map((action) => [action, actionLabel(action)] as const)]}
        />
      )}
      <div className="flex w-full items-center gap-2 sm:w-auto">
        <Input type="date" aria-label="From" className="min-w-0 sm:w-38!" max={search.to} value={search.from ?? ""} onChange={(event) => set({ from: event.target.value || undefined })} />
        <span className="text-text-3">to</span>
        <Input type="date" aria-label="To" className="min-w-0 sm:w-38!" min={search.from} value={search.to ?? ""} onChange={(event) => set({ to: event.target.value || undefined })} />
      </div>
      {search.targetId && (
        <span className="inline-flex h-9 max-w-full items-center gap-2 rounded-md bg-accent-soft px-3 text-[13px] text-accent-text">
          <span className="truncate">
            Only the record <span className="font-mono">{search.targetId.slice(0, 8)}…</span>
          </span>
        </span>
      )}
      {isFiltered(search) && (
        <Button kind="quiet" onClick={() => onChange({})}>
          Clear the filters
        </Button>
      )}
    </div>
  );
}
