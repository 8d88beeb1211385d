import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { words } from "@/format";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Checkbox, Field, Input, Select } from "@/ui/form";
import { templateChoicesQuery } from "./data";
import { type KnownStatus, type MessagesSearch, STATUSES, STATUS_TEXT, type TextFilter } from "./search";

interface FilterPanelProps {
  search: MessagesSearch;
  onApply(search: MessagesSearch): void;
}

/** All filters of the list. They combine: a message must meet each of them. */
export function FilterPanel({ search, onApply }: FilterPanelProps) {
  const [draft, setDraft] = useState(search);
  const set = (change: Partial<MessagesSearch>) => setDraft((before) => ({ ...before, ...change }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onApply(draft);
  };
  const text = (name: TextFilter, label: string, placeholder: string) => (
    <Field label={label}>
      {(control) => (
        <Input {...control} value={draft[name] ?? ""} placeholder={placeholder} onChange={(event) => set({ [name]: event.target.value || undefined })} />
      )}
    </Field>
  );
  return (
    <form onSubmit={submit} className="space-y-4" aria-label="Filters">
      <StatusChoice status={draft.status ?? []} onChange={(status) => set({ status: status.length > 0 ? status : undefined })} />
      <div className="grid gap-4 sm:grid-cols-2">
        {text("recipient", "To", "ada@example.org")}
        {text("from", "From", "shop@example.com or example.com")}
        {text("search", "Subject has", "receipt")}
        {text("tag", "Tag", "receipts")}
        <TemplateField value={draft.templateId} onChange={(templateId) => set({ templateId })} />
        <AccountField value={draft.providerAccountId} onChange={(providerAccountId) => set({ providerAccountId })} />
        <TimeField label="Accepted from" dayAs="00:00" value={draft.createdFrom} onChange={(createdFrom) => set({ createdFrom })} />
        <TimeField label="Accepted until" dayAs="23:59" value={draft.createdTo} onChange={(createdTo) => set({ createdTo })} />
        {text("providerMessageId", "Provider's message id", "as the provider shows it")}
      </div>
      <div className="flex gap-2">
        <Button kind="primary" type="submit">
          Show messages
        </Button>
        <Button onClick={() => onApply({ test: search.test })}>Clear</Button>
      </div>
    </form>
  );
}

function StatusChoice({ status, onChange }: { status: readonly KnownStatus[]; onChange(status: readonly KnownStatus[]): void }) {
  return (
    <fieldset>
      <legend className="mb-2 text-[13px] font-medium">Status</legend>
      <div className="grid grid-cols-2 gap-2 sm:grid-cols-3">
        {STATUSES.map((one) => (
          <div key={one} title={STATUS_TEXT[one]}>
            <Checkbox
              label={words(one)}
              checked={status.includes(one)}
              onChange={(checked) => onChange(STATUSES.filter((other) => (other === one ? checked : status.includes(other))))}
            />
          </div>
        ))}
      </div>
    </fieldset>
  );
}

interface ChoiceProps {
  value: string | undefined;
  onChange(value: string | undefined): void;
}

function TimeField({ label, dayAs, value, onChange }: ChoiceProps & { label: string; dayAs: string }) {
  // A link may name a day, such as 2026-11-20: it is shown as its first or its last minute.
  const shown = value && !value.includes("T") ? `${value}T${dayAs}` : (value ?? "");
  return (
    <Field label={label}>
      {(control) => <Input {...control} type="datetime-local" value={shown} onChange={(event) => onChange(event.target.value || undefined)} />}
    </Field>
  );
}

function TemplateField({ value, onChange }: ChoiceProps) {
  const may = useMay();
  const templates = useQuery({ ...templateChoicesQuery, enabled: may("TEMPLATES_READ") }).data ?? [];
  return <Choice label="Template" any="Any template" value={value} onChange={onChange} options={templates.map((one) => [one.id, one.name])} />;
}

function AccountField({ value, onChange }: ChoiceProps) {
  const may = useMay();
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data ?? [];
  return <Choice label="Provider account" any="Any account" value={value} onChange={onChange} options={accounts.map((one) => [one.id, one.displayName])} />;
}

interface OptionsProps extends ChoiceProps {
  label: string;
  any: string;
  options: readonly (readonly [id: string, name: string])[];
}

function Choice({ label, any, value, onChange, options }: OptionsProps) {
  // What the URL names may be gone, or beyond the first hundred.
  const known = value === undefined || options.some(([id]) => id === value) ? [] : ([[value, value]] as const);
  return (
    <Field label={label}>
      {(control) => (
        <Select {...control} value={value ?? ""} onChange={(event) => onChange(event.target.value || undefined)} options={[["", any], ...options, ...known]} />
      )}
    </Field>
  );
}
