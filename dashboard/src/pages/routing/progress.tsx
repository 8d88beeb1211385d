import { useQuery } from "@tanstack/react-query";
import { clsx } from "clsx";
import { type ProviderAccount, type RoutingRampProgress, type RoutingRampStep, type RoutingRule, type RoutingTargetProgress, WaypostError } from "waypost";
import { waypost } from "@/api";
import { count, date, percent, words } from "@/format";
import { Badge, type Tone } from "@/ui/badge";
import { Disclosure } from "@/ui/disclosure";
import { Card, LoadError, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";
import { AccountChip } from "./path";

/** What the accounts of a rule used of their caps, and how their warm-ups do. */
export function Progress({ rule, accounts }: { rule: RoutingRule; accounts: readonly ProviderAccount[] }) {
  const progress = useQuery({
    // Below the key of the rules: a change of the rule makes it stale.
    queryKey: ["routing-rules", "progress", rule.id],
    queryFn: ({ signal }) => waypost.routingRules.getProgress(rule.id, { signal }),
    refetchInterval: 30_000,
  });
  // The rule was removed meanwhile.
  if (progress.error instanceof WaypostError && progress.error.status === 404) return null;
  return (
    <Card className="mb-5" title="Progress" description="What each account used of its caps, and how its warm-up does. The hour and the day are those of UTC." flush>
      {progress.data ? (
        <ul>
          {progress.data.targets.map((target) => (
            <li key={target.providerAccountId} className="space-y-2.5 border-b border-line px-4 py-3.5 last:border-0 sm:px-5">
              <OneTarget target={target} account={accounts.find((account) => account.id === target.providerAccountId)} />
            </li>
          ))}
        </ul>
      ) : progress.error ? (
        <LoadError error={progress.error} retry={() => void progress.refetch()} />
      ) : (
        <SkeletonRows rows={2} />
      )}
    </Card>
  );
}

function OneTarget({ target, account }: { target: RoutingTargetProgress; account: ProviderAccount | undefined }) {
  const { ramp, dailyCap, hourlyCap } = target;
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1.5">
        <AccountChip id={target.providerAccountId} account={account} />
        {ramp && <Badge tone={STATES[ramp.state]?.[1] ?? "gray"}>{STATES[ramp.state]?.[0] ?? words(ramp.state)}</Badge>}
      </div>
      {dailyCap === null && hourlyCap === null ? (
        <p className="text-[13px] text-text-3">No cap: its weight alone decides what it gets.</p>
      ) : (
        <div className="grid gap-x-6 gap-y-2 sm:grid-cols-2">
          {dailyCap !== null && <UsedBar name="Today" used={target.usedToday} cap={dailyCap} />}
          {hourlyCap !== null && <UsedBar name="This hour" used={target.usedThisHour} cap={hourlyCap} />}
        </div>
      )}
      {ramp && <WarmUpState ramp={ramp} />}
    </>
  );
}

/** How much of a cap is used. */
function UsedBar({ name, used, cap }: { name: string; used: number; cap: number }) {
  const isFull = used >= cap;
  return (
    <div className="min-w-0 text-[13px]">
      <div className={clsx("flex justify-between gap-3 tabular", isFull ? "text-amber" : "text-text-2")}>
        <span>{name}</span>
        <span>
          {count(used)} of {count(cap)}
        </span>
      </div>
      <div aria-hidden className="mt-1 h-1.5 overflow-hidden rounded-full bg-sunken">
        <div className={clsx("h-full rounded-full", isFull ? "bg-amber" : "bg-accent")} style={{ width: `${cap > 0 ? Math.min(100, (used / cap) * 100) : 0}%` }} />
      </div>
    </div>
  );
}

const STATES: Record<string, [word: string, tone: Tone]> = {
  notBegun: ["Warm-up not begun", "gray"],
  growing: ["Warming up", "blue"],
  held: ["Warm-up held", "amber"],
  finished: ["Warm-up finished", "green"],
};

function WarmUpState({ ramp }: { ramp: RoutingRampProgress }) {
  return (
    <div className="space-y-2 text-[13px] text-text-2">
      <p>
        {stateText(ramp)} {ratesText(ramp)}
      </p>
      {ramp.steps.length > 0 && (
        <Disclosure title="Steps" summary={`${ramp.steps.length}, the last: ${actionText(ramp.steps[0]!.action).toLowerCase()}`}>
          <ol className="-mt-2 space-y-1.5">
            {ramp.steps.map((step) => (
              <Step key={step.at + step.action} step={step} />
            ))}
          </ol>
        </Disclosure>
      )}
    </div>
  );
}

function stateText({ state, cap, nextStepOn }: RoutingRampProgress): string {
  const next = nextStepOn ? date(nextStepOn) : undefined;
  switch (state) {
    case "notBegun":
      return `It takes nothing before its first day${next ? `, ${next}` : ""}.`;
    case "growing":
      return `At most ${count(cap)} recipients today${next ? `; the next step is on ${next}` : ""}.`;
    case "held":
      return `At most ${count(cap)} recipients a day, and no step until its rates are within their bounds again.`;
    case "finished":
      return "The warm-up limits it no more.";
    default:
      return `At most ${count(cap)} recipients today.`;
  }
}

function ratesText({ bounceRate, complaintRate, sent }: RoutingRampProgress): string {
  if (bounceRate === null || complaintRate === null) return sent > 0 ? `Its ${count(sent)} mails are too few to know its rates.` : "";
  return `Of ${count(sent)} mails of the account ${percent(bounceRate)} bounced and ${percent(complaintRate)} were reported as spam.`;
}

const ACTIONS: Record<string, string> = {
  begin: "Begun",
  step: "Raised",
  hold: "Held",
  halve: "Halved",
  resume: "Goes on",
  finish: "Finished",
};

const actionText = (action: string): string => ACTIONS[action] ?? words(action);

function Step({ step }: { step: RoutingRampStep }) {
  const rates = [step.bounceRate !== null && `${percent(step.bounceRate)} bounced`, step.complaintRate !== null && `${percent(step.complaintRate)} complained`];
  return (
    <li className="flex flex-wrap gap-x-3">
      <span className="w-24 shrink-0 text-text-3">
        <Time at={step.at} />
      </span>
      <span className="w-16 shrink-0 font-medium text-text">{actionText(step.action)}</span>
      <span className="tabular">{step.capBefore === step.capAfter ? count(step.capAfter) : `${count(step.capBefore)} → ${count(step.capAfter)}`}</span>
      <span className="text-text-3">{rates.filter(Boolean).join(", ")}</span>
    </li>
  );
}
