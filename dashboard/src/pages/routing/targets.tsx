import { Plus, X } from "lucide-react";
import type { ProviderAccount } from "waypost";
import { Button, IconButton } from "@/ui/button";
import { Field, Input, Select } from "@/ui/form";
import { type Draft, hasRamp, type TargetDraft, wholeOf } from "./draft";
import { accountOptions } from "./fallbacks";
import { beginsLater, shareText, sharesOf } from "./senders";
import { RampBounds, WarmUp } from "./warm-up";
import { OVER_CAP, PREFER, STICKY } from "./words";

/** The API takes so many. */
const MOST = 10;
/** Two new accounts get the half each. */
const NEW_WEIGHT = "50";

export const newTarget = (providerAccountId: string, weight = NEW_WEIGHT): TargetDraft => ({
  providerAccountId,
  weight,
  dailyCap: "",
  hourlyCap: "",
  ramp: undefined,
});

interface TargetsProps {
  draft: Draft;
  change(part: Partial<Draft>): void;
  accounts: readonly ProviderAccount[];
  isActive(id: string): boolean;
  /** The error of the last attempt to save. */
  error: unknown;
}

/** The accounts that share the mail: what part each gets, and how much at most. */
export function Targets({ draft, change, accounts, isActive, error }: TargetsProps) {
  const { targets } = draft;
  const chosen = targets.map((target) => target.providerAccountId);
  const free = accounts.filter((account) => !chosen.includes(account.id));
  const shares = draftShares(targets, isActive);
  // A fallback is the last choice: it would no longer stand in.
  const next = free.find((account) => account.isActive && !draft.fallbacks.includes(account.id)) ?? free[0];
  return (
    <div className="space-y-4">
      <div className="space-y-3">
        {targets.map((target, at) => (
          <TargetFields
            key={at}
            at={at}
            target={target}
            share={shares[at]!}
            options={accountOptions(accounts.filter((account) => account.id === target.providerAccountId || free.includes(account)))}
            isRemoved={!accounts.some((account) => account.id === target.providerAccountId)}
            isPaused={!isActive(target.providerAccountId)}
            onChange={(part) => change({ targets: targets.with(at, { ...target, ...part }) })}
            error={error}
            onRemove={targets.length > 1 ? () => change({ targets: targets.toSpliced(at, 1) }) : undefined}
          />
        ))}
      </div>
      <p className="text-[13px] text-text-3">
        Weights are relative: 70 and 30 share the mail as 7 and 3 do. Caps count the recipients of this rule's mail; the hour and the day are those of
        UTC. An empty cap is none.
      </p>
      {targets.length < MOST && next && (
        <Button small onClick={() => change({ targets: [...targets, newTarget(next.id, targets.at(-1)?.weight)] })}>
          <Plus aria-hidden />
          Add an account
        </Button>
      )}
      <Choice label="How the mail is spread" path="sticky" value={draft.sticky} choices={STICKY} onChange={(sticky) => change({ sticky })} />
      <Choice label="What decides the shares" path="prefer" value={draft.prefer} choices={PREFER} onChange={(prefer) => change({ prefer })} />
      {hasRamp(draft) && <RampBounds draft={draft} change={change} />}
      {hasCap(targets) && (
        <Choice label="When an account has reached its cap" path="overCap" value={draft.overCap} choices={OVER_CAP} onChange={(overCap) => change({ overCap })} />
      )}
    </div>
  );
}

/** The shares, as far as the weights are numbers. */
export function draftShares(targets: readonly TargetDraft[], isActive: (id: string) => boolean): number[] {
  const weights = targets.map(({ providerAccountId, weight, ramp }) => ({ providerAccountId, weight: Number(wholeOf(weight)) || 0, ramp }));
  return sharesOf(weights, isActive);
}

const hasCap = (targets: readonly TargetDraft[]): boolean => targets.some((target) => !!target.ramp || target.dailyCap.trim() !== "" || target.hourlyCap.trim() !== "");

interface TargetFieldsProps {
  at: number;
  target: TargetDraft;
  share: number;
  options: readonly [string, string][];
  isRemoved: boolean;
  isPaused: boolean;
  error: unknown;
  onChange(part: Partial<TargetDraft>): void;
  onRemove: (() => void) | undefined;
}

function TargetFields({ at, target, share, options, isRemoved, isPaused, error, onChange, onRemove }: TargetFieldsProps) {
  const label = `Account ${at + 1}`;
  const path = `targets.${at}`;
  const number = (name: "weight" | "dailyCap" | "hourlyCap", title: string, placeholder?: string) => (
    <Field label={title} path={`${path}.${name}`}>
      {(control) => (
        <Input {...control} inputMode="numeric" value={target[name]} placeholder={placeholder} onChange={(event) => onChange({ [name]: event.target.value })} />
      )}
    </Field>
  );
  return (
    <div role="group" aria-label={label} className="space-y-3 rounded-md border border-line p-3">
      <div className="flex items-end gap-1">
        <Field
          label={label}
          path={`${path}.providerAccountId`}
          className="min-w-0 flex-1"
          aside={
            <span className="tabular text-text-2">
              {isPaused ? "paused, gets nothing now" : beginsLater(target.ramp) ? "gets nothing yet" : `gets ${shareText(share)}`}
            </span>
          }
        >
          {(control) => (
            <Select
              {...control}
              value={target.providerAccountId}
              onChange={(event) => onChange({ providerAccountId: event.target.value })}
              options={isRemoved ? [[target.providerAccountId, "removed account"], ...options] : options}
            />
          )}
        </Field>
        <IconButton label={`Remove account ${at + 1}`} icon={<X />} className="mb-0.5" disabled={!onRemove} onClick={onRemove} />
      </div>
      <div className="grid grid-cols-3 items-start gap-3">
        {number("weight", "Weight")}
        {number("dailyCap", "Daily cap", "none")}
        {number("hourlyCap", "Hourly cap", "none")}
      </div>
      <WarmUp path={`${path}.ramp`} ramp={target.ramp} dailyCap={target.dailyCap} error={error} onChange={(ramp) => onChange({ ramp })} />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  path: string;
  value: string;
  choices: readonly (readonly [value: string, title: string, hint: string])[];
  onChange(value: string): void;
}

const Choice = ({ label, path, value, choices, onChange }: ChoiceProps) => (
  <Field label={label} path={path} hint={choices.find(([one]) => one === value)?.[2]}>
    {(control) => (
      <Select {...control} value={value} onChange={(event) => onChange(event.target.value)} options={choices.map(([one, title]) => [one, title] as const)} />
    )}
  </Field>
);
