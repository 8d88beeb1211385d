import { clsx } from "clsx";
import type { ReactNode } from "react";
import { words } from "@/format";

export type Tone = "gray" | "green" | "blue" | "amber" | "red" | "violet";

const TONES: Record<Tone, string> = {
  gray: "bg-gray-soft text-text-2",
  green: "bg-green-soft text-green",
  blue: "bg-blue-soft text-blue",
  amber: "bg-amber-soft text-amber",
  red: "bg-red-soft text-red",
  violet: "bg-violet-soft text-violet",
};

export function Badge({ tone = "gray", children, dot }: { tone?: Tone; children: ReactNode; dot?: boolean }) {
  return (
    <span className={clsx("inline-flex items-center gap-1.5 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap", TONES[tone])}>
      {dot && <span aria-hidden className="size-1.5 rounded-full bg-current" />}
      {children}
    </span>
  );
}

/** What the names of statuses, events and outcomes mean, good or bad. */
const STATUS: Record<string, Tone> = {
  QUEUED: "gray",
  SCHEDULED: "violet",
  SENDING: "blue",
  SENT: "blue",
  DELIVERED: "green",
  OPENED: "violet",
  CLICKED: "violet",
  BOUNCED: "red",
  COMPLAINED: "red",
  FAILED: "red",
  DROPPED: "red",
  SUPPRESSED: "amber",
  DEFERRED: "amber",
  UNSUBSCRIBED: "amber",
  ACCEPTED: "green",
  REJECTED: "red",
  THROTTLED: "amber",
  UNAVAILABLE: "amber",
  UNKNOWN: "amber",
  PENDING: "blue",
  SUCCEEDED: "green",
  SUCCESS: "green",
  VERIFIED: "green",
  UNVERIFIED: "amber",
};

/** A status as a coloured word: `DELIVERED` is a green "Delivered". */
export function Status({ status }: { status: string }) {
  return (
    <Badge dot tone={STATUS[status.toUpperCase()] ?? "gray"}>
      {words(status)}
    </Badge>
  );
}

export const statusTone = (status: string): Tone => STATUS[status.toUpperCase()] ?? "gray";
