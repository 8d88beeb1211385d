import { count, date } from "@/format";
import { Disclosure } from "@/ui/disclosure";
import { Checkbox, Field, Input, issueAt } from "@/ui/form";
import { type Draft, type RampDraft, wholeOf } from "./draft";

const DAY = 86_400_000;
/** The highest cap that the API takes. */
const HIGHEST = 100_000_000;

const today = (): string => new Date().toISOString().slice(0, 10);

interface WarmUpProps {
  /** Where the API names it in an issue: `targets.1.ramp`. */
  path: string;
  ramp: RampDraft | undefined;
  dailyCap: string;
  error: unknown;
  onChange(ramp: RampDraft | undefined): void;
}

/** How the daily cap of an account grows. */
export function WarmUp({ path, ramp, dailyCap, error, onChange }: WarmUpProps) {
  const input = (name: keyof RampDraft, label: string, hint?: string, type?: "date") => (
    <Field label={label} path={`${path}.${name}`} hint={hint}>
      {(control) => (
        <Input
          {...control}
          type={type}
          inputMode={type ? undefined : "decimal"}
          value={ramp?.[name] ?? ""}
          onChange={(event) => ramp && onChange({ ...ramp, [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Disclosure title="Warm-up" summary={ramp ? rampText(ramp, dailyCap) : "none"} open={issueAt(error, path) ?? !!ramp}>
      <Checkbox
        label="Raise the daily cap step by step"
        hint="For an account that has not sent much yet: mailbox providers distrust much mail from a new sender."
        checked={!!ramp}
        onChange={(checked) => onChange(checked ? { start: "500", factor: "2", everyDays: "1", from: today() } : undefined)}
      />
      {ramp && (
        <>
          <div className="grid grid-cols-2 items-start gap-3 sm:grid-cols-4">
            {input("start", "First day's cap")}
            {input("factor", "Factor of a step")}
            {input("everyDays", "Days of a step")}
            {input("from", "First day", undefined, "date")}
          </div>
          <p className="text-[13px] text-text-3">{rampText(ramp, dailyCap)}</p>
        </>
      )}
    </Disclosure>
  );
}

/** "500 on the first day, 50,000 on 5 Dec 2026": when the daily cap is reached if every step is taken. */
export function rampText(ramp: RampDraft, dailyCap: string): string {
  const [start, factor, days] = [Number(wholeOf(ramp.start)), Number(ramp.factor), Number(wholeOf(ramp.everyDays))];
  const from = Date.parse(ramp.from);
  if (![start, factor, days, from].every(Number.isFinite) || start < 1 || factor <= 1 || days < 1) return "";
  const first = `${count(start)} recipients on ${date(new Date(from))}`;
  const cap = Number(wholeOf(dailyCap));
  if (!Number.isFinite(cap) || cap < 1) return `${first}, then more without an end: there is no daily cap.`;
  if (start >= cap) return `${first}: the daily cap is reached at once.`;
  const steps = Math.ceil(Math.log(Math.min(cap, HIGHEST) / start) / Math.log(factor) - 1e-9);
  return `${first}, the daily cap of ${count(cap)} from ${date(new Date(from + steps * days * DAY))} on, if no step is held.`;
}

/** The rates of an account beyond which its cap does not grow. */
export function RampBounds({ draft, change }: { draft: Draft; change(part: Partial<Draft>): void }) {
  const input = (name: "bounceRate" | "complaintRate", label: string) => (
    <Field label={label} path={`rampBounds.${name}`}>
      {(control) => (
        <div className="flex items-center gap-2">
          <Input {...control} inputMode="decimal" value={draft[name]} onChange={(event) => change({ [name]: event.target.value })} className="max-w-24" />
          <span aria-hidden className="text-text-3">
            %
          </span>
        </div>
      )}
    </Field>
  );
  return (
    <div className="space-y-1.5">
      <div className="grid grid-cols-2 gap-3">
        {input("bounceRate", "Bounces at most (%)")}
        {input("complaintRate", "Complaints at most (%)")}
      </div>
      <p className="text-[13px] text-text-3">
        While an account is above one of them, its warm-up takes no step; above twice as much, its cap is halved. The rates are those of all mail of the
        account in the last 24 hours.
      </p>
    </div>
  );
}
