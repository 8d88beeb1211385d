/** Small things that several pages of accounts show. */

import { clsx } from "clsx";
import type { ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { Badge } from "@/ui/badge";
import { circuitState, type Health } from "./health";
import { accountState } from "./queries";

const LETTERS: Record<string, string> = { SENDGRID: "SG", POSTMARK: "PM", MAILGUN: "MG", SES: "SES", SMTP: "@" };

/** A square with the letters of a provider, to tell accounts apart at a glance. */
export function ProviderMark({ type, small }: { type: string; small?: boolean }) {
  return (
    <span
      aria-hidden
      title={providerName(type)}
      className={clsx(
        "inline-flex shrink-0 items-center justify-center rounded-md border border-line bg-sunken font-semibold text-text-2",
        small ? "size-6 text-[9px]" : "size-9 text-xs",
      )}
    >
      {LETTERS[type] ?? type.slice(0, 2)}
    </span>
  );
}

/** What an account does now. Calls that are stopped count for more than that the account is active. */
export function AccountBadge({ account, health }: { account: ProviderAccount; health?: Health | undefined }) {
  const state = accountState(account);
  const circuit = health && circuitState(health);
  const failing = state.tone === "green" && circuit && circuit.tone !== "green" ? circuit : state;
  return (
    <Badge dot tone={failing.tone}>
      {failing.word}
    </Badge>
  );
}

/** Whether events of the account are known to arrive. */
export function EventsBadge({ account }: { account: ProviderAccount }) {
  if (account.providerType === "SMTP") return <span className="text-text-3">none</span>;
  return account.eventsVerified ? (
    <Badge tone="green">Verified</Badge>
  ) : (
    <Badge tone="amber">Not yet</Badge>
  );
}

/** The limits that a person set. */
export function limitsText({ maxRatePerSecond, maxConcurrency }: ProviderAccount): string {
  const parts = [
    maxRatePerSecond !== null && `${maxRatePerSecond}/s`,
    maxConcurrency !== null && `${maxConcurrency} at once`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "none";
}
