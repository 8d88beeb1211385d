import { ArrowDown, ArrowUp, Plus, X } from "lucide-react";
import type { ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { Button, IconButton } from "@/ui/button";
import { Field, Select } from "@/ui/form";
import { moved } from "./order";

/** The API takes so many. */
const MOST = 5;

export const accountOptions = (accounts: readonly ProviderAccount[]): [string, string][] =>
  accounts.map((account) => [
    account.id,
    `${account.displayName} (${[providerName(account.providerType), account.region?.toUpperCase(), !account.isActive && "paused"].filter(Boolean).join(", ")})`,
  ]);

interface Props {
  accounts: readonly ProviderAccount[];
  /** The accounts that send; they are no fallbacks of their own. */
  senders: readonly string[];
  chosen: readonly string[];
  onChange(chosen: readonly string[]): void;
}

/** The accounts that stand in, in their order. */
export function Fallbacks({ accounts, senders, chosen, onChange }: Props) {
  const free = accounts.filter((account) => !senders.includes(account.id) && !chosen.includes(account.id));
  return (
    <Field label="Fallbacks" path="fallbackProviderAccountIds" aside={`up to ${MOST}`}>
      {(control) => (
        <div id={control.id} role="group" aria-label="Fallbacks" aria-describedby={control["aria-describedby"]} className="space-y-2">
          {chosen.length === 0 && (
            <p className="text-[13px] text-text-3">{senders.length > 1 ? "None: if no account can send, the mail waits." : "None: if the account cannot send, the mail waits for it."}</p>
          )}
          {chosen.map((id, at) => (
            <div key={id} className="flex items-center gap-1">
              <span className="w-5 text-center text-[13px] text-text-3 tabular">{at + 1}</span>
              <Select
                aria-label={`Fallback ${at + 1}`}
                className="min-w-0 flex-1"
                value={id}
                onChange={(event) => onChange(chosen.with(at, event.target.value))}
                options={accountOptions(accounts.filter((account) => account.id === id || free.includes(account)))}
              />
              <IconButton label={`Move fallback ${at + 1} up`} icon={<ArrowUp />} disabled={at === 0} onClick={() => onChange(moved(chosen, at, at - 1))} />
              <IconButton
                label={`Move fallback ${at + 1} down`}
                icon={<ArrowDown />}
                disabled={at === chosen.length - 1}
                onClick={() => onChange(moved(chosen, at, at + 1))}
              />
              <IconButton label={`Remove fallback ${at + 1}`} icon={<X />} onClick={() => onChange(chosen.toSpliced(at, 1))} />
            </div>
          ))}
          {chosen.length < MOST && free.length > 0 && (
            <Button small onClick={() => onChange([...chosen, free[0]!.id])}>
              <Plus aria-hidden />
              Add a fallback
            </Button>
          )}
        </div>
      )}
    </Field>
  );
}
