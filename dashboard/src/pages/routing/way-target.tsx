import { clsx } from "clsx";
import { ArrowDown, Minus } from "lucide-react";
import type { ProviderAccount, TargetResolution } from "waypost";
import { count } from "@/format";
import type { Health } from "@/pages/providers/health";
import { AccountChip } from "./path";
import { shareText } from "./senders";
import { CallsNow, Stop } from "./way-stop";

interface TargetProps {
  target: TargetResolution;
  account: ProviderAccount | undefined;
  health: Health | undefined;
  domain: string;
  /** What becomes of mail over a cap. */
  overCap: string | undefined;
}

/** One of the accounts that share the mail: its part now, and what its caps leave. */
export function Target({ target, account, health, domain, overCap }: TargetProps) {
  const isUsed = target.passedOver === null;
  return (
    <Stop
      icon={isUsed ? <ArrowDown /> : <Minus />}
      tone={isUsed ? "good" : "skipped"}
      title={<AccountChip id={target.providerAccountId} account={account} />}
      aside={isUsed ? `gets ${shareText(target.share)}` : "gets nothing"}
    >
      {targetText(target, account, domain)}
      {isUsed && (
        <>
          {target.rampState === "held" && <span className="mt-0.5 block text-amber">Its warm-up is held: its cap does not grow now.</span>}
          {typeof target.healthPercent === "number" && target.healthPercent < 100 && (
            <span className="mt-0.5 block text-amber">Its mail fails too often now: {target.healthPercent} % of its weight counts.</span>
          )}
          <Used name="Today" used={target.usedToday} cap={target.dailyCap} overCap={overCap} />
          <Used name="This hour" used={target.usedThisHour} cap={target.hourlyCap} overCap={overCap} />
        </>
      )}
      <CallsNow account={account} health={health} />
    </Stop>
  );
}

function targetText(target: TargetResolution, account: ProviderAccount | undefined, domain: string): string {
  switch (target.passedOver) {
    case "PROVIDER_INACTIVE":
      return "Passed over: the account is paused.";
    case "DOMAIN_NOT_VERIFIED":
      return `Passed over: ${domain} is not verified here.`;
    case "RAMP_NOT_BEGUN":
      return "Passed over: its warm-up has not begun.";
    case "REGION":
      return "Passed over: the account is not in the region of the rule.";
    case null:
      if (account && account.sendingPausedReason !== null) return `Cannot send now: the provider refuses its mail (${account.sendingPausedReason}).`;
      return target.domainVerified ? `${domain} is verified here.` : `${domain} is not known to be verified here, but the mail is taken.`;
    default:
      return `Passed over: ${target.passedOver}`;
  }
}

interface UsedProps {
  name: string;
  used: number;
  cap: number | null;
  overCap: string | undefined;
}

/** How much of a cap is used. */
function Used({ name, used, cap, overCap }: UsedProps) {
  if (cap === null) return null;
  const isFull = used >= cap;
  return (
    <span className={clsx("mt-1.5 block tabular", isFull && "text-amber")}>
      {name}: {count(used)} of {count(cap)} recipients
      {isFull && (overCap === "wait" ? "; the mail waits" : "; the next account sends")}
      <span aria-hidden className="mt-1 block h-1 max-w-64 overflow-hidden rounded-full bg-sunken">
        <span
          className={clsx("block h-full rounded-full", isFull ? "bg-amber" : "bg-accent")}
          style={{ width: `${Math.min(100, (used / cap) * 100)}%` }}
        />
      </span>
    </span>
  );
}
